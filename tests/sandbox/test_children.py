"""One supervised process: it comes back, it goes, and nobody mistakes another for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.children import Child, end_orphan, holder_of, lock_path, take_lock


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def begin(state_dir: Path) -> Iterator[Callable[..., Child]]:
    """Starts children that are ended with the test."""
    begun: list[Child] = []

    def start(script: str, on_change: Callable[[], None] = lambda: None) -> Child:
        child = Child(
            "part", [sys.executable, "-c", script], environment=os.environ, state_dir=state_dir, on_change=on_change
        )
        begun.append(child)
        return child

    yield start
    for child in begun:
        child.end(grace=2)


SLEEP = "import time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


def test_a_child_that_dies_is_started_again(begin: Callable[..., Child]) -> None:
    changed = threading.Event()
    child = begin(SLEEP, changed.set)
    died = child.kill()
    assert changed.wait(10)
    assert child.pid != died
    assert child.is_alive
    assert child.restarts == 1


def test_a_killed_child_is_not_alive_until_its_next_life(begin: Callable[..., Child]) -> None:
    child = begin(SLEEP)
    pid = child.kill()
    assert not child.is_alive or child.pid != pid


def test_a_child_that_always_dies_is_started_ever_more_slowly(begin: Callable[..., Child]) -> None:
    began = time.monotonic()
    child = begin("raise SystemExit('no')")
    wait_for(lambda: child.restarts >= 3)
    assert time.monotonic() - began > 0.2 + 0.4 + 0.8
    assert "no" in child.tail()


def test_a_deaf_child_is_killed_after_its_grace(begin: Callable[..., Child], state_dir: Path) -> None:
    child = begin(DEAF)
    wait_for(lambda: "up" in child.tail())
    child.end(grace=0.2)
    assert not child.is_alive
    assert holder_of(lock_path(state_dir, "part")) is None


def test_what_a_child_started_dies_with_it(begin: Callable[..., Child]) -> None:
    script = f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {DEAF!r}])\n"
    child = begin(script + "print('child', p.pid, flush=True); time.sleep(600)")
    wait_for(lambda: "child" in child.tail() and "up" in child.tail())
    grandchild = int(child.tail().split("child ")[1].split()[0])
    child.end()
    wait_for(lambda: not Path(f"/proc/{grandchild}").exists() or _is_zombie(grandchild))


def test_the_lock_tells_who_lives_whatever_the_file_says(begin: Callable[..., Child], state_dir: Path) -> None:
    path = lock_path(state_dir, "part")
    child = begin(SLEEP)
    assert holder_of(path) == child.pid
    child.end()
    path.write_text(str(os.getpid()))  # a stale record, whose number is somebody else's by now
    assert holder_of(path) is None
    assert end_orphan(path) is False


def test_an_orphan_is_ended_by_its_lock(state_dir: Path) -> None:
    path = lock_path(state_dir, "part")
    lock = take_lock(path)
    assert lock is not None
    orphan = subprocess.Popen([sys.executable, "-c", SLEEP], pass_fds=[lock.fileno()], stdout=subprocess.DEVNULL)
    path.write_text(str(orphan.pid))
    lock.close()
    reaper = threading.Thread(target=orphan.wait)
    reaper.start()
    assert end_orphan(path) is True
    reaper.join()
    assert orphan.returncode == -signal.SIGTERM
    assert take_lock(path) is not None


def test_a_lock_is_held_by_one(state_dir: Path) -> None:
    path = lock_path(state_dir, "part")
    with take_lock(path) or pytest.fail("free"):
        assert take_lock(path) is None
        assert holder_of(path) == os.getpid()
    assert holder_of(path) is None


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()
