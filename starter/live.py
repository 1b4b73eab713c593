"""The view of what is going on while one waits: alive on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from starter.console import err
from starter.progress import Progress
from starter.render import phase_text

__all__ = ["follow"]


async def follow(title: str, moments: AsyncIterator[Progress]) -> Progress | None:
    """Show the moments as they come, on stderr; returns the last one, or None where there was none."""
    if err.is_terminal:
        return await _live(title, moments)
    return await _plain(title, moments)


async def _live(title: str, moments: AsyncIterator[Progress]) -> Progress | None:
    began, last = time.monotonic(), None
    spinner = Spinner("dots", text=Text(title), style="cyan")
    with Live(spinner, console=err, transient=True, refresh_per_second=10) as live:
        async for last in moments:
            spinner.update(text=Text.assemble(title, "  ", phase_text(last.phase), f"  {_elapsed(began)}"))
            steps = [Text(f"   {step}", style="red" if step.failure else "dim") for step in last.steps]
            live.update(Group(spinner, *steps))
    if last is not None:
        err.print(Text.assemble(title, "  ", phase_text(last.phase), f"  after {_elapsed(began)}"))
    return last


async def _plain(title: str, moments: AsyncIterator[Progress]) -> Progress | None:
    last, said = None, ""
    async for last in moments:
        line = " | ".join([last.phase, *(str(step) for step in last.steps)])
        if line != said:
            err.print(f"{title}: {line}")
            said = line
    return last


def _elapsed(began: float) -> str:
    seconds = int(time.monotonic() - began)
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
