"""What every activity of the worker has in common: how its failures travel."""

from __future__ import annotations

import asyncio
import secrets
import traceback
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory, FailureError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import Code, Failure, TrellisError

__all__ = ["FailureInterceptor"]

# First and longest pause in seconds before another attempt. `blocked` is missing on purpose: how patiently a deletion
# waits for others is for the workflow to say.
_PAUSES = {
    Code.THROTTLED: (5.0, 60.0),
    Code.BUSY: (2.0, 30.0),
    Code.EVENTUAL: (1.0, 10.0),
    Code.LOST_RESPONSE: (2.0, 30.0),
    Code.UNAVAILABLE: (2.0, 60.0),
    Code.INTERNAL: (5.0, 120.0),
}
_MOST_DOUBLINGS = 10
_random = secrets.SystemRandom()


class FailureInterceptor(Interceptor):
    """Sends a `TrellisError` as an application error whose type is the code and whose detail is the `Failure`.

    Every other exception is a defect: it is tried again, since a new version may mend it, and its text stays out of
    Temporal's history, since nobody knows what it quotes.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """See `temporalio.worker.Interceptor`."""
        return _Failures(next)


class _Failures(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        try:
            return await super().execute_activity(input)
        except (FailureError, asyncio.CancelledError):
            raise
        except TrellisError as error:
            failure = error.failure
        except Exception as error:
            failure = _defect(error)
        # Raised out here, so that neither cause nor context of the error goes along.
        raise _as_application_error(failure)


def _as_application_error(failure: Failure) -> ApplicationError:
    retried = failure.transient or failure.code in {Code.BLOCKED, Code.INTERNAL}
    expected = failure.transient or failure.code is Code.BLOCKED
    if expected:
        # The SDK itself logs, with a stack, what is not benign.
        activity.logger.info("%s: %s", failure.code, failure)
    return ApplicationError(
        str(failure),
        failure,
        type=failure.code.value,
        non_retryable=not retried,
        next_retry_delay=_pause(failure.code, activity.info().attempt),
        category=ApplicationErrorCategory.BENIGN if expected else ApplicationErrorCategory.UNSPECIFIED,
    )


def _pause(code: Code, attempt: int) -> timedelta | None:
    """Doubles with every attempt; the jitter keeps those apart who were refused together."""
    if code not in _PAUSES:
        return None
    first, longest = _PAUSES[code]
    doubled = first * 2 ** min(attempt - 1, _MOST_DOUBLINGS)
    return timedelta(seconds=_random.uniform(first / 2, min(doubled, longest)))


def _defect(error: Exception) -> Failure:
    info = activity.info()
    where = "".join(traceback.format_tb(error.__traceback__))
    activity.logger.error("%s in %s, its text withheld:\n%s", type(error).__name__, info.activity_type, where)
    return Failure(
        code=Code.INTERNAL,
        message=f"{info.activity_type}: unexpected {type(error).__name__}",
        hint=f"a defect of Trellis: search the worker's log for {info.workflow_id}; tried again by itself",
    )
