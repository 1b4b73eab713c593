"""`python -m sandbox.aws --port P --state-dir DIR [--settings FILE]`: serve until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from .journal import StateError
from .server import Application, bound
from .settings import Settings, SettingsError
from .world import World


def main() -> None:
    """Serve; `DIR/aws.port` holds the port as soon as the server listens."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.aws", description="A small AWS on 127.0.0.1.")
    parser.add_argument(
        "--port", type=int, default=0, help="0: any free one; it is in DIR/aws.port and on standard output"
    )
    parser.add_argument("--state-dir", type=Path, required=True, help="where the cloud survives")
    parser.add_argument("--settings", type=Path, help="a JSON file; what it names replaces what is in force")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        patch = Settings.patch_from(arguments.settings) if arguments.settings else None
        world = World(arguments.state_dir)
        port_file = arguments.state_dir / "aws.port"
        port_file.unlink(missing_ok=True)  # of a life that was killed
        if patch is not None:
            world.set(patch)
        server = bound(arguments.port, Application(world))
    except (SettingsError, StateError, OSError) as error:
        sys.exit(f"sandbox.aws: {error}")
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: threading.Thread(target=server.shutdown).start())
    fresh = port_file.with_suffix(".new")
    fresh.write_text(f"{server.server_port}\n")
    fresh.replace(port_file)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.1)
    port_file.unlink(missing_ok=True)
    world.close()


main()
