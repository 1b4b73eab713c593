"""What can be set on a running server: how long things take, what fails, how much is allowed, what time it is."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ["Fault", "Settings"]

_Seconds = Annotated[float, Field(ge=0, le=86_400)]


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fault(_Closed):
    """Something that goes wrong with the next calls that match.

    Attributes:
        call: A regular expression searched for in `METHOD /path`, such as `POST .*/global/networks$`.
        effect: `refuse`: the call does nothing and is answered by the error. `lose`: the call does everything, and
            the connection breaks before the answer.
        skip: How many matching calls go through first.
        times: How many calls it strikes; it is gone afterwards.
        status: The HTTP status of a refusal.
        code: The vendor's code or reason of a refusal, such as `rateLimitExceeded`.
        message: The text of a refusal.
    """

    call: str
    effect: Literal["refuse", "lose"] = "refuse"
    skip: Annotated[int, Field(ge=0)] = 0
    times: Annotated[int, Field(ge=1)] = 1
    status: Annotated[int, Field(ge=400, le=599)] = 503
    code: str = "backendError"
    message: str = "The service is currently unavailable."

    @field_validator("call")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value


class Settings(_Closed):
    """All settings of one server; those that are not given have these defaults.

    Attributes:
        operation_seconds: How long an asynchronous operation takes.
        operation_seconds_by_verb: The same for single verbs, such as `networks.insert`; see the vendor for the names.
        hidden_reads: By kind, such as `networks`: how many reads do not see a new resource yet.
        quotas: By the vendor's name of the quota: limits other than the vendor's defaults.
        latency_seconds: How long every call waits before anything happens.
        clock_offset_seconds: How far the server's clock is ahead of the machine's.
        anonymous: Whether calls without credentials are let in.
        faults: What goes wrong next.
    """

    operation_seconds: _Seconds = 0.2
    operation_seconds_by_verb: dict[str, _Seconds] = {}
    hidden_reads: dict[str, Annotated[int, Field(ge=0)]] = {}
    quotas: dict[str, Annotated[int, Field(ge=0)]] = {}
    latency_seconds: _Seconds = 0
    clock_offset_seconds: Annotated[float, Field(ge=0)] = 0
    anonymous: bool = True
    faults: tuple[Fault, ...] = ()

    def seconds_of(self, verb: str) -> float:
        """How long an operation of this verb takes."""
        return self.operation_seconds_by_verb.get(verb, self.operation_seconds)

    def strike(self, call: str) -> tuple[Fault | None, Settings]:
        """The fault that strikes a call, if one does, and the settings after it."""
        for index, fault in enumerate(self.faults):
            if not re.search(fault.call, call):
                continue
            if fault.skip:
                return None, self._with_fault(index, fault.model_copy(update={"skip": fault.skip - 1}))
            left = fault.model_copy(update={"times": fault.times - 1}) if fault.times > 1 else None
            return fault, self._with_fault(index, left)
        return None, self

    def _with_fault(self, index: int, fault: Fault | None) -> Settings:
        kept = () if fault is None else (fault,)
        return self.model_copy(update={"faults": (*self.faults[:index], *kept, *self.faults[index + 1 :])})
