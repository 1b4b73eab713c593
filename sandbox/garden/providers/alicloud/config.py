"""What a shoot on Alibaba Cloud says about itself (provider-alicloud, `pkg/apis/alicloud/v1alpha1`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["ControlPlaneConfig", "InfrastructureConfig", "Networks", "Vpc", "Zone"]


class _Config(BaseModel):
    # Gardener's own names, as they stand in the JSON.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Vpc(_Config):
    """The VPC to use, or the range of one to make."""

    id: str | None = None
    cidr: str | None = None
    gardenerManagedNATGateway: bool | None = None  # noqa: N815
    useCustomRouteTable: bool | None = None  # noqa: N815

    @property
    def managed_nat_gateway(self) -> bool:
        """Whether Gardener makes the NAT gateway."""
        return self.id is None or bool(self.gardenerManagedNATGateway)


class NatGateway(_Config):
    """The NAT gateway's part in a zone."""

    eipAllocationID: str | None = None  # noqa: N815


class Zone(_Config):
    """The vSwitch of one zone."""

    name: str
    worker: str = ""
    workers: str = ""
    natGateway: NatGateway | None = None  # noqa: N815

    @property
    def nodes(self) -> str:
        """The range of the nodes, by its present name or its old one."""
        return self.workers or self.worker

    @property
    def allocation(self) -> str | None:
        """The user's own address for the NAT gateway."""
        return self.natGateway.eipAllocationID if self.natGateway else None


class Networks(_Config):
    """The network part."""

    vpc: Vpc
    zones: list[Zone]


class InfrastructureConfig(_Config):
    """`spec.provider.infrastructureConfig`, as far as this garden serves it: dual-stack is not."""

    apiVersion: Literal["alicloud.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["InfrastructureConfig"]
    networks: Networks


class _CloudControllerManager(_Config):
    featureGates: dict[str, bool] | None = None  # noqa: N815


class _Csi(_Config):
    enableADController: bool | None = None  # noqa: N815


class ControlPlaneConfig(BaseModel):
    """`spec.provider.controlPlaneConfig`. Unknown fields pass, as they do there (`lenientDecoder`)."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    apiVersion: Literal["alicloud.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["ControlPlaneConfig"]
    cloudControllerManager: _CloudControllerManager | None = None  # noqa: N815
    csi: _Csi | None = None
