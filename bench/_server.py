"""A Temporal server for a bench, and workers on it with the stand-in world of the tests behind them."""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from activities.attributes import ALL
from tests.workflows.harness import Harness
from tests.workflows.world import World

__all__ = ["PROMPT", "compiled_modules", "server", "workers"]

# The dev server keeps all workflows in one shard and looks for what to hand out at most 20 times a second: after the
# first few, a workflow waits some 50 ms for each of its tasks, whatever the task costs. This lifts it.
PROMPT = "history.transferProcessorMaxPollRPS=5000"


@contextmanager
def compiled_modules() -> Iterator[None]:
    """As an installed Trellis has them, also where Python is told to write no byte code.

    The workflow sandbox loads a workflow's module anew for every workflow.
    """
    before = sys.pycache_prefix, sys.dont_write_bytecode
    with tempfile.TemporaryDirectory() as compiled:
        sys.pycache_prefix, sys.dont_write_bytecode = compiled, False
        try:
            yield
        finally:
            sys.pycache_prefix, sys.dont_write_bytecode = before


@asynccontextmanager
async def server(*settings: str) -> AsyncIterator[Client]:
    """A dev server in memory on a free port of 127.0.0.1, with these dynamic settings and else its own defaults."""
    dynamic = [argument for setting in settings for argument in ("--dynamic-config-value", setting)]
    environment = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        search_attributes=ALL,
        dev_server_log_level="error",
        dev_server_extra_args=["--headless", *dynamic],
    )
    async with environment:
        yield environment.client


@asynccontextmanager
async def workers(client: Client, **options: Any) -> AsyncIterator[Harness]:
    """One worker on a task queue of its own; no step of its world takes any time."""
    async with Harness(client, World(pause=0), tenant="t" + uuid.uuid4().hex[:12], **options) as trellis:
        yield trellis
        trellis.world.check()
