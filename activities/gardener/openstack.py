"""Shoots on OpenStack in an existing network, on its router (gardener-extension-provider-openstack,
pkg/apis/openstack/v1alpha1).

The rules are those of pkg/apis/openstack/validation there, checked before Gardener is asked, with the same outcome.
"""  # noqa: D205 - a path

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID

from pydantic import Field

from activities.gardener.provider import ProviderConfig, ProviderPart
from domain.errors import Code, TrellisError
from domain.shoots import ShootOrder
from domain.specs import Cidr

__all__ = ["configs"]

_API_VERSION = "openstack.provider.extensions.gardener.cloud/v1alpha1"
_ROUTER = "router"
_FLOATING_POOL = "floating-pool"

# pkg/apis/openstack/validation/filter.go, validateResourceName
_RESOURCE_NAME = re.compile(r"[^{}\[\]\n]{1,255}")


class _Router(ProviderPart):
    """The one of all clusters: subnets of one network on different routers do not reach each other."""

    id: UUID


class _Networks(ProviderPart):
    id: UUID
    router: _Router
    workers: Cidr


class _InfrastructureConfig(ProviderConfig):
    floating_pool: str = Field(alias="floatingPoolName")
    networks: _Networks


class _ControlPlaneConfig(ProviderConfig):
    load_balancer_provider: str = Field(alias="loadBalancerProvider", min_length=1)


def configs(order: ShootOrder) -> tuple[ProviderConfig, ProviderConfig]:
    """The InfrastructureConfig and ControlPlaneConfig of a shoot in the order's network; one subnet spans the zones.

    Raises:
        TrellisError: `invalid` for what Gardener would refuse; `internal` where the network lacks a part.
    """
    problems = list(_problems(order))
    if problems:
        what = f"the shoot {order.plan.shoot.name} of cluster {order.spec.name} would be refused"
        raise TrellisError(Code.INVALID, f"{what}: {'; '.join(problems)}", "choose other ranges, zones or region")
    networks = _Networks(
        id=UUID(order.network.id), router=_Router(id=UUID(_part(order, _ROUTER))), workers=order.layout.nodes
    )
    infrastructure = _InfrastructureConfig(
        api_version=_API_VERSION,
        kind="InfrastructureConfig",
        floating_pool=_part(order, _FLOATING_POOL),
        networks=networks,
    )
    return infrastructure, _ControlPlaneConfig(
        api_version=_API_VERSION,
        kind="ControlPlaneConfig",
        load_balancer_provider=str(order.plan.load_balancer_provider),
    )


def _part(order: ShootOrder, name: str) -> str:
    try:
        return order.network.parts[name]
    except KeyError:
        raise TrellisError(
            Code.INTERNAL,
            f"network {order.network.id} of VPC {order.spec.vpc_name} has no {name} on record",
            "a defect: a network on OpenStack has one",
        ) from None


def _problems(order: ShootOrder) -> Iterator[str]:
    """What Gardener checks; that ranges are canonical is in their type."""
    nodes, pool = order.layout.nodes, _part(order, _FLOATING_POOL)
    if not _RESOURCE_NAME.fullmatch(pool):
        yield f"Gardener takes no name such as floatingPoolName {pool!r}"
    for name, other in (("pods", order.spec.pods), ("services", order.spec.services)):
        if other.overlaps(nodes):
            yield f"nodes {nodes} overlap {name} {other}"
    for zone in order.layout.zones:
        if zone.workers != nodes:
            yield f"workers {zone.workers} of zone {zone.name} are not all of nodes {nodes}: one subnet spans the zones"
    if not order.plan.zones:
        yield "no zone is given"
    if not order.plan.load_balancer_provider:
        yield f"the CloudProfile {order.plan.cloud_profile} has no load balancer provider for {order.spec.region}"
