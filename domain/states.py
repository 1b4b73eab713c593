"""What workflows start with and carry from run to run. Plain JSON; fields are only ever added, with defaults."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from domain.errors import Failure
from domain.messages import Claim, Grant
from domain.networks import Layout, Network
from domain.shoots import Reach, ShootPlan
from domain.specs import Cidr, ClusterSpec, Frozen, VpcSpec

__all__ = [
    "ClusterInput", "ClusterState", "Decision", "Member", "Note", "Release", "VpcInput", "VpcState",
]  # fmt: skip


class Decision(Frozen):
    """An operator's word, with who said it and why; both are kept for `explain`."""

    who: str = ""
    why: str = ""


class Release(Decision):
    """An operator's word about one member."""

    cluster: str


class Note(Frozen):
    """One line of the record of what people decided."""

    at: datetime
    what: str
    who: str
    why: str


class ClusterState(Frozen):
    """A cluster that is settled: everything that a later run needs to show it and to remove it."""

    token: int
    plan: ShootPlan
    grant: Grant
    layout: Layout
    reach: Reach | None = None


class ClusterInput(Frozen):
    """A cluster's workflow. Without `spec` it only makes sure that nothing of the cluster is left."""

    tenant: str
    name: str
    spec: ClusterSpec | None = None
    state: ClusterState | None = None


class Member(Frozen):
    """A cluster that holds a block. From its first grant on the block may be in use."""

    cluster: str
    token: int
    workflow_id: str
    block: Cidr
    exact: bool
    since: datetime
    granted: bool = False


class VpcState(Frozen):
    """A VPC's memory. `incarnation` is set from the first attempt to make the network until it is gone."""

    incarnation: str | None = None
    network: Network | None = None
    members: tuple[Member, ...] = ()
    # The last token of clusters that left: a late duplicate of their join does nothing. The oldest are dropped.
    departed: dict[str, int] = Field(default_factory=dict)
    # Subnets inside the network that are in nobody's block.
    foreign: tuple[Cidr, ...] = ()
    retained: bool = False
    lost: bool = False
    claims: tuple[Claim, ...] = ()
    failure: Failure | None = None
    notes: tuple[Note, ...] = ()


class VpcInput(Frozen):
    """A VPC's workflow."""

    spec: VpcSpec
    state: VpcState = VpcState()
