"""What Azure's errors mean to Trellis."""

from __future__ import annotations

from typing import Any

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ODataV4Format,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseTimeoutError,
)
from azure.core.rest import HttpRequest
from azure.mgmt.core.exceptions import ARMErrorFormat

from activities.clouds.azure._errors import attempting
from domain.errors import Code, TrellisError


class _Answer:
    """An answer of Azure, as azure-core reads it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status_code, self.reason, self.content_type = status, "", "application/json"
        self.request = HttpRequest("PUT", "https://management.azure.com")
        self._text = f'{{"error": {{"code": "{code}", "message": "{message}"}}}}' if code else "<html>"
        self.headers: dict[str, str] = {}

    def text(self, encoding: str | None = None) -> str:
        return self._text

    def body(self) -> bytes:
        return self._text.encode()


def _answer(code: str, status: int = 400, message: str = "Azure says so", kind: Any = HttpResponseError) -> AzureError:
    error: AzureError = kind(response=_Answer(status, code, message), error_format=ARMErrorFormat)
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (_answer("SubscriptionRequestsThrottled", 429), Code.THROTTLED),
        (_answer("Whatever", 429), Code.THROTTLED),
        (_answer("RetryableError", 429), Code.BUSY),
        (_answer("AnotherOperationInProgress", 409), Code.BUSY),
        (_answer("PreconditionFailed", 412), Code.BUSY),
        (_answer("InUseSubnetCannotBeDeleted"), Code.BUSY),
        (_answer("PublicIPAddressCannotBeDeleted"), Code.BUSY),
        (_answer("ResourceGroupDeletionBlocked", 409), Code.BUSY),
        (_answer("ScopeLocked", 409), Code.BLOCKED),
        (_answer("VnetCountLimitReached"), Code.QUOTA),
        (_answer("ResourceGroupQuotaExceeded", 409), Code.QUOTA),
        (_answer("OperationNotAllowed", 409, "Operation results in exceeding quota limits of Core."), Code.QUOTA),
        (_answer("AuthorizationFailed", 403), Code.FORBIDDEN),
        (_answer("RequestDisallowedByPolicy", 403), Code.FORBIDDEN),
        (_answer("MissingSubscriptionRegistration", 409), Code.FORBIDDEN),
        (_answer("SubscriptionNotFound", 404, kind=ResourceNotFoundError), Code.FORBIDDEN),
        (_answer("InvalidAuthenticationToken", 401, kind=ClientAuthenticationError), Code.FORBIDDEN),
        (_answer("ResourceNotFound", 404, kind=ResourceNotFoundError), Code.NOT_FOUND),
        (_answer("ResourceGroupNotFound", 404, kind=ResourceNotFoundError), Code.NOT_FOUND),
        # A 404 that is not Azure's own says nothing about what is there.
        (_answer("", 404, kind=ResourceNotFoundError), Code.INVALID),
        (_answer("NetcfgSubnetRangesOverlap"), Code.CONFLICT),
        (_answer("InvalidResourceGroupLocation", 409), Code.CONFLICT),
        (_answer("NetcfgInvalidSubnet"), Code.INVALID),
        (_answer("InternalServerError", 500), Code.UNAVAILABLE),
        (_answer("", 503), Code.UNAVAILABLE),
        (ServiceResponseTimeoutError("read timed out"), Code.LOST_RESPONSE),
        (HttpResponseError("Response ended prematurely"), Code.LOST_RESPONSE),
        (ServiceRequestError("refused"), Code.UNAVAILABLE),
        (ClientAuthenticationError("Authentication failed: AADSTS90033: transient"), Code.UNAVAILABLE),
        (ClientAuthenticationError("Authentication failed: AADSTS7000215: invalid"), Code.FORBIDDEN),
    ],
)
def test_every_error_of_azure_has_its_code_and_says_what_was_tried(error: Exception, code: Code) -> None:
    with pytest.raises(TrellisError, match="make it") as caught, attempting("make it", subscription="s"):
        raise error
    assert caught.value.failure.code is code
    assert caught.value.__suppress_context__


def test_an_operation_that_fails_later_counts_by_its_own_code() -> None:
    error = HttpResponseError("Operation returned an invalid status 'OK'")
    error.status_code = 200
    error.error = ODataV4Format({"code": "VnetCountLimitReached", "message": "Cannot create more than 1000"})
    with pytest.raises(TrellisError) as caught, attempting("make it", subscription="s"):
        raise error
    assert caught.value.failure.code is Code.QUOTA


def test_a_lost_answer_to_a_question_is_no_lost_effect() -> None:
    with pytest.raises(TrellisError) as caught, attempting("look", subscription="s", effect=False):
        raise ServiceResponseTimeoutError("read timed out")
    assert caught.value.failure.code is Code.UNAVAILABLE


def test_no_token_comes_back_in_a_message() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJhcHBpZCI6InNvbWUifQ.c2lnbmF0dXJl"
    with pytest.raises(TrellisError) as caught, attempting("make it", subscription="s"):
        raise _answer("InvalidRequest", 400, f"the header was Bearer {token}")
    assert "eyJ" not in str(caught.value)
