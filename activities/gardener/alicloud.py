"""Shoots on Alibaba Cloud in an existing VPC (gardener-extension-provider-alicloud, pkg/apis/alicloud/v1alpha1).

The rules are those of pkg/apis/alicloud/validation there, checked before Gardener is asked, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations
from typing import Annotated

from pydantic import Field

from activities.gardener.provider import ProviderConfig, ProviderPart
from domain.errors import Code, TrellisError
from domain.networks import Zone
from domain.shoots import ShootOrder
from domain.specs import Cidr

__all__ = ["configs"]

# Alibaba Cloud's own services, such as the one that tells machines about themselves
# (pkg/apis/alicloud/validation/shoot.go, ReservedCIDR).
_RESERVED = IPv4Network("100.64.0.0/10")
_API_VERSION = "alicloud.provider.extensions.gardener.cloud/v1alpha1"


class _Vpc(ProviderPart):
    """An existing VPC, in which every cluster has a NAT gateway and a route table of its own.

    It is the only form in which clusters share a VPC: one NAT gateway can have the default route of the system's route
    table, and the pods' routes of all clusters would be in it too (pkg/controller/infrastructure/configvalidator.go,
    validateMultiShootVPC). A custom table needs a NAT gateway that Gardener manages.
    """

    id: Annotated[str, Field(pattern=r"^vpc-[a-z0-9]+$")]
    managed_nat_gateway: bool = Field(True, alias="gardenerManagedNATGateway")
    custom_route_table: bool = Field(True, alias="useCustomRouteTable")


class _Zone(ProviderPart):
    name: Annotated[str, Field(min_length=1)]
    workers: Cidr


class _Networks(ProviderPart):
    vpc: _Vpc
    zones: Annotated[tuple[_Zone, ...], Field(min_length=1)]


class _InfrastructureConfig(ProviderConfig):
    networks: _Networks


def configs(order: ShootOrder) -> tuple[ProviderConfig, ProviderConfig]:
    """The InfrastructureConfig and ControlPlaneConfig of a shoot in the order's VPC.

    Raises:
        TrellisError: `invalid` for ranges or zones that Gardener would refuse.
    """
    problems = list(_problems(order))
    if problems:
        what = f"the shoot {order.plan.shoot.name} of cluster {order.spec.name} would be refused"
        raise TrellisError(Code.INVALID, f"{what}: {'; '.join(problems)}", "choose other ranges or zones")
    networks = _Networks(
        vpc=_Vpc(id=order.network.id),
        zones=tuple(_Zone(name=zone.name, workers=zone.workers) for zone in order.layout.zones),
    )
    return (
        _InfrastructureConfig(api_version=_API_VERSION, kind="InfrastructureConfig", networks=networks),
        ProviderConfig(api_version=_API_VERSION, kind="ControlPlaneConfig"),
    )


def _problems(order: ShootOrder) -> Iterator[str]:
    """What Gardener checks of the zones and their ranges; that these are canonical is in their type."""
    zones = order.layout.zones
    for name, cidr in (("nodes", order.layout.nodes), ("pods", order.spec.pods), ("services", order.spec.services)):
        if cidr.overlaps(_RESERVED):
            yield f"{name} {cidr} overlap {_RESERVED}, which Alibaba Cloud keeps for itself"
    if not zones:
        yield "no zone is given"
    for zone in zones:
        yield from _zone_problems(order, zone)
    for one, two in combinations(zones, 2):
        if one.workers.overlaps(two.workers):
            yield f"workers {one.workers} of zone {one.name} and {two.workers} of zone {two.name} overlap"
    for name in order.plan.zones:
        if name not in {zone.name for zone in zones}:
            yield f"zone {name} has no workers' range"


def _zone_problems(order: ShootOrder, zone: Zone) -> Iterator[str]:
    spec, workers = order.spec, f"workers {zone.workers} of zone {zone.name}"
    if not zone.name.startswith(spec.region):
        yield f"zone {zone.name} is not in region {spec.region}"
    if not zone.workers.subnet_of(order.layout.nodes):
        yield f"{workers} are not inside nodes {order.layout.nodes}"
    for name, other in (("pods", spec.pods), ("services", spec.services)):
        if zone.workers.overlaps(other):
            yield f"{workers} overlap {name} {other}"
