"""Gardener's error codes for what Azure says (provider-azure, `pkg/apis/azure/helper/error_codes.go`)."""

from __future__ import annotations

import re

from azure.core.exceptions import AzureError, HttpResponseError

from sandbox.garden.providers import CloudError

__all__ = ["cloud_error", "codes_of", "go_text"]

_CODES = {
    "ERR_INFRA_UNAUTHENTICATED": (
        "InvalidAuthenticationTokenTenant",
        "Authentication failed",
        "invalid character",
        "invalid_client",
        "InvalidAccessKeyId",
        "cannot fetch token",
        "InvalidSecretAccessKey",
        "InvalidSubscriptionId",
    ),
    "ERR_INFRA_UNAUTHORIZED": (
        "Unauthorized",
        "SignatureDoesNotMatch",
        "AuthorizationFailed",
        "invalid_grant",
        "Authorization Profile was not found",
        "no active subscriptions",
        "not authorized",
        "AccessDenied",
        "OperationNotAllowed",
    ),
    "ERR_INFRA_QUOTA_EXCEEDED": (
        "(?<!Request)LimitExceeded",
        "Quotas",
        "Quota.*exceeded",
        "exceeded quota",
        "Quota has been met",
        "QUOTA_EXCEEDED",
        "exceeding approved .{0,60}quota",
    ),
    "ERR_INFRA_RATE_LIMITS_EXCEEDED": ("RequestLimitExceeded", "Throttling", "Too many requests"),
    "ERR_INFRA_DEPENDENCIES": (
        "PendingVerification",
        "Access Not Configured",
        "accessNotConfigured",
        "DependencyViolation",
        "OptInRequired",
        "Conflict",
        "inactive billing state",
        "ReadOnlyDisabledSubscription",
        "is already being used",
        "InUseSubnetCannotBeDeleted",
        "VnetInUse",
        "InUseRouteTableCannotBeDeleted",
        "timeout while waiting for state to become",
        "InvalidCidrBlock",
        "already busy for",
        "InternalServerError",
        "internal server error",
        "A resource with the ID",
        "VnetAddressSpaceCannotChangeDueToPeerings",
        "InternalBillingError",
        "NetcfgSubnetRangesOverlap",
        "CannotDeleteLoadBalancerWithPrivateLinkService",
    ),
    "ERR_RETRYABLE_INFRA_DEPENDENCIES": ("RetryableError",),
    "ERR_INFRA_RESOURCES_DEPLETED": (
        "not available in the current hardware cluster",
        "SkuNotAvailable",
        "ZonalAllocationFailed",
        "out of stock",
    ),
    "ERR_CONFIGURATION_PROBLEM": (
        "AzureBastionSubnet",
        "not supported in your requested Availability Zone",
        "InvalidParameter",
        "notFound",
        "NetcfgInvalidSubnet",
        "Invalid value",
        "violates constraint",
        "no attached internet gateway found",
        "Your query returned no results",
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
        "OverconstrainedZonalAllocationRequest",
        "is misconfigured and requires zero voluntary evictions",
        "SDK.CanNotResolveEndpoint",
        "The requested configuration is currently not supported",
    ),
}
_PATTERNS = {code: re.compile("|".join(patterns), re.IGNORECASE) for code, patterns in _CODES.items()}
_PHRASES = {400: "Bad Request", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 429: "Too Many Requests"}


def codes_of(message: str) -> tuple[str, ...]:
    """All codes whose pattern the message shows."""
    return tuple(code for code, pattern in _PATTERNS.items() if pattern.search(message))


def cloud_error(message: str) -> CloudError:
    """An error with its codes."""
    return CloudError(message, codes_of(message))


def go_text(error: AzureError) -> str:
    """What was refused, as the Go SDK words it (azure-sdk-for-go, `sdk/azcore/internal/exported/response_error.go`)."""
    if not isinstance(error, HttpResponseError) or error.error is None:
        return str(error)
    status = error.status_code or 0
    phrase = _PHRASES.get(status, "")
    return f"RESPONSE {status}: {status} {phrase} ERROR CODE: {error.error.code} {error.error.message}"
