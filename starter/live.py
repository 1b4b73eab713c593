"""The view of what is going on while one waits: alive on a terminal, plain lines elsewhere. On stderr."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from starter.console import err
from starter.progress import Progress, Step
from starter.render import phase_text

__all__ = ["follow"]

# A step's text may quote a whole error of a cloud; all of it is in Temporal's UI and in the final failure.
_STEP_MAX = 160


async def follow(waiting: Mapping[str, AsyncIterator[Progress]]) -> None:
    """Show, by title, what is waited for, until all of it has come to its end."""
    view: _View = _Live(waiting) if err.is_terminal else _Plain()
    with view:
        await asyncio.gather(*(_consume(title, moments, view) for title, moments in waiting.items()))


async def _consume(title: str, moments: AsyncIterator[Progress], view: _View) -> None:
    last = None
    async for last in moments:
        view.show(title, last)
    view.end(title, last)


class _View(Protocol):
    def show(self, title: str, progress: Progress) -> None: ...

    def end(self, title: str, progress: Progress | None) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...


class _Live:
    """A line with a spinner per title, with its steps below; what has ended stays as a plain line above."""

    def __init__(self, titles: Mapping[str, object]) -> None:
        self._began = time.monotonic()
        self._width = max(map(len, titles), default=0)
        self._rows: dict[str, Progress | None] = dict.fromkeys(titles)
        self._spinners = {title: Spinner("dots", style="cyan") for title in titles}
        self._live = Live(console=err, transient=True, refresh_per_second=10)

    def show(self, title: str, progress: Progress) -> None:
        self._rows[title] = progress
        self._live.update(self._picture())

    def end(self, title: str, progress: Progress | None) -> None:
        del self._rows[title]
        self._live.update(self._picture())
        if progress is not None:
            err.print(Text.assemble("  ", self._line(title, progress), ("  after " + self._elapsed(), "dim")))

    def __enter__(self) -> Self:
        self._live.update(self._picture())
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, where)

    def _picture(self) -> Group:
        lines: list[Spinner | Text] = []
        for title, progress in self._rows.items():
            spinner = self._spinners[title]
            spinner.update(text=self._line(title, progress) if progress else Text(title))
            lines.append(spinner)
            lines += [_step_text(step) for step in progress.steps] if progress else []
        return Group(*lines, Text(f"  {self._elapsed()}", style="dim"))

    def _line(self, title: str, progress: Progress) -> Text:
        return Text.assemble(f"{title:<{self._width}}  ", phase_text(progress.phase))

    def _elapsed(self) -> str:
        seconds = int(time.monotonic() - self._began)
        return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


class _Plain:
    """A line for every change."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def show(self, title: str, progress: Progress) -> None:
        line = " | ".join([progress.phase, *(_shortened(step) for step in progress.steps)])
        if self._said.get(title) != line:
            self._said[title] = line
            err.print(f"{title}: {line}")

    def end(self, title: str, progress: Progress | None) -> None:
        """What there was to say is said."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Nothing to close."""


def _step_text(step: Step) -> Text:
    return Text(f"     {_shortened(step)}", style="red" if step.failure else "dim", no_wrap=True, overflow="ellipsis")


def _shortened(step: Step) -> str:
    text = str(step)
    return text if len(text) <= _STEP_MAX else f"{text[:_STEP_MAX]}…"
