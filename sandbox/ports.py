"""Ports on loopback that stay the same as long as the state directory lives."""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sandbox.world import SandboxError

__all__ = ["LOOPBACK", "choose_ports", "is_listening"]

LOOPBACK = "127.0.0.1"
# Below the ports that Linux and macOS give to outgoing connections, so that none of those takes a kept port.
_RANGE = range(20_000, 32_000)
_ATTEMPTS = 200
_FILE = "ports.json"
_PORTS = TypeAdapter(dict[str, int])


def choose_ports(state_dir: Path, names: list[str]) -> dict[str, int]:
    """A free port for every name: the one of the last time where it is still free.

    Raises:
        SandboxError: no free port was found.
    """
    path = state_dir / _FILE
    try:
        kept = _PORTS.validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        kept = {}
    chosen: dict[str, int] = {}
    for name in names:
        port = kept.get(name)
        taken = set(chosen.values())
        chosen[name] = port if port and port not in taken and _is_free(port) else _any_port(taken)
    path.write_bytes(_PORTS.dump_json(chosen))
    return chosen


def is_listening(port: int) -> bool:
    """Whether somebody accepts connections on loopback."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False


def _any_port(taken: set[int]) -> int:
    for _ in range(_ATTEMPTS):
        port = random.choice(_RANGE)  # noqa: S311 - no secret
        if port not in taken and _is_free(port):
            return port
    raise SandboxError(f"no free port found between {_RANGE.start} and {_RANGE.stop} on {LOOPBACK}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True
