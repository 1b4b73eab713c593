"""Processes that are killed at any moment, and a world that is not as it should be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from sandbox.supervisor import Options, Sandbox, start
from tests.e2e.conftest import Shell, ours, subnets


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox whose processes die."""
    running = start(tmp_path_factory.mktemp("sandbox"), Options(shoot_seconds=1.5))
    yield running
    running.stop()


@pytest.fixture
def trellis(sandbox: Sandbox) -> Shell:
    return Shell(sandbox, tenant="t" + uuid.uuid4().hex[:12])


async def _begun(sandbox: Sandbox, workflow_id: str, activity: str) -> None:
    """Wait until a workflow has asked for an activity."""
    client = await Client.connect(sandbox.world.temporal.address)
    handle = client.get_workflow_handle(workflow_id)
    while True:
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                if event.activity_task_scheduled_event_attributes.activity_type.name == activity:
                    return
