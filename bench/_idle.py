"""VPCs that nobody asks for anything: what they cost a worker, and that they make no traffic."""

from __future__ import annotations

import asyncio
import os
import subprocess
import uuid
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.testing import ActivityEnvironment

from activities.membership import MembershipActivities
from bench import Measure
from bench._server import compiled_modules, workers
from domain.messages import Join
from domain.specs import Provider, VpcSpec
from tests.workflows.harness import Harness
from worker.settings import Settings

__all__ = ["idle"]

_COUNT = "TRELLIS_BENCH_IDLE_VPCS"
_WARM_UP = 200  # what a worker loads once is loaded by then
_AT_ONCE = 32
_WATCHED_SECONDS = 10
_WORKFLOW_TASKS = "temporal_workflow_task_queue_poll_succeed"
_ACTIVITIES = "temporal_activity_execution_latency"
_METRICS_MAX = 1_000_000


async def idle(client: Client) -> list[Measure]:
    """So many VPCs with one member each, on a worker in a process of its own.

    Raises:
        ValueError: `TRELLIS_BENCH_IDLE_VPCS` is no positive number.
    """
    text = os.environ.get(_COUNT, "1000")
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{_COUNT}: {text!r} is not a number of VPCs: give one, such as 10000")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        address = client.service_client.config.target_host
        return await asyncio.get_running_loop().run_in_executor(process, _in_a_process, address, int(text))


def _in_a_process(address: str, vpcs: int) -> list[Measure]:
    with compiled_modules():
        return asyncio.run(_measure(address, vpcs))


async def _measure(address: str, vpcs: int) -> list[Measure]:
    metrics = MetricBuffer(_METRICS_MAX)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=metrics))
    client = await Client.connect(address, data_converter=pydantic_data_converter, runtime=runtime)
    cache: int = Settings.model_fields["max_cached_workflows"].default
    async with workers(client, max_cached_workflows=cache) as trellis:
        await _fill(trellis, _WARM_UP)
        before = _resident_kib()
        cached = min(vpcs, cache - _WARM_UP)
        await _fill(trellis, cached)
        until_full = _resident_kib() - before
        await _fill(trellis, vpcs - cached)
        grown = _resident_kib() - before
        assert _tally(metrics)[_WORKFLOW_TASKS], "this SDK counts workflow tasks under another name"
        await asyncio.sleep(_WATCHED_SECONDS)
        seen = _tally(metrics)
    return [
        Measure(f"{vpcs:,} idle VPCs: workflow tasks in {_WATCHED_SECONDS} s", seen[_WORKFLOW_TASKS], "tasks", 0),
        Measure(f"{vpcs:,} idle VPCs: activities in {_WATCHED_SECONDS} s", seen[_ACTIVITIES], "activities", 0),
        Measure(f"{vpcs:,} idle VPCs: what the worker grew by, its cache holding {cache:,}", grown / 1024, "MiB"),
        Measure(f"worker's memory for each of {cached:,} VPCs in its cache", until_full / cached, "KiB"),
    ]


async def _fill(trellis: Harness, vpcs: int) -> None:
    """Start VPCs as clusters do, a few at once, until each has answered its one member and waits."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def settle() -> None:
        async with gate:
            await _join(trellis, f"v{uuid.uuid4().hex}")

    await asyncio.gather(*(settle() for _ in range(vpcs)))


async def _join(trellis: Harness, name: str) -> None:
    vpc = VpcSpec(tenant=trellis.tenant, name=name, provider=Provider.AWS, region="eu-central-1", credentials="aws")
    step = ActivityEnvironment()
    step.info = replace(step.info, task_queue=trellis.tenant)
    await step.run(MembershipActivities(trellis.client).join_vpc, Join(cluster="only", token=1, vpc=vpc))
    answered = False
    async for event in trellis.vpc(name).fetch_history_events(wait_new_event=True):
        # The member has no workflow of its own: it is the VPC that is measured.
        answered |= event.event_type == EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED
        if answered and event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            return


def _tally(metrics: MetricBuffer) -> Counter[str]:
    """What was counted since the last time; of latencies, how many there were."""
    counted = Counter[str]()
    for update in metrics.retrieve_updates():
        counted[update.metric.name] += 1
    return counted


def _resident_kib() -> int:
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(os.getpid())]))
