"""Gardener's error codes for what AWS says (provider-aws, `pkg/apis/aws/helper/error_codes.go`)."""

from __future__ import annotations

import re

from botocore.exceptions import BotoCoreError, ClientError

from sandbox.garden.providers import CloudError

_CODES = {
    "ERR_INFRA_UNAUTHENTICATED": ("AuthFailure", "InvalidAccessKeyId", "InvalidSecretAccessKey"),
    "ERR_INFRA_UNAUTHORIZED": (
        "Unauthorized",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "AccessDenied",
    ),
    "ERR_INFRA_QUOTA_EXCEEDED": (
        "(?<!Request)LimitExceeded",
        "Quotas",
        "Quota.*exceeded",
        "exceeded quota",
        "Quota has been met",
        "QUOTA_EXCEEDED",
    ),
    "ERR_INFRA_RATE_LIMITS_EXCEEDED": ("RequestLimitExceeded", "Throttling", "Too many requests"),
    "ERR_INFRA_DEPENDENCIES": (
        "PendingVerification",
        "Access Not Configured",
        "accessNotConfigured",
        "DependencyViolation",
        "OptInRequired",
        "DeleteConflict",
        "Conflict",
        "inactive billing state",
        "timeout while waiting for state to become",
        "InvalidCidrBlock",
        "already busy for",
        "InsufficientFreeAddressesInSubnet",
        "internal server error",
        "A resource with the ID",
        "currently associated with another service",
    ),
    "ERR_RETRYABLE_INFRA_DEPENDENCIES": ("RetryableError",),
    "ERR_INFRA_RESOURCES_DEPLETED": (
        "not available in the current hardware cluster",
        "InsufficientInstanceCapacity",
        "out of stock",
    ),
    "ERR_CONFIGURATION_PROBLEM": (
        "not supported in your requested Availability Zone",
        "InvalidParameterValue",
        "notFound",
        "InvalidSubnet",
        "Invalid value",
        "violates constraint",
        "no attached internet gateway found",
        "invalid VPC attributes",
        "unrecognized feature gate",
        "runtime-config invalid key",
        "strict decoder error",
        "not allowed to configure an unsupported",
        "error during apply of object .* is invalid:",
        "duplicate zones",
        "overlapping zones",
    ),
    "ERR_RETRYABLE_CONFIGURATION_PROBLEM": (
        "is misconfigured and requires zero voluntary evictions",
        "SDK.CanNotResolveEndpoint",
        "The requested configuration is currently not supported",
    ),
}
_PATTERNS = {code: re.compile("|".join(patterns), re.IGNORECASE) for code, patterns in _CODES.items()}


def codes_of(message: str) -> tuple[str, ...]:
    """All codes whose pattern the message shows."""
    return tuple(code for code, pattern in _PATTERNS.items() if pattern.search(message))


def cloud_error(error: ClientError | BotoCoreError | str) -> CloudError:
    """An error of AWS, worded as the Go SDK words it, with its codes."""
    message = _go_text(error) if isinstance(error, ClientError) else str(error)
    return CloudError(message, codes_of(message))


def error_code(error: ClientError) -> str:
    """AWS' own code, such as `DependencyViolation`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _go_text(error: ClientError) -> str:
    metadata = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", 0)
    request = metadata.get("RequestId", "")
    message = error.response.get("Error", {}).get("Message", "")
    return (
        f"operation error EC2: {error.operation_name}, https response error StatusCode: {status}, "
        f"RequestID: {request}, api error {error_code(error)}: {message}"
    )
