"""How Azure names its operations and words its errors, for `sandbox.faults`.

Operations are named by resource type and HTTP method: `virtualNetworks.put`, `subnets.delete`, `resourceGroups.get`,
`virtualNetworks.list`, `operations.get`, and `token.post` for Entra ID's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from sandbox.azure.errors import wording

if TYPE_CHECKING:
    from sandbox.faults import Call, FaultKind

__all__ = ["ResourceManager"]

_NETWORK = re.compile(
    r"/subscriptions/[^/]+(?:/resourceGroups/(?P<group>[^/]+))?/providers/Microsoft\.Network"
    r"/(?P<type>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<child_type>[^/]+)(?:/(?P<child>[^/]+))?)?)?$",
    re.IGNORECASE,
)
_MANAGEMENT = re.compile(
    r"/subscriptions/[^/]+(?:/resourceGroups/[^/]+)?/(?P<type>resourceGroups|resources|operationresults)(?:/(?P<name>[^/]+))?$",
    re.IGNORECASE,
)
# As the reference spells them; in a path any case will do.
_SPELLING = {
    name.lower(): name
    for name in (
        "natGateways", "networkInterfaces", "networkSecurityGroups", "operationResults", "operations",
        "publicIPAddresses", "resourceGroups", "resources", "routeTables", "routes", "securityRules", "subnets",
        "usages", "virtualNetworks", "virtualNetworkPeerings",
    )
}  # fmt: skip
_QUOTAS = {
    "natGateways": "NatGatewayCountLimitReached",
    "networkSecurityGroups": "NetworkSecurityGroupCountLimitReached",
    "publicIPAddresses": "PublicIPCountLimitReached",
    "resourceGroups": "ResourceGroupQuotaExceeded",
    "routeTables": "RouteTableCountLimitReached",
    "subnets": "SubnetCountLimitReached",
    "virtualNetworks": "VnetCountLimitReached",
}


class ResourceManager:
    """The dialect of Azure Resource Manager, and of Entra ID's token endpoint."""

    def operation(self, call: Call) -> str:
        """Resource type and method; the HTTP method and path of what is none."""
        path, method = call.target.partition("?")[0], call.method.lower()
        if path.endswith("/oauth2/v2.0/token"):
            return "token.post"
        match = _NETWORK.match(path)
        if match and match["type"].lower() == "locations":  # .../locations/{location}/operations/{operation}
            return f"{_spelled(match['child_type'])}.{method}"
        match = match or _MANAGEMENT.match(path)
        if match is None:
            return f"{call.method} {path}"
        found = match.groupdict()
        noun, name = found["type"], found["name"]
        if found.get("child_type"):
            noun, name = found["child_type"], found["child"]
        return f"{_spelled(noun)}.{'list' if method == 'get' and not name else method}"

    def error(self, kind: FaultKind, operation: str) -> Response:
        """What is refused before anything happens, and what fails for no reason that is told."""
        noun, _, method = operation.partition(".")
        if kind == "throttle":
            message = (
                "Number of requests for subscription 'sandbox' exceeded the limit. Please try again after '1' seconds."
            )
            return _refusal(429, "SubscriptionRequestsThrottled", message, {"Retry-After": "1"})
        if kind == "forbidden":
            message = (
                "The client 'sandbox' does not have authorization to perform action "
                f"'Microsoft.Network/{noun}/{method}' over scope '/subscriptions/sandbox' or the scope is invalid. If "
                "access was recently granted, please refresh your credentials."
            )
            return _refusal(403, "AuthorizationFailed", message)
        if kind == "quota":
            code = _QUOTAS.get(noun, "QuotaExceeded")
            return _refusal(400, code, f"Cannot create more than 0 {noun} for this subscription in this region.")
        return _refusal(500, "InternalServerError", "An error occurred.")

    def blinded(self, call: Call) -> Call | Response:
        """Lists are empty; what is named is not found, and what is written into lacks its group or parent."""
        operation, path = self.operation(call), call.target.partition("?")[0]
        match = _NETWORK.match(path)
        if operation.endswith(".list"):
            return JSONResponse({"value": []})
        if operation.endswith(".put"):
            if match and match["child"]:
                return _refusal(404, "ParentResourceNotFound", f"The parent resource of '{path}' could not be found.")
            if match:
                return _refusal(404, "ResourceGroupNotFound", f"Resource group '{match['group']}' could not be found.")
            return call
        if operation.startswith("resourceGroups."):
            name = path.rpartition("/")[2]
            return _refusal(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        if match:
            return _refusal(404, "ResourceNotFound", f"The Resource '{path}' was not found.")
        return call


def _spelled(name: str) -> str:
    return _SPELLING.get(name.lower(), name)


def _refusal(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse(wording(status, code, message).document, status, headers)
