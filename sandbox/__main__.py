"""`python -m sandbox`: a supervisor in the background, until it is told to end (SIGTERM, SIGINT).

Reports on the descriptor `--report-fd`: `ready`, or what is wrong.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from sandbox.supervisor import Options, start
from sandbox.world import SandboxError


def main() -> int:
    """Start, report, wait, end."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--shoot-seconds", type=float, default=Options.shoot_seconds)
    parser.add_argument("--workers", type=int, default=Options.workers)
    parser.add_argument("--clouds", default="", help="with commas between")
    parser.add_argument("--report-fd", type=int, required=True)
    arguments = parser.parse_args()
    if os.fork():
        os._exit(0)  # whoever started this has nothing to wait for, and leaves no zombie
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    with os.fdopen(arguments.report_fd, "w") as report:
        try:
            options = Options(
                shoot_seconds=arguments.shoot_seconds,
                clouds=tuple(filter(None, arguments.clouds.split(","))),
                workers=arguments.workers,
            )
            box = start(arguments.state_dir, options)
        except SandboxError as error:
            print(error, file=report)
            return 1
        print("ready", file=report)
    try:
        threading.Event().wait()
    finally:
        box.stop()
    return 0


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(0)


if __name__ == "__main__":
    try:
        status = main()
    except SystemExit:
        status = 0
    # Not `sys.exit`: the threads of Temporal's SDK may crash an interpreter that shuts down.
    os._exit(status)
