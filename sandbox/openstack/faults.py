"""How Neutron names its operations and words its errors, for `sandbox.faults`.

Operations are named as in Neutron's policy (docs.openstack.org/neutron/latest/configuration/policy.html):
`create_network`, `get_routers`, `add_router_interface`, `update_network:tags`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from sandbox.faults import Call, FaultKind

__all__ = ["Neutron"]

_PATH = re.compile(r"/v2\.0/(?P<collection>[\w-]+)(?:/(?P<id>[\w-]+)(?:/(?P<action>\w+))?)?$")
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}
_QUOTA = "Quota exceeded for resources: ['{}']."
_FORBIDDEN = "rule:{} is disallowed by policy"


class Neutron:
    """The dialect of the Networking API v2.0."""

    def operation(self, call: Call) -> str:
        """The action in Neutron's policy; the HTTP method and path of what is none."""
        path = call.target.partition("?")[0]
        match = _PATH.match(path)
        if match is None:
            return f"{call.method} {path}"
        collection = match["collection"].replace("-", "_")
        action, verb = match["action"], _VERBS.get(call.method, call.method)
        if action == "tags":
            return f"{verb}_{_one(collection)}:tags"
        if action:
            return action
        every = call.method == "GET" and not match["id"]
        return f"{verb}_{collection if every else _one(collection)}"

    def error(self, kind: FaultKind, operation: str) -> Response:
        """What is refused before anything happens, and what fails for no reason that is told.

        Neutron itself never asks for fewer calls; what operators put before it, such as OpenStack's
        rate-limit-middleware, says 429.
        """
        if kind == "throttle":
            return JSONResponse({"error": {"status": "429 Too Many Requests", "message": "Too Many Requests"}}, 429)
        if kind == "forbidden":
            return _refusal(403, "PolicyNotAuthorized", _FORBIDDEN.format(operation))
        if kind == "quota":
            return _refusal(409, "OverQuota", _QUOTA.format(operation.partition("_")[2]))
        text = "Request Failed: internal server error while processing your request."
        return _refusal(500, "HTTPInternalServerError", text)

    def blinded(self, call: Call) -> Call | Response:
        """Lists are empty; what is named is not found."""
        match = _PATH.match(call.target.partition("?")[0])
        if match is None:
            return call
        if call.method == "GET" and not match["id"]:
            return JSONResponse({match["collection"].replace("-", "_"): []})
        if match["id"]:
            kind = _one(match["collection"]).capitalize()
            return _refusal(404, f"{kind}NotFound", f"{kind} {match['id']} could not be found.")
        return call


def _one(collection: str) -> str:
    return f"{collection[:-3]}y" if collection.endswith("ies") else collection.removesuffix("s")


def _refusal(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"NeutronError": {"type": kind, "message": message, "detail": ""}}, status)
