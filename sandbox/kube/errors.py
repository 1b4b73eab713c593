"""What an API server refuses, and how it says so: a `Status` object with reason, message and code."""

from __future__ import annotations

from typing import Any

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Denied(Exception):  # noqa: N818 - it reads `raise Denied("Forbidden", ...)`
    """A refused request.

    Attributes:
        reason: The machine-readable reason, a `metav1.StatusReason` (`Invalid`, `Forbidden`, `Conflict` ...).
        message: What a person reads after "Error from server".
        code: The HTTP status.
        details: The `details` of the Status: `name`, `group`, `kind`, `causes` and so on.
    """

    def __init__(self, reason: str, message: str, code: int = 422, *, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.code = code
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """The `Status` object that goes to the client."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def denied(code: int, message: str, **details: Any) -> Denied:
    """A refusal with the reason that belongs to an HTTP status."""
    return Denied(_REASONS.get(code, "Unknown"), message, code, details=details)


def details_of(resource: str, name: str) -> dict[str, Any]:
    """The `details` of a Status about an object; `resource` is `plural.group`."""
    plural, _, group = resource.partition(".")
    return {"name": name, "kind": plural} | ({"group": group} if group else {})
