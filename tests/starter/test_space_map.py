"""The drawing of a VPC's addresses: complete, without overlap, and readable at any width."""

from __future__ import annotations

from datetime import UTC, datetime
from ipaddress import IPv4Network
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from domain.membership import Membership
from domain.messages import ClusterPhase, ClusterView, FreeSpace, Join, SpaceView, VpcPhase, VpcView
from domain.networks import Zone
from domain.specs import Provider, VpcSpec
from starter.space_map import Kind, SpaceMap, space_map


def space_of(cidr: str, prefix: int, names: list[str], foreign: list[str]) -> tuple[VpcView, SpaceView]:
    """A VPC in which these clusters have joined, as its workflow would tell it."""
    spec = VpcSpec(
        name="shared",
        provider=Provider.AWS,
        region="r",
        credentials="c",
        cidrs=(IPv4Network(cidr),),
        cluster_prefix=prefix,
    )
    book = Membership(spec, foreign=[IPv4Network(each) for each in foreign])
    for name in names:
        book.join(Join(cluster=name, token=1, vpc=spec), f"cluster/default/{name}", datetime.now(UTC))
    view = VpcView(
        name="shared", tenant="default", provider=spec.provider, region="r", cidrs=spec.cidrs, cluster_prefix=prefix,
        phase=VpcPhase.READY, network=None, members=(), free=FreeSpace(blocks=0, largest=None), workflow_id="w",
    )  # fmt: skip
    blocks = {member.cluster: member.block for member in book.members}
    return view, SpaceView(cidrs=spec.cidrs, blocks=blocks, foreign=book.foreign, free=tuple(book.free_ranges()))


def drawn_text(drawn: SpaceMap, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(space_map(drawn, width))
    return capture.get()


@given(members=st.integers(0, 64), with_foreign=st.booleans())
def test_every_address_is_in_exactly_one_part(members: int, with_foreign: bool) -> None:
    foreign = ["10.0.128.0/24"] if with_foreign else []
    view, space = space_of("10.0.0.0/16", 22, [f"c{number}" for number in range(members)], foreign)
    parts = SpaceMap.of(view, space, {}).parts
    assert sum(part.cidr.num_addresses for part in parts) == 2**16
    for left, right in pairwise(parts):
        assert left.cidr.broadcast_address + 1 == right.cidr.network_address


def test_a_clusters_zones_are_nested_in_its_halves() -> None:
    view, space = space_of("10.0.0.0/16", 22, ["alpha"], [])
    zone = Zone(
        name="z1",
        workers=IPv4Network("10.0.0.0/23"),
        public=IPv4Network("10.0.2.0/24"),
        internal=IPv4Network("10.0.3.0/24"),
    )
    cluster = ClusterView(
        name="alpha", tenant="default", provider=Provider.AWS, region="r", vpc="shared", phase=ClusterPhase.READY,
        block=IPv4Network("10.0.0.0/22"), nodes=IPv4Network("10.0.0.0/23"), infra=IPv4Network("10.0.2.0/23"),
        zones=(zone,), workflow_id="w",
    )  # fmt: skip
    block = SpaceMap.of(view, space, {"alpha": cluster}).parts[0]
    nodes, infra = block.parts
    assert [(part.kind, str(part.cidr)) for part in nodes.parts] == [(Kind.WORKERS, "10.0.0.0/23")]
    assert [(part.kind, str(part.cidr)) for part in infra.parts] == [
        (Kind.PUBLIC, "10.0.2.0/24"),
        (Kind.INTERNAL, "10.0.3.0/24"),
    ]
    text = drawn_text(SpaceMap.of(view, space, {"alpha": cluster}))
    assert "workers z1" in text


def test_the_grid_has_a_cell_per_block() -> None:
    view, space = space_of("10.0.0.0/16", 22, ["alpha", "beta"], ["10.0.252.0/24"])
    text = drawn_text(SpaceMap.of(view, space, {}))
    grid = text[text.index("\n") : text.index("shared")]
    assert grid.count(" a ") == 1
    assert grid.count(" b ") == 1
    assert grid.count(" ✕ ") == 1
    assert grid.count("·") == 61


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_grid_fits_the_terminal(width: int) -> None:
    view, space = space_of("10.0.0.0/16", 22, ["alpha"], [])
    text = drawn_text(SpaceMap.of(view, space, {}), width)
    rows = [line for line in text.splitlines() if "·" in line]
    assert sum(row.count("·") for row in rows) == 63
    assert max(len(row.rstrip()) for row in rows) <= width


def test_a_range_of_very_many_blocks_is_drawn_coarser() -> None:
    view, space = space_of("10.0.0.0/16", 26, ["alpha", "beta"], [])
    text = drawn_text(SpaceMap.of(view, space, {}))
    assert "one cell is a /24" in text
    assert " + " in text, "two clusters in one cell"
