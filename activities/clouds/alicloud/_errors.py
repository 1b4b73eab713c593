"""What Alibaba Cloud's errors mean, in one place.

Sources: https://api.alibabacloud.com/document/Vpc/2016-04-28/errorCode, .../Ecs/2014-05-26/errorCode, the common errors
at https://error-center.alibabacloud.com/status/product/Public, and what the vendor's Terraform provider tries again
(terraform-provider-alicloud, alicloud/errors.go and resource_alicloud_vpc.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests.exceptions
import urllib3.exceptions
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException, ThrottlingException
from Tea.exceptions import TeaException, UnretryableException

from domain.errors import Code, TrellisError

__all__ = ["attempting"]

_NEVER_ARRIVED = (
    requests.exceptions.ConnectTimeout,
    requests.exceptions.ProxyError,
    requests.exceptions.SSLError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NewConnectionError,
)

_THROTTLED = re.compile(r"^Throttling|\.Throttling|FlowControl|^RequestLimitExceeded")
# The texts of these may repeat what was signed; they are never passed on.
_BAD_CREDENTIALS = re.compile(
    r"^(InvalidAccessKeyId|SignatureDoesNotMatch|IncompleteSignature|MissingSignature|InvalidSecurityToken"
    r"|InvalidTimeStamp|SignatureNonceUsed|MissingAccessKeyId)"
)
# Not an absence: what cannot be looked up at all says nothing about what is there.
_UNKNOWN_PLACE = re.compile(r"^(InvalidRegionId|Forbidden\.RegionNotFound|InvalidAction|InvalidApi|InvalidVersion)")
_NOT_FOUND = re.compile(r"NotFound|^INSTANCE_NOT_EXISTS$")
_FORBIDDEN = re.compile(
    r"^(Forbidden|Forbbiden|NoPermission|NotAuthorized|InvalidAccount|OperationDenied\.NoPermission)"
)
_QUOTA = re.compile(r"^Quota|\.Quota|LimitExceed")
_BUSY = re.compile(
    r"^(DependencyViolation|Incorrect\w*Status|IncorrectStatus|OperationConflict|TaskConflict|VPC_TASK_CONFLICT"
    r"|SystemBusy|OperationFailed\.DistibuteLock)|TokenProcessing$"
)
_UNAVAILABLE = re.compile(r"^(ServiceUnavailable|InternalError|UnknownError)")
_CONFLICT = re.compile(r"Overlap|Duplicate|AlreadyExist|^IdempotentParameterMismatch$")

_CENTER = "https://quotas.console.alibabacloud.com/products/vpc/quotas"
_SERVER_ERROR = 500
_TOO_MANY_REQUESTS = 429
_MESSAGE_LIMIT = 300
_ACCESS_KEY = re.compile(r"(?:LTAI|STS\.)[A-Za-z0-9]{8,}")


@contextmanager
def attempting(what: str, *, region: str, effect: bool = True) -> Iterator[None]:
    """Turns every error of the SDK inside the block into a `TrellisError` that begins with `what` was tried.

    `effect` says whether the call changes anything: only then a lost answer leaves its effect unknown.
    What was not found has code `not-found`; the caller knows whether that is gone, lost, or not visible yet.
    """
    try:
        yield
    except AlibabaCloudException as error:
        raise _refused(what, region, error) from None
    except UnretryableException as error:
        raise _unanswered(what, region, error.inner_exception, effect=effect) from None
    except (TeaException, ValueError) as error:
        raise TrellisError(Code.INVALID, f"{what}: {type(error).__name__}: {_safe(str(error))}") from None


def _unanswered(what: str, region: str, error: BaseException, *, effect: bool) -> TrellisError:
    causes = list(_causes(error))
    kind = type(causes[-1]).__name__
    if any(isinstance(cause, _NEVER_ARRIVED) for cause in causes):
        return TrellisError(
            Code.UNAVAILABLE,
            f"{what}: Alibaba Cloud's endpoint in {region} cannot be reached ({kind})",
            "tried again by itself; check the worker's network and ALIBABA_CLOUD_ENDPOINT_VPC if it stays so",
        )
    if effect:
        return TrellisError(
            Code.LOST_RESPONSE,
            f"{what}: Alibaba Cloud's answer was lost ({kind}), so its effect is unknown",
            "tried again by itself: what was made is looked up by its tags and adopted",
        )
    text = f"{what}: no answer from Alibaba Cloud ({kind})"
    return TrellisError(Code.UNAVAILABLE, text, "tried again by itself")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The SDK wraps what went wrong twice, and tells it in words only; the original is the context of its own error."""
    while error is not None:
        yield error
        reason = getattr(error.args[0] if error.args else None, "reason", None)
        if isinstance(reason, BaseException):
            yield reason
        error = error.__cause__ or error.__context__


def _refused(what: str, region: str, error: AlibabaCloudException) -> TrellisError:
    code, status = str(error.code), int(error.status_code or 0)
    if isinstance(error, ThrottlingException) or _THROTTLED.search(code) or status == _TOO_MANY_REQUESTS:
        return TrellisError(
            Code.THROTTLED, f"{what}: Alibaba Cloud asks for fewer calls ({code})", "tried again by itself, more slowly"
        )
    if _BAD_CREDENTIALS.search(code):
        return TrellisError(
            Code.FORBIDDEN,
            f"{what}: Alibaba Cloud does not accept the credentials ({code})",
            "check the access key in the Secret behind the CredentialsBinding, and the worker's clock",
        )
    said = f"{what}: {code}: {_safe(_message(error))}"
    if _UNKNOWN_PLACE.search(code):
        return TrellisError(Code.INVALID, said, f"is {region} a region of Alibaba Cloud that the account may use?")
    if _NOT_FOUND.search(code):
        return TrellisError(Code.NOT_FOUND, said)
    return _plain(code, status, said)


def _plain(code: str, status: int, said: str) -> TrellisError:
    if _QUOTA.search(code):
        return TrellisError(Code.QUOTA, said, f"raise it at {_CENTER}, or remove what is no longer used; then retry")
    if status >= _SERVER_ERROR or _UNAVAILABLE.search(code):
        return TrellisError(Code.UNAVAILABLE, said, "tried again by itself")
    if _BUSY.search(code):
        return TrellisError(Code.BUSY, said, "tried again by itself")
    if _CONFLICT.search(code):
        return TrellisError(Code.CONFLICT, said, "remove what is in the way, or choose other ranges")
    if _FORBIDDEN.search(code):
        return TrellisError(Code.FORBIDDEN, said, "give the owner of the access key this permission, then retry")
    return TrellisError(Code.INVALID, said, "Alibaba Cloud refuses the request as it is: change what it names")


def _message(error: AlibabaCloudException) -> str:
    document: Any = error.data
    return str(document.get("Message", "")) if isinstance(document, dict) else str(error.message)


def _safe(message: str) -> str:
    text = _ACCESS_KEY.sub("***", message)
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}…"
