"""What is inside a VPC: everything that EC2 counts as a dependency when the VPC is to be deleted.

Source: "Delete your VPC" of the AWS documentation, and the error `DependencyViolation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from activities.clouds.aws._account import GATEWAY, Account, Json, Kind, tags_of
from domain.networks import Blocker

__all__ = ["Inventory", "take_inventory"]

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
class _Inside:
    """A kind of resource, how it names its VPC, and which of that kind count."""

    kind: Kind
    filter: str = "vpc-id"
    counts: Callable[[Json], bool] = lambda _: True


def _kind(name: str, key: str, id_key: str) -> Kind:
    return Kind(name, f"describe_{name.replace('-', '_')}s", key, id_key, name)


_PEERING = _kind("vpc-peering-connection", "VpcPeeringConnections", "VpcPeeringConnectionId")
_INSIDE = (
    _Inside(_kind("subnet", "Subnets", "SubnetId")),
    _Inside(
        _kind("network-interface", "NetworkInterfaces", "NetworkInterfaceId"),
        counts=lambda item: item.get("InterfaceType") not in _INTERFACES_OF_LISTED,
    ),
    _Inside(_kind("nat-gateway", "NatGateways", "NatGatewayId")),
    _Inside(_kind("vpc-endpoint", "VpcEndpoints", "VpcEndpointId")),
    _Inside(
        _kind("route-table", "RouteTables", "RouteTableId"),
        counts=lambda item: not any(link.get("Main") for link in item["Associations"]),
    ),
    _Inside(_kind("security-group", "SecurityGroups", "GroupId"), counts=lambda item: item["GroupName"] != "default"),
    _Inside(_kind("network-acl", "NetworkAcls", "NetworkAclId"), counts=lambda item: not item["IsDefault"]),
    _Inside(GATEWAY, "attachment.vpc-id"),
    _Inside(_kind("vpn-gateway", "VpnGateways", "VpnGatewayId"), "attachment.vpc-id"),
    _Inside(_PEERING, "requester-vpc-info.vpc-id"),
    _Inside(_PEERING, "accepter-vpc-info.vpc-id"),
)


def take_inventory(account: Account, vpc_id: str, ours: frozenset[str]) -> Inventory:
    """What is inside `vpc_id`, without the ids `ours` and without what EC2 makes and removes with the VPC itself."""
    staying: list[Blocker] = []
    leaving: list[Blocker] = []
    for inside in _INSIDE:
        for item in account.described(inside.kind, {inside.filter: [vpc_id]}):
            state = _state(item)
            if item[inside.kind.id] in ours or state in _GONE or not inside.counts(item):
                continue
            (leaving if state in _LEAVING else staying).append(_blocker(inside.kind, item))
    return Inventory(tuple(staying), tuple(leaving))


def _state(item: Json) -> str:
    status = item.get("Status")
    state = item.get("State") or (status.get("Code") if isinstance(status, dict) else status)
    return str(state or "").lower()


def _blocker(kind: Kind, item: Json) -> Blocker:
    tags = tags_of(item)
    name = tags.get("Name") or item.get("GroupName") or item.get("Description") or ""
    clusters = sorted(key.removeprefix(_CLUSTER_TAG) for key in tags if key.startswith(_CLUSTER_TAG))
    return Blocker(kind=kind.name, id=item[kind.id], name=name, owner=", ".join(clusters))
