"""What can be set from outside: environment variables with the prefix `TRELLIS_`.

The connection to Temporal is not among them: it comes from Temporal's own environment variables and profile files
(`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_PROFILE`, …), which the `temporal` command reads too.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from activities.connectivity import DEFAULT_PROBE_IMAGE
from domain.specs import Provider

__all__ = ["LogFormat", "LogLevel", "Settings"]

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Address = Annotated[str, StringConstraints(pattern=r"^[^:\s]+:\d{1,5}$")]


class LogFormat(StrEnum):
    """How a log line looks: for people, or for machines."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Settings(BaseSettings):
    """The settings of a worker and of the ways in. Raises pydantic's ValidationError where a variable makes no sense.

    Attributes:
        task_queue: Temporal task queue that the workers serve.
        garden_kubeconfig: Kubeconfig file of the garden project; None: this process does not know the garden.
        garden_namespace: The project's namespace, `garden-<project>`; needed with the kubeconfig.
        cloud_profiles: CloudProfile by provider, as a JSON object; one that is left out is named like the provider.
        installation: Tells what this Trellis made in a cloud account from what another one did.
        probe_image: Image with which clusters are shown to reach each other: Kubernetes' `agnhost`, or a mirror of it.
        temporal_ui: URL of Temporal's web UI, for links.
        metrics_address: `host:port` to serve Prometheus metrics on; None: no metrics.
        log_format: `console` or `json`; None: `console` on a terminal, else `json`.
        log_level: Least important lines that are written.
        grace_seconds: How long a worker that is told to end lets running steps finish. Whatever does not finish goes on
            on another worker.
        progress_seconds: How often, at most, the progress of a running step is told to Temporal.
        max_cached_workflows: Workflows kept in memory; about 93 KiB each.
        max_activities: Steps that run at the same time on one worker.
        cloud_threads: Threads for cloud calls, which block.
    """

    model_config = SettingsConfigDict(env_prefix="TRELLIS_", frozen=True, extra="forbid", env_ignore_empty=True)

    task_queue: _Text = "trellis"
    garden_kubeconfig: Path | None = None
    garden_namespace: _Text | None = None
    cloud_profiles: dict[Provider, _Text] = Field(default_factory=dict)
    installation: Annotated[str, StringConstraints(pattern=r"^[a-z0-9](?:[-a-z0-9]{0,38}[a-z0-9])?$")] = "trellis"
    probe_image: _Text = DEFAULT_PROBE_IMAGE
    temporal_ui: _Text | None = None
    metrics_address: _Address | None = None
    log_format: LogFormat | None = None
    log_level: LogLevel = LogLevel.INFO
    grace_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0
    progress_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    max_cached_workflows: Annotated[int, Field(ge=0, le=100_000)] = 1000
    max_activities: Annotated[int, Field(ge=1, le=10_000)] = 500
    cloud_threads: Annotated[int, Field(ge=1, le=500)] = 32

    @model_validator(mode="after")
    def _whole_garden(self) -> Self:
        if (self.garden_kubeconfig is None) != (self.garden_namespace is None):
            raise ValueError("TRELLIS_GARDEN_KUBECONFIG and TRELLIS_GARDEN_NAMESPACE are set together, or not at all")
        return self
