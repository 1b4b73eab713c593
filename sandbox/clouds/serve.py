"""The command line that every cloud server has: `python -m sandbox.<vendor> --port P --state-dir DIR`."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

__all__ = ["serve"]


def serve(vendor: str, make_app: Callable[[Path], Starlette]) -> None:
    """Serve on loopback until ended, and say where: `listening on http://127.0.0.1:PORT`."""
    parser = argparse.ArgumentParser(prog=f"python -m sandbox.{vendor}", description=f"The sandbox's {vendor} server.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--state-dir", type=Path, required=True, help="where its state is kept; made if missing")
    given = parser.parse_args()
    try:
        app = make_app(given.state_dir)
        listener = _listen(given.port)
    except (OSError, RuntimeError) as error:
        sys.exit(f"sandbox.{vendor}: {error}")
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        raise OSError(f"port {port} of 127.0.0.1 cannot be used: {error}") from error
    listener.listen(512)
    return listener
