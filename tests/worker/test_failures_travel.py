"""How a failure gets from an activity into a workflow, over a real server."""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from domain.errors import Code, Failure
from tests.worker.steps import SECRET, Look, LookThroughChild, Raise, Steps
from worker.interceptors import FailureInterceptor
from worker.wiring import sandboxed


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[Client]:
    environment = await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(Path(sys.executable).parent / "temporal"),
        dev_server_log_level="error",
        dev_server_extra_args=["--headless"],
    )
    async with environment:
        yield environment.client


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
async def worker(client: Client, steps: Steps) -> AsyncIterator[Worker]:
    worker = Worker(
        client,
        task_queue=uuid.uuid4().hex,
        workflows=[Look, LookThroughChild, Raise],
        activities=[steps.fail, steps.break_down, steps.fail_for_ever, steps.hang, steps.work],
        interceptors=[FailureInterceptor()],
        workflow_runner=sandboxed(),
        graceful_shutdown_timeout=timedelta(seconds=0),
    )
    async with worker:
        yield worker


async def start(
    worker: Worker, step: str, *arguments: str, seconds: float = 90, never: tuple[str, ...] = ()
) -> WorkflowHandle[Look, str | Failure]:
    return await worker.client.start_workflow(
        Look.run,
        args=[step, list(arguments), seconds, list(never)],
        id=uuid.uuid4().hex,
        task_queue=worker.task_queue,
    )


async def look(worker: Worker, step: str, *arguments: str, seconds: float = 90, never: tuple[str, ...] = ()) -> object:
    return await (await start(worker, step, *arguments, seconds=seconds, never=never)).result()


async def history_of(handle: WorkflowHandle[Look, str | Failure]) -> str:
    return (await handle.fetch_history()).to_json()


@pytest.mark.parametrize("code", [Code.QUOTA, Code.INVALID, Code.FORBIDDEN, Code.LOST, Code.CONFLICT])
async def test_a_final_failure_ends_the_step_at_once_and_arrives_whole(
    worker: Worker, steps: Steps, code: Code
) -> None:
    assert await look(worker, "fail", code) == Failure(code=code, message="make it: no", hint="do that")
    assert steps.attempts == 1


@pytest.mark.parametrize("code", [Code.EVENTUAL, Code.BLOCKED])
async def test_what_may_pass_is_tried_again(worker: Worker, steps: Steps, code: Code) -> None:
    assert await look(worker, "fail", code) == "done"
    assert steps.attempts == 2


async def test_a_caller_may_end_with_a_code_that_others_wait_for(worker: Worker, steps: Steps) -> None:
    failure = await look(worker, "fail", Code.BLOCKED, never=(Code.BLOCKED.value,))
    assert failure == Failure(code=Code.BLOCKED, message="make it: no", hint="do that")
    assert steps.attempts == 1


async def test_neither_cause_nor_text_of_an_unknown_error_enters_the_history(worker: Worker) -> None:
    for step, arguments in (("fail", [Code.QUOTA.value]), ("break_down", [])):
        handle = await start(worker, step, *arguments)
        await handle.result()
        assert SECRET not in await history_of(handle)


async def test_an_unknown_error_is_tried_again_and_its_text_stays_out_of_the_log(
    worker: Worker, steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    assert await look(worker, "break_down") == "done"
    assert steps.attempts == 2
    assert "ValueError in break_down" in caplog.text
    assert "steps.py" in caplog.text
    assert SECRET not in caplog.text


async def test_a_deadline_is_a_timeout_that_tells_the_last_failure(worker: Worker) -> None:
    failure = await look(worker, "fail_for_ever", seconds=2)
    assert isinstance(failure, Failure)
    assert failure.code is Code.TIMEOUT
    assert "fail_for_ever" in failure.message
    assert "look for it: not there" in failure.message
    assert failure.hint == "wait"


async def test_a_step_that_hangs_is_a_timeout(worker: Worker) -> None:
    failure = await look(worker, "hang", seconds=1)
    assert isinstance(failure, Failure)
    assert failure.code is Code.TIMEOUT


async def test_a_failure_survives_a_child_workflow(worker: Worker) -> None:
    failure = await worker.client.execute_workflow(
        LookThroughChild.run, Code.NO_CAPACITY, id=uuid.uuid4().hex, task_queue=worker.task_queue
    )
    assert failure == Failure(code=Code.NO_CAPACITY, message="make it: no", hint="do that")


async def test_a_cancelled_step_ends_only_when_its_work_has_ended(worker: Worker, steps: Steps) -> None:
    handle = await start(worker, "work")
    assert await asyncio.to_thread(steps.begun.wait, 20)
    await handle.cancel()
    result = asyncio.create_task(handle.result())
    # Longer than the heartbeat timeout: heartbeats go on, although the activity was cancelled meanwhile.
    done, _ = await asyncio.wait({result}, timeout=3)
    assert not done
    steps.release.set()
    failure = await result
    assert time.monotonic() >= steps.ended_at > 0
    assert isinstance(failure, Failure)
    assert failure.code is Code.CANCELLED


async def test_work_that_outlives_the_shutdown_of_its_worker_keeps_its_result(client: Client, steps: Steps) -> None:
    queue = uuid.uuid4().hex
    looking = Worker(client, task_queue=queue, workflows=[Look], workflow_runner=sandboxed())
    working = Worker(
        client, task_queue=queue, activities=[steps.work], graceful_shutdown_timeout=timedelta(milliseconds=100)
    )
    async with looking:
        handle = await start(looking, "work")
        running = asyncio.create_task(working.run())
        assert await asyncio.to_thread(steps.begun.wait, 20)
        ending = asyncio.create_task(working.shutdown())
        await asyncio.sleep(0.5)  # past the grace period: the activity has been cancelled by now
        assert not ending.done()
        steps.release.set()
        await ending
        await running
        assert await handle.result() == "done"
