"""Blocking work inside an activity: watched, and never left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import ParamSpec, TypeVar

from temporalio import activity

__all__ = ["attended"]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

# Where the activity has no heartbeat timeout, nobody waits for heartbeats; they still bring cancellations.
_DEFAULT_TIMEOUT = timedelta(seconds=30)
_BEATS_PER_TIMEOUT = 3


async def attended(work: Callable[_Given, _Result], *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
    """Runs `work` in a thread and heartbeats until it has ended, whatever happens meanwhile.

    A thread cannot be stopped, so a cancellation waits for its end: no effect comes after the activity said that it
    has ended. Only a cancellation that somebody asked for is then raised; where the worker merely shuts down, or the
    activity was paused or reset, what the work achieved is the better answer.
    """
    timeout = activity.info().heartbeat_timeout or _DEFAULT_TIMEOUT
    pause = timeout.total_seconds() / _BEATS_PER_TIMEOUT
    thread = asyncio.create_task(asyncio.to_thread(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.wait({thread}, timeout=pause)
        except asyncio.CancelledError as error:
            cancelled = error
        activity.heartbeat()
    if cancelled is not None and _asked_for():
        thread.exception()  # looked at: what went wrong no longer matters
        raise cancelled
    return thread.result()


def _asked_for() -> bool:
    details = activity.cancellation_details()
    return details is None or not (details.worker_shutdown or details.paused or details.reset)
