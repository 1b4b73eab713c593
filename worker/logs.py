"""One stream of log lines, ours and the libraries', each with the ids of the workflow that it is about."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger
from temporalio import activity, workflow

from worker.settings import LogFormat, LogLevel, Settings

__all__ = ["configure_logging"]

_SDK_EXTRAS = ("temporal_workflow", "temporal_activity")
_IDS = {
    "workflow_id": "workflow_id",
    "workflow_run_id": "run_id",
    "run_id": "run_id",
    "workflow_type": "workflow_type",
    "activity_type": "activity",
    "activity_id": "activity_id",
    "attempt": "attempt",
}
_CHATTY = ("botocore", "boto3", "urllib3", "kubernetes", "aiohttp", "asyncio")


def configure_logging(settings: Settings) -> None:
    """Send every log line of this process to stderr, for people or for machines."""
    workflow.logger.workflow_info_on_message = False
    activity.logger.activity_info_on_message = False
    as_json = settings.log_format is LogFormat.JSON or (settings.log_format is None and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(allow=_SDK_EXTRAS),
        _lift_ids,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(handlers=[handler], level=level, force=True)
    if settings.log_level is not LogLevel.DEBUG:
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def _lift_ids(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the ids that the SDK nests into the line itself."""
    for extra in _SDK_EXTRAS:
        details = event.pop(extra, None) or {}
        for theirs, ours in _IDS.items():
            if theirs in details:
                event[ours] = details[theirs]
    return event
