"""The one classification of everything that can go wrong.

A failure has a `Code`. The code alone decides whether a step is tried again:

- transient (`throttled`, `busy`, `eventual`, `lost-response`, `unavailable`): retried with jitter, within the step's
  budget;
- everything else is final for the step: trying again changes nothing until a person or the world does.

Adapters raise `TrellisError`; the worker carries it over Temporal's wire as an application error whose type is
the code and whose detail is the `Failure`, so that it survives every wrapping.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Code(StrEnum):
    """What went wrong, in one word that never changes."""

    # Transient: the same call may succeed later.
    THROTTLED = "throttled"  # the provider asks for fewer calls
    BUSY = "busy"  # another operation holds the resource
    EVENTUAL = "eventual"  # made by us, not visible yet
    LOST_RESPONSE = "lost-response"  # the effect is unknown; look up and adopt
    UNAVAILABLE = "unavailable"  # 5xx, connection refused, time-outs

    # Final: what the caller asked for cannot be.
    INVALID = "invalid"
    NOT_FOUND = "not-found"
    CLUSTER_EXISTS = "cluster-exists"  # same name, other parameters
    CLUSTER_BUSY = "cluster-busy"  # being deleted right now
    VPC_FULL = "vpc-full"
    BLOCK_TAKEN = "block-taken"
    VPC_MISMATCH = "vpc-mismatch"  # other provider, region, credentials or layout
    VPC_CLOSED = "vpc-closed"  # held for deletion, lost, or reserved for one cluster

    # Final: the world refuses.
    QUOTA = "quota"
    FORBIDDEN = "forbidden"
    CONFLICT = "conflict"  # something that is not ours is in the way
    NO_CAPACITY = "no-capacity"  # the zone has no machines
    BLOCKED = "blocked"  # a deletion waits for things that are not ours
    LOST = "lost"  # deleted by someone else
    SHOOT_FAILED = "shoot-failed"  # Gardener gave up
    UNREACHABLE = "unreachable"  # the clusters do not reach each other
    TIMEOUT = "timeout"  # the step's deadline passed
    CANCELLED = "cancelled"
    INTERNAL = "internal"  # a defect of Trellis


_TRANSIENT = frozenset({Code.THROTTLED, Code.BUSY, Code.EVENTUAL, Code.LOST_RESPONSE, Code.UNAVAILABLE})


class Failure(BaseModel):
    """A failure as data: for workflow state, JSON output and the UI.

    `message` says what was tried on which resource and why it failed; `hint` says what a person can do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: Code
    message: str
    hint: str = ""

    @property
    def transient(self) -> bool:
        """Whether the same step may succeed when tried again."""
        return self.code in _TRANSIENT

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class TrellisError(Exception):
    """Raised wherever a failure is found; carries its `Failure`."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        self.failure = Failure(code=code, message=message, hint=hint)
        super().__init__(str(self.failure))

    @classmethod
    def of(cls, failure: Failure) -> TrellisError:
        """The exception for a failure that arrived as data."""
        return cls(failure.code, failure.message, failure.hint)
