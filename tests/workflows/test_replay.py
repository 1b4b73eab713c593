"""Histories of every way a workflow can go, recorded by every version that ever landed, replay on today's code."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from tests.workflows.harness import Harness
from tests.workflows.scenarios import SCENARIOS, Scenario
from tests.workflows.world import World
from worker.wiring import WORKFLOWS, sandboxed

_HISTORIES = Path(__file__).parents[1] / "histories"
# Set to a version's name to record its histories; they are added to, never rewritten.
_RECORD = os.environ.get("TRELLIS_RECORD_HISTORIES")


def _impersonal(part: Any) -> Any:
    """A history without what tells about the machine that it was recorded on; replays do not look at it."""
    if isinstance(part, str):
        return re.sub(r"^\d+@[\w.-]+", "worker", part)
    if isinstance(part, dict):
        kept = {key: value for key, value in part.items() if key not in {"stackTrace", "identity"}}
        return {key: _impersonal(value) for key, value in kept.items()}
    return [_impersonal(item) for item in part] if isinstance(part, list) else part


def _read(file: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(file.stem, file.read_text())


def _replayer() -> Replayer:
    return Replayer(workflows=WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=sandboxed())


@pytest.mark.parametrize("file", sorted(_HISTORIES.rglob("*.json")), ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_a_recorded_history_replays(file: Path) -> None:
    await _replayer().replay_workflow(await asyncio.to_thread(_read, file))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_every_way_a_life_can_go_replays(trellis: Harness, world: World, scenario: Scenario) -> None:
    async for name, handle in scenario(trellis, world):
        history = await handle.fetch_history()
        await _replayer().replay_workflow(history)
        if _RECORD:
            target = _HISTORIES / _RECORD / f"{name}.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_text(json.dumps(_impersonal(json.loads(history.to_json())), indent=1))
