"""What Compute Engine's errors mean, in one place.

Sources: cloud.google.com/compute/docs/troubleshooting/troubleshooting-api-errors and
cloud.google.com/compute/docs/troubleshooting/troubleshooting-apis. A call that is refused at once names a `reason` in
camel case, an operation that fails a `code` in capitals; both are the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.exceptions import GoogleAuthError, RefreshError, TransportError
from google.protobuf.json_format import ParseError
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ConnectTimeout, InvalidURL, ProxyError, RequestException, SSLError
from urllib3.exceptions import MaxRetryError, NewConnectionError

from domain.errors import Code, TrellisError

__all__ = ["attempting", "failed", "is_passing"]

_THROTTLED = {
    "OPERATION_RATE_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED", "RESOURCE_OPERATION_RATE_EXCEEDED",
    "USER_RATE_LIMIT_EXCEEDED",
}  # fmt: skip
_BUSY = {
    "CONDITION_NOT_MET", "OPERATION_IN_PROGRESS", "RESOURCE_IN_USE", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
    "RESOURCE_NOT_READY",
}  # fmt: skip
_QUOTA = {"LIMIT_EXCEEDED", "QUOTA_EXCEEDED", "QUOTA_LIMIT_EXCEEDED", "TOO_MANY_RESOURCES"}
_BAD_CREDENTIALS = {"AUTH_ERROR", "CREDENTIALS_MISSING", "EXPIRED", "REQUIRED_AUTHENTICATION"}
_FORBIDDEN = {
    "ACCESS_NOT_CONFIGURED", "ACCOUNT_DISABLED", "BILLING_NOT_ENABLED", "FORBIDDEN", "IAM_PERMISSION_DENIED",
    "INSUFFICIENT_PERMISSIONS", "PERMISSIONS_ERROR", "SERVICE_DISABLED",
}  # fmt: skip
_CONFLICT = {"ALREADY_EXISTS", "DUPLICATE", "IP_IN_USE", "RESOURCE_ALREADY_EXISTS"}
_NOT_FOUND = {"NOT_FOUND", "RESOURCE_NOT_FOUND"}
_UNAVAILABLE = {"BACKEND_ERROR", "INTERNAL_ERROR", "SERVER_ERROR", "SERVICE_UNAVAILABLE"}
_BY_REASON = {
    reason: code
    for code, reasons in (
        (Code.THROTTLED, _THROTTLED),
        (Code.BUSY, _BUSY),
        (Code.QUOTA, _QUOTA),
        (Code.FORBIDDEN, _FORBIDDEN | _BAD_CREDENTIALS),
        (Code.CONFLICT, _CONFLICT),
        (Code.NOT_FOUND, _NOT_FOUND),
        (Code.UNAVAILABLE, _UNAVAILABLE),
    )
    for reason in reasons
}
_BY_STATUS = {401: Code.FORBIDDEN, 403: Code.FORBIDDEN, 404: Code.NOT_FOUND, 409: Code.CONFLICT, 429: Code.THROTTLED}
# Some causes stand in the text only: "There is a peering operation in progress on the local or peer network. Try again
# later.", and the quota of calls, which has the same reason as those of resources.
_BUSY_TEXT = re.compile(r"operation in progress|try again later|is not ready", re.IGNORECASE)
_RATE_TEXT = re.compile(r"per minute|per \d+ seconds|queries per", re.IGNORECASE)
_OVERLAP_TEXT = re.compile(r"conflicts with existing|overlaps with", re.IGNORECASE)

_HINTS = {
    Code.THROTTLED: "tried again by itself, more slowly",
    Code.BUSY: "tried again by itself",
    Code.UNAVAILABLE: "tried again by itself",
    Code.NOT_FOUND: "",
    Code.CONFLICT: "remove what is in the way, or choose other names or ranges",
    Code.FORBIDDEN: "give the service account this permission, then retry",
    Code.INVALID: "GCP refuses the request as it is: change the parameter it names",
}
_SERVER_ERROR = 500
_MESSAGE_LIMIT = 300
_TOKENS = re.compile(r"ya29\.[\w.-]+|eyJ[\w-]+\.[\w.-]+|-----BEGIN[^-]+-----.*?(-----END[^-]+-----|$)", re.DOTALL)


@contextmanager
def attempting(what: str, *, project: str, effect: bool = True) -> Iterator[None]:
    """Turns every error of Compute Engine's SDK inside the block into a `TrellisError` that begins with what was tried.

    `effect` says whether the call changes anything: only then a lost answer leaves its effect unknown.
    What was not found has code `not-found`; the caller knows whether that is gone, lost, or not visible yet.
    """
    try:
        yield
    except RetryError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        raise _translated(what, project, cause, effect=effect) from None
    except (GoogleAPICallError, GoogleAuthError, RequestException, ParseError) as error:
        raise _translated(what, project, error, effect=effect) from None


def failed(what: str, project: str, operation: Any) -> TrellisError:
    """The error of an operation that has ended with one (`compute_v1.Operation`)."""
    first = operation.error.errors[0]
    return _refused(what, project, int(operation.http_error_status_code), first.code, first.message)


def is_passing(error: Exception) -> bool:
    """Whether a call that changes nothing may succeed when it is made again at once: the predicate of its retries."""
    if isinstance(error, GoogleAPICallError):
        return _code_of(int(error.code or 0), *_reason_and_text(error)) in {Code.THROTTLED, Code.UNAVAILABLE}
    return isinstance(error, (TransportError, RequestException, ParseError))


def _translated(what: str, project: str, error: Exception, *, effect: bool) -> TrellisError:
    if isinstance(error, GoogleAPICallError):
        return _refused(what, project, int(error.code or 0), *_reason_and_text(error))
    if isinstance(error, TransportError) or _never_arrived(error):
        return TrellisError(
            Code.UNAVAILABLE,
            f"{what}: GCP's endpoint cannot be reached ({type(error).__name__})",
            "tried again by itself; check the worker's network and CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE if it "
            "stays so",
        )
    if isinstance(error, GoogleAuthError):
        return _bad_credentials(what, "invalid_grant" if isinstance(error, RefreshError) else type(error).__name__)
    if effect:
        return TrellisError(
            Code.LOST_RESPONSE,
            f"{what}: GCP's answer was lost ({type(error).__name__}), so its effect is unknown",
            "tried again by itself: what was made is looked up by its name and adopted",
        )
    text = f"{what}: no answer from GCP ({type(error).__name__})"
    return TrellisError(Code.UNAVAILABLE, text, "tried again by itself")


def _never_arrived(error: Exception) -> bool:
    if isinstance(error, (ConnectTimeout, InvalidURL, ProxyError, SSLError)):
        return True
    inner = error.args[0] if isinstance(error, RequestsConnectionError) and error.args else None
    return isinstance(inner, MaxRetryError) and isinstance(inner.reason, NewConnectionError)


def _reason_and_text(error: GoogleAPICallError) -> tuple[str, str]:
    first = next((each for each in error.errors or () if isinstance(each, dict)), {})
    return str(first.get("reason") or error.reason or ""), str(first.get("message") or error.message or "")


def _refused(what: str, project: str, status: int, reason: str, text: str) -> TrellisError:
    code = _code_of(status, reason, text)
    said = f"{what}: {reason or status}: {_safe(text)}"
    if code is Code.QUOTA:
        console = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
        return TrellisError(code, said, f"raise it at {console}, or remove what is no longer used; then retry")
    if _word(reason) in _BAD_CREDENTIALS:
        return _bad_credentials(what, reason)
    return TrellisError(code, said, _HINTS[code])


def _bad_credentials(what: str, reason: str) -> TrellisError:
    # The texts of these may repeat parts of the token; they are never passed on.
    return TrellisError(
        Code.FORBIDDEN,
        f"{what}: GCP does not accept the credentials ({reason})",
        "check the service account's key in the Secret behind the CredentialsBinding, and the worker's clock",
    )


def _code_of(status: int, reason: str, text: str) -> Code:
    code = _BY_REASON.get(_word(reason)) or _BY_STATUS.get(status)
    if code is Code.QUOTA and _RATE_TEXT.search(text):
        return Code.THROTTLED
    if code:
        return code
    if status >= _SERVER_ERROR:
        return Code.UNAVAILABLE
    if _BUSY_TEXT.search(text):
        return Code.BUSY
    return Code.CONFLICT if _OVERLAP_TEXT.search(text) else Code.INVALID


def _word(reason: str) -> str:
    """`quotaExceeded` and `QUOTA_EXCEEDED` alike."""
    return reason if reason.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", reason).upper()


def _safe(text: str) -> str:
    text = _TOKENS.sub("***", text)
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}…"
