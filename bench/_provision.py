"""What it takes to provision a cluster: events of history, and time against a bare workflow's."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle, WorkflowHistoryEventFilterType

from bench import Measure
from bench._bare import BARE, BareWorkflow
from bench._server import workers
from tests.workflows.harness import Harness

__all__ = ["against_bare", "history"]

Events = Iterable[HistoryEvent]

_WARM_UP = 3
_ALONE_ROUNDS = 30
_WIDE, _WIDE_ROUNDS = 50, 5
_ACTIVITY = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
_WORKFLOW_TASK = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_numbers = count()


async def history(client: Client) -> list[Measure]:
    """A cluster joins a VPC that has a member already, and leaves."""
    async with _ready_vpc(client) as trellis:
        own, joined, membership = await _one_life(trellis)
    return [
        Measure("provision: events of the cluster's history", len(own), "events", 45),
        Measure("join and leave: events of the VPC's history", len(membership), "events", 25),
        Measure("provision: activities, the VPC's included", _count(_ACTIVITY, own, joined), "activities"),
        Measure("provision: workflow tasks, the VPC's included", _count(_WORKFLOW_TASK, own, joined), "tasks"),
    ]


async def against_bare(client: Client, where: str, budget: float | None) -> list[Measure]:
    """Provisions and bare workflows with as many activities, on the same worker, in turn; `budget` is for one alone."""
    async with _ready_vpc(client) as trellis:
        own, joined, _ = await _one_life(trellis)
        steps = _count(_ACTIVITY, own, joined)
        alone = await _in_turn(trellis, steps, width=1, rounds=_ALONE_ROUNDS)
        wide = await _in_turn(trellis, steps, width=_WIDE, rounds=_WIDE_ROUNDS)
    return [
        *_compared(f"provision, {where}", alone, budget),
        *_compared(f"{_WIDE} provisions at once, {where}", wide, None),
    ]


@asynccontextmanager
async def _ready_vpc(client: Client) -> AsyncIterator[Harness]:
    async with workers(client, plugins=[BARE]) as trellis:
        await trellis.ready(await trellis.create("keeper"))
        yield trellis


async def _one_life(trellis: Harness) -> tuple[list[HistoryEvent], list[HistoryEvent], list[HistoryEvent]]:
    """The events of a provision, and the VPC's of the join alone and of join and leave."""
    before = len((await trellis.vpc().fetch_history()).events)
    handle = await trellis.create("alpha")
    await trellis.ready(handle)
    own = (await _first_run(trellis.client, handle).fetch_history()).events
    joined = (await trellis.vpc().fetch_history()).events[before:]
    await _delete(trellis, "alpha")
    membership = (await trellis.vpc().fetch_history()).events[before:]
    return list(own), list(joined), list(membership)


async def _in_turn(trellis: Harness, steps: int, *, width: int, rounds: int) -> tuple[float, float]:
    """Median seconds of `width` provisions, and of as many bare workflows; in turn, so that noise meets both."""

    async def ours() -> float:
        names = [f"c{next(_numbers)}" for _ in range(width)]
        seconds = await _seconds(_closes(trellis.client, trellis.create(name)) for name in names)
        await asyncio.gather(*(_delete(trellis, name) for name in names))
        return seconds

    async def bare() -> float:
        return await _seconds(_closes(trellis.client, _start_bare(trellis, steps)) for _ in range(width))

    times: dict[Callable[[], Awaitable[float]], list[float]] = {ours: [], bare: []}
    for turn in range(-_WARM_UP, rounds):
        for act in (ours, bare) if turn % 2 else (bare, ours):
            seconds = await act()
            if turn >= 0:
                times[act].append(seconds)
    return median(times[ours]), median(times[bare])


def _compared(what: str, seconds: tuple[float, float], budget: float | None) -> Iterable[Measure]:
    ours, bare = seconds
    yield Measure(what, 1000 * ours, "ms")
    yield Measure(f"{what}: the bare workflow", 1000 * bare, "ms")
    yield Measure(f"{what}: against the bare workflow", ours / bare, "times", budget)


async def _seconds(acts: Iterable[Awaitable[None]]) -> float:
    started = perf_counter()
    await asyncio.gather(*acts)
    return perf_counter() - started


async def _closes(client: Client, start: Awaitable[WorkflowHandle[Any, Any]]) -> None:
    """Start a workflow and wait for its first run's end, which for a provision is a continue-as-new."""
    run = _first_run(client, await start)
    closing = run.fetch_history_events(
        wait_new_event=True, event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT
    )
    async for event in closing:
        assert event.event_type in {
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
        }, event


async def _start_bare(trellis: Harness, steps: int) -> WorkflowHandle[Any, Any]:
    return await trellis.client.start_workflow(
        BareWorkflow.run, steps, id=f"bare/{uuid.uuid4()}", task_queue=trellis.tenant
    )


async def _delete(trellis: Harness, name: str) -> None:
    await trellis.delete(name)
    await trellis.gone(name)


def _first_run(client: Client, handle: WorkflowHandle[Any, Any]) -> WorkflowHandle[Any, Any]:
    return client.get_workflow_handle(handle.id, run_id=handle.result_run_id)


def _count(kind: EventType.ValueType, *histories: Events) -> int:
    return sum(event.event_type == kind for events in histories for event in events)
