"""GCP: what its errors mean, and the names of what Trellis makes there."""

from __future__ import annotations

import re

import pytest
from google.api_core.exceptions import GoogleAPICallError, RetryError, from_http_status
from google.auth.exceptions import InvalidOperation, RefreshError, TransportError
from google.cloud import compute_v1
from google.protobuf.json_format import ParseError
from hypothesis import given
from hypothesis import strategies as st
from requests.exceptions import ChunkedEncodingError, ConnectTimeout, InvalidURL, ReadTimeout
from requests.exceptions import ConnectionError as RequestsConnectionError

from activities.clouds.gcp._errors import attempting, failed
from activities.clouds.gcp._marks import Mark, network_name, router_name
from domain.errors import Code, TrellisError

PROJECT = "trellis-sandbox"
REGION = "europe-west3"


@given(st.text("abz09-", min_size=1, max_size=50), st.integers(0, 4))
def test_every_name_is_one_that_gcp_takes(vpc: str, router: int) -> None:
    mark = Mark(installation="i", tenant="t", vpc=vpc, incarnation="1", region=REGION)
    name = network_name(mark)
    for each in (name, router_name(name, router)):
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", each)
    assert Mark.read(str(mark)) == mark


@pytest.mark.parametrize("field", ["installation", "tenant", "vpc", "incarnation", "region"])
def test_no_two_networks_have_the_same_name(field: str) -> None:
    values = {"installation": "i", "tenant": "t", "vpc": "v" * 45, "incarnation": "1", "region": REGION}
    one = network_name(Mark(**values))
    assert one != network_name(Mark(**{**values, field: values[field] + "x"}))


@pytest.mark.parametrize("description", ["", "my own network", "{}", '{"trellis.dev/vpc": "a"}', "null", "[1]"])
def test_what_says_nothing_of_us_is_not_ours(description: str) -> None:
    assert Mark.read(description) is None


def _answer(status: int, reason: str, message: str = "GCP says so") -> GoogleAPICallError:
    errors = [{"domain": "global", "reason": reason, "message": message}]
    return from_http_status(status, f"POST https://x: {message}", errors=errors)


PEERING = "There is a peering operation in progress on the local or peer network. Try again later."
OVERLAP = "Invalid IPCidrRange: 10.0.0.0/24 conflicts with existing subnetwork 'a' in region 'b'."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (_answer(403, "rateLimitExceeded"), Code.THROTTLED),
        (_answer(403, "userRateLimitExceeded"), Code.THROTTLED),
        (_answer(429, "whatever"), Code.THROTTLED),
        (_answer(403, "quotaExceeded", "Quota 'NETWORKS' exceeded.  Limit: 5.0 globally."), Code.QUOTA),
        (_answer(403, "quotaExceeded", "Quota exceeded for quota metric 'Read requests' per minute"), Code.THROTTLED),
        (_answer(403, "forbidden"), Code.FORBIDDEN),
        (_answer(403, "accessNotConfigured"), Code.FORBIDDEN),
        (_answer(403, "somethingNew"), Code.FORBIDDEN),
        (_answer(401, "authError"), Code.FORBIDDEN),
        (_answer(404, "notFound"), Code.NOT_FOUND),
        (_answer(409, "alreadyExists"), Code.CONFLICT),
        (_answer(400, "resourceNotReady"), Code.BUSY),
        (_answer(400, "resourceInUseByAnotherResource"), Code.BUSY),
        (_answer(400, "badRequest", PEERING), Code.BUSY),
        (_answer(412, "conditionNotMet"), Code.BUSY),
        (_answer(400, "invalid", OVERLAP), Code.CONFLICT),
        (_answer(400, "invalid", "Invalid value for field 'resource.name': 'A'."), Code.INVALID),
        (_answer(400, "required"), Code.INVALID),
        (_answer(500, "internalError"), Code.UNAVAILABLE),
        (_answer(503, "backendError"), Code.UNAVAILABLE),
        (_answer(502, ""), Code.UNAVAILABLE),
        (RetryError("too long", _answer(403, "rateLimitExceeded")), Code.THROTTLED),
        (RetryError("too long", ReadTimeout("x")), Code.LOST_RESPONSE),
        (ReadTimeout("x"), Code.LOST_RESPONSE),
        (ChunkedEncodingError("x"), Code.LOST_RESPONSE),
        (RequestsConnectionError("Connection aborted."), Code.LOST_RESPONSE),
        (ParseError("half an answer"), Code.LOST_RESPONSE),
        (ConnectTimeout("x"), Code.UNAVAILABLE),
        (InvalidURL("x"), Code.UNAVAILABLE),
        (TransportError("x"), Code.UNAVAILABLE),
        (RefreshError("invalid_grant", {}), Code.FORBIDDEN),
        (InvalidOperation("anonymous"), Code.FORBIDDEN),
    ],
)
def test_every_error_of_gcp_has_its_code_and_says_what_was_tried(error: Exception, code: Code) -> None:
    with pytest.raises(TrellisError, match="make it") as caught, attempting("make it", project=PROJECT):
        raise error
    assert caught.value.failure.code is code
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [
        ("QUOTA_EXCEEDED", 403, Code.QUOTA),
        ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", 400, Code.BUSY),
        ("RESOURCE_NOT_FOUND", 404, Code.NOT_FOUND),
        ("RESOURCE_ALREADY_EXISTS", 409, Code.CONFLICT),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", 403, Code.THROTTLED),
        ("PERMISSIONS_ERROR", 403, Code.FORBIDDEN),
        ("INTERNAL_ERROR", 500, Code.UNAVAILABLE),
        ("INVALID_USAGE", 400, Code.INVALID),
    ],
)
def test_an_operation_that_failed_has_the_same_codes(reason: str, status: int, code: Code) -> None:
    error = compute_v1.Error(errors=[compute_v1.Errors(code=reason, message="GCP says so")])
    operation = compute_v1.Operation(error=error, http_error_status_code=status)
    found = failed("make it", PROJECT, operation).failure
    assert found.code is code
    assert found.message.startswith(f"make it: {reason}: GCP says so")


def test_a_lost_answer_to_a_question_is_no_lost_effect() -> None:
    with pytest.raises(TrellisError) as caught, attempting("look", project=PROJECT, effect=False):
        raise ReadTimeout("x")
    assert caught.value.failure.code is Code.UNAVAILABLE


@pytest.mark.parametrize("secret", ["ya29.abc-DEF_1", "eyJhbGciOi.eyJpc3Mi.c2ln", "-----BEGIN PRIVATE KEY-----\nabc"])
def test_no_credential_comes_back_in_a_message(secret: str) -> None:
    with pytest.raises(TrellisError) as caught, attempting("make it", project=PROJECT):
        raise _answer(400, "invalid", f"the token {secret}")
    assert secret not in str(caught.value)
    assert "abc" not in str(caught.value)
