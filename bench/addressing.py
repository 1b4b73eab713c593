"""The allocator at its limits: as many blocks as a /8 has /24s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Network
from time import perf_counter

from bench import Measure
from domain.addressing import Allocator

SPACE = IPv4Network("10.0.0.0/8")
BLOCKS = 65_536
TAKEN = 60_000


def run() -> Iterator[Measure]:
    space = Allocator([SPACE])
    yield Measure("65,536 blocks of /24 in a /8", _seconds(lambda: _fill(space, BLOCKS)), "s", 1)
    held = space.blocks
    again = Allocator([SPACE])
    yield Measure("the same, rebuilt from a snapshot", _seconds(lambda: _rebuild(again, space)), "s", 2)
    yield Measure("all released", _seconds(lambda: [again.release(holding.cidr) for holding in held]), "s", 1)
    crowded = Allocator([SPACE])
    _fill(crowded, TAKEN)
    yield Measure("one more block with 60,000 taken", 1e6 * _seconds(lambda: crowded.allocate(24, "one")), "µs", 1000)
    yield Measure("how many more fit", 1e6 * _seconds(lambda: crowded.count_free(24)), "µs", 1000)
    yield Measure("one /64 in a /32 of IPv6", 1e6 * _seconds(_one_small_block), "µs", 5000)


def _fill(space: Allocator[IPv4Network], count: int) -> None:
    for _ in range(count):
        space.allocate(24, "cluster")


def _rebuild(space: Allocator[IPv4Network], like: Allocator[IPv4Network]) -> None:
    for holding in like.blocks:
        space.allocate_exact(holding.cidr, holding.owner)


def _one_small_block() -> None:
    Allocator([IPv6Network("fd00::/32")]).allocate(64, "cluster")


def _seconds(act: Callable[[], object]) -> float:
    started = perf_counter()
    act()
    return perf_counter() - started
