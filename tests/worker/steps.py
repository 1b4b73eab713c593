"""Steps that fail in every way, and the workflow that looks at how."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from activities._attended import attended
    from domain.errors import Code, Failure, TrellisError
    from workflows.failures import failure_of

SECRET = "hunter2-is-the-password"


class Steps:
    """Activities, and what they saw."""

    def __init__(self) -> None:
        self.attempts = 0
        self.begun = threading.Event()
        self.release = threading.Event()
        self.ended_at = 0.0

    @activity.defn
    async def fail(self, code: Code) -> str:
        self.attempts += 1
        if self.attempts > 1:
            return "done"
        try:
            raise KeyError(SECRET)  # noqa: TRY301 - what an SDK may quote
        except KeyError as error:
            raise TrellisError(code, "make it: no", "do that") from error

    @activity.defn
    async def break_down(self) -> str:
        self.attempts += 1
        if self.attempts > 1:
            return "done"
        raise ValueError(SECRET)

    @activity.defn
    async def fail_for_ever(self) -> None:
        raise TrellisError(Code.EVENTUAL, "look for it: not there", "wait")

    @activity.defn
    async def hang(self) -> None:
        await asyncio.sleep(60)

    @activity.defn
    async def work(self) -> str:
        return await attended(self._block)

    def _block(self) -> str:
        self.begun.set()
        assert self.release.wait(30)
        self.ended_at = time.monotonic()
        return "done"


@workflow.defn
class Look:
    """Runs a step and tells what became of it."""

    @workflow.run
    async def run(self, step: str, arguments: list[str], seconds: float, never: list[str]) -> str | Failure:
        try:
            result: str = await workflow.execute_activity(
                step,
                args=arguments,
                result_type=str,
                start_to_close_timeout=timedelta(seconds=seconds),
                schedule_to_close_timeout=timedelta(seconds=seconds),
                heartbeat_timeout=timedelta(seconds=2),
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10), non_retryable_error_types=never),
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
        except BaseException as error:
            return failure_of(error)
        return result


@workflow.defn
class LookThroughChild:
    """The same, one level up."""

    @workflow.run
    async def run(self, code: Code) -> Failure:
        try:
            await workflow.execute_child_workflow(Raise.run, code)
        except BaseException as error:
            return failure_of(error)
        raise AssertionError


@workflow.defn
class Raise:
    """Lets its step's failure go on."""

    @workflow.run
    async def run(self, code: Code) -> None:
        await workflow.execute_activity("fail", code, start_to_close_timeout=timedelta(seconds=10))
