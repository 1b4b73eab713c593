"""What is inside a VPC: everything that EC2 counts as a dependency when the VPC is to be deleted.

Source: "Delete your VPC" of the AWS documentation, and the error `DependencyViolation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from domain.networks import Blocker

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

__all__ = ["Inventory", "described", "take_inventory"]

_Json = dict[str, Any]

_CLUSTER_TAG = "kubernetes.io/cluster/"
_GONE = {"deleted", "expired", "failed", "rejected"}
_LEAVING = {"deleting"}
# These belong to a resource that is listed itself.
_INTERFACES_OF_LISTED = {"nat_gateway", "vpc_endpoint", "gateway_load_balancer_endpoint"}


@dataclass(frozen=True)
class Inventory:
    """What is in a VPC beside what Trellis made with it: what stays, and what is on its way out by itself."""

    staying: tuple[Blocker, ...]
    leaving: tuple[Blocker, ...]


@dataclass(frozen=True)
class _Kind:
    name: str
    operation: str
    key: str
    id: str
    filter: str = "vpc-id"
    counts: Callable[[_Json], bool] = lambda _: True


_KINDS = (
    _Kind("subnet", "describe_subnets", "Subnets", "SubnetId"),
    _Kind(
        "network-interface",
        "describe_network_interfaces",
        "NetworkInterfaces",
        "NetworkInterfaceId",
        counts=lambda item: item.get("InterfaceType") not in _INTERFACES_OF_LISTED,
    ),
    _Kind("nat-gateway", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
    _Kind("vpc-endpoint", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    _Kind(
        "route-table",
        "describe_route_tables",
        "RouteTables",
        "RouteTableId",
        counts=lambda item: not any(link.get("Main") for link in item["Associations"]),
    ),
    _Kind(
        "security-group",
        "describe_security_groups",
        "SecurityGroups",
        "GroupId",
        counts=lambda item: item["GroupName"] != "default",
    ),
    _Kind(
        "network-acl",
        "describe_network_acls",
        "NetworkAcls",
        "NetworkAclId",
        counts=lambda item: not item["IsDefault"],
    ),
    _Kind(
        "internet-gateway",
        "describe_internet_gateways",
        "InternetGateways",
        "InternetGatewayId",
        filter="attachment.vpc-id",
    ),
    _Kind("vpn-gateway", "describe_vpn_gateways", "VpnGateways", "VpnGatewayId", filter="attachment.vpc-id"),
    *(
        _Kind(
            "vpc-peering-connection",
            "describe_vpc_peering_connections",
            "VpcPeeringConnections",
            "VpcPeeringConnectionId",
            filter=f"{side}-vpc-info.vpc-id",
        )
        for side in ("requester", "accepter")
    ),
)


def take_inventory(client: EC2Client, vpc_id: str, ours: frozenset[str]) -> Inventory:
    """What is inside `vpc_id`, without `ours` and without what EC2 makes and removes with the VPC itself."""
    staying: list[Blocker] = []
    leaving: list[Blocker] = []
    for kind in _KINDS:
        for item in described(client, kind.operation, kind.key, {kind.filter: [vpc_id]}):
            state = _state(item)
            if item[kind.id] in ours or state in _GONE or not kind.counts(item):
                continue
            (leaving if state in _LEAVING else staying).append(_blocker(kind, item))
    return Inventory(tuple(staying), tuple(leaving))


def described(
    client: EC2Client, operation: str, key: str, filters: dict[str, list[str]], **parameters: Any
) -> list[_Json]:
    """All pages of a describe call. Filters are used even for ids: what is not there is then no error."""
    # The one describe call whose parameter has another name.
    name = "Filter" if operation == "describe_nat_gateways" else "Filters"
    parameters[name] = [{"Name": filter_name, "Values": values} for filter_name, values in filters.items()]
    return [item for page in _pages(client, operation, parameters) for item in page[key]]


def _pages(client: EC2Client, operation: str, parameters: dict[str, Any]) -> Iterator[_Json]:
    untyped: Any = client
    if client.can_paginate(operation):
        yield from untyped.get_paginator(operation).paginate(**parameters)
    else:
        yield getattr(untyped, operation)(**parameters)


def _state(item: _Json) -> str:
    status = item.get("Status")
    state = item.get("State") or (status.get("Code") if isinstance(status, dict) else status)
    return str(state or "").lower()


def _blocker(kind: _Kind, item: _Json) -> Blocker:
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", item.get("TagSet", []))}
    name = tags.get("Name") or item.get("GroupName") or item.get("Description") or ""
    clusters = [key.removeprefix(_CLUSTER_TAG) for key in tags if key.startswith(_CLUSTER_TAG)]
    return Blocker(kind=kind.name, id=item[kind.id], name=name, owner=", ".join(sorted(clusters)))
