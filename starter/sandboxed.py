"""What all `trellis sandbox …` commands share: where a sandbox is, and how its problems are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from domain.errors import Code, TrellisError

if TYPE_CHECKING:
    from sandbox.world import World

__all__ = ["DEFAULT_STATE_DIR", "StateDir", "running_world", "sandbox_errors", "start_hint"]

StateDir = Annotated[Path, Option("--state-dir", help="Where the sandbox keeps everything.", file_okay=False)]
DEFAULT_STATE_DIR = Path(".sandbox")


def running_world(state_dir: Path) -> World:
    """The addresses of a sandbox that runs; raises `unavailable` where none does. Use inside `sandbox_errors`."""
    from sandbox import supervisor
    from sandbox.world import World

    world = World.load(state_dir)
    if not supervisor.is_running(state_dir):
        raise TrellisError(Code.UNAVAILABLE, f"no sandbox runs in {state_dir}", start_hint(state_dir))
    return world


def start_hint(state_dir: Path) -> str:
    """How to get one."""
    return f"`trellis sandbox start --detach --state-dir {state_dir}` starts it"


@contextmanager
def sandbox_errors() -> Iterator[None]:
    """What the sandbox says is a failure like any other; and it may not be installed."""
    try:
        from sandbox.world import SandboxError
    except ImportError as error:
        raise _not_installed(error) from error
    try:
        yield
    except SandboxError as error:
        raise TrellisError(Code.UNAVAILABLE, str(error)) from error
    except ImportError as error:
        raise _not_installed(error) from error


def _not_installed(error: ImportError) -> TrellisError:
    return TrellisError(
        Code.UNAVAILABLE, f"the sandbox is not installed: {error}", "install Trellis with its extra: trellis[sandbox]"
    )
