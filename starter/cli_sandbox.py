"""`trellis sandbox …`: the small world on this machine."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from rich.table import Table
from typer import Option

from domain.errors import Code, TrellisError
from starter import cli_fault
from starter.console import OutputFormat, err, out, print_json
from starter.options import Output, group
from starter.sandboxed import DEFAULT_STATE_DIR, StateDir, running_world, sandbox_errors, start_hint

if TYPE_CHECKING:
    from sandbox.world import World

__all__ = ["app"]

_CLOUDS = "gcp,azure,alicloud"

app = group("A small world on this machine: Temporal, clouds, a Garden and a worker.")
app.add_typer(cli_fault.app, name="fault")


@app.command()
def start(
    state_dir: StateDir = DEFAULT_STATE_DIR,
    detach: Annotated[bool, Option("--detach", help="Go on in the background.")] = False,
    shoot_seconds: Annotated[float, Option(min=0, max=3600, help="How long a shoot takes to be built.")] = 5.0,
    clouds: Annotated[str, Option(help="The clouds beside AWS, with commas between; empty for none.")] = _CLOUDS,
    workers: Annotated[int, Option(min=0, max=16, help="How many workers.")] = 1,
) -> None:
    """Start a sandbox; on a directory that was used before, with the state it had."""
    with sandbox_errors():
        from sandbox import supervisor

        wanted = tuple(filter(None, (cloud.strip() for cloud in clouds.split(","))))
        options = supervisor.Options(shoot_seconds=shoot_seconds, clouds=wanted, workers=workers)
        if detach:
            _welcome(supervisor.launch(state_dir, options), state_dir)
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)
        box = supervisor.start(state_dir, options)
        _welcome(box.world, state_dir)
        err.print("Ctrl-C ends it; its state stays")
        try:
            threading.Event().wait()
        finally:
            box.stop()


@app.command()
def stop(state_dir: StateDir = DEFAULT_STATE_DIR) -> None:
    """End a sandbox; its state stays for the next start."""
    with sandbox_errors():
        from sandbox import supervisor

        ended = supervisor.stop(state_dir)
    err.print(f"the sandbox in {state_dir} has ended" if ended else f"no sandbox runs in {state_dir}")


@app.command()
def status(state_dir: StateDir = DEFAULT_STATE_DIR, output: Output = OutputFormat.TABLE) -> None:
    """What a sandbox consists of, and whether it lives. Exit status 1 unless all of it does."""
    with sandbox_errors():
        from sandbox import supervisor

        living = supervisor.status(state_dir)
    if output is OutputFormat.JSON:
        print_json({"state_dir": str(state_dir.absolute()), "processes": living})
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("PART", "PROCESS", "LOG"):
            table.add_column(column, overflow="fold")
        for name, pid in living.items():
            table.add_row(name, str(pid) if pid else "not running", str(state_dir / "logs" / f"{name}.log"))
        out.print(table)
    dead = [name for name, pid in living.items() if pid is None]
    if dead:
        raise TrellisError(Code.UNAVAILABLE, f"not running: {', '.join(dead)}", start_hint(state_dir))


@app.command()
def env(state_dir: StateDir = DEFAULT_STATE_DIR) -> None:
    """Shell lines with every address: eval "$(trellis sandbox env)"."""
    with sandbox_errors():
        world = running_world(state_dir)
    out.file.write(world.exports() + "\n")


def _welcome(world: World, state_dir: Path) -> None:
    err.print(f"sandbox ready in {state_dir}")
    err.print(f"  Temporal UI  {world.temporal.ui}")
    err.print(f'  use it with  eval "$(trellis sandbox env --state-dir {state_dir})"')
    err.print(f"  end it with  trellis sandbox stop --state-dir {state_dir}")


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)
