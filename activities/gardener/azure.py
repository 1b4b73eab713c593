"""Shoots on Azure in an existing virtual network (gardener-extension-provider-azure, pkg/apis/azure/v1alpha1).

The rules are those of pkg/apis/azure/validation there, checked before Gardener is asked, with the same outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from activities.gardener.provider import ProviderConfig, ProviderPart
from domain.errors import Code, TrellisError
from domain.shoots import ShootOrder
from domain.specs import Cidr

__all__ = ["configs"]

_API_VERSION = "azure.provider.extensions.gardener.cloud/v1alpha1"
_ID = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/(?P<group>[^/]+)/providers/Microsoft\.Network/virtualNetworks/(?P<name>[^/]+)",
    re.IGNORECASE,
)
# They have these names in every region (learn.microsoft.com/azure/reliability/availability-zones-overview).
_ZONES = ("1", "2", "3")


class _Vnet(ProviderPart):
    # An empty text would be taken, and the shoot could be neither made nor deleted.
    name: Annotated[str, Field(min_length=2, max_length=64)]
    resource_group: Annotated[str, Field(min_length=1, max_length=90, alias="resourceGroup")]


class _NatGateway(ProviderPart):
    """Azure's own way out for machines without an address is being retired: every shoot has a gateway."""

    enabled: bool = True


class _Networks(ProviderPart):
    vnet: _Vnet
    workers: Cidr
    nat_gateway: _NatGateway = Field(default_factory=_NatGateway, alias="natGateway")


class _InfrastructureConfig(ProviderConfig):
    networks: _Networks
    zoned: bool


def configs(order: ShootOrder) -> tuple[ProviderConfig, ProviderConfig]:
    """The InfrastructureConfig and ControlPlaneConfig of a shoot in the order's network: one subnet, in all zones.

    Raises:
        TrellisError: `invalid` for ranges or zones that Gardener would refuse; `internal` where what is on record is
            no virtual network.
    """
    match = _ID.fullmatch(order.network.id)
    if match is None:
        raise TrellisError(
            Code.INTERNAL,
            f"{order.network.id} of VPC {order.spec.vpc_name} is no id of a virtual network",
            "a defect: a network on Azure is known by its resource id",
        )
    problems = list(_problems(order, match["group"]))
    if problems:
        what = f"the shoot {order.plan.shoot.name} of cluster {order.spec.name} would be refused"
        raise TrellisError(Code.INVALID, f"{what}: {'; '.join(problems)}", "choose other ranges or zones")
    networks = _Networks(
        vnet=_Vnet(name=match["name"], resource_group=match["group"]),
        workers=order.layout.nodes,
    )
    return (
        _InfrastructureConfig(api_version=_API_VERSION, kind="InfrastructureConfig", networks=networks, zoned=True),
        ProviderConfig(api_version=_API_VERSION, kind="ControlPlaneConfig"),
    )


def _problems(order: ShootOrder, group: str) -> Iterator[str]:
    """What Gardener checks of ranges, zones and groups; that ranges are canonical is in their type."""
    nodes, shoot = order.layout.nodes, order.plan.shoot
    for name, other in (("pods", order.spec.pods), ("services", order.spec.services)):
        if other.overlaps(nodes):
            yield f"nodes {nodes} overlap {name} {other}"
    for zone in order.layout.zones:
        if zone.workers != nodes:
            yield f"workers {zone.workers} of zone {zone.name} are not all of nodes {nodes}: one subnet spans the zones"
    if not order.plan.zones:
        yield "no zone is given"
    for name in order.plan.zones:
        if name not in _ZONES:
            yield f"zone {name} is none of {', '.join(_ZONES)}"
    if group.lower() == f"shoot--{shoot.namespace.removeprefix('garden-')}--{shoot.name}".lower():
        yield f"resource group {group} would be the shoot's own"
