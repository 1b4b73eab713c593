"""What is going on with a cluster while one waits for it, read from Temporal alone: no worker has to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from activities.attributes import PHASE
from domain.errors import Code, TrellisError
from domain.messages import ClusterPhase, ClusterView, VpcPhase, VpcView
from starter.client import Trellis

__all__ = ["Progress", "Step", "await_cluster", "await_deletion", "await_vpc_end", "patiently"]

T = TypeVar("T")

_POLL_SECONDS = 0.5
# Temporal may be restarted, or be out of reach, while somebody waits: that is no reason to stop waiting.
_PATIENCE = 60
_ASK_AGAIN = 5
_PASSING = frozenset({RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.RESOURCE_EXHAUSTED})


@dataclass(frozen=True)
class Step:
    """A step that is being done, or waits to be tried again."""

    name: str
    attempt: int = 1
    detail: str = ""
    failure: str = ""

    def __str__(self) -> str:
        parts = [self.name, self.detail]
        if self.failure:
            parts.append(f"attempt {self.attempt}: {self.failure}")
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class Progress:
    """A moment: the phase, the steps of that phase, whether the workflow still runs."""

    phase: str
    steps: tuple[Step, ...] = ()
    running: bool = True


async def await_cluster(trellis: Trellis, name: str, tenant: str) -> AsyncIterator[Progress]:
    """Moments until the cluster is ready, held, failed or deleted."""
    ends = {ClusterPhase.READY, ClusterPhase.HELD}
    async for progress in _moments(trellis.temporal, trellis.cluster_handle(name, tenant)):
        yield progress
        if progress.phase in ends or not progress.running:
            return


async def await_deletion(trellis: Trellis, name: str, tenant: str) -> AsyncIterator[Progress]:
    """Moments until the cluster's workflow has ended."""
    async for progress in _moments(trellis.temporal, trellis.cluster_handle(name, tenant)):
        yield progress
        if not progress.running:
            return


async def await_vpc_end(trellis: Trellis, view: ClusterView) -> AsyncIterator[Progress]:
    """Moments until the VPC of a deleted cluster is gone; ends at once where others hold it, or a person kept it.

    Raises:
        TrellisError: `blocked` where something foreign in the VPC keeps it from being deleted.
    """
    if view.vpc is None:  # nobody knows of one
        return
    handle = trellis.vpc_handle(view.vpc, view.tenant)
    async for progress in _moments(trellis.temporal, handle):
        if not progress.running:
            yield Progress(phase=VpcPhase.GONE, running=False)
            return
        vpc = await _vpc_or_none(trellis, view)
        if vpc is None or vpc.members or vpc.retained or vpc.adopted:
            return
        yield progress
        if vpc.phase is VpcPhase.BLOCKED and vpc.failure:
            raise TrellisError.of(vpc.failure)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and again while the workers are away: they come back, and nothing is lost meanwhile."""
    for _ in range(_ASK_AGAIN):
        try:
            return await ask()
        except TrellisError as error:
            if not error.failure.transient:
                raise
        await asyncio.sleep(_POLL_SECONDS)
    return await ask()


async def _vpc_or_none(trellis: Trellis, view: ClusterView) -> VpcView | None:
    try:
        return await patiently(lambda: trellis.vpc(view.vpc or "", view.tenant))
    except TrellisError as error:
        if error.failure.code is Code.NOT_FOUND:
            return None
        raise


async def _moments(client: Client, handle: WorkflowHandle[Any, Any]) -> AsyncIterator[Progress]:
    silent = 0
    while True:
        try:
            progress = await _look(client, handle)
        except RPCError as error:
            silent += 1
            if error.status is RPCStatusCode.NOT_FOUND:
                yield Progress(phase=VpcPhase.GONE, running=False)
                return
            if error.status not in _PASSING or silent > _PATIENCE:
                raise TrellisError(
                    Code.UNAVAILABLE,
                    f"watching {handle.id}: Temporal answered {error.status.name}: {error.message}",
                    "what was asked for goes on; `trellis cluster show` tells how it ends",
                ) from error
        else:
            silent = 0
            yield progress
            if not progress.running:
                return
        await asyncio.sleep(_POLL_SECONDS)


async def _look(client: Client, handle: WorkflowHandle[Any, Any]) -> Progress:
    description = await handle.describe()
    pending = description.raw_description.pending_activities
    return Progress(
        phase=description.typed_search_attributes.get(PHASE, "starting"),
        steps=tuple([await _step(client, info) for info in pending]),
        running=description.status is WorkflowExecutionStatus.RUNNING,
    )


async def _step(client: Client, info: PendingActivityInfo) -> Step:
    details = await client.data_converter.decode(info.heartbeat_details.payloads)
    return Step(
        name=info.activity_type.name.replace("_", " "),
        attempt=info.attempt,
        detail=next((detail for detail in details if isinstance(detail, str)), ""),
        failure=info.last_failure.message,
    )
