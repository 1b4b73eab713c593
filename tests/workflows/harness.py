"""Clusters and VPCs on a real server, with the world of the tests behind them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Self

import pytest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistoryEventFilterType,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import Worker

from activities.attributes import attributes
from activities.membership import MembershipActivities
from domain.errors import Failure
from domain.messages import ClusterPhase, ClusterView, VpcView
from domain.names import cluster_workflow_id, vpc_workflow_id
from domain.specs import ClusterSpec, Provider
from domain.states import ClusterInput, Decision
from tests.workflows.world import World
from worker.wiring import sandboxed
from workflows.cluster import ClusterWorkflow
from workflows.failures import failure_of
from workflows.vpc import VpcWorkflow


class _TaskFailures(logging.Handler):
    """A workflow task that fails is a defect, whatever the workflow does afterwards."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "workflow activation" in record.getMessage().lower():
            self.seen.append(record.getMessage() + str(record.exc_info))


class Harness:
    """Starts clusters as a broker would, and waits for what becomes of them."""

    def __init__(self, client: Client, world: World, tenant: str, **worker_options: Any) -> None:
        self.client = client
        self.world = world
        self.tenant = tenant
        self._options = worker_options
        self._failures = _TaskFailures()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        logging.getLogger("temporalio").addHandler(self._failures)
        await self.start_worker()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        logging.getLogger("temporalio").removeHandler(self._failures)
        assert not self._failures.seen, self._failures.seen

    async def start_worker(self) -> Worker:
        membership = MembershipActivities(self.client)
        worker = Worker(
            self.client,
            task_queue=self.tenant,
            workflows=[ClusterWorkflow, VpcWorkflow],
            activities=[*self.world.activities(), membership.join_vpc, membership.find_memberships],
            workflow_runner=sandboxed(),
            max_concurrent_activities=500,
            max_heartbeat_throttle_interval=timedelta(seconds=1),
            **self._options,
        )
        await self._stack.enter_async_context(worker)
        return worker

    def spec(self, name: str, vpc: str | None = "shared", **fields: Any) -> ClusterSpec:
        where = {"provider": Provider.AWS, "region": "eu-central-1"} | fields
        return ClusterSpec(tenant=self.tenant, name=name, vpc=vpc, **where)

    async def create(self, name: str, vpc: str | None = "shared", **fields: Any) -> WorkflowHandle[Any, ClusterView]:
        spec = self.spec(name, vpc, **fields)
        return await self._start(ClusterInput(tenant=self.tenant, name=name, spec=spec), vpc=spec.vpc_name)

    async def delete(self, name: str) -> WorkflowHandle[Any, ClusterView]:
        return await self._start(
            ClusterInput(tenant=self.tenant, name=name),
            start_signal="deprovision",
            start_signal_args=[Decision(who="test", why="enough")],
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )

    async def _start(
        self, start: ClusterInput, vpc: str | None = None, **options: Any
    ) -> WorkflowHandle[Any, ClusterView]:
        handle = await self.client.start_workflow(
            ClusterWorkflow.run,
            start,
            id=cluster_workflow_id(start.tenant, start.name),
            task_queue=self.tenant,
            search_attributes=attributes(
                tenant=start.tenant, vpc=vpc, provider=None, region=None, phase=ClusterPhase.JOINING
            ),
            rpc_timeout=timedelta(seconds=30),
            **options,
        )
        # Without a run id: the workflow, whatever run it is in.
        handle._run_id = None
        return handle

    def cluster(self, name: str) -> WorkflowHandle[Any, ClusterView]:
        return self.client.get_workflow_handle_for(ClusterWorkflow.run, cluster_workflow_id(self.tenant, name))

    def vpc(self, name: str = "shared") -> WorkflowHandle[Any, VpcView]:
        return self.client.get_workflow_handle_for(VpcWorkflow.run, vpc_workflow_id(self.tenant, name))

    async def view(self, name: str) -> ClusterView:
        return await self.cluster(name).query(ClusterWorkflow.describe)

    async def vpc_view(self, name: str = "shared") -> VpcView:
        return await self.vpc(name).query(VpcWorkflow.describe)

    async def ready(self, handle: WorkflowHandle[Any, ClusterView]) -> ClusterView:
        """Wait for the end of a provision: its first run closes by continuing as new."""
        first = self.client.get_workflow_handle(handle.id, run_id=handle.result_run_id)
        async for event in first.fetch_history_events(
            wait_new_event=True, event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT
        ):
            assert event.HasField("workflow_execution_continued_as_new_event_attributes"), event
        return await handle.query(ClusterWorkflow.describe)

    async def gone(self, name: str) -> ClusterView:
        return await self.cluster(name).result()

    async def failed(self, name: str) -> Failure:
        with pytest.raises(WorkflowFailureError) as caught:
            await self.cluster(name).result()
        return failure_of(caught.value)

    async def held(self, name: str, calls: int = 1) -> ClusterView:
        """Wait until a cluster is held, for the `calls`th time."""
        # Search attributes are written by the workflow itself, so its history says when.
        seen = 0
        async for event in self.cluster(name).fetch_history_events(wait_new_event=True):
            upsert = event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields
            seen += b'"held"' in upsert["TrellisPhase"].data if "TrellisPhase" in upsert else 0
            if seen == calls:
                break
        return await self.view(name)

    async def visible(self, vpc: str) -> None:
        """Wait until the server's index, which lags a little, knows the VPC."""
        query = f"WorkflowId = '{vpc_workflow_id(self.tenant, vpc)}' AND ExecutionStatus = 'Running'"
        async with asyncio.timeout(10):
            while not (await self.client.count_workflows(query)).count:  # noqa: ASYNC110 - the index tells nobody
                await asyncio.sleep(0.05)

    async def running(self, handle: WorkflowHandle[Any, Any]) -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
