"""`kill -9` at every step, of the worker and of Temporal's server: everything ends as if nothing had happened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from domain.names import cluster_workflow_id, vpc_workflow_id
from sandbox.supervisor import Sandbox
from tests.e2e.conftest import Shell, ours, subnets

# Every step of a cluster's life, three at a time: each life then meets the deaths meant for the others too.
STEPS = (
    ("plan_shoot", "ensure_network", "verify_connectivity"),
    ("join_vpc", "create_shoot", "delete_shoot"),
    ("await_shoot", "await_shoot_gone", "remove_network"),
)


async def _kill_when(sandbox: Sandbox, handle: WorkflowHandle[Any, Any], activity: str, part: str) -> None:
    """Kill a part as soon as a workflow has asked for an activity."""
    while True:
        try:
            async for event in handle.fetch_history_events(wait_new_event=True):
                asked = event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
                if asked and event.activity_task_scheduled_event_attributes.activity_type.name == activity:
                    sandbox.kill(part)
                    return
        except RPCError:  # the workflow has not started yet
            await asyncio.sleep(0.05)


async def _handle(trellis: Shell, activity: str) -> WorkflowHandle[Any, Any]:
    client = await Client.connect(trellis.sandbox.world.temporal.address)
    network = activity.endswith("_network")
    workflow_id = vpc_workflow_id(trellis.tenant, "shared") if network else cluster_workflow_id(trellis.tenant, "alpha")
    return client.get_workflow_handle(workflow_id)


async def _lives(trellis: Shell, ec2: Any, kill_at: str, part: str) -> None:
    killing = asyncio.create_task(_kill_when(trellis.sandbox, await _handle(trellis, kill_at), kill_at, part))
    view = (await asyncio.to_thread(trellis.create, "alpha", "--vpc", "shared")).json
    assert view["phase"] == "ready"
    assert view["block"] == "10.0.0.0/22"
    (vpc,) = ours(ec2, trellis.tenant)
    assert len(subnets(ec2, vpc["VpcId"])) == 3
    await asyncio.to_thread(trellis.delete, "alpha")
    await asyncio.wait_for(killing, 10)
    assert not ours(ec2, trellis.tenant)


@pytest.mark.parametrize("steps", STEPS, ids=" ".join)
async def test_a_worker_killed_at_any_step_loses_nothing(trellis: Shell, ec2: Any, steps: tuple[str, ...]) -> None:
    tenants = [Shell(trellis.sandbox, f"{trellis.tenant}{number}") for number in range(len(steps))]
    await asyncio.gather(*(_lives(shell, ec2, step, "worker") for shell, step in zip(tenants, steps, strict=True)))


@pytest.mark.parametrize("step", ["await_shoot", "remove_network"])
async def test_a_temporal_server_killed_midway_loses_nothing(trellis: Shell, ec2: Any, step: str) -> None:
    await _lives(trellis, ec2, step, "temporal")
