"""Clusters and VPCs as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from domain.messages import ClusterPhase, ClusterView, VpcPhase, VpcView

__all__ = ["cluster_card", "cluster_table", "phase_text", "vpc_card", "vpc_table"]

_NONE = "-"
_STYLES = {
    **dict.fromkeys((ClusterPhase.READY, VpcPhase.READY), "green"),
    **dict.fromkeys((ClusterPhase.JOINING, ClusterPhase.CREATING, ClusterPhase.VERIFYING, VpcPhase.CREATING), "cyan"),
    **dict.fromkeys((ClusterPhase.DELETING, VpcPhase.DELETING), "yellow"),
    **dict.fromkeys((ClusterPhase.HELD, VpcPhase.BLOCKED, VpcPhase.LOST, ClusterPhase.FAILED), "bold red"),
    **dict.fromkeys((ClusterPhase.DELETED, VpcPhase.GONE), "dim"),
}
_STYLE_OF = {phase.value: style for phase, style in _STYLES.items()}


def phase_text(phase: str) -> Text:
    """A phase in its colour."""
    return Text(str(phase), style=_STYLE_OF.get(str(phase), ""))


def cluster_table(views: Sequence[ClusterView]) -> RenderableType:
    """One line per cluster."""
    table = _table("CLUSTER", "PHASE", "VPC", "PROVIDER", "REGION", "BLOCK", "ZONES")
    for view in views:
        zones = ", ".join(zone.name for zone in view.zones)
        table.add_row(
            view.name, phase_text(view.phase), *_texts(view.vpc, view.provider, view.region, view.block, zones)
        )
    return table


def vpc_table(views: Sequence[VpcView]) -> RenderableType:
    """One line per VPC."""
    table = _table("VPC", "PHASE", "PROVIDER", "REGION", "RANGES", "MEMBERS", "FREE BLOCKS")
    for view in views:
        table.add_row(
            view.name,
            phase_text(view.phase),
            view.provider.value,
            view.region,
            _joined(view.cidrs),
            str(len(view.members)),
            str(view.free.blocks),
        )
    return table


def cluster_card(view: ClusterView) -> RenderableType:
    """Everything about a cluster."""
    shoot = f"{view.shoot.namespace}/{view.shoot.name}" if view.shoot else None
    card = _card()
    card.add_row("cluster", view.name)
    card.add_row("phase", phase_text(view.phase))
    for label, value in (
        ("tenant", view.tenant),
        ("provider", view.provider),
        ("region", view.region),
        ("VPC", view.vpc),
        ("shoot", shoot),
        ("block", view.block),
        ("nodes", view.nodes),
        ("infra", view.infra),
    ):
        card.add_row(label, _text(value))
    for zone in view.zones:
        subnets = {"workers": zone.workers, "public": zone.public, "internal": zone.internal}
        card.add_row(f"zone {zone.name}", ", ".join(f"{kind} {cidr}" for kind, cidr in subnets.items() if cidr))
    card.add_row("workflow", view.workflow_id)
    if view.failure:
        card.add_row("failure", Text(f"{view.failure.code}: {view.failure}", style="red"))
    return card


def vpc_card(view: VpcView) -> RenderableType:
    """Everything about a VPC."""
    network = view.network
    notes = [note for note, holds in (("adopted", view.adopted), ("retained", view.retained)) if holds]
    card = _card()
    card.add_row("VPC", view.name)
    card.add_row("phase", phase_text(view.phase))
    for label, value in (
        ("tenant", view.tenant),
        ("provider", view.provider),
        ("region", view.region),
        ("ranges", _joined(view.cidrs)),
        ("network", network and network.id),
        *(network.parts.items() if network else ()),
        ("free", f"{view.free.blocks} blocks of /{view.cluster_prefix}; largest range {_text(view.free.largest)}"),
        ("notes", ", ".join(notes)),
        ("workflow", view.workflow_id),
    ):
        card.add_row(label, _text(value))
    for member in view.members:
        card.add_row("member", f"{member.cluster} · {member.block} · {_ago(member.since)}")
    if view.failure:
        card.add_row("failure", Text(f"{view.failure.code}: {view.failure}", style="red"))
    return card


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _card() -> Table:
    card = Table(box=None, pad_edge=False, show_header=False)
    card.add_column(style="dim", no_wrap=True)
    card.add_column(overflow="fold")
    return card


def _text(value: object) -> str:
    return str(value) if value else _NONE


def _texts(*values: object) -> Iterable[str]:
    return (_text(value) for value in values)


def _joined(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def _ago(moment: datetime) -> str:
    seconds = int((datetime.now(UTC) - moment).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"since {seconds // length} {unit}"
    return f"since {max(seconds, 0)} s"
