"""Options that several commands share, and how a command gets its client."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from typer import Argument, Option

from domain.names import check_name
from domain.specs import DEFAULT_TENANT
from domain.states import Decision
from starter.client import Trellis, check_vpc_name
from starter.console import OutputFormat, usage
from worker.settings import Settings

__all__ = ["ClusterName", "Output", "Tenant", "VpcName", "Why", "decision", "group", "settings", "talk"]

T = TypeVar("T")

Tenant = Annotated[str, Option(help="Whose clusters and VPCs.", envvar="TRELLIS_TENANT")]
Output = Annotated[OutputFormat, Option("--output", "-o", help="For people, or for machines.")]
ClusterName = Annotated[str, Argument(metavar="CLUSTER", help="The cluster's name.")]
VpcName = Annotated[str, Argument(metavar="VPC", help="The VPC's name.")]
Why = Annotated[str, Option(help="The reason, kept with the decision.")]


def group(help_text: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(help=help_text, rich_markup_mode=None)


def settings() -> Settings:
    """The settings from the environment; what makes no sense there is bad usage."""
    with usage():
        return Settings()


def talk(
    work: Callable[[Trellis], Awaitable[T]],
    *,
    tenant: str = DEFAULT_TENANT,
    cluster: str | None = None,
    vpc: str | None = None,
) -> T:
    """Check the names, connect, and do the work."""
    with usage():
        check_name(tenant)
        if cluster is not None:
            check_name(cluster)
        if vpc is not None:
            check_vpc_name(vpc)
    configured = settings()

    async def connected() -> T:
        return await work(await Trellis.connect(configured))

    return asyncio.run(connected())


def decision(why: str) -> Decision:
    """Who decides is whoever sits at the keyboard."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):
        who = "unknown"
    return Decision(who=who, why=why)
