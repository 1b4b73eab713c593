"""How EC2 names its operations and words its errors, for `sandbox.faults`: `CreateVpc`, `DescribeVpcs`.

STS and IAM speak the same query protocol, and their clients read the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, urlencode
from xml.sax.saxutils import escape

from starlette.responses import Response

if TYPE_CHECKING:
    from sandbox.faults import Call, FaultKind

__all__ = ["Ec2"]

_QUOTAS: Mapping[str, str] = {
    "AllocateAddress": "AddressLimitExceeded",
    "AssociateVpcCidrBlock": "CidrLimitExceeded",
    "CreateInternetGateway": "InternetGatewayLimitExceeded",
    "CreateNatGateway": "NatGatewayLimitExceeded",
    "CreateSecurityGroup": "SecurityGroupLimitExceeded",
    "CreateSubnet": "SubnetLimitExceeded",
    "CreateVpc": "VpcLimitExceeded",
}
_UNKNOWN_IDS: Mapping[str, str] = {
    "VpcId": "InvalidVpcID.NotFound",
    "SubnetId": "InvalidSubnetID.NotFound",
    "GroupId": "InvalidGroup.NotFound",
    "InternetGatewayId": "InvalidInternetGatewayID.NotFound",
    "DhcpOptionsId": "InvalidDhcpOptionID.NotFound",
    "RouteTableId": "InvalidRouteTableID.NotFound",
    "NatGatewayId": "NatGatewayNotFound",
}


class Ec2:
    """The query API of EC2 (docs.aws.amazon.com/AWSEC2/latest/APIReference)."""

    def operation(self, call: Call) -> str:
        """The Action."""
        return parse_qs(call.body.decode(errors="replace")).get("Action", [""])[0]

    def error(self, kind: FaultKind, operation: str) -> Response:
        """EC2 says 503 to too many calls, and 400 where a quota is used up."""
        if kind == "throttle":
            return _answer(503, "RequestLimitExceeded", "Request limit exceeded.")
        if kind == "forbidden":
            return _answer(403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
        if kind == "quota":
            code = _QUOTAS.get(operation, "ResourceLimitExceeded")
            return _answer(400, code, f"The maximum number for {operation} has been reached.")
        return _answer(500, "InternalError", "An internal error has occurred")

    def blinded(self, call: Call) -> Call | Response:
        """A describe call gets a filter that nothing passes; others are told that the id they name is unknown."""
        parameters = parse_qsl(call.body.decode(errors="replace"), keep_blank_values=True)
        named = [(key.partition(".")[0], value) for key, value in parameters]
        for key, value in named:
            if key in _UNKNOWN_IDS:
                return _answer(400, _UNKNOWN_IDS[key], f"The ID '{value}' does not exist")
        number = 1 + sum(key.startswith("Filter.") and key.endswith(".Name") for key, _ in parameters)
        parameters += [(f"Filter.{number}.Name", "tag-key"), (f"Filter.{number}.Value.1", "sandbox/no-such-tag")]
        return replace(call, body=urlencode(parameters).encode())


def _answer(status: int, code: str, message: str) -> Response:
    error = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
    body = f"<Response><Errors>{error}</Errors><RequestID>sandbox-fault</RequestID></Response>"
    return Response(body, status, media_type="text/xml")
