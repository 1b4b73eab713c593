"""`trellis`: the command line.

Results go to stdout, everything else to stderr. Exit status 0: done; 1: it failed (`error: CODE: message`, and a hint);
2: the request itself is wrong and nothing was started; 130: interrupted.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer import Option

from domain.errors import Code, Failure, TrellisError
from domain.specs import Provider
from starter import cli_cluster, cli_sandbox, cli_vpc
from starter.console import BadUsageError, OutputFormat, err, print_failure
from starter.options import Output, settings
from starter.sandboxed import sandbox_errors

__all__ = ["main", "run"]

_INTERRUPTED = 130

app = typer.Typer(
    name="trellis",
    help="Many Gardener clusters in one VPC.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(cli_cluster.app, name="cluster")
app.add_typer(cli_vpc.app, name="vpc")
app.add_typer(cli_sandbox.app, name="sandbox")


@app.command()
def worker() -> None:
    """Serve Temporal's tasks until told to end. Settings: environment variables TRELLIS_… and TEMPORAL_…."""
    from worker.process import run_worker

    asyncio.run(run_worker(settings()))


@app.command()
def doctor(output: Output = OutputFormat.TABLE) -> None:
    """What is reachable, what is misconfigured, and what to do. Exit status 1 where something is wrong."""
    from starter.doctor import examine, report

    checks = asyncio.run(examine(settings()))
    report(checks, output)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(provider: Annotated[Provider, Option(help="Whose cloud.")] = Provider.AWS) -> None:
    """Three clusters share a VPC: the whole story, in a sandbox of its own, in under three minutes."""
    with sandbox_errors():
        from starter.demo import tell

        asyncio.run(tell(provider))


def main() -> None:
    """The console script."""
    try:
        status = run(sys.argv[1:])
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    sys.stdout.flush()
    sys.stderr.flush()
    # Not `sys.exit`: the threads of Temporal's SDK outlive a client, and may crash an interpreter that shuts down.
    # What others registered for the end is done all the same: the Kubernetes client removes its files then.
    atexit._run_exitfuncs()  # noqa: SLF001
    os._exit(status)


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    try:
        status = app(list(arguments), prog_name="trellis", standalone_mode=False)
    except BadUsageError as error:
        print_failure(error.failure)
        return 2
    except TrellisError as error:
        print_failure(error.failure)
        return 1
    except typer.TyperException as error:
        return _refused(error)
    if status == _INTERRUPTED:
        err.print("interrupted; what was asked for goes on")
    return status if isinstance(status, int) else 0


def _refused(error: typer.TyperException) -> int:
    """What the command line's own parser refuses."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "trellis"
    message = error.format_message().replace("Value error, ", "")
    print_failure(Failure(code=Code.INVALID, message=message, hint=f"see `{command} --help`"))
    return error.exit_code
