"""What Azure's errors mean, in one place.

Sources: learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors,
learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes and
learn.microsoft.com/entra/identity-platform/reference-error-codes. The code counts before the HTTP status: an operation
that fails later has the status of the call that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.core.pipeline import PipelineResponse

from domain.errors import Code, TrellisError

__all__ = ["attempting", "raise_if_passing"]

_BUSY = {
    "AnotherOperationInProgress", "CanceledAndSupersededDueToAnotherOperation", "Conflict", "ConcurrentUpdateError",
    "OperationPreempted", "PreconditionFailed", "ReferencedResourceNotProvisioned", "ResourceGroupBeingDeleted",
    "ResourceGroupDeletionBlocked", "ResourceGroupDeletionTimeout", "ResourceNotProvisioned", "RetryableError",
    "RetryableErrorDueToAnotherOperation", "VnetInUse",
}  # fmt: skip
_IN_USE = re.compile(r"InUse\w*CannotBe(Deleted|Updated)$|CannotBeDeleted$|InUseBy\w+$")
_FORBIDDEN = {
    "AuthorizationFailed", "DisallowedOperation", "InvalidSubscriptionId", "LinkedAuthorizationFailed",
    "MissingSubscriptionRegistration", "ReadOnlyDisabledSubscription", "RequestDisallowedByPolicy",
    "SubscriptionNotFound", "SubscriptionNotRegistered",
}  # fmt: skip
_BAD_CREDENTIALS = {
    "AuthenticationFailed", "ExpiredAuthenticationToken", "InvalidAuthenticationToken",
    "InvalidAuthenticationTokenTenant",
}  # fmt: skip
_LOCKED = {"ScopeLocked"}
_NOT_FOUND = {"NotFound", "ParentResourceNotFound", "ResourceGroupNotFound", "ResourceNotFound"}
_CONFLICT = {
    "InUsePrefixCannotBeDeleted", "InvalidResourceGroupLocation", "InvalidResourceLocation",
    "NetcfgSubnetRangesOverlap", "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet", "VnetAddressSpacesOverlap",
}  # fmt: skip
_THROTTLED = {"OperationNotAllowedDueToThrottling", "SubscriptionRequestsThrottled", "TooManyRequests"}
_QUOTA = re.compile(r"(CountLimitReached|LimitExceeded|QuotaExceeded)$")
_QUOTA_TEXT = re.compile(r"quota", re.IGNORECASE)
_AADSTS = re.compile(r"AADSTS\d+")
_PASSING = {"AADSTS90033": Code.UNAVAILABLE, "AADSTS90055": Code.THROTTLED}

_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
# Not 404: what is not Azure's own "not found" says nothing about what is there.
_BY_STATUS = {401: Code.FORBIDDEN, 403: Code.FORBIDDEN, 412: Code.BUSY, 429: Code.THROTTLED}
_HINTS = {
    Code.THROTTLED: "tried again by itself, more slowly",
    Code.BUSY: "tried again by itself",
    Code.UNAVAILABLE: "tried again by itself",
    Code.NOT_FOUND: "",
    Code.BLOCKED: "remove the lock, or have its owner do it; the deletion then goes on by itself",
    Code.CONFLICT: "remove what is in the way, or choose other ranges",
    Code.FORBIDDEN: "give the service principal a role with this permission on the subscription, then retry",
    Code.INVALID: "Azure refuses the request as it is: change the parameter it names",
}
_MESSAGE_LIMIT = 300
_TOKENS = re.compile(r"eyJ[\w-]+\.[\w-]+(\.[\w-]*)?")


@contextmanager
def attempting(what: str, *, subscription: str, effect: bool = True) -> Iterator[None]:
    """Turns every error of Azure's SDK inside the block into a `TrellisError` that begins with `what` was tried.

    `effect` says whether the call changes anything: only then a lost answer leaves its effect unknown.
    What was not found has code `not-found`; the caller knows whether that is gone, lost, or not visible yet.
    """
    try:
        yield
    except AzureError as error:
        raise _translated(what, subscription, error, effect=effect) from None
    except ValueError as error:
        # azure-identity on what can be no tenant. Its texts are not passed on.
        if "tenant" not in str(error).lower():
            raise
        raise _bad_credentials(what, "there can be no such tenant") from None


def raise_if_passing(response: PipelineResponse[Any, Any]) -> None:
    """A hook on Entra ID's answers: throttling and failures are told as such, which msal takes for bad credentials."""
    status = response.http_response.status_code
    if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR:
        raise HttpResponseError(response=response.http_response)


