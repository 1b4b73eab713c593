"""What AWS's errors mean, in one place.

Sources: "Error codes for the Amazon EC2 API" and "Amazon VPC quotas" of the AWS documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProxyConnectionError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from domain.errors import Code, TrellisError

__all__ = ["attempting"]

_NEVER_ARRIVED = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, SSLError)
_BROKEN_OFF = (HTTPClientError, IncompleteReadError, ResponseParserError)
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)

_THROTTLED = {
    "BandwidthLimitExceeded", "EC2ThrottledException", "PriorRequestNotComplete", "RequestLimitExceeded",
    "RequestThrottled", "RequestThrottledException", "SlowDown", "Throttling", "ThrottlingException",
    "TooManyRequestsException",
}  # fmt: skip
_BUSY = {
    "DependencyViolation", "IncorrectState", "IncorrectInstanceState", "InvalidState", "OperationInProgress",
    "ResourceInUse", "TaskInProgress", "VpcInUse",
}  # fmt: skip
_NOT_FOUND = {"Gateway.NotAttached"}
# A second look will show what the first one did not: an earlier attempt got there first.
_EVENTUAL = {"InvalidGroup.Duplicate", "InvalidPermission.Duplicate", "Resource.AlreadyAssociated"}
# The texts of these may repeat parts of the signed request; they are never passed on.
_BAD_CREDENTIALS = {
    "AuthFailure", "ExpiredToken", "IncompleteSignature", "InvalidClientTokenId",
    "MissingAuthenticationToken", "RequestExpired", "SignatureDoesNotMatch", "UnrecognizedClientException",
}  # fmt: skip
_FORBIDDEN = {
    "AccessDenied", "AccessDeniedException", "Blocked", "OptInRequired", "PendingVerification",
    "UnauthorizedOperation",
}  # fmt: skip
_CONFLICT = {
    "CidrConflict", "InvalidSubnet.Conflict", "OperationNotPermitted", "ResourceAlreadyExists",
}  # fmt: skip
# The quota's name and its code in Service Quotas.
_QUOTAS = {
    "CidrLimitExceeded": ("IPv4 CIDR blocks per VPC", "L-83CA0A9D"),
    "InternetGatewayLimitExceeded": ("Internet gateways per Region", "L-A4707A72"),
    "RulesPerSecurityGroupLimitExceeded": ("Inbound or outbound rules per security group", "L-0EA8095F"),
    "SecurityGroupLimitExceeded": ("VPC security groups per Region", "L-E79EC296"),
    "SubnetLimitExceeded": ("Subnets per VPC", "L-407747CB"),
    "VpcLimitExceeded": ("VPCs per Region", "L-F678F1CE"),
}

_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_MESSAGE_LIMIT = 300
_ACCESS_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")
_ENCODED = re.compile(r"\s*Encoded authorization failure message:.*", re.DOTALL)


@contextmanager
def attempting(what: str, *, region: str, effect: bool = True) -> Iterator[None]:
    """Turns every error of AWS inside the block into a `TrellisError` that begins with `what` was tried.

    `effect` says whether the call changes anything: only then a lost answer leaves its effect unknown.
    What was not found has code `not-found`; the caller knows whether that is gone, lost, or not visible yet.
    """
    try:
        yield
    except ClientError as error:
        raise _refused(what, region, error) from None
    except _NEVER_ARRIVED as error:
        raise TrellisError(
            Code.UNAVAILABLE,
            f"{what}: AWS's endpoint in {region} cannot be reached ({type(error).__name__})",
            "tried again by itself; check the worker's network and AWS_ENDPOINT_URL if it stays so",
        ) from None
    except _NO_CREDENTIALS as error:
        raise TrellisError(
            Code.FORBIDDEN,
            f"{what}: no usable credentials ({type(error).__name__})",
            "check the Secret behind the CredentialsBinding",
        ) from None
    except _BROKEN_OFF as error:
        raise _unanswered(what, error, effect=effect) from None
    except BotoCoreError as error:
        raise TrellisError(Code.INVALID, f"{what}: {type(error).__name__}: {_safe(str(error))}") from None


def _code_of(error: ClientError) -> str:
    """AWS's own code of an error."""
    return error.response.get("Error", {}).get("Code", "Unknown")


def _unanswered(what: str, error: Exception, *, effect: bool) -> TrellisError:
    if effect:
        return TrellisError(
            Code.LOST_RESPONSE,
            f"{what}: AWS's answer was lost ({type(error).__name__}), so its effect is unknown",
            "tried again by itself: what was made is looked up by its tags and adopted",
        )
    text = f"{what}: no answer from AWS ({type(error).__name__})"
    return TrellisError(Code.UNAVAILABLE, text, "tried again by itself")


def _refused(what: str, region: str, error: ClientError) -> TrellisError:
    code = _code_of(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    said = f"{what}: {code}: {_safe(error.response.get('Error', {}).get('Message', ''))}"
    if code in _THROTTLED or status == _TOO_MANY_REQUESTS:
        return TrellisError(
            Code.THROTTLED, f"{what}: AWS asks for fewer calls ({code})", "tried again by itself, more slowly"
        )
    if code in _BAD_CREDENTIALS:
        return TrellisError(
            Code.FORBIDDEN,
            f"{what}: AWS does not accept the credentials ({code})",
            "check the access key in the Secret behind the CredentialsBinding, and the worker's clock",
        )
    if code in _FORBIDDEN:
        return TrellisError(Code.FORBIDDEN, said, "give the owner of the access key this permission, then retry")
    if code.endswith(("LimitExceeded", "QuotaExceeded")):
        return _over_quota(what, region, code, said)
    return _plain(code, status, said)


def _plain(code: str, status: int, said: str) -> TrellisError:
    if code in _NOT_FOUND or code.endswith((".NotFound", ".Unknown")):
        return TrellisError(Code.NOT_FOUND, said)
    if status >= _SERVER_ERROR:
        return TrellisError(Code.UNAVAILABLE, said, "tried again by itself")
    if code in _BUSY or code.startswith("DependencyViolation"):
        return TrellisError(Code.BUSY, said, "tried again by itself")
    if code in _EVENTUAL:
        return TrellisError(Code.EVENTUAL, said, "tried again by itself")
    if code in _CONFLICT or code.endswith((".Conflict", ".InUse", ".Duplicate")):
        return TrellisError(Code.CONFLICT, said, "remove what is in the way, or choose other ranges")
    return TrellisError(Code.INVALID, said, "AWS refuses the request as it is: change the parameter it names")


def _over_quota(what: str, region: str, code: str, said: str) -> TrellisError:
    if code not in _QUOTAS:
        return TrellisError(Code.QUOTA, said, "raise it in AWS Service Quotas, or remove what is no longer used")
    name, quota = _QUOTAS[code]
    console = f"https://{region}.console.aws.amazon.com/servicequotas/home/services/vpc/quotas/{quota}"
    return TrellisError(
        Code.QUOTA,
        f"{what}: the quota '{name}' ({quota}) is used up in {region} ({code})",
        f"raise it at {console}, or remove what is no longer used; then retry",
    )


def _safe(message: str) -> str:
    text = _ACCESS_KEY.sub("***", _ENCODED.sub("", message))
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}…"
