"""One child process of the sandbox: started, watched, started again when it dies, ended on request.

Whether a child lives is told by a file lock that the child inherits, not by its process id: the lock goes with the
process, however it ends, and nobody else can have it. So a supervisor that was killed leaves nothing that the next one
would mistake.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

__all__ = ["Child", "end_orphan", "holder_of", "take_lock"]

_log = logging.getLogger("sandbox")

_FIRST_DELAY = 0.2
_LONGEST_DELAY = 10.0
# A child that lived as long as this before it died starts with the shortest delay again.
_STEADY = 10.0
_GRACE = 8.0
_POLL = 0.02


class Child:
    """A process under supervision.

    `prepare` is called before every life; `on_change`, from the watching thread, after every restart.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        state_dir: Path,
        on_change: Callable[[], None],
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.restarts = 0
        self.log = state_dir / "logs" / f"{name}.log"
        self._command = list(command)
        self._environment = dict(environment)
        self._directory = state_dir
        self._lock = lock_path(state_dir, name)
        self._on_change = on_change
        self._prepare = prepare
        self._ending = threading.Event()
        self._process = self._launch()
        self._watcher = threading.Thread(target=self._watch, name=f"sandbox-{name}", daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        """The process id of the present life."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it lives at this moment."""
        return self._process.poll() is None

    def kill(self) -> int:
        """End this life at once, as a crash would, and wait for its end; the next one follows. Returns its id."""
        process = self._process
        _signal(process.pid, signal.SIGKILL)
        process.wait()
        return process.pid

    def request_end(self) -> None:
        """Ask it to end for good."""
        self._ending.set()
        _signal(self._process.pid, signal.SIGTERM)

    def end(self, grace: float = _GRACE) -> None:
        """End it for good: politely at first, by force after `grace` seconds."""
        self.request_end()
        self._watcher.join(grace)
        if self._watcher.is_alive():
            _log.warning("%s did not end within %.0f s and is killed", self.name, grace)
            self.kill()
            self._watcher.join()

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""

    def _launch(self) -> subprocess.Popen[bytes]:
        lock = take_lock(self._lock)
        if lock is None:
            raise BlockingIOError(f"another {self.name} still runs; its lock is {self._lock}")
        with lock, self.log.open("ab") as log:
            self._prepare()
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                start_new_session=True,  # Ctrl-C in the terminal is for the supervisor, which ends them in order
            )
            _write_holder(lock.fileno(), process.pid)
        return process

    def _watch(self) -> None:
        delay = _FIRST_DELAY
        while True:
            began = time.monotonic()
            status = self._process.wait()
            _kill_group(self._process.pid)  # what it started itself; that would keep the lock, and the port
            if self._ending.is_set():
                return
            if time.monotonic() - began > _STEADY:
                delay = _FIRST_DELAY
            _log.warning("%s ended with status %d; it starts again in %.1f s", self.name, status, delay)
            if self._ending.wait(delay):
                return
            delay = min(delay * 2, _LONGEST_DELAY)
            try:
                self._relaunch()
            except OSError as error:
                _log.error("%s cannot be started again and is given up: %s", self.name, error)
                return

    def _relaunch(self) -> None:
        while not self._ending.is_set():
            try:
                self._process = self._launch()
            except BlockingIOError:
                time.sleep(_POLL)  # somebody looks at the lock, or a grandchild is on its way out
                continue
            self.restarts += 1
            self._on_change()
            if self._ending.is_set():  # asked to end while it was being started
                _signal(self._process.pid, signal.SIGTERM)
            return


class Lock:
    """A file lock that is held; let go by `close`, or with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """The descriptor that holds the lock."""
        return self._descriptor

    def close(self) -> None:
        """Let go; a process that inherited the lock keeps it."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock_path(state_dir: Path, name: str) -> Path:
    """Where the lock of a process of this name is."""
    return state_dir / "run" / f"{name}.lock"


def take_lock(path: Path) -> Lock | None:
    """The lock, recorded as this process's, or None where a living process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    _write_holder(descriptor, os.getpid())
    return Lock(descriptor)


def holder_of(path: Path) -> int | None:
    """The process id of the living holder of a lock, or None."""
    if not path.exists():
        return None
    lock = take_lock(path)
    if lock is not None:
        lock.close()
        return None
    text = path.read_text().strip()
    return int(text) if text.isdigit() else None


def end_orphan(path: Path, grace: float = _GRACE) -> bool:
    """End the process that holds the lock, if there is one; tells whether there was."""
    pid = holder_of(path)
    if pid is None:
        return False
    _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while holder_of(path) == pid:
        if time.monotonic() > deadline:
            _signal(pid, signal.SIGKILL)
            _kill_group(pid)
        time.sleep(_POLL)
    return True


def _write_holder(descriptor: int, pid: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(pid).encode(), 0)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM where only zombies are left
        os.killpg(leader, signal.SIGKILL)
