"""What can be set on a running server: how long things take, how much is allowed, what time it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = ["Settings", "SettingsError"]

_Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


class SettingsError(ValueError):
    """Settings that cannot be: the message names the field, the value and what is allowed."""


class Settings(BaseModel):
    """All settings of one server.

    Attributes:
        operation_seconds: How long an asynchronous operation takes.
        operation_seconds_by_verb: The same for single verbs, such as `networks.insert`; the vendor's server names them.
        hidden_reads: By kind, such as `networks`: how many reads do not see a new resource yet.
        quotas: Limits other than the vendor's defaults, by the vendor's name of the quota.
        latency_seconds: How long every call waits before anything happens.
        clock_offset_seconds: How far the server's clock is ahead of the machine's.
        anonymous: Whether calls without credentials are let in.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation_seconds: _Seconds = 0.2
    operation_seconds_by_verb: dict[str, _Seconds] = {}
    hidden_reads: dict[str, _Count] = {}
    quotas: dict[str, _Count] = {}
    latency_seconds: _Seconds = 0
    clock_offset_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    anonymous: bool = True

    def seconds_of(self, verb: str) -> float:
        """How long an operation of this verb takes."""
        return self.operation_seconds_by_verb.get(verb, self.operation_seconds)

    def changed(self, patch: object) -> Settings:
        """These settings with those given replaced.

        Raises:
            SettingsError: they are none.
        """
        if not isinstance(patch, dict):
            raise SettingsError(f'settings are a JSON object such as {{"operation_seconds": 1}}, not {patch!r}')
        try:
            return Settings.model_validate(self.model_dump() | patch)
        except ValidationError as error:
            raise SettingsError("; ".join(_sentence(one) for one in error.errors())) from None

    @classmethod
    def patch_from(cls, file: Path) -> dict[str, Any]:
        """The settings that a file asks for, checked.

        Raises:
            SettingsError: there is no such file, or what it says are no settings.
        """
        try:
            patch = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise SettingsError(f"{file}: {error}") from None
        cls().changed(patch)
        return dict(patch)


def _sentence(error: Any) -> str:
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']} (got {error['input']!r})"
