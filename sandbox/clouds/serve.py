"""The command line of every cloud server: `python -m sandbox.<vendor> --port P --state-dir DIR [--settings FILE]`."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from sandbox.clouds.core import Cloud
from sandbox.clouds.settings import Settings, SettingsError
from sandbox.clouds.store import Document
from sandbox.tls import server_certificate

__all__ = ["serve"]


def serve(vendor: str, broken: Document, make_app: Callable[[Cloud], Starlette], *, tls: bool = False) -> None:
    """Serve on 127.0.0.1 until SIGTERM or Ctrl-C, and say where; `DIR/<vendor>.port` holds the port meanwhile.

    Args:
        vendor: The package's name.
        broken: As for `Cloud`.
        make_app: Makes the application of a cloud.
        tls: Serve HTTPS; clients trust `DIR/<vendor>.ca.crt`, which is made at the first start.
    """
    parser = argparse.ArgumentParser(prog=f"python -m sandbox.{vendor}", description=f"A small {vendor} on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one; it is on standard output")
    parser.add_argument("--state-dir", type=Path, required=True, help="where the cloud survives")
    parser.add_argument("--settings", type=Path, help="a JSON file; what it names replaces what is in force")
    given = parser.parse_args()
    try:
        patch = Settings.patch_from(given.settings) if given.settings else {}
        cloud = Cloud(given.state_dir, broken)
        cloud.settings = cloud.settings.changed(patch)
        listener = _listener(given.port)
    except (OSError, RuntimeError, SettingsError) as error:
        sys.exit(f"sandbox.{vendor}: {error}")
    port_file, port = given.state_dir / f"{vendor}.port", listener.getsockname()[1]
    config = uvicorn.Config(make_app(cloud), lifespan="off", log_level="warning", access_log=False)
    if tls:
        files = server_certificate(given.state_dir, vendor)
        config.ssl_certfile, config.ssl_keyfile = str(files.certificate), str(files.key)
    port_file.write_text(f"{port}\n")
    print(f"listening on {'https' if tls else 'http'}://127.0.0.1:{port}", flush=True)
    config.timeout_graceful_shutdown = 1
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: None)  # uvicorn ends on them, and raises them again once it has
    uvicorn.Server(config).run(sockets=[listener])
    port_file.unlink(missing_ok=True)
    cloud.store.close()


def _listener(port: int) -> socket.socket:
    # asyncio switches Nagle's algorithm off only where the protocol is spelled out: 40 ms for every call otherwise.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise OSError(f"port {port} of 127.0.0.1 cannot be used: {error}") from error
    return listener
