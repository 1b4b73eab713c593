"""A VPC outlives thousands of clusters: it continues as new with joins in flight, and forgets nothing."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from activities.attributes import ALL
from domain.names import vpc_workflow_id
from tests.workflows.harness import Harness
from tests.workflows.world import World


@pytest.fixture(scope="session")
async def short_histories() -> AsyncIterator[Client]:
    """A server that asks for continue-as-new after a few dozen events."""
    environment = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        search_attributes=ALL,
        dev_server_log_level="error",
        dev_server_extra_args=["--headless", "--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60"],
    )
    async with environment:
        yield environment.client


async def test_a_vpc_continues_as_new_with_joins_in_flight_and_loses_nobody(
    short_histories: Client, world: World
) -> None:
    async def lives(trellis: Harness, name: str) -> None:
        for _ in range(3):
            await trellis.ready(await trellis.create(name))
            await trellis.delete(name)
            await trellis.gone(name)

    async with Harness(short_histories, world, tenant="t" + uuid.uuid4().hex[:12]) as trellis:
        await trellis.ready(await trellis.create("keeper"))
        first = (await trellis.vpc().describe()).run_id
        await asyncio.gather(*(lives(trellis, f"c{i}") for i in range(8)))
        view = await trellis.vpc_view()
        assert [member.cluster for member in view.members] == ["keeper"]
        assert (await trellis.vpc().describe()).run_id != first
        longest = 0
        query = f"WorkflowId = '{vpc_workflow_id(trellis.tenant, 'shared')}'"
        async for run in short_histories.list_workflows(query):
            longest = max(longest, run.history_length)
        assert longest < 400, "each run stays near the limit that the server asks for"
        await trellis.delete("keeper")
        await trellis.gone("keeper")
        await trellis.vpc().result()
    world.check()
    assert world.made == world.removed
    assert len(world.made) == 1


async def test_workflows_live_on_without_any_cache(temporal: Client, world: World) -> None:
    """Every task replays the whole history: what depends on memory alone shows."""
    async with Harness(temporal, world, tenant="t" + uuid.uuid4().hex[:12], max_cached_workflows=0) as trellis:
        handles = await asyncio.gather(*(trellis.create(f"c{i}") for i in range(4)))
        await asyncio.gather(*(trellis.ready(handle) for handle in handles))
        for i in range(4):
            await trellis.delete(f"c{i}")
        await asyncio.gather(*(trellis.gone(f"c{i}") for i in range(4)))
        await trellis.vpc().result()
    world.check()
    assert world.made == world.removed