def _translated(what: str, subscription: str, error: AzureError, *, effect: bool) -> TrellisError:
    match error:
        case ClientAuthenticationError(__cause__=AzureError() as cause):
            # azure-identity says that it got no token; the cause is why. Nothing was asked of Azure itself yet.
            return _translated(what, subscription, cause, effect=False)
        case ClientAuthenticationError():
            return _unauthenticated(what, error)
        case HttpResponseError(status_code=None, error=None) | DecodeError() | ServiceResponseError():
            return _unanswered(what, error, effect=effect)
        case HttpResponseError():
            return _refused(what, subscription, error)
        case ServiceRequestError():
            return TrellisError(
                Code.UNAVAILABLE,
                f"{what}: Azure cannot be reached ({type(error).__name__})",
                "tried again by itself; check the worker's network, AZURE_AUTHORITY_HOST and "
                "AZURE_RESOURCE_MANAGER_ENDPOINT if it stays so",
            )
        case _:
            return TrellisError(Code.INVALID, f"{what}: {type(error).__name__}: {_safe(str(error))}")


def _unanswered(what: str, error: Exception, *, effect: bool) -> TrellisError:
    if effect:
        return TrellisError(
            Code.LOST_RESPONSE,
            f"{what}: Azure's answer was lost ({type(error).__name__}), so its effect is unknown",
            "tried again by itself: what was made is looked up by its name and adopted",
        )
    text = f"{what}: no answer from Azure ({type(error).__name__})"
    return TrellisError(Code.UNAVAILABLE, text, "tried again by itself")


def _unauthenticated(what: str, error: ClientAuthenticationError) -> TrellisError:
    # The texts of these may repeat parts of the request; only the number is passed on.
    number = _AADSTS.search(str(error.message))
    if number and number[0] in _PASSING:
        code = _PASSING[number[0]]
        return TrellisError(code, f"{what}: Entra ID gives no token now ({number[0]})", _HINTS[code])
    return _bad_credentials(what, number[0] if number else str(getattr(error.error, "code", "") or "no token"))


def _bad_credentials(what: str, reason: str) -> TrellisError:
    return TrellisError(
        Code.FORBIDDEN,
        f"{what}: Azure does not accept the credentials ({reason})",
        "check the service principal in the Secret behind the CredentialsBinding (clientID, clientSecret, tenantID), "
        "and the worker's clock",
    )


def _refused(what: str, subscription: str, error: HttpResponseError) -> TrellisError:
    status, reason = error.status_code or 0, str(getattr(error.error, "code", "") or "")
    text = str(getattr(error.error, "message", "") or error.message)
    code = _code_of(status, reason, text)
    if reason in _BAD_CREDENTIALS:
        return _bad_credentials(what, reason)
    if code is Code.THROTTLED:
        return TrellisError(code, f"{what}: Azure asks for fewer calls ({reason or status})", _HINTS[code])
    said = f"{what}: {reason or status}: {_safe(text)}"
    if code is Code.QUOTA:
        return TrellisError(
            code,
            said,
            f"raise it under 'Usage + quotas' of subscription {subscription} in the Azure portal, or remove what is no "
            "longer used; then retry",
        )
    return TrellisError(code, said, _HINTS[code])


def _code_of(status: int, reason: str, text: str) -> Code:
    for code, reasons in (
        (Code.NOT_FOUND, _NOT_FOUND),
        (Code.BUSY, _BUSY),
        (Code.FORBIDDEN, _FORBIDDEN | _BAD_CREDENTIALS),
        (Code.BLOCKED, _LOCKED),
        (Code.CONFLICT, _CONFLICT),
        (Code.THROTTLED, _THROTTLED),
    ):
        if reason in reasons:
            return code
    if _QUOTA.search(reason) or (reason == "OperationNotAllowed" and _QUOTA_TEXT.search(text)):
        return Code.QUOTA
    if _IN_USE.search(reason):
        return Code.BUSY
    if status >= _SERVER_ERROR or reason in {"InternalServerError", "ServerTimeout"}:
        return Code.UNAVAILABLE
    return _BY_STATUS.get(status, Code.INVALID)


def _safe(text: str) -> str:
    text = _TOKENS.sub("***", " ".join(text.split()))
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}…"
