"""The sandbox's Keystone and Neutron for tests: one of each for a whole test run, with a proxy for faults before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack.config.cloud_region import from_session
from openstack.connection import Connection

from sandbox.faults import Faults
from sandbox.openstack.environment import is_installed
from sandbox.openstack.tenants import CLOUDS_FILE
from sandbox.ports import choose_ports
from tests.activities.proxied import proxied

REGION = "eu-de-1"
POOL = "FloatingIP-external-sandbox"
_READY_SECONDS = 280.0
# One worker for all of them: they share the server. The SDK warns of what it does itself.
MARKS = [
    pytest.mark.xdist_group("openstack"),
    pytest.mark.filterwarnings(
        "ignore:The 'service_type' parameter is unnecesary:PendingDeprecationWarning",
        "ignore:The _compute_attributes method is deprecated:PendingDeprecationWarning",
    ),
]


class Server:
    """Both servers over one state directory. What the catalog says of Neutron is the proxy's address."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        ports = choose_ports(state_dir, ["keystone", "neutron"])
        self.network_url = f"http://127.0.0.1:{ports['neutron']}"
        self._stack = ExitStack()
        proxy, self.faults = self._stack.enter_context(proxied("openstack", self.network_url))
        self._command = [sys.executable, "-m", "sandbox.openstack", "--state-dir", str(state_dir)]
        self._command += ["--port", str(ports["keystone"]), "--network-port", str(ports["neutron"])]
        self._command += ["--network-url", proxy]
        self.log = state_dir / "log"
        self._process = self._start()
        self._stack.callback(self.end)

    @property
    def auth_url(self) -> str:
        clouds = yaml.safe_load((self.state_dir / CLOUDS_FILE).read_text())
        return str(clouds["clouds"]["trellis"]["auth"]["auth_url"])

    def secret(self, project: str = "trellis") -> dict[str, str]:
        """A garden's Secret for the user of a project."""
        return {
            "authURL": self.auth_url,
            "domainName": "Default",
            "tenantName": project,
            "username": project,
            "password": "sandbox",
        }

    def connect(self, cloud: str = "trellis") -> Any:
        """The SDK as somebody else would use it, without faults."""
        return self._connection(cloud, network_endpoint_override=self.network_url)

    def connect_by_proxy(self) -> Any:
        """The SDK by the catalog's address."""
        return self._connection("trellis")

    def _connection(self, cloud: str, **overrides: str) -> Connection:
        clouds = yaml.safe_load((self.state_dir / CLOUDS_FILE).read_text())
        session = Session(auth=v3.Password(**clouds["clouds"][cloud]["auth"]))
        return Connection(config=from_session(session, region_name=REGION, **overrides))

    def crash(self) -> None:
        """End the process that keeps both servers, without a word."""
        self._process.kill()
        self._process.wait()

    def start_again(self) -> None:
        (self.state_dir / CLOUDS_FILE).unlink(missing_ok=True)
        self._process = self._start()

    def end(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def close(self) -> None:
        self._stack.close()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("a") as out:
            process = subprocess.Popen(self._command, stdout=out, stderr=out)
        deadline = time.monotonic() + _READY_SECONDS
        while not (self.state_dir / CLOUDS_FILE).exists():
            assert process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        return process


class _Shared:
    """Several test files, each with its own fixture, one server."""

    server: Server | None = None
    users = 0


@pytest.fixture(scope="session")
def openstack_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud. Installed by the first test where that is CI's task; elsewhere the tests that need it are skipped."""
    if not is_installed() and not os.environ.get("CI"):
        pytest.skip("Keystone and Neutron are not installed: python -m sandbox.openstack --install-only")
    if _Shared.server is None:
        _Shared.server = Server(tmp_path_factory.mktemp("openstack"))
    _Shared.users += 1
    yield _Shared.server
    _Shared.users -= 1
    if not _Shared.users:
        _Shared.server.close()
        _Shared.server = None


@pytest.fixture
def openstack_faults(openstack_server: Server) -> Iterator[Faults]:
    """What goes wrong with calls to Neutron that come by the catalog's address."""
    openstack_server.faults.clear()
    yield openstack_server.faults
    openstack_server.faults.clear()
