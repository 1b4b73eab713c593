"""Shoots on GCP in an existing network (gardener-extension-provider-gcp, pkg/apis/gcp/v1alpha1).

The rules are those of pkg/apis/gcp/validation there, checked before Gardener is asked, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from activities.gardener.provider import ProviderConfig, ProviderPart
from domain.errors import Code, TrellisError
from domain.routers import router_for
from domain.shoots import ShootOrder
from domain.specs import Cidr

__all__ = ["configs"]

_API_VERSION = "gcp.provider.extensions.gardener.cloud/v1alpha1"
_ROUTER = "router-"

_Name = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
_Ports = Annotated[int, Field(ge=2, le=65536)]


class _CloudRouter(ProviderPart):
    name: _Name


class _Vpc(ProviderPart):
    name: _Name
    cloud_router: _CloudRouter = Field(alias="cloudRouter")


class _CloudNat(ProviderPart):
    """Ports are given to a node as it needs them.

    Gardener's own 2048 for each node would take an external address, of which projects have few, for every 31 nodes;
    256 take one for every 252 (cloud.google.com/nat/docs/ports-and-addresses).
    """

    dynamic: bool = Field(True, alias="enableDynamicPortAllocation")
    min_ports: _Ports = Field(256, alias="minPortsPerVM")
    max_ports: _Ports | None = Field(32768, alias="maxPortsPerVM")

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        if not self.dynamic and self.max_ports is not None:
            raise ValueError("maxPortsPerVM is for dynamic port allocation only")
        if self.dynamic:
            for ports in (self.min_ports, self.max_ports or 2):
                if ports & (ports - 1):
                    raise ValueError(f"{ports} ports are no power of two, as dynamic port allocation asks for")
            if self.max_ports is not None and self.min_ports > self.max_ports:
                raise ValueError(f"minPortsPerVM {self.min_ports} is more than maxPortsPerVM {self.max_ports}")
        return self


class _Networks(ProviderPart):
    vpc: _Vpc
    workers: Cidr
    internal: Cidr
    nat: _CloudNat = Field(default_factory=_CloudNat, alias="cloudNAT")


class _InfrastructureConfig(ProviderConfig):
    networks: _Networks


class _ControlPlaneConfig(ProviderConfig):
    zone: str


def configs(order: ShootOrder) -> tuple[ProviderConfig, ProviderConfig]:
    """The InfrastructureConfig and ControlPlaneConfig of a shoot in the order's network, on the router of its slot.

    Workers have one subnet in all zones, and internal load balancers one of their own.

    Raises:
        TrellisError: `invalid` for ranges or zones that Gardener would refuse; `internal` where the network has no
            router.
    """
    problems = list(_problems(order))
    if problems:
        what = f"the shoot {order.plan.shoot.name} of cluster {order.spec.name} would be refused"
        raise TrellisError(Code.INVALID, f"{what}: {'; '.join(problems)}", "choose other ranges or zones")
    networks = _Networks(
        vpc=_Vpc(name=order.network.id, cloud_router=_CloudRouter(name=_router(order))),
        workers=order.layout.nodes,
        internal=order.layout.infra,
    )
    return (
        _InfrastructureConfig(api_version=_API_VERSION, kind="InfrastructureConfig", networks=networks),
        _ControlPlaneConfig(api_version=_API_VERSION, kind="ControlPlaneConfig", zone=order.plan.zones[0]),
    )


def _router(order: ShootOrder) -> str:
    parts = order.network.parts
    names = [parts[part] for part in sorted(parts) if part.startswith(_ROUTER)]
    if not names:
        raise TrellisError(
            Code.INTERNAL,
            f"network {order.network.id} of VPC {order.spec.vpc_name} has no cloud router on record",
            "a defect: a network on GCP has at least one",
        )
    return names[router_for(order.slot, len(names))]


def _problems(order: ShootOrder) -> Iterator[str]:
    """What Gardener checks of the ranges and the zone; that they are canonical is in their type."""
    nodes, internal = order.layout.nodes, order.layout.infra
    for name, other in (("nodes", nodes), ("pods", order.spec.pods), ("services", order.spec.services)):
        if other.overlaps(internal):
            yield f"internal {internal} overlaps {name} {other}"
    for zone in order.layout.zones:
        if zone.workers != nodes:
            yield f"workers {zone.workers} of zone {zone.name} are not all of nodes {nodes}: one subnet spans the zones"
    if not order.plan.zones:
        yield "no zone is given"
    for name in order.plan.zones:
        if not name.startswith(f"{order.spec.region}-"):
            yield f"zone {name} is not in region {order.spec.region}"
