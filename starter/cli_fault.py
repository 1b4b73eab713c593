"""`trellis sandbox fault …`: let the sandbox's clouds and its Garden fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table
from typer import Option

from domain.errors import Code, TrellisError
from starter.console import OutputFormat, err, out, print_json, usage
from starter.options import Output, group
from starter.sandboxed import DEFAULT_STATE_DIR, StateDir, running_world, sandbox_errors

if TYPE_CHECKING:
    import httpx

__all__ = ["app"]

app = group("Let the sandbox's clouds and its Garden fail, as real ones do.")

_KINDS = "throttle, forbidden, quota, error-before, error-after, lost-response, slow, not-yet-visible"


@app.command()
def add(
    kind: Annotated[str, Option(help=f"What goes wrong: {_KINDS}.")],
    api: Annotated[str, Option(help="Whose calls: aws, gcp, azure, alicloud, garden.")] = "aws",
    operation: Annotated[str, Option(help="Which calls, such as CreateVpc or create:shoots; * and ? allowed.")] = "*",
    times: Annotated[int, Option(help="How many calls are struck.")] = 1,
    after: Annotated[int, Option(help="So many calls go through first.")] = 0,
    seconds: Annotated[float, Option(help="How long a slow call is held back.")] = 1.0,
    caller: Annotated[str, Option(help="What the user agent must contain, such as trellis.")] = "",
    match: Annotated[list[str] | None, Option(help="A text that must occur in the call; repeatable.")] = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Set a fault: the next calls that it fits go wrong."""
    with sandbox_errors():
        from sandbox.faults import Fault

        with usage():
            fault = Fault.model_validate(
                {"api": api, "operation": operation, "kind": kind, "times": times, "after": after, "seconds": seconds,
                 "caller": caller, "match": match or ()}
            )  # fmt: skip
        _talk(state_dir, "POST", "/faults", fault.model_dump(mode="json"))
    err.print(f"{fault.kind} will strike {fault.api} {fault.operation}, {fault.times} time(s)")


@app.command(name="list")
def list_(state_dir: StateDir = DEFAULT_STATE_DIR, output: Output = OutputFormat.TABLE) -> None:
    """The faults that are set, and how often each still strikes."""
    with sandbox_errors():
        faults = _talk(state_dir, "GET", "/faults")["faults"]
    _show(faults, ("api", "operation", "kind", "times", "after", "seconds", "caller", "match"), output)


@app.command()
def operations(state_dir: StateDir = DEFAULT_STATE_DIR, output: Output = OutputFormat.TABLE) -> None:
    """What was called since the sandbox started: the operations that faults can strike."""
    with sandbox_errors():
        seen = _talk(state_dir, "GET", "/operations")["operations"]
    _show(seen, ("api", "operation", "times", "caller"), output)


@app.command()
def clear(
    match: Annotated[str | None, Option(help="Only the faults that were set with this text.")] = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Let all calls through again."""
    with sandbox_errors():
        left = _talk(state_dir, "DELETE", "/faults", query={} if match is None else {"match": match})["faults"]
    err.print(f"{len(left)} fault(s) are still set" if left else "no fault is set")


def _talk(
    state_dir: Path, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    import httpx

    url = running_world(state_dir).faults.url
    try:
        answer = httpx.request(method, url + path, json=body, params=query, trust_env=False)
    except httpx.TransportError as error:
        raise TrellisError(
            Code.UNAVAILABLE,
            f"the sandbox's proxy at {url} does not answer: {error}",
            "it restarts by itself: try again",
        ) from error
    return _decoded(answer)


def _decoded(answer: httpx.Response) -> dict[str, Any]:
    if answer.is_error:
        raise TrellisError(Code.INVALID, f"the sandbox's proxy refuses the request: {answer.text}")
    decoded: dict[str, Any] = answer.json()
    return decoded


def _show(rows: list[dict[str, Any]], columns: tuple[str, ...], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json(rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.upper(), overflow="fold")
    for row in rows:
        values = [row[column] for column in columns]
        table.add_row(*(" ".join(value) if isinstance(value, list) else str(value) for value in values))
    out.print(table)
