"""What a shoot on OpenStack says about itself (provider-openstack, `pkg/apis/openstack/v1alpha1`)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["ControlPlaneConfig", "InfrastructureConfig", "Networks"]

_API_VERSION = Literal["openstack.provider.extensions.gardener.cloud/v1alpha1"]


class _Config(BaseModel):
    # Gardener's own names, as they stand in the JSON.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Router(_Config):
    id: str = ""


class _SubnetPool(_Config):
    id: str = ""
    prefixLength: int = 0  # noqa: N815


class _Enabled(_Config):
    enabled: bool = False


class _IPv6(_Config):
    subnetPoolID: str | None = None  # noqa: N815
    nodeCIDR: str = ""  # noqa: N815
    podCIDR: str = ""  # noqa: N815
    serviceCIDR: str = ""  # noqa: N815


class Networks(_Config):
    """The network part."""

    router: _Router | None = None
    worker: str = ""
    workers: str = ""
    subnetPool: _SubnetPool | None = None  # noqa: N815
    id: str | None = None
    shareNetwork: _Enabled | None = None  # noqa: N815
    ipv6: _IPv6 | None = None

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

    apiVersion: _API_VERSION  # noqa: N815
    kind: Literal["InfrastructureConfig"]
    floatingPoolName: str = ""  # noqa: N815
    floatingPoolSubnetName: str | None = None  # noqa: N815
    networks: Networks


class _CloudControllerManager(_Config):
    featureGates: dict[str, bool] | None = None  # noqa: N815


class _Storage(_Config):
    csiManila: _Enabled | None = None  # noqa: N815


class ControlPlaneConfig(_Config):
    """`spec.provider.controlPlaneConfig`; classes of load balancers are not served by this garden."""

    apiVersion: _API_VERSION  # noqa: N815
    kind: Literal["ControlPlaneConfig"]
    loadBalancerProvider: str = ""  # noqa: N815
    zone: str | None = None
    cloudControllerManager: _CloudControllerManager | None = None  # noqa: N815
    storage: _Storage | None = None
