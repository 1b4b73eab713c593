"""A real Temporal server for the session, and a world of dictionaries for each test."""

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from activities.attributes import ALL
from tests.workflows.harness import Harness
from tests.workflows.world import World


@pytest.fixture(scope="session")
async def temporal() -> AsyncIterator[Client]:
    """The dev server of this session."""
    environment = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        search_attributes=ALL,
        dev_server_log_level="error",
        dev_server_extra_args=["--headless"],
    )
    async with environment:
        yield environment.client


@pytest.fixture
async def world() -> World:
    """A fresh world."""
    return World()


@pytest.fixture
async def trellis(temporal: Client, world: World) -> AsyncIterator[Harness]:
    """Workers on a task queue of their own, and a tenant of its own."""
    harness = Harness(temporal, world, tenant="t" + uuid.uuid4().hex[:12])
    async with harness:
        yield harness
    world.check()
