"""What a shoot on Azure says about itself (provider-azure, `pkg/apis/azure/v1alpha1`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = [
    "ControlPlaneConfig",
    "Identity",
    "InfrastructureConfig",
    "NatGateway",
    "Networks",
    "PublicIp",
    "Vnet",
    "Zone",
    "ZonedNatGateway",
]

STANDARD = "Standard"


class _Config(BaseModel):
    # Gardener's own names, as they stand in the JSON.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _ResourceGroup(_Config):
    name: str = ""


class Vnet(_Config):
    """A network that is there, or the range of one to be made."""

    name: str | None = None
    resourceGroup: str | None = None  # noqa: N815
    cidr: str | None = None
    ddosProtectionPlanID: str | None = None  # noqa: N815

    @property
    def is_users(self) -> bool:
        """Whether it is there already."""
        return self.name is not None and self.resourceGroup is not None


class PublicIp(_Config):
    """A public address of the user's."""

    name: str = ""
    resourceGroup: str = ""  # noqa: N815
    zone: int | None = None


class NatGateway(_Config):
    """The NAT gateway of the one subnet."""

    enabled: bool = False
    idleConnectionTimeoutMinutes: int | None = None  # noqa: N815
    zone: int | None = None
    sku: str | None = None
    ipAddresses: list[PublicIp] | None = None  # noqa: N815


class ZonedNatGateway(_Config):
    """The NAT gateway of a zone's subnet."""

    enabled: bool = False
    idleConnectionTimeoutMinutes: int | None = None  # noqa: N815
    sku: str | None = None
    ipAddresses: list[PublicIp] | None = None  # noqa: N815


class Zone(_Config):
    """A subnet of one zone."""

    name: int = 0
    cidr: str = ""
    serviceEndpoints: list[str] = []  # noqa: N815
    natGateway: ZonedNatGateway | None = None  # noqa: N815


class Networks(_Config):
    """The network part: one subnet (`workers`), or one in each zone."""

    vnet: Vnet = Vnet()
    workers: str | None = None
    natGateway: NatGateway | None = None  # noqa: N815
    serviceEndpoints: list[str] = []  # noqa: N815
    zones: list[Zone] = []

    @property
    def is_single(self) -> bool:
        """Whether one subnet spans the zones."""
        return not self.zones


class Identity(_Config):
    """A managed identity of the nodes."""

    name: str = ""
    resourceGroup: str = ""  # noqa: N815
    acrAccess: bool | None = None  # noqa: N815


class InfrastructureConfig(_Config):
    """`spec.provider.infrastructureConfig`."""

    apiVersion: Literal["azure.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["InfrastructureConfig"]
    networks: Networks
    resourceGroup: _ResourceGroup | None = None  # noqa: N815
    identity: Identity | None = None
    zoned: bool = False


class _CloudControllerManager(_Config):
    featureGates: dict[str, bool] | None = None  # noqa: N815


class _Storage(_Config):
    managedDefaultStorageClass: bool | None = None  # noqa: N815
    managedDefaultVolumeSnapshotClass: bool | None = None  # noqa: N815


class ControlPlaneConfig(_Config):
    """`spec.provider.controlPlaneConfig`."""

    apiVersion: Literal["azure.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["ControlPlaneConfig"]
    cloudControllerManager: _CloudControllerManager | None = None  # noqa: N815
    storage: _Storage | None = None
