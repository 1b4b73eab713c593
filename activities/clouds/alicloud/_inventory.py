"""What is inside a VPC: everything that keeps it from being deleted.

Sources: "Before you delete a VPC" and the errors `DependencyViolation.*` of
https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-deletevpc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from activities.clouds.alicloud._account import Account, Json, tags_of
from domain.networks import Blocker

__all__ = ["Inventory", "take_inventory"]

_CLUSTER_TAG = "kubernetes.io/cluster/"
_GONE = {"deleted", "expired", "rejected"}
_LEAVING = {"deleting"}
# Types that the service counts and that are listed one by one, or that come and go with the VPC.
_LISTED = {"vswitch", "natgateway", "routetable", "securitygroup", "vrouter", "vpcpeer"}


@dataclass(frozen=True)
class Inventory:
    """What is in a VPC: what stays, and what is on its way out by itself."""

    staying: tuple[Blocker, ...]
    leaving: tuple[Blocker, ...]


@dataclass(frozen=True)
class _Kind:
    """A kind of resource: how it is listed, and which members hold its id and its name."""

    name: str
    id: str
    title: str
    listed: Callable[[Account, str], list[Json]]


_KINDS = (
    _Kind("vswitch", "VSwitchId", "VSwitchName", Account.vswitches),
    _Kind("nat-gateway", "NatGatewayId", "Name", Account.nat_gateways),
    _Kind("route-table", "RouteTableId", "RouteTableName", Account.route_tables),
    _Kind("security-group", "SecurityGroupId", "SecurityGroupName", Account.security_groups),
    _Kind("vpc-peering-connection", "InstanceId", "Name", Account.peerings),
)


def take_inventory(account: Account, vpc_id: str) -> Inventory:
    """What is inside `vpc_id`, without what the service makes and removes with the VPC itself."""
    staying: list[Blocker] = []
    leaving: list[Blocker] = []
    for kind in _KINDS:
        for item in kind.listed(account, vpc_id):
            status = str(item.get("Status", "")).lower()
            if status in _GONE or item.get("RouteTableType") == "System":
                continue
            (leaving if status in _LEAVING else staying).append(_blocker(kind, item))
    staying += _uncounted(account, vpc_id)
    return Inventory(tuple(staying), tuple(leaving))


def _uncounted(account: Account, vpc_id: str) -> Iterator[Blocker]:
    """What the service only counts."""
    for resource_type, count in account.counts(vpc_id).items():
        if count and resource_type.lower() not in _LISTED:
            yield Blocker(kind=resource_type, id=f"{count} in {vpc_id}")


def _blocker(kind: _Kind, item: Json) -> Blocker:
    clusters = sorted(key.removeprefix(_CLUSTER_TAG) for key in tags_of(item) if key.startswith(_CLUSTER_TAG))
    return Blocker(kind=kind.name, id=item[kind.id], name=item.get(kind.title) or "", owner=", ".join(clusters))
