"""Shoots on AWS in an existing VPC (gardener-extension-provider-aws, pkg/apis/aws/v1alpha1)."""

from __future__ import annotations

from pydantic import Field

from activities.gardener.provider import ProviderConfig, ProviderPart
from domain.shoots import ShootOrder
from domain.specs import Cidr

__all__ = ["configs"]

_API_VERSION = "aws.provider.extensions.gardener.cloud/v1alpha1"


class _Vpc(ProviderPart):
    id: str


class _Zone(ProviderPart):
    name: str
    workers: Cidr
    public: Cidr
    internal: Cidr


class _Networks(ProviderPart):
    vpc: _Vpc
    zones: tuple[_Zone, ...]
    nodes_security_group: str | None = Field(None, alias="nodesSecurityGroupID")


class _InfrastructureConfig(ProviderConfig):
    networks: _Networks


def configs(order: ShootOrder) -> tuple[ProviderConfig, ProviderConfig]:
    """The InfrastructureConfig and ControlPlaneConfig of a shoot in the order's VPC.

    The shared security group lets the nodes of the VPC's clusters talk to each other; Gardener would otherwise make one
    per shoot, and revoke every rule that others add to it.
    """
    zones = tuple(_Zone.model_validate(zone.model_dump()) for zone in order.layout.zones)
    networks = _Networks(
        vpc=_Vpc(id=order.network.id),
        zones=zones,
        nodes_security_group=order.network.parts.get("nodes-security-group"),
    )
    return (
        _InfrastructureConfig(api_version=_API_VERSION, kind="InfrastructureConfig", networks=networks),
        ProviderConfig(api_version=_API_VERSION, kind="ControlPlaneConfig"),
    )
