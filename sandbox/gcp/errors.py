"""How Compute Engine words errors: https://cloud.google.com/compute/docs/api/how-tos/error-handling (`error.errors[]`).

A call is refused at once with an HTTP error (`refused`), or an operation fails later with `failed` inside it:
https://cloud.google.com/compute/docs/reference/rest/v1/globalOperations (`error.errors[]`, `httpErrorStatusCode`).
"""

from __future__ import annotations

from typing import Any

from sandbox.clouds import Answer, Document, Refusal

__all__ = [
    "already_exists",
    "failed",
    "in_use",
    "invalid",
    "limit_failure",
    "not_found",
    "not_ready",
    "refused",
    "required",
    "wording",
]

_DOMAINS = {"quotaExceeded": "usageLimits", "rateLimitExceeded": "usageLimits"}
_PHRASES = {400: "BAD REQUEST", 403: "FORBIDDEN", 404: "NOT FOUND", 409: "CONFLICT", 503: "SERVICE UNAVAILABLE"}
_STATUSES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}


def wording(status: int, reason: str, message: str, **location: str) -> Answer:
    """The answer that carries an error."""
    item = {"message": message, "domain": _DOMAINS.get(reason, "global"), "reason": reason, **location}
    error: Document = {"code": status, "message": message, "errors": [item]}
    if reason in ("required", "forbidden", "rateLimitExceeded") and status in _STATUSES:
        error["status"] = _STATUSES[status]
    return Answer({"error": error}, status)


def refused(status: int, reason: str, message: str, **location: str) -> Refusal:
    """A call that is refused at once."""
    return Refusal(wording(status, reason, message, **location))


def invalid(field: str, value: object, detail: str) -> Refusal:
    """400 for a value that cannot be."""
    return refused(400, "invalid", f"Invalid value for field '{field}': '{value}'. {detail}")


def required(field: str) -> Refusal:
    """400 for a field that is missing."""
    return refused(400, "required", f"Required field '{field}' not specified")


def not_found(path: str) -> Refusal:
    """404 for a resource."""
    return refused(404, "notFound", f"The resource '{path}' was not found")


def already_exists(path: str) -> Refusal:
    """409 for a name that is taken."""
    return refused(409, "alreadyExists", f"The resource '{path}' already exists")


def not_ready(path: str) -> Refusal:
    """400 for a resource that an operation still works on."""
    return refused(400, "resourceNotReady", f"The resource '{path}' is not ready")


def in_use(noun: str, path: str, user: str) -> str:
    """Why something cannot be deleted."""
    return f"The {noun} resource '{path}' is already being used by '{user}'"


def failed(status: int, code: str, message: str, **more: Any) -> Document:
    """The error of an operation, with the HTTP status that it stands for."""
    return {
        "errors": [{"code": code, "message": message, **more}],
        "httpErrorStatusCode": status,
        "httpErrorMessage": _PHRASES.get(status, "INTERNAL SERVER ERROR"),
    }


def limit_failure(quota: str, limit: int, region: str | None = None) -> Document:
    """The error of an operation that would exceed a quota."""
    where = f"in region {region}" if region else "globally"
    details = {
        "metricName": f"compute.googleapis.com/{quota.lower()}",
        "limitName": f"{quota.replace('_', '-')}-per-project",
        "dimensions": {"region": region} if region else {"global": "global"},
        "limit": float(limit),
    }
    message = f"Quota '{quota}' exceeded.  Limit: {limit:.1f} {where}."
    return failed(403, "QUOTA_EXCEEDED", message, errorDetails=[{"quotaInfo": details}])
