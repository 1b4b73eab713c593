"""Heartbeats for steps that wait: they tell how far it is, and bring a cancellation back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from temporalio import activity

__all__ = ["heartbeating"]

_WITHOUT_TIMEOUT = 10.0


@asynccontextmanager
async def heartbeating(text: str) -> AsyncIterator[Callable[[str], None]]:
    """Heartbeat three times per heartbeat timeout while the context is open; yields what changes the text."""
    timeout = activity.info().heartbeat_timeout
    pause = (timeout.total_seconds() if timeout else _WITHOUT_TIMEOUT) / 3
    current = text

    def report(news: str) -> None:
        nonlocal current
        if news != current:
            current = news
            activity.heartbeat(current)

    async def beat() -> None:
        while True:
            activity.heartbeat(current)
            await asyncio.sleep(pause)

    task = asyncio.create_task(beat())
    try:
        yield report
    finally:
        task.cancel()
        await asyncio.wait([task])
