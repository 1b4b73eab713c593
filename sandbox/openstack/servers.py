"""Keystone and Neutron as processes: their state made once, both served by uwsgi on 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from sandbox.children import Child, end_orphan, lock_path
from sandbox.openstack import configuration
from sandbox.openstack.environment import Environment
from sandbox.ports import LOOPBACK
from sandbox.world import SandboxError

__all__ = ["Servers", "end_leftovers"]

_INSIDE = Path(__file__).with_name("inside.py")
_SEAL = "made"
_TAIL = 12
_POLL = 0.05
# A server that ended so often never comes up.
_LIVES = 3


class Servers:
    """Both servers over one state directory, in which none runs yet."""

    def __init__(self, environment: Environment, state_dir: Path, *, keystone_port: int, neutron_port: int) -> None:
        self.auth_url = f"http://{LOOPBACK}:{keystone_port}/v3"
        self.network_url = f"http://{LOOPBACK}:{neutron_port}"
        self._environment = environment
        self._directory = state_dir
        (state_dir / "logs").mkdir(parents=True, exist_ok=True)
        keystone = configuration.keystone(state_dir / "keystone")
        neutron = configuration.neutron(state_dir / "neutron", environment, self.auth_url)
        with ThreadPoolExecutor(2) as pool:
            url = configuration.database_url(neutron.parent, "neutron")
            makings = [
                pool.submit(self._make_state, keystone, configuration.PASSWORD, configuration.REGION),
                pool.submit(self._make_state, neutron, url),
            ]
        for making in makings:
            making.result()
        self.children = [
            self._serve(keystone, keystone_port, "keystone.wsgi.api"),
            self._serve(neutron, neutron_port, "neutron.wsgi.api"),
        ]

    def wait_ready(self, timeout: float) -> None:
        """Wait until both answer.

        Raises:
            SandboxError: one does not; says which, with the end of its log.
        """
        deadline = time.monotonic() + timeout
        for child, url in zip(self.children, (self.auth_url, self.network_url), strict=True):
            while not _answers(url, deadline - time.monotonic()):
                if child.restarts >= _LIVES or time.monotonic() > deadline:
                    raise SandboxError(f"{child.name} does not answer; the end of {child.log}:\n{child.tail()}")
                time.sleep(_POLL)

    def end(self) -> None:
        """End both."""
        for child in self.children:
            child.request_end()
        for child in self.children:
            child.end()

    def _make_state(self, config: Path, *arguments: str) -> None:
        """Empty tables and fresh keys; what a making that was broken off left is thrown away."""
        name, seal = config.stem, config.parent / _SEAL
        if seal.exists():
            return
        for leftover in config.parent.iterdir():
            if leftover != config:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        command = [str(self._environment.python), str(_INSIDE), name, str(config), *arguments]
        done = subprocess.run(
            command, env=_variables(config), cwd=config.parent, capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL:])
            raise SandboxError(f"{name}'s state cannot be made in {config.parent}:\n{said}")
        seal.touch()

    def _serve(self, config: Path, port: int, module: str) -> Child:
        # One thread, as SQLite has one writer. A connection that stays open would have that thread to itself.
        command = [
            str(self._environment.uwsgi), "--http-socket", f"{LOOPBACK}:{port}", "--module", f"{module}:application",
            "--master", "--processes", "1", "--threads", "1", "--enable-threads", "--need-app", "--die-on-term",
            "--buffer-size", "65535", "--listen", "100", "--add-header", "Connection: close", "--disable-logging",
        ]  # fmt: skip
        return Child(
            config.stem,
            command,
            environment=_variables(config),
            state_dir=self._directory,
            on_change=_nothing,
        )


def end_leftovers(state_dir: Path) -> None:
    """End the servers of a life that was killed: they hold the state, and the ports."""
    for name in ("neutron", "keystone"):
        end_orphan(lock_path(state_dir, name))


def _answers(url: str, timeout: float) -> bool:
    try:
        # uwsgi takes connections before it has loaded what answers them.
        return not httpx.get(url, timeout=max(timeout, _POLL), trust_env=False).is_error
    except httpx.TransportError:
        return False


_nothing: Callable[[], None] = lambda: None  # noqa: E731 - nobody else records their process ids


def _variables(config: Path) -> dict[str, str]:
    """The environment of a process; nothing of the caller's own OpenStack gets in."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON", "UWSGI"))}
    service = f"OS_{config.stem.upper()}"
    # Half of it warnings of eventlet, which Neutron imports and does not use here.
    return own | {
        f"{service}_CONFIG_DIR": str(config.parent),
        f"{service}_CONFIG_FILES": config.name,
        "PYTHONWARNINGS": "ignore",
    }
