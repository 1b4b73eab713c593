"""The environment that Keystone and Neutron are installed in: made on first use, shared by all sandboxes of a user."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.world import SandboxError

__all__ = ["Environment", "installed", "is_installed"]

_LOCK = Path(__file__).parent / "requirements.lock"
_SEAL = "sandbox.complete"
_TAIL = 12


@dataclass(frozen=True)
class Environment:
    """An installed environment."""

    path: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.path / "bin" / "python"

    @property
    def uwsgi(self) -> Path:
        """The server that both are served by."""
        return self.path / "bin" / "uwsgi"

    @property
    def paste_config(self) -> Path:
        """Neutron's pipeline of middleware, as it ships."""
        return self.path / "etc" / "neutron" / "api-paste.ini"


def installed(path: Path | None = None) -> Environment:
    """The environment; where it is not there yet, pip installs it, which takes from half a minute to a few.

    Two that come at once make it once: the second waits for the first.

    Args:
        path: where it is to be; None: the user's cache directory.

    Raises:
        SandboxError: it cannot be installed; says why.
    """
    path = _path(path)
    if not is_installed(path):
        try:
            with _alone(path):
                if not is_installed(path):
                    _install(path)
        except OSError as error:
            raise SandboxError(f"OpenStack cannot be installed into {path}: {error}") from error
    return Environment(path)


def is_installed(path: Path | None = None) -> bool:
    """Whether it is there, and made from the present lock."""
    try:
        return (_path(path) / _SEAL).read_text() == _fingerprint()
    except FileNotFoundError:
        return False


def _path(path: Path | None) -> Path:
    if path is not None:
        return path.absolute()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "trellis" / f"openstack-{_fingerprint()[:12]}"


def _fingerprint() -> str:
    """What the environment depends on: the lock, and the Python that it is made with."""
    python = f"{sys.implementation.cache_tag} {sys.base_prefix}"
    return hashlib.sha256(python.encode() + _LOCK.read_bytes()).hexdigest()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Goes with the process, however it ends.
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(path: Path) -> None:
    if path.exists() and any(path.iterdir()) and not (path / "pyvenv.cfg").exists():
        raise SandboxError(f"OpenStack is not installed into {path}: there is something else; name an empty directory")
    print(f"installing Keystone and Neutron into {path}: this takes a few minutes, once", file=sys.stderr, flush=True)
    _run(path, [sys.executable, "-m", "venv", "--clear", str(path)])
    pip = [str(Environment(path).python), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    _run(path, [*pip, "install", "--require-hashes", "-r", str(_LOCK)])
    fresh = path / f"{_SEAL}.new"
    fresh.write_text(_fingerprint())
    fresh.replace(path / _SEAL)


def _run(path: Path, command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_TAIL:])
        raise SandboxError(f"OpenStack cannot be installed into {path}: {' '.join(command[:4])} failed:\n{said}")
