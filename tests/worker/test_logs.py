"""Log lines: one stream, and each with the ids of the workflow that it is about."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SCRIPT = """
import logging, warnings
from worker.logs import configure_logging
from worker.settings import LogFormat, Settings
configure_logging(Settings(log_format=LogFormat.{format}))
log = logging.getLogger("trellis.test")
ids = {{"workflow_id": "cluster/t/a", "activity_type": "join_vpc", "attempt": 2}}
log.info("a step", extra={{"temporal_activity": ids}})
log.debug("too small to be said")
logging.getLogger("botocore").info("chatter")
warnings.warn("mind the gap")
try:
    raise ValueError("what went wrong")
except ValueError:
    log.exception("it failed", extra={{"temporal_workflow": {{"workflow_id": "vpc/t/v", "run_id": "r"}}}})
"""


def said(log_format: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(format=log_format)], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_json_lines_carry_the_ids() -> None:
    out, err = said("JSON")
    lines: list[dict[str, Any]] = [json.loads(line) for line in err.splitlines()]
    assert out == ""
    step, warning, failed = lines
    assert (step["event"], step["level"], step["logger"]) == ("a step", "info", "trellis.test")
    assert (step["workflow_id"], step["activity"], step["attempt"]) == ("cluster/t/a", "join_vpc", 2)
    assert "mind the gap" in warning["event"]
    assert (failed["workflow_id"], failed["run_id"]) == ("vpc/t/v", "r")
    assert "ValueError: what went wrong" in failed["exception"]


def test_lines_for_people_carry_them_too() -> None:
    _, err = said("CONSOLE")
    assert "workflow_id=cluster/t/a" in err
    assert "what went wrong" in err
