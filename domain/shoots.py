"""Shoots, as the steps of a workflow pass them to each other."""

from __future__ import annotations

from domain.networks import Layout, Network, NetworkRecord
from domain.specs import Cidr, ClusterSpec, Frozen, Provider

__all__ = [
    "ClusterKey",
    "FoundShoot",
    "NatGateway",
    "Reach",
    "ShootKey",
    "ShootOrder",
    "ShootPlan",
    "VerifyConnectivity",
]


class ClusterKey(Frozen):
    """A cluster, by tenant and name. Its shoot's name follows from both (`domain.names.shoot_name`)."""

    tenant: str
    cluster: str


class ShootKey(Frozen):
    """Where the shoot is in the garden. The namespace is the project's: `garden-<project>`."""

    namespace: str
    name: str


class ShootPlan(Frozen):
    """What the garden's CloudProfile made of a cluster's wishes: everything that the user left open is chosen."""

    shoot: ShootKey
    cloud_profile: str
    zones: tuple[str, ...]
    machine_type: str
    machine_image: str
    machine_image_version: str
    kubernetes_version: str
    architecture: str = "amd64"
    # None: the machine type brings its own disk.
    volume_type: str | None = None
    # What the CloudProfile has for the region; only on OpenStack.
    load_balancer_provider: str | None = None


class ShootOrder(Frozen):
    """A shoot to be made inside a network."""

    spec: ClusterSpec
    plan: ShootPlan
    network: Network
    layout: Layout
    slot: int = 0


class FoundShoot(Frozen):
    """A shoot that Trellis made, as the garden tells it: for clusters whose own workflow is not there to ask."""

    shoot: ShootKey
    vpc: str
    provider: Provider
    region: str
    credentials: str
    block: Cidr
    deleting: bool


class Reach(Frozen):
    """What the connectivity step proved: the peers that answered, in both directions."""

    peers: tuple[str, ...] = ()
    note: str = ""


class NatGateway(Frozen):
    """Wait until a shoot's NAT gateway is there, or gone. `shoot` is the technical id."""

    record: NetworkRecord
    shoot: str
    present: bool


class VerifyConnectivity(Frozen):
    """Prove that a cluster and a sample of its VPC's other clusters reach each other, in both directions."""

    tenant: str
    cluster: str
    vpc: str
    sample: int = 2
