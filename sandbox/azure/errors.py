"""How Azure words errors: `{"error": {"code", "message", "details"}}`.

https://github.com/microsoft/api-guidelines/blob/vNext/azure/Guidelines.md#handling-errors and
https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandbox.clouds import Answer, Document, Refusal

__all__ = [
    "bad_request",
    "failed",
    "group_not_found",
    "not_found",
    "parent_not_found",
    "refused",
    "retry_later",
    "wording",
]


def wording(
    status: int,
    code: str,
    message: str,
    *,
    details: Sequence[Document] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """The answer that carries an error."""
    return Answer({"error": failed(code, message, details)}, status, headers or {})


def failed(code: str, message: str, details: Sequence[Document] | None = None) -> Document:
    """An error by itself, as an operation that failed carries it."""
    return {"code": code, "message": message} | ({} if details is None else {"details": list(details)})


def refused(
    status: int,
    code: str,
    message: str,
    *,
    details: Sequence[Document] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Refusal:
    """A call that is refused."""
    return Refusal(wording(status, code, message, details=details, headers=headers))


def bad_request(code: str, message: str) -> Refusal:
    """400; Microsoft.Network always gives details."""
    return refused(400, code, message, details=[])


def group_not_found(name: str) -> Refusal:
    """404 for a resource group."""
    return refused(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def not_found(type_: str, name: str, group: str) -> Refusal:
    """404 for a resource, as Azure Resource Manager words it."""
    message = (
        f"The Resource 'Microsoft.Network/{type_}/{name}' under resource group '{group}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix"
    )
    return refused(404, "ResourceNotFound", message)


def parent_not_found(type_: str, parent: str) -> Refusal:
    """404 for the parent of what is to be written."""
    message = (
        f"Failed to perform 'write' on resource(s) of type '{type_}', because the parent resource '{parent}' "
        "could not be found."
    )
    return refused(404, "ParentResourceNotFound", message)


def retry_later(code: str, message: str) -> Refusal:
    """429: the call would be allowed a little later.

    https://github.com/hashicorp/terraform/issues/7986 shows the shape.
    """
    details = [failed(code, message)]
    return refused(429, "RetryableError", "A retryable error occurred.", details=details, headers={"Retry-After": "1"})
