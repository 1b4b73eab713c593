"""Who is in a VPC: the reference count, and the only writer of the VPC's address space.

Pure: a workflow feeds it messages and the time, and sends the answers that it asks for. A member is recorded before
the network exists; it is answered when the network is ready. It goes only when its own cluster says so, or an operator.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from ipaddress import IPv4Network

from domain.addressing import Allocator
from domain.errors import Code, Failure, TrellisError
from domain.messages import Answer, FreeSpace, Grant, Join, Leave, Letter
from domain.networks import Network, NetworkOrder
from domain.ranges import check_ranges
from domain.specs import VpcSpec
from domain.states import Member

__all__ = ["Membership"]

_DEPARTED_MAX = 1_000


class Membership:
    """The members of one VPC and their blocks.

    `join` and `leave` never raise: what cannot be is answered with a refusal, left for the workflow in `letters`.
    """

    def __init__(
        self,
        spec: VpcSpec,
        members: Iterable[Member] = (),
        departed: dict[str, int] | None = None,
        foreign: Iterable[IPv4Network] = (),
    ) -> None:
        self.spec = spec
        self.letters: list[Letter] = []
        self._members = {member.cluster: member for member in members}
        self._departed = dict(departed or {})
        self._waiting: list[str] = []  # clusters whose join is still to be answered
        self._foreign = tuple(foreign)
        self._space = self._rebuilt(self._members.values())

    @property
    def members(self) -> tuple[Member, ...]:
        """All members in the order of their joining."""
        return tuple(self._members.values())

    @property
    def departed(self) -> dict[str, int]:
        """The tokens of clusters that left, oldest first."""
        return dict(self._departed)

    @property
    def foreign(self) -> tuple[IPv4Network, ...]:
        """Ranges that somebody else took inside the network."""
        return self._foreign

    @property
    def unanswered(self) -> bool:
        """Whether a member waits for its answer."""
        return bool(self._waiting)

    def get(self, cluster: str) -> Member | None:
        """The member of this name."""
        return self._members.get(cluster)

    def free(self) -> FreeSpace:
        """How many more blocks of the VPC's size fit."""
        largest = self._space.largest_free()
        return FreeSpace(blocks=self._space.count_free(self.spec.cluster_prefix), largest=largest)

    def free_ranges(self) -> list[IPv4Network]:
        """What nobody holds, as CIDRs in ascending order."""
        return list(self._space.free_ranges())

    def join(self, join: Join, workflow_id: str, now: datetime) -> None:
        """Record a member, or refuse it. Joining again is answered again; an earlier life's join does nothing."""
        known = self._members.get(join.cluster)
        if join.token <= self._departed.get(join.cluster, 0) or (known and join.token < known.token):
            return
        try:
            self._check(join)
            if known:
                _check_same_block(known, join)
                self._members[join.cluster] = known.model_copy(update={"token": join.token, "workflow_id": workflow_id})
                self._await_answer(join.cluster)
                return
            block = self._place(join.cluster, join.block)
        except TrellisError as error:
            self.turn_away(workflow_id, join.token, error.failure)
            return
        self._members[join.cluster] = Member(
            cluster=join.cluster,
            token=join.token,
            workflow_id=workflow_id,
            block=block,
            exact=join.block is not None,
            since=now,
        )
        self._await_answer(join.cluster)

    def leave(self, leave: Leave, workflow_id: str) -> None:
        """Forget a member and free its block; always answered, so that the cluster can end."""
        known = self._members.get(leave.cluster)
        if known and known.token <= leave.token:
            self._drop(known)
        self._depart(leave.cluster, leave.token)
        self.letters.append(Letter(workflow_id=workflow_id, answer=Answer(token=leave.token, left=True)))

    def release(self, cluster: str) -> bool:
        """Forget a member on an operator's word; False where there is none of this name."""
        known = self._members.get(cluster)
        if known is None:
            return False
        self._drop(known)
        self._depart(cluster, known.token)
        return True

    def grant(self, network: Network, order: NetworkOrder | None = None) -> None:
        """Answer all who wait: the network is ready."""
        for member in self._take_waiting():
            grant = Grant(
                block=member.block, slot=self._slot(member.block), network=network, order=order, cidrs=self.spec.cidrs
            )
            self.letters.append(Letter(workflow_id=member.workflow_id, answer=Answer(token=member.token, grant=grant)))
            self._members[member.cluster] = member.model_copy(update={"granted": True})

    def refuse_waiting(self, failure: Failure) -> None:
        """Turn all away who wait. Who was granted its block before keeps it until it leaves: it may be in use."""
        for member in self._take_waiting():
            if not member.granted:
                self._drop(member)
            self.turn_away(member.workflow_id, member.token, failure)

    def avoid(self, ranges: Iterable[IPv4Network]) -> None:
        """Learn what the cloud holds: subnets outside every granted block are somebody else's.

        A member that was not granted its block yet moves to one clear of them, or is refused where it asked for
        exactly this one.
        """
        held = [member for member in self._members.values() if member.granted]
        foreign = tuple(sorted(_outside(ranges, [member.block for member in held])))
        if foreign == self._foreign:
            return
        self._foreign = foreign
        self._space = self._rebuilt(held)
        for member in [m for m in self._members.values() if not m.granted]:
            try:
                block = self._place(member.cluster, member.block if member.exact else None)
            except TrellisError as error:
                del self._members[member.cluster]
                self._waiting.remove(member.cluster)
                self.turn_away(member.workflow_id, member.token, error.failure)
            else:
                self._members[member.cluster] = member.model_copy(update={"block": block})

    def turn_away(self, workflow_id: str, token: int, failure: Failure) -> None:
        """Refuse somebody without looking at what was asked for."""
        self.letters.append(Letter(workflow_id=workflow_id, answer=Answer(token=token, refused=failure)))

    def _place(self, cluster: str, block: IPv4Network | None) -> IPv4Network:
        if block is not None:
            return self._space.allocate_exact(block, cluster)
        return self._space.allocate(self.spec.cluster_prefix, cluster)

    def _rebuilt(self, members: Iterable[Member]) -> Allocator[IPv4Network]:
        space = Allocator(self.spec.cidrs)
        for member in members:
            space.allocate_exact(member.block, member.cluster)
        for foreign in self._foreign:
            space.exclude(foreign)
        return space

    def _slot(self, block: IPv4Network) -> int:
        before = 0
        for cidr in self.spec.cidrs:
            if block.subnet_of(cidr):
                before += int(block.network_address) - int(cidr.network_address)
                break
            before += cidr.num_addresses
        return before // block.num_addresses

    def _await_answer(self, cluster: str) -> None:
        if cluster not in self._waiting:
            self._waiting.append(cluster)

    def _take_waiting(self) -> list[Member]:
        waiting, self._waiting = self._waiting, []
        return [self._members[cluster] for cluster in waiting]

    def _drop(self, member: Member) -> None:
        del self._members[member.cluster]
        if member.cluster in self._waiting:
            self._waiting.remove(member.cluster)
        self._space.release(member.block)

    def _depart(self, cluster: str, token: int) -> None:
        token = max(token, self._departed.pop(cluster, 0))
        self._departed[cluster] = token
        while len(self._departed) > _DEPARTED_MAX:
            del self._departed[next(iter(self._departed))]

    def _check(self, join: Join) -> None:
        have, want = self.spec, join.vpc
        differs = [
            f"{field} {getattr(have, field)} (asked for {getattr(want, field)})"
            for field in ("provider", "region", "credentials")
            if getattr(have, field) != getattr(want, field)
        ]
        try:
            check_ranges(vpc=have.cidrs, pods=join.pods, services=join.services, legacy=join.legacy_ranges)
        except ValueError as error:
            raise TrellisError(
                Code.INVALID, f"cluster {join.cluster} cannot join VPC {have.name}: {error}", "choose other ranges"
            ) from None
        if join.fixed_cidr and not set(want.cidrs) <= set(have.cidrs):
            differs.append(f"range {_listed(have.cidrs)} (asked for {_listed(want.cidrs)})")
        if join.fixed_prefix and want.cluster_prefix != have.cluster_prefix:
            differs.append(f"blocks of /{have.cluster_prefix} (asked for /{want.cluster_prefix})")
        if differs:
            raise TrellisError(
                Code.VPC_MISMATCH,
                f"cluster {join.cluster} cannot join VPC {have.name}: the VPC has {'; '.join(differs)}",
                "ask for what the VPC has, or choose another VPC name",
            )


def _check_same_block(member: Member, join: Join) -> None:
    if join.block is not None and join.block != member.block:
        raise TrellisError(
            Code.CONFLICT,
            f"cluster {join.cluster} asks for block {join.block} but holds {member.block} in VPC {join.vpc.name}",
            "delete the cluster before asking for another block",
        )


def _outside(ranges: Iterable[IPv4Network], blocks: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """The ranges that share no address with any of the blocks; these are disjoint."""
    ordered = sorted((int(block.network_address), int(block.broadcast_address)) for block in blocks)
    starts = [start for start, _ in ordered]
    for cidr in ranges:
        # Of disjoint blocks, only the last one that starts before the range's end can reach into it.
        index = bisect_right(starts, int(cidr.broadcast_address)) - 1
        if index < 0 or ordered[index][1] < int(cidr.network_address):
            yield cidr


def _listed(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items)
