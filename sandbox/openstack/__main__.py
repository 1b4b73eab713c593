"""`python -m sandbox.openstack --port P --state-dir DIR`: Keystone on port P and Neutron, until SIGTERM or Ctrl-C.

`DIR/clouds.yaml` is there as soon as both answer: `OS_CLIENT_CONFIG_FILE=DIR/clouds.yaml openstack --os-cloud trellis
network list`.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from sandbox.openstack.environment import Environment, installed
from sandbox.openstack.servers import Servers, end_leftovers
from sandbox.openstack.tenants import CLOUDS_FILE, furnish, write_clouds
from sandbox.ports import choose_ports
from sandbox.world import SandboxError

_READY_SECONDS = 120.0


def main() -> None:
    """Install what is missing, serve, say where, and end both servers at the end."""
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.openstack", description="Keystone and Neutron on 127.0.0.1."
    )
    parser.add_argument("--port", type=int, default=0, help="Keystone's; 0: a free one, the same at every start")
    parser.add_argument("--network-port", type=int, default=0, help="Neutron's; likewise")
    parser.add_argument("--network-url", help="what the catalog says instead of Neutron's own URL: a proxy's")
    parser.add_argument("--state-dir", type=Path, help="where the cloud survives")
    parser.add_argument("--venv", type=Path, help="where both are installed; without it, the user's cache directory")
    parser.add_argument("--install-only", action="store_true", help="install what is missing, and end")
    arguments = parser.parse_args()
    if arguments.state_dir is None and not arguments.install_only:
        parser.error("--state-dir is missing")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    ended = threading.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: ended.set())
    try:
        environment = installed(arguments.venv)
        if not arguments.install_only:
            serve(environment, arguments, ended)
    except (SandboxError, OSError) as error:
        sys.exit(f"sandbox.openstack: {error}")


def serve(environment: Environment, arguments: argparse.Namespace, ended: threading.Event) -> None:
    """Serve until `ended`."""
    state_dir: Path = arguments.state_dir.absolute()
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    (state_dir / CLOUDS_FILE).unlink(missing_ok=True)  # of an earlier life
    end_leftovers(state_dir)
    ports = choose_ports(state_dir, ["keystone", "neutron"])
    servers = Servers(
        environment,
        state_dir,
        keystone_port=arguments.port or ports["keystone"],
        neutron_port=arguments.network_port or ports["neutron"],
    )
    try:
        servers.wait_ready(_READY_SECONDS)
        furnish(servers.auth_url, servers.network_url, arguments.network_url)
        write_clouds(state_dir, servers.auth_url)
        print(f"listening on {servers.auth_url}", flush=True)
        ended.wait()
    finally:
        (state_dir / CLOUDS_FILE).unlink(missing_ok=True)
        servers.end()


if __name__ == "__main__":
    main()
