"""Who holds which part of an address space: blocks, reservations and ranges that belong to somebody else.

Free space is kept as the largest aligned networks that nobody holds, one sorted list per prefix length. That form
follows from what is held alone, so the same holdings lead to the same next block, whatever happened before. Every
operation costs a few steps per address bit, each logarithmic in what is held; the number of addresses never matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Generic, TypeVar

from sortedcontainers import SortedDict, SortedList

from domain.cidr import parse_network
from domain.errors import Code, TrellisError

__all__ = ["Allocator", "Holding"]

N = TypeVar("N", IPv4Network, IPv6Network)


@dataclass(frozen=True, slots=True)
class Holding(Generic[N]):
    """A range and who holds it; `foreign` where Trellis did not give it out."""

    cidr: N
    owner: str
    reason: str = ""
    foreign: bool = False

    def __str__(self) -> str:
        return f"{self.cidr} of {self.owner}" + (f" ({self.reason})" if self.reason else "")


class Allocator(Generic[N]):
    """An address space of one or several disjoint CIDRs of one address family.

    Blocks are disjoint, and each lies in one of the CIDRs; neighbouring CIDRs are never joined. All failures are
    `TrellisError`s with the codes `vpc-full`, `block-taken` or `invalid`, and leave everything as it was.
    """

    def __init__(self, cidrs: Iterable[N]) -> None:
        self._cidrs: list[N] = []
        self._blocks = SortedDict()  # first address -> Holding
        # (first address, prefix length) -> owner -> Holding. These may nest and lie outside; CIDRs never half overlap.
        self._foreign = SortedDict()
        self._free: list[SortedList] = []  # prefix length -> first addresses
        self._bits = 0
        for cidr in cidrs:
            self.add_cidr(cidr)
        if not self._cidrs:
            raise TrellisError(Code.INVALID, "an address space needs a range", "give at least one CIDR")

    # What there is

    @property
    def cidrs(self) -> tuple[N, ...]:
        """The space, in the order in which it was given."""
        return tuple(self._cidrs)

    @property
    def blocks(self) -> tuple[Holding[N], ...]:
        """What was allocated, by address. `allocate_exact` of each in a new allocator rebuilds this one."""
        return tuple(self._blocks.values())

    @property
    def foreign(self) -> tuple[Holding[N], ...]:
        """What was excluded, by address, owners in the order of their coming."""
        return tuple(holding for owners in self._foreign.values() for holding in owners.values())

    def owner_of(self, cidr: N) -> str | None:
        """Who holds the block that contains all of `cidr`; None where nobody does."""
        holding = self._block_around(cidr)
        return holding.owner if holding is not None else None

    def overlapping(self, cidr: N) -> tuple[Holding[N], ...]:
        """Blocks that share addresses with `cidr`, by address, then foreign ranges that do, the widest first."""
        around = self._block_around(cidr)
        found = [around] if around is not None else list(self._blocks_within(cidr))
        return tuple(found + self._foreign_around(cidr) + list(self._foreign_within(cidr)))

    def count_free(self, prefix: int) -> int:
        """How many blocks of this prefix length could still be allocated."""
        self._check_exists(prefix)
        fitting = enumerate(self._free[: prefix + 1])
        return sum(len(starts) << (prefix - length) for length, starts in fitting)

    def largest_free(self) -> N | None:
        """The largest block that could be allocated, at the lowest address; None where nothing is free."""
        for length, starts in enumerate(self._free):
            if starts:
                return self._network(starts[0], length)
        return None

    def free_ranges(self) -> tuple[N, ...]:
        """All that is free, as the fewest CIDRs, by address."""
        ranges = sorted((start, length) for length, starts in enumerate(self._free) for start in starts)
        return tuple(self._network(start, length) for start, length in ranges)

    def free_blocks(self, prefix: int) -> Iterator[N]:
        """The blocks of this prefix length that `allocate` would give, in its order; found as they are taken."""
        self._check_exists(prefix)
        for length in range(prefix, -1, -1):
            for start in self._free[length]:
                for index in range(1 << (prefix - length)):
                    yield self._network(start + (index << (self._bits - prefix)), prefix)

    # What changes

    def add_cidr(self, cidr: N) -> None:
        """Widen the space. The same CIDR again changes nothing; what was excluded there before stays excluded."""
        if cidr in self._cidrs:
            return
        if not self._cidrs:
            self._bits = cidr.max_prefixlen
            self._free = [SortedList() for _ in range(self._bits + 1)]
        self._check_family(cidr)
        for known in self._cidrs:
            if known.overlaps(cidr):
                raise TrellisError(
                    Code.INVALID, f"{cidr} overlaps {known}, which is already there", "add a range outside it"
                )
        self._cidrs.append(cidr)
        self._give_back(cidr)

    def allocate(self, prefix: int, owner: str, reason: str = "") -> N:
        """A block of this prefix length out of the smallest free range that has one, at its lowest address.

        Raises:
            TrellisError: `vpc-full` names the largest free block; `invalid` where no block can have this length.
        """
        self._check_prefix(prefix)
        for length in range(prefix, -1, -1):
            if self._free[length]:
                start = self._free[length].pop(0)
                self._split(start, length, prefix)
                return self._hold(self._network(start, prefix), owner, reason)
        raise self._full(prefix, owner)

    def allocate_exact(self, cidr: N | str, owner: str, reason: str = "") -> N:
        """This very block. The same owner may ask again: nothing changes, so that reservations can be repeated.

        Raises:
            TrellisError: `block-taken` names who holds it; `invalid` where `cidr` is not aligned, outside, or larger
                than the space.
        """
        wanted = self._parsed(cidr)
        self._check_inside(wanted)
        holders = self.overlapping(wanted)
        if len(holders) == 1 and (holders[0].cidr, holders[0].owner) == (wanted, owner) and not holders[0].foreign:
            return wanted
        if holders:
            raise self._taken(wanted, owner, holders)
        around = self._free_around(wanted)
        start = int(wanted.network_address)
        self._free[around].remove(self._masked(start, around))
        self._carve(start, around, wanted.prefixlen)
        return self._hold(wanted, owner, reason)

    def release(self, cidr: N) -> Holding[N]:
        """Give a block back; it joins its free neighbours. What of it is excluded stays taken.

        Raises:
            TrellisError: `invalid` where `cidr` is not a block.
        """
        holding: Holding[N] | None = self._blocks.get(int(cidr.network_address))
        if holding is None or holding.cidr != cidr:
            raise TrellisError(Code.INVALID, f"{cidr} is not a block", "release exactly what was allocated")
        del self._blocks[int(cidr.network_address)]
        self._give_back(cidr)
        return holding

    def exclude(self, cidr: N, owner: str = "somebody else", reason: str = "") -> None:
        """Keep a foreign range from being allocated, until each owner that excluded it takes that back.

        It may have any size, overlap others, lie partly or wholly outside, and lie in blocks (which stay as they are).
        """
        self._check_family(cidr)
        key = (int(cidr.network_address), cidr.prefixlen)
        self._foreign.setdefault(key, {})[owner] = Holding(cidr, owner, reason, foreign=True)
        for part in self._clipped(cidr):
            self._withdraw(part)

    def include(self, cidr: N, owner: str = "somebody else") -> None:
        """Take one owner's exclusion back. Without such an exclusion nothing changes."""
        self._check_family(cidr)
        key = (int(cidr.network_address), cidr.prefixlen)
        owners = self._foreign.get(key, {})
        if owners.pop(owner, None) is None or owners:
            return
        del self._foreign[key]
        for part in self._clipped(cidr):
            self._give_back(part)

    # Free space

    def _split(self, start: int, length: int, prefix: int) -> None:
        """Keep the first /`prefix` of a network that is not in the lists any more; free the rest."""
        for longer in range(length + 1, prefix + 1):
            self._free[longer].add(start + (1 << (self._bits - longer)))

    def _carve(self, start: int, length: int, prefix: int) -> None:
        """Like `_split`, keeping the /`prefix` that begins at `start`."""
        for longer in range(length + 1, prefix + 1):
            self._free[longer].add(self._masked(start, longer) ^ (1 << (self._bits - longer)))

    def _join(self, start: int, length: int, shortest: int) -> None:
        """Free a network, joined with its free buddies up to the CIDR that it is in."""
        while length > shortest:
            buddy = start ^ (1 << (self._bits - length))
            if buddy not in self._free[length]:
                break
            self._free[length].remove(buddy)
            length -= 1
            start = min(start, buddy)
        self._free[length].add(start)

    def _give_back(self, cidr: N) -> None:
        """Free all of `cidr` (inside one of the CIDRs) that nobody holds."""
        if self._block_around(cidr) is not None or self._foreign_around(cidr):
            return
        shortest = next(root.prefixlen for root in self._cidrs if _within(cidr, root))
        todo = [(int(cidr.network_address), cidr.prefixlen)]
        while todo:
            start, length = todo.pop()
            inside = self._first_held(start, length)
            if inside is None:
                self._join(start, length, shortest)
            elif inside != (start, length):
                half = 1 << (self._bits - length - 1)
                todo += [(start, length + 1), (start + half, length + 1)]

    def _withdraw(self, cidr: N) -> None:
        """Take all of `cidr` that is free out of the lists."""
        start = int(cidr.network_address)
        around = self._free_around(cidr)
        if around >= 0:
            self._free[around].remove(self._masked(start, around))
            self._carve(start, around, cidr.prefixlen)
            return
        end = start + cidr.num_addresses
        for starts in self._free[cidr.prefixlen + 1 :]:
            del starts[starts.bisect_left(start) : starts.bisect_left(end)]

    def _free_around(self, cidr: N) -> int:
        """The prefix length of the free range that contains `cidr`; -1 where there is none."""
        start = int(cidr.network_address)
        for length in range(cidr.prefixlen, -1, -1):
            if self._masked(start, length) in self._free[length]:
                return length
        return -1

    # Held space

    def _hold(self, cidr: N, owner: str, reason: str) -> N:
        self._blocks[int(cidr.network_address)] = Holding(cidr, owner, reason)
        return cidr

    def _block_around(self, cidr: N) -> Holding[N] | None:
        index = self._blocks.bisect_right(int(cidr.network_address)) - 1
        if index < 0:
            return None
        holding: Holding[N] = self._blocks.peekitem(index)[1]
        return holding if _within(cidr, holding.cidr) else None

    def _blocks_within(self, cidr: N) -> Iterator[Holding[N]]:
        start = int(cidr.network_address)
        for key in self._blocks.irange(start, start + cidr.num_addresses - 1):
            yield self._blocks[key]

    def _foreign_around(self, cidr: N) -> list[Holding[N]]:
        """Foreign ranges that contain `cidr` or are it, the widest first."""
        if not self._foreign:
            return []
        start = int(cidr.network_address)
        keys = ((self._masked(start, length), length) for length in range(cidr.prefixlen + 1))
        return [holding for key in keys for holding in self._foreign.get(key, {}).values()]

    def _foreign_within(self, cidr: N) -> Iterator[Holding[N]]:
        """Foreign ranges that are smaller than `cidr` and inside it."""
        start = int(cidr.network_address)
        below, above = (start, cidr.prefixlen), (start + cidr.num_addresses, -1)
        for key in self._foreign.irange(below, above, (False, False)):
            yield from self._foreign[key].values()

    def _first_held(self, start: int, length: int) -> tuple[int, int] | None:
        """Something held in this network, as first address and prefix length; the network itself if it is held."""
        end = start + (1 << (self._bits - length))
        index = self._foreign.bisect_left((start, length))
        if index < len(self._foreign):
            key: tuple[int, int] = self._foreign.peekitem(index)[0]
            if key[0] < end:
                return key
        index = self._blocks.bisect_left(start)
        if index < len(self._blocks):
            first, holding = self._blocks.peekitem(index)
            if first < end:
                return first, holding.cidr.prefixlen
        return None

    # Arithmetic and checks

    def _network(self, start: int, prefix: int) -> N:
        return type(self._cidrs[0])((start, prefix))

    def _masked(self, start: int, length: int) -> int:
        shift = self._bits - length
        return start >> shift << shift

    def _clipped(self, cidr: N) -> list[N]:
        """The parts of `cidr` that are inside the space."""
        return [cidr if _within(cidr, root) else root for root in self._cidrs if cidr.overlaps(root)]

    def _parsed(self, cidr: N | str) -> N:
        if isinstance(cidr, str):
            try:
                network = parse_network(cidr)
            except ValueError as error:
                raise TrellisError(Code.INVALID, str(error), "write the block as an aligned CIDR") from error
            self._check_family(network)
            return self._network(int(network.network_address), network.prefixlen)
        self._check_family(cidr)
        return cidr

    def _check_family(self, cidr: IPv4Network | IPv6Network) -> None:
        if cidr.max_prefixlen != self._bits:
            raise TrellisError(
                Code.INVALID, f"{cidr} is IPv{cidr.version}; {self._listed()} is not", "use one address family"
            )

    def _check_exists(self, prefix: int) -> None:
        if not 0 <= prefix <= self._bits:
            raise TrellisError(Code.INVALID, f"there is no /{prefix}", f"ask for /0 to /{self._bits}")

    def _check_prefix(self, prefix: int) -> None:
        self._check_exists(prefix)
        largest = min(cidr.prefixlen for cidr in self._cidrs)
        if prefix < largest:
            raise TrellisError(
                Code.INVALID, f"a /{prefix} is larger than {self._listed()}", f"ask for /{largest} or longer"
            )

    def _check_inside(self, cidr: N) -> None:
        if any(_within(cidr, root) for root in self._cidrs):
            return
        self._check_prefix(cidr.prefixlen)
        example = next(self.free_blocks(cidr.prefixlen), None)
        raise TrellisError(
            Code.INVALID,
            f"{cidr} is outside {self._listed()}",
            f"{example} is free" if example is not None else f"no /{cidr.prefixlen} is free inside",
        )

    def _taken(self, cidr: N, owner: str, holders: tuple[Holding[N], ...]) -> TrellisError:
        shown = ", ".join(str(holder) for holder in holders[:_SHOWN])
        more = f" and {len(holders) - _SHOWN} more" if len(holders) > _SHOWN else ""
        example = next(self.free_blocks(cidr.prefixlen), None)
        return TrellisError(
            Code.BLOCK_TAKEN,
            f"{cidr} for {owner} overlaps {shown}{more}",
            f"{example} is free" if example is not None else f"no /{cidr.prefixlen} is free: {self._room()}",
        )

    def _full(self, prefix: int, owner: str) -> TrellisError:
        largest = self.largest_free()
        smaller = f", or ask for a block of /{largest.prefixlen} or longer" if largest is not None else ""
        return TrellisError(
            Code.VPC_FULL,
            f"no /{prefix} for {owner} is left in {self._listed()}: {self._room()}",
            f"delete a cluster of this VPC, or use another VPC{smaller}",
        )

    def _room(self) -> str:
        largest = self.largest_free()
        return f"the largest free block is {largest}" if largest is not None else "nothing at all is free"

    def _listed(self) -> str:
        return ", ".join(str(cidr) for cidr in self._cidrs)


_SHOWN = 5  # holders that one error names


def _within(inner: N, outer: N) -> bool:
    shift = outer.max_prefixlen - outer.prefixlen
    return (
        inner.prefixlen >= outer.prefixlen
        and int(inner.network_address) >> shift == int(outer.network_address) >> shift
    )
