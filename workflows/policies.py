"""How long and how often the steps of a workflow are tried.

The failure's code decides whether trying again makes sense (`domain.errors`). `blocked` is the one code that callers
treat differently: most steps end with it, a patient one goes on until the blocker has left.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from domain.errors import Code


class Step(TypedDict, total=False):
    """The options of one activity call."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


_BACKOFF = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    non_retryable_error_types=[Code.BLOCKED.value],
)
_PATIENT = RetryPolicy(
    initial_interval=timedelta(seconds=2), backoff_coefficient=1.5, maximum_interval=timedelta(minutes=2)
)
# A worker that dies is noticed after this; activities report three times as often.
_HEARTBEAT = timedelta(seconds=10)

# Answers at once, or not at all.
BRIEF = Step(
    start_to_close_timeout=timedelta(minutes=1),
    schedule_to_close_timeout=timedelta(minutes=15),
    heartbeat_timeout=_HEARTBEAT,
    retry_policy=_BACKOFF,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
# Cloud resources and shoots. A create that was cancelled is waited for: its deletion must not overtake it.
LONG = Step(
    start_to_close_timeout=timedelta(hours=1),
    schedule_to_close_timeout=timedelta(hours=2),
    heartbeat_timeout=_HEARTBEAT,
    retry_policy=_BACKOFF,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
# Cleaning up: never given up, each attempt bounded.
UNTIL_DONE = Step(
    start_to_close_timeout=timedelta(hours=1),
    heartbeat_timeout=_HEARTBEAT,
    retry_policy=_BACKOFF,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
# The same where something is known to be in the way: tried until it has gone. Costs no history.
PATIENT = Step(
    start_to_close_timeout=timedelta(hours=1),
    heartbeat_timeout=_HEARTBEAT,
    retry_policy=_PATIENT,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
