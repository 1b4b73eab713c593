"""What a shoot on GCP says about itself (provider-gcp, `pkg/apis/gcp/v1alpha1`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["CloudNat", "ControlPlaneConfig", "FlowLogs", "InfrastructureConfig", "Networks", "Vpc"]


class _Config(BaseModel):
    # Gardener's own names, as they stand in the JSON.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CloudRouter(_Config):
    """A router that is there."""

    name: str = ""


class Vpc(_Config):
    """A network that is there."""

    name: str = ""
    cloudRouter: CloudRouter | None = None  # noqa: N815


class _Mapping(_Config):
    enabled: bool


class _NatIp(_Config):
    name: str


class CloudNat(_Config):
    """The NAT gateway of the nodes."""

    endpointIndependentMapping: _Mapping | None = None  # noqa: N815
    minPortsPerVM: int | None = None  # noqa: N815
    maxPortsPerVM: int | None = None  # noqa: N815
    enableDynamicPortAllocation: bool = False  # noqa: N815
    natIPNames: list[_NatIp] | None = None  # noqa: N815
    icmpIdleTimeoutSec: int | None = None  # noqa: N815
    tcpEstablishedIdleTimeoutSec: int | None = None  # noqa: N815
    tcpTimeWaitTimeoutSec: int | None = None  # noqa: N815
    tcpTransitoryIdleTimeoutSec: int | None = None  # noqa: N815
    udpIdleTimeoutSec: int | None = None  # noqa: N815


class FlowLogs(_Config):
    """The flow logs of the nodes' subnetwork."""

    aggregationInterval: str | None = None  # noqa: N815
    flowSampling: float | None = None  # noqa: N815
    metadata: str | None = None


class Networks(_Config):
    """The network part."""

    vpc: Vpc | None = None
    cloudNAT: CloudNat | None = None  # noqa: N815
    internal: str | None = None
    worker: str = ""
    workers: str = ""
    flowLogs: FlowLogs | None = None  # noqa: N815
    mtu: int | None = None

    @property
    def nodes(self) -> str:
        """The range of the nodes, by its present name or its old one."""
        return self.workers or self.worker

    @property
    def nodes_field(self) -> str:
        """Under which name it is given."""
        return "worker" if self.worker and not self.workers else "workers"


class InfrastructureConfig(_Config):
    """`spec.provider.infrastructureConfig`."""

    apiVersion: Literal["gcp.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["InfrastructureConfig"]
    networks: Networks


class _CloudControllerManager(_Config):
    featureGates: dict[str, bool] | None = None  # noqa: N815


class _Enabled(_Config):
    enabled: bool


class _Storage(_Config):
    # As far as this garden serves it: classes of disks are not.
    managedDefaultStorageClass: bool | None = None  # noqa: N815
    managedDefaultVolumeSnapshotClass: bool | None = None  # noqa: N815
    csiFilestore: _Enabled | None = None  # noqa: N815


class ControlPlaneConfig(_Config):
    """`spec.provider.controlPlaneConfig`."""

    apiVersion: Literal["gcp.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["ControlPlaneConfig"]
    zone: str = ""
    cloudControllerManager: _CloudControllerManager | None = None  # noqa: N815
    storage: _Storage | None = None
