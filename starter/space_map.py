"""A VPC's addresses as a drawing: a grid of blocks by colour, and under it what is nested in what."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from ipaddress import IPv4Network
from typing import Self

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from domain.messages import ClusterView, SpaceView, VpcView
from domain.specs import Cidr, Frozen

__all__ = ["Kind", "Part", "SpaceMap", "space_map"]

_MAX_CELLS = 256
_CELLS_PER_ROW = 16
_CELL = 3
_WHAT_WIDTH, _INDENT = 42, 4
_COLOURS = (
    "blue", "magenta", "cyan", "green", "yellow", "red", "bright_blue", "bright_magenta", "bright_cyan",
    "bright_green", "bright_yellow", "bright_red", "dark_orange", "deep_pink3", "sea_green2", "slate_blue1",
)  # fmt: skip
_FREE_STYLE, _FOREIGN_STYLE = "grey50", "bold white on red"


class Kind(StrEnum):
    """What a range is for."""

    CLUSTER = "cluster"
    FREE = "free"
    FOREIGN = "foreign"
    NODES = "nodes"
    INFRA = "infra"
    WORKERS = "workers"
    PUBLIC = "public"
    INTERNAL = "internal"


class Part(Frozen):
    """A range and what is inside it; `owner` is a cluster, or a zone of one."""

    cidr: Cidr
    kind: Kind
    owner: str | None = None
    parts: tuple[Part, ...] = ()


class SpaceMap(Frozen):
    """All of a VPC's addresses, in ascending order: nothing is left out, nothing is in two parts."""

    vpc: str
    tenant: str
    cidrs: tuple[Cidr, ...]
    cluster_prefix: int
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, view: VpcView, space: SpaceView, clusters: Mapping[str, ClusterView]) -> Self:
        """Put together what the VPC and its clusters say; of a cluster that says nothing yet, the block alone."""
        parts = [
            Part(cidr=block, kind=Kind.CLUSTER, owner=name, parts=_inside(clusters.get(name), block))
            for name, block in space.blocks.items()
        ]
        parts += [Part(cidr=cidr, kind=Kind.FOREIGN) for cidr in space.foreign]
        parts += [Part(cidr=cidr, kind=Kind.FREE) for cidr in space.free]
        return cls(
            vpc=view.name,
            tenant=view.tenant,
            cidrs=space.cidrs,
            cluster_prefix=view.cluster_prefix,
            parts=tuple(sorted(parts, key=lambda part: part.cidr)),
        )


def space_map(drawn: SpaceMap, width: int) -> RenderableType:
    """The drawing, for a terminal of so many columns."""
    colours = _colours(part.owner for part in drawn.parts if part.owner)
    grids = [_grid(drawn, cidr, colours, width) for cidr in drawn.cidrs]
    return Group(*(item for grid in grids for item in grid), _tree(drawn, colours))


def _inside(view: ClusterView | None, block: IPv4Network) -> tuple[Part, ...]:
    if view is None or view.block != block:
        return ()
    subnets = [
        Part(cidr=cidr, kind=kind, owner=zone.name)
        for zone in view.zones
        for kind, cidr in ((Kind.WORKERS, zone.workers), (Kind.PUBLIC, zone.public), (Kind.INTERNAL, zone.internal))
        if cidr is not None
    ]
    halves = [(Kind.NODES, view.nodes), (Kind.INFRA, view.infra)]
    return tuple(
        Part(cidr=half, kind=kind, owner=view.name, parts=_within(half, subnets)) for kind, half in halves if half
    )


def _within(outer: IPv4Network, parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted((part for part in parts if part.cidr.subnet_of(outer)), key=lambda part: part.cidr))


def _grid(drawn: SpaceMap, cidr: IPv4Network, colours: Mapping[str, str], width: int) -> list[Text]:
    """One cell per block where they fit, else per larger range; a row begins with its first address."""
    prefix = max(cidr.prefixlen, min(drawn.cluster_prefix, cidr.prefixlen + _MAX_CELLS.bit_length() - 1))
    cells = list(cidr.subnets(new_prefix=prefix))
    label = len("255.255.255.255") + 2
    per_row = _CELLS_PER_ROW
    while per_row > 1 and label + per_row * _CELL > width:
        per_row //= 2
    lines = [Text.assemble((str(cidr), "bold"), f"  one cell is a /{prefix}")]
    for start in range(0, len(cells), per_row):
        row = Text(f"{cells[start].network_address!s:<{label}}", style="dim")
        for cell in cells[start : start + per_row]:
            row.append_text(_cell(cell, drawn.parts, colours))
        lines.append(row)
    return lines


def _cell(cell: IPv4Network, parts: Iterable[Part], colours: Mapping[str, str]) -> Text:
    taken = [part for part in parts if part.kind is not Kind.FREE and part.cidr.overlaps(cell)]
    if not taken:
        return Text(" · ", style=_FREE_STYLE)
    if any(part.kind is Kind.FOREIGN for part in taken):
        return Text(" ✕ ", style=_FOREIGN_STYLE)
    owners = {part.owner for part in taken}
    initial = (taken[0].owner or "?")[0] if len(owners) == 1 else "+"
    return Text(f" {initial} ", style=f"bold black on {colours[taken[0].owner or '']}")


def _tree(drawn: SpaceMap, colours: Mapping[str, str]) -> Tree:
    tree = Tree(Text.assemble((drawn.vpc, "bold"), f"  blocks of /{drawn.cluster_prefix}"), guide_style="dim")
    for part in drawn.parts:
        _branch(tree, part, colours.get(part.owner or "", ""))
    return tree


def _branch(tree: Tree, part: Part, colour: str, depth: int = 0) -> None:
    match part.kind:
        case Kind.FREE:
            what, style = "free", _FREE_STYLE
        case Kind.FOREIGN:
            what, style = "not made by Trellis", _FOREIGN_STYLE
        case Kind.CLUSTER:
            what, style = part.owner or "", f"bold {colour}"
        case Kind.NODES | Kind.INFRA:
            what, style = part.kind.value, colour
        case _:
            what, style = f"{part.kind.value} {part.owner}", colour
    size = f"{part.cidr.num_addresses:,} addresses"
    label = Text.assemble((f"{part.cidr!s:<20}{what:<{_WHAT_WIDTH - depth * _INDENT}}", style), (size, "dim"))
    branch = tree.add(label)
    for inner in part.parts:
        _branch(branch, inner, colour, depth + 1)


def _colours(owners: Iterable[str]) -> dict[str, str]:
    """A cluster keeps its colour from one drawing to the next; two that would share one differ while colours last."""
    chosen: dict[str, str] = {}
    for owner in sorted(owners):
        start = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:4])
        order = [_COLOURS[(start + step) % len(_COLOURS)] for step in range(len(_COLOURS))]
        chosen[owner] = next((colour for colour in order if colour not in chosen.values()), order[0])
    return chosen
