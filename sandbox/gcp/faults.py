"""How Compute Engine names its operations and words its errors, for `sandbox.faults`.

Operations are named as in https://cloud.google.com/compute/docs/reference/rest/v1: `networks.insert`,
`globalOperations.wait`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sandbox.gcp.errors import wording
from sandbox.gcp.names import path_of

if TYPE_CHECKING:
    from sandbox.faults import Call, FaultKind

__all__ = ["ComputeEngine"]

_PATH = re.compile(
    r"/compute/v1/projects/[^/]+/(?P<scope>global|aggregated|regions/[^/]+|zones/[^/]+)/(?P<collection>\w+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<verb>\w+))?)?$"
)
_ON_ONE = {"GET": "get", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
_ON_ALL = {"GET": "list", "POST": "insert"}
_SCOPED = {
    ("operations", "global"): "globalOperations",
    ("operations", "regions"): "regionOperations",
    ("operations", "zones"): "zoneOperations",
    ("addresses", "global"): "globalAddresses",
}


class ComputeEngine:
    """The dialect of Compute Engine v1."""

    def operation(self, call: Call) -> str:
        """Collection and method; the HTTP method and path of what is none."""
        match = _PATH.match(_path(call))
        if match is None:
            return f"{call.method} {_path(call)}"
        scope, collection = match["scope"].partition("/")[0], match["collection"]
        noun = _SCOPED.get((collection, scope), collection)
        if scope == "aggregated":
            return f"{noun}.aggregatedList"
        methods = _ON_ONE if match["name"] else _ON_ALL
        return f"{noun}.{match['verb'] or methods.get(call.method, call.method)}"

    def error(self, kind: FaultKind, operation: str) -> Response:
        """What is refused before anything happens, and what fails for no reason that is told."""
        if kind == "throttle":
            return _refusal(403, "rateLimitExceeded", "Rate Limit Exceeded")
        if kind == "forbidden":
            return _refusal(403, "forbidden", f"Required 'compute.{operation}' permission for 'projects/sandbox'")
        if kind == "quota":
            quota = operation.partition(".")[0].upper()
            return _refusal(403, "quotaExceeded", f"Quota '{quota}' exceeded.  Limit: 0.0 globally.")
        return _refusal(503, "backendError", "Internal error. Please try again or contact Google Support.")

    def blinded(self, call: Call) -> Call | Response:
        """Lists are empty; what is named, in the path or in the body, is not found."""
        match = _PATH.match(_path(call))
        if match and match["name"]:
            return _not_found(_path(call).removesuffix(f"/{match['verb']}"))
        if match and call.method == "POST":
            network = json.loads(call.body or b"{}").get("network")
            return _not_found(network) if network else call
        empty: Any = {} if match and match["scope"] == "aggregated" else []
        return JSONResponse({"items": empty})


def _path(call: Call) -> str:
    return call.target.partition("?")[0]


def _refusal(status: int, reason: str, message: str) -> Response:
    return JSONResponse(wording(status, reason, message).document, status)


def _not_found(path: str) -> Response:
    return _refusal(404, "notFound", f"The resource '{path_of(path)}' was not found")
