"""Azure Resource Manager's paths: without regard to case, each call with an `api-version`, each with its permission.

https://learn.microsoft.com/rest/api/azure/#request-uri and
https://learn.microsoft.com/azure/role-based-access-control/resource-provider-operations.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace

from sandbox.azure.errors import refused
from sandbox.azure.identity import Identity
from sandbox.clouds import Answer, Call, Handler, Refusal, Route

__all__ = ["Router"]

_METHODS = ("GET", "HEAD", "PUT", "PATCH", "POST", "DELETE")
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(-\w+)?")


@dataclass(frozen=True)
class _Rule:
    method: str
    pattern: re.Pattern[str]
    handler: Handler


class Router:
    """Finds what answers a call."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._rules: list[_Rule] = []

    def open(self, method: str, path: str, handler: Handler) -> None:
        """A path for everybody."""
        self._rules.append(_Rule(method, _pattern(path), handler))

    def add(self, method: str, path: str, action: str, handler: Handler) -> None:
        """A path of a subscription (which its template leaves out), and the permission that it needs."""
        self.add_above(method, f"/subscriptions/{{subscription}}{path}", action, handler)

    def add_above(self, method: str, path: str, action: str, handler: Handler) -> None:
        """A path above all subscriptions, and the permission that it needs."""

        def guarded(call: Call) -> Answer:
            self._identity.check(call, action)
            _check_version(call)
            return handler(call)

        self._rules.append(_Rule(method, _pattern(path), guarded))

    def routes(self) -> list[Route]:
        """Everything, for `Cloud.app`."""
        return [Route(method, "/{path:path}", self._answer) for method in _METHODS]

    def _answer(self, call: Call) -> Answer:
        request = {"x-ms-request-id": str(uuid.uuid4()), "x-ms-correlation-request-id": str(uuid.uuid4())}
        try:
            handler, found = self._find(call)
            answer = handler(found)
        except Refusal as refusal:
            raise Refusal(_with_headers(refusal.answer, request)) from None
        return _with_headers(answer, request)

    def _find(self, call: Call) -> tuple[Handler, Call]:
        others = []
        for rule in self._rules:
            match = rule.pattern.fullmatch(call.path.rstrip("/"))
            if match and rule.method == call.method:
                return rule.handler, replace(call, at=match.groupdict())
            if match:
                others.append(rule.method)
        if others:
            message = f"The requested resource does not support http method '{call.method}'."
            raise refused(405, "HttpMethodNotAllowed", message)
        raise refused(404, "InvalidResourceType", f"The resource type of '{call.path}' could not be found.")


def _with_headers(answer: Answer, headers: dict[str, str]) -> Answer:
    return replace(answer, headers={**answer.headers, **headers})


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    text = "".join(f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.compile(text, re.IGNORECASE)


def _check_version(call: Call) -> None:
    version = call.query.get("api-version")
    if version is None:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise refused(400, "MissingApiVersionParameter", message)
    if not _VERSION.fullmatch(version):
        message = f"The api-version '{version}' is invalid. It has the format 'yyyy-MM-dd[-preview]'."
        raise refused(400, "InvalidApiVersionParameter", message)
