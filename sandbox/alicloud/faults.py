"""How Alibaba Cloud names its operations and words its errors, for `sandbox.faults`: `CreateVpc`, `DescribeVpcs`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, Response

from sandbox.alicloud import kinds
from sandbox.alicloud.errors import new_request_id, wording

if TYPE_CHECKING:
    from sandbox.faults import Call, FaultKind

__all__ = ["AlibabaCloud"]

_QUOTAS = {
    "AllocateEipAddress": "QuotaExceeded.Eip",
    "AssociateVpcCidrBlock": "QuotaExceeded.SecondaryCidrNum",
    "CreateNatGateway": "QuotaExceeded.NatGateway",
    "CreateRouteTable": "QuotaExceeded.RouteTable",
    "CreateVSwitch": "QuotaExceeded.VSwitch",
    "CreateVpc": "QuotaExceeded.Vpc",
}
_FORBIDDEN = "User not authorized to operate on the specified resource, or this API doesn't support RAM."
# What an action names decides which "not found" it gets: the first of these parameters that it has.
_KINDS = (
    kinds.VSWITCH, kinds.NAT, kinds.TABLE, kinds.EIP, kinds.SNAT, kinds.GROUP, kinds.PEERING, kinds.VPC,
)  # fmt: skip


class AlibabaCloud:
    """The dialect of all products that the server has."""

    def operation(self, call: Call) -> str:
        """The action."""
        return call.headers.get("x-acs-action") or _parameters(call).get("Action", "")

    def error(self, kind: FaultKind, operation: str) -> Response:
        """What is refused before anything happens, and what fails for no reason that is told."""
        if kind == "throttle":
            return _refusal(400, "Throttling.User", "Request was denied due to user flow control.")
        if kind == "forbidden":
            return _refusal(403, "Forbidden.RAM", _FORBIDDEN)
        if kind == "quota":
            return _refusal(400, _QUOTAS.get(operation, "QuotaExceeded"), "The quota is exceeded.")
        return _refusal(500, "InternalError", "The request processing has failed due to some unknown error.")

    def blinded(self, call: Call) -> Call | Response:
        """Lists are empty; what is named is not found."""
        if self.operation(call).startswith(("Describe", "List")) and not self.operation(call).endswith("Attribute"):
            return JSONResponse({"RequestId": new_request_id(), "TotalCount": 0})
        named = _parameters(call)
        for kind in _KINDS:
            if kind.id in named:
                return _refusal(404, *kind.missing)
        return call


def _parameters(call: Call) -> dict[str, str]:
    query = call.target.partition("?")[2]
    return dict(parse_qsl(query) + parse_qsl(call.body.decode(errors="replace")))


def _refusal(status: int, code: str, message: str) -> Response:
    return JSONResponse(wording(status, code, message).document, status)
