"""How the garden names its operations and words its errors, for `sandbox.faults`.

An operation is a verb of Kubernetes and a resource: `create:shoots`, `watch:shoots`, `create:shoots/adminkubeconfig`.
Those of a shoot's own API server have a prefix: `shoot/create:pods`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, Response

from sandbox.kube import denied

if TYPE_CHECKING:
    from sandbox.faults import Call, FaultKind

__all__ = ["GardenApi"]

_INSIDE = re.compile(r"/shoots/[^/]+/[^/]+(?=/apis?/)")
_API = re.compile(r"/(?:api/[^/]+|apis/[^/]+/[^/]+)")
_NAMESPACE = re.compile(r"/namespaces/[^/]+(?=/)")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class GardenApi:
    """The dialect of Kubernetes API servers: the garden's, and those of the shoots behind it."""

    def operation(self, call: Call) -> str:
        """Verb and resource, with the subresource where there is one; empty for what is no resource."""
        path, _, query = call.target.partition("?")
        inside = _INSIDE.match(path)
        api = _API.match(path, inside.end() if inside else 0)
        rest = path[api.end() :] if api else ""
        namespace = _NAMESPACE.match(rest)
        resource, _, named = rest[namespace.end() if namespace else 0 :].strip("/").partition("/")
        if not resource:
            return ""
        name, _, below = named.partition("/")
        verb = _VERBS.get(call.method, "get" if name else "list")
        if call.method == "GET" and parse_qs(query).get("watch") in (["true"], ["1"]):
            verb = "watch"
        subresource = f"/{below.partition('/')[0]}" if below else ""
        return f"{'shoot/' if inside else ''}{verb}:{resource}{subresource}"

    def error(self, kind: FaultKind, operation: str) -> Response:
        """A `Status`, as API servers send it; a quota is an admission plugin's refusal."""
        if kind == "throttle":
            return _status(429, "the server has received too many requests and has asked us to try again later")
        if kind == "forbidden":
            return _status(403, f"{operation} is forbidden: this user cannot do that")
        if kind == "quota":
            return _status(403, f"{operation} is forbidden: exceeded quota: sandbox")
        return _status(500, "Internal error occurred: the sandbox was told to fail")

    def blinded(self, call: Call) -> Call | Response:
        """An empty list, or nothing of that name. What is made has nobody to be hidden from."""
        verb, _, resource = self.operation(call).rpartition(":")
        match verb.removeprefix("shoot/"):
            case "list":
                return JSONResponse({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
            case "get" | "patch" | "update" | "delete":
                return _status(404, f"{resource} not found")
            case _:
                return call


def _status(code: int, message: str) -> Response:
    return JSONResponse(denied(code, message).status(), code)
