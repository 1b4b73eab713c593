"""How a failed step looks from inside a workflow."""

from __future__ import annotations

from collections.abc import Iterator

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    RetryState,
    TerminatedError,
    is_cancelled_exception,
)
from temporalio.exceptions import TimeoutError as StepTimeoutError

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from domain.errors import Code, Failure, TrellisError

__all__ = ["failure_of"]


def failure_of(error: BaseException) -> Failure:
    """The failure behind `error`, through whatever Temporal has wrapped around it."""
    chain = list(_chain(error))
    if any(is_cancelled_exception(link) for link in chain):
        return Failure(code=Code.CANCELLED, message=f"{_step(chain)} was cancelled")
    found = next((failure for failure in map(_carried, chain) if failure is not None), None)
    if any(_ran_out(link) for link in chain):
        return _timed_out(chain, found)
    if found is not None:
        return found
    if any(isinstance(link, TerminatedError) for link in chain):
        return Failure(code=Code.CANCELLED, message=f"{_step(chain)} was terminated by an operator")
    root = chain[-1]
    return Failure(
        code=Code.INTERNAL,
        message=f"{_step(chain)}: {type(root).__name__}: {root}",
        hint="a defect of Trellis; the worker's log says more",
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__


def _carried(link: BaseException) -> Failure | None:
    if isinstance(link, TrellisError):
        return link.failure
    if isinstance(link, ApplicationError) and link.details:
        try:
            return Failure.model_validate(link.details[0])
        except ValidationError:
            return None  # an application error of somebody else
    return None


def _ran_out(link: BaseException) -> bool:
    out_of_time = isinstance(link, ActivityError | ChildWorkflowError) and link.retry_state is RetryState.TIMEOUT
    return out_of_time or isinstance(link, StepTimeoutError)


def _timed_out(chain: list[BaseException], last: Failure | None) -> Failure:
    message = f"{_step(chain)} did not succeed in its time"
    if last is None:
        return Failure(code=Code.TIMEOUT, message=message, hint="is a worker running, and what does its log say?")
    return Failure(code=Code.TIMEOUT, message=f"{message}; last: {last.message}", hint=last.hint)


def _step(chain: list[BaseException]) -> str:
    for link in chain:
        if isinstance(link, ActivityError):
            return link.activity_type
        if isinstance(link, ChildWorkflowError):
            return link.workflow_type
    return "this step"
