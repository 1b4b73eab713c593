"""What clusters and VPCs say to each other, and what they tell about themselves.

The membership protocol: a cluster sends `join` by signal-with-start and is answered by the signal `answered`; it sends
`leave` and is answered the same way. Both are idempotent by cluster; `token` grows with every life of a cluster, so a
late duplicate of an earlier life does nothing.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from domain.errors import Failure
from domain.networks import Network, NetworkOrder, Zone
from domain.shoots import ShootKey
from domain.specs import DEFAULT_PODS, DEFAULT_SERVICES, Cidr, Frozen, Provider, VpcSpec

__all__ = [
    "Answer", "Claim", "ClusterPhase", "ClusterView", "FreeSpace", "Grant", "Join", "Leave", "Letter", "MemberView",
    "SpaceView", "VpcPhase", "VpcView",
]  # fmt: skip


class Join(Frozen):
    """A cluster asks for a block. `vpc` is the VPC to make if there is none."""

    cluster: str
    token: int
    vpc: VpcSpec
    block: Cidr | None = None
    # Whether the user gave these; what was not given takes whatever the VPC has.
    fixed_cidr: bool = False
    fixed_prefix: bool = False
    # The cluster's own ranges: they must be clear of the VPC's, whatever those are.
    pods: Cidr = DEFAULT_PODS
    services: Cidr = DEFAULT_SERVICES
    legacy_ranges: bool = True


class Leave(Frozen):
    """A cluster gives its block back: its shoot is really gone."""

    cluster: str
    token: int


class Claim(Frozen):
    """A cluster wants to be the only one that works on a part of the network, such as a router."""

    cluster: str
    token: int
    part: str


class Grant(Frozen):
    """A block in a network that is ready. `slot` is the block's position in the VPC, counted in blocks of its size."""

    block: Cidr
    slot: int = 0
    network: Network
    # What the network was made from; with `network`, its record.
    order: NetworkOrder | None = None
    cidrs: tuple[Cidr, ...]


class Answer(Frozen):
    """A VPC's answer: exactly one of granted, refused, left, or a part lent."""

    token: int
    grant: Grant | None = None
    refused: Failure | None = None
    left: bool = False
    lent: str | None = None


class Letter(Frozen):
    """An answer and the workflow it goes to."""

    workflow_id: str
    answer: Answer


class ClusterPhase(StrEnum):
    """Where a cluster is in its life."""

    JOINING = "joining"
    CREATING = "creating"
    VERIFYING = "verifying"
    READY = "ready"
    HELD = "held"
    DELETING = "deleting"
    DELETED = "deleted"
    FAILED = "failed"


class VpcPhase(StrEnum):
    """Where a VPC is in its life."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"
    BLOCKED = "blocked"
    LOST = "lost"
    GONE = "gone"


class ClusterView(Frozen):
    """A cluster as it is shown: the query `describe`, the workflow's result, and `--output json`."""

    name: str
    tenant: str
    provider: Provider | None
    region: str | None
    vpc: str | None
    phase: ClusterPhase
    shoot: ShootKey | None = None
    block: Cidr | None = None
    nodes: Cidr | None = None
    infra: Cidr | None = None
    zones: tuple[Zone, ...] = ()
    workflow_id: str
    failure: Failure | None = None


class MemberView(Frozen):
    """A member of a VPC, as it is shown."""

    cluster: str
    block: Cidr
    since: datetime
    workflow_id: str


class FreeSpace(Frozen):
    """How many more blocks fit, and the largest free range."""

    blocks: int
    largest: Cidr | None


class SpaceView(Frozen):
    """A VPC's addresses: blocks by cluster, what others took, and what is free, in ascending order."""

    cidrs: tuple[Cidr, ...]
    blocks: dict[str, Cidr]
    foreign: tuple[Cidr, ...]
    free: tuple[Cidr, ...]


class VpcView(Frozen):
    """A VPC as it is shown: the query `describe`, the workflow's result, and `--output json`."""

    name: str
    tenant: str
    provider: Provider
    region: str
    cidrs: tuple[Cidr, ...]
    cluster_prefix: int
    phase: VpcPhase
    network: Network | None
    members: tuple[MemberView, ...]
    free: FreeSpace
    adopted: bool = False
    retained: bool = False
    failure: Failure | None = None
    workflow_id: str
