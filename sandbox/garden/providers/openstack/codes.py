"""Gardener's error codes for what OpenStack says (provider-openstack, `pkg/apis/openstack/helper/error_codes.go`)."""

from __future__ import annotations

import re

from openstack.exceptions import HttpException

from sandbox.garden.providers import CloudError

__all__ = ["cloud_error", "codes_of", "go_text"]

_CODES = {
    "ERR_INFRA_UNAUTHENTICATED": (
        "Authentication failed",
        "invalid character",
        "invalid_client",
        "cannot fetch token",
        "InvalidSecretAccessKey",
        "Could not find Application Credential",
    ),
    "ERR_INFRA_UNAUTHORIZED": (
        "Unauthorized",
        "SignatureDoesNotMatch",
        "invalid_grant",
        "Authorization Profile was not found",
        "no active subscriptions",
        "not authorized",
        "AccessDenied",
        "PolicyNotAuthorized",
    ),
    "ERR_INFRA_QUOTA_EXCEEDED": (
        "(?<!Request)LimitExceeded",
        "Quotas",
        "Quota.*exceeded",
        "exceeded quota",
        "Quota has been met",
        "QUOTA_EXCEEDED",
        "Maximum number of ports exceeded",
        "VolumeSizeExceedsAvailableQuota",
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
        "timeout while waiting for state to become",
        "InvalidCidrBlock",
        "already busy for",
        "A resource with the ID",
        "There are not enough hosts available",
        "No Router found",
        "There are one or more ports still in use on the network",
    ),
    "ERR_RETRYABLE_INFRA_DEPENDENCIES": ("RetryableError", "internal server error"),
    "ERR_INFRA_RESOURCES_DEPLETED": (
        "not available in the current hardware cluster",
        "out of stock",
        "ResourceExhausted",
    ),
    "ERR_CONFIGURATION_PROBLEM": (
        "missing expected router",
        "Policy doesn't allow .* to be performed",
        "overlaps with cidr",
        "not supported in your requested Availability Zone",
        "notFound",
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
        "is misconfigured and requires zero voluntary evictions",
        "SDK.CanNotResolveEndpoint",
        "The requested configuration is currently not supported",
    ),
}
_PATTERNS = {code: re.compile("|".join(patterns), re.IGNORECASE) for code, patterns in _CODES.items()}


def codes_of(message: str) -> tuple[str, ...]:
    """All codes whose pattern the message shows."""
    return tuple(code for code, pattern in _PATTERNS.items() if pattern.search(message))


def cloud_error(message: str) -> CloudError:
    """An error with its codes."""
    return CloudError(message, codes_of(message))


def go_text(error: HttpException) -> str:
    """What was refused, as the Go SDK words it (gophercloud, `errors.go`, ErrUnexpectedResponseCode)."""
    response = error.response
    if response is None:
        return str(error)
    what = f"{response.request.method} {response.url}"
    return f"Expected HTTP response code [200] when accessing [{what}], but got {response.status_code} instead: " + (
        response.text
    )
