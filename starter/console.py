"""What the command line says: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.console import Console
from rich.text import Text

from domain.errors import Code, Failure, TrellisError

__all__ = ["BadUsageError", "OutputFormat", "err", "out", "print_failure", "print_json", "usage"]

# Values and texts come from outside: no markup is read in them, and no number is coloured.
out = Console(highlight=False, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = 200  # in a file or a pipe nothing has to be folded

_SHOWN = 60


class OutputFormat(StrEnum):
    """For people, or for machines."""

    TABLE = "table"
    JSON = "json"


class BadUsageError(TrellisError):
    """The request itself is wrong; nothing was started. Exit status 2."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(Code.INVALID, message, hint)


@contextmanager
def usage() -> Iterator[None]:
    """Whatever is refused in here is the request's fault."""
    try:
        yield
    except ValidationError as error:
        raise BadUsageError("; ".join(_sentence(dict(one)) for one in error.errors())) from error
    except ValueError as error:
        raise BadUsageError(str(error)) from error
    except TrellisError as error:
        if error.failure.code is Code.INVALID:
            raise BadUsageError(error.failure.message, error.failure.hint) from error
        raise


def print_failure(failure: Failure) -> None:
    """`error: CODE: message`, and the hint, to stderr."""
    err.print(Text.assemble(("error: ", "bold red"), (f"{failure.code}: ", "bold"), failure.message))
    if failure.hint:
        err.print(Text.assemble(("hint: ", "bold cyan"), failure.hint))


def print_json(data: BaseModel | Sequence[BaseModel] | dict[str, Any] | list[Any]) -> None:
    """Data to stdout, as JSON and nothing else."""
    # Written past the console, which would fold and colour it.
    out.file.write(TypeAdapter(Any).dump_json(data, indent=2).decode() + "\n")


def _sentence(error: dict[str, Any]) -> str:
    """Field, value and what to do, of one of pydantic's errors."""
    message = str(error["msg"]).removeprefix("Value error, ")
    if not error["loc"]:
        return message  # the domain's own, which names all three
    field = ".".join(str(part) for part in error["loc"])
    value = repr(error["input"])
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    return f"{field}: {message}" if str(error["input"]) in message and error["input"] else f"{field} {shown}: {message}"
