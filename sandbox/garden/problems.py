"""What is wrong with a field, said as Kubernetes says it (apimachinery, `util/validation/field`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sandbox.kube import Denied


class Path(str):
    """Where a field is: `spec.provider.workers[0].name`."""

    __slots__ = ()

    def __truediv__(self, name: str) -> Path:
        return Path(f"{self}.{name}" if self else name)

    def __getitem__(self, index: Any) -> Path:
        return Path(f"{self!s}[{index}]")


@dataclass(frozen=True)
class Problem:
    """One field that cannot stay as it is."""

    path: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text

    def cause(self) -> dict[str, str]:
        """The entry for `details.causes` of a Status."""
        return {"reason": self.reason, "message": self.text, "field": self.path}


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)


def invalid(path: str, value: Any, detail: str) -> Problem:
    """A value that breaks a rule."""
    return Problem(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def required(path: str, detail: str) -> Problem:
    """A value that is missing."""
    return Problem(path, "FieldValueRequired", f"Required value: {detail}")


def forbidden(path: str, detail: str) -> Problem:
    """A value that must not be there, or must not be changed so."""
    return Problem(path, "FieldValueForbidden", f"Forbidden: {detail}")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> Problem:
    """A value outside a closed set."""
    choices = ", ".join(_shown(choice) for choice in supported)
    return Problem(path, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {choices}")


def duplicate(path: str, value: Any) -> Problem:
    """A value that may be there only once."""
    return Problem(path, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def missing(path: str, value: Any) -> Problem:
    """A reference to something that does not exist."""
    return Problem(path, "FieldValueNotFound", f"Not found: {_shown(value)}")


def internal(path: str, detail: str) -> Problem:
    """A value that could not be checked."""
    return Problem(path, "InternalError", f"Internal error: {detail}")


def immutable(path: str, new: Any, old: Any) -> list[Problem]:
    """The problem of a changed value that must stay; none if it is the same."""
    return [] if new == old else [invalid(path, new, "field is immutable")]


def joined(problems: Iterable[Problem]) -> str:
    """All of them in one line, as `ErrorList.ToAggregate` prints them."""
    texts = list(dict.fromkeys(str(problem) for problem in problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def refuse_invalid(name: str, problems: list[Problem]) -> None:
    """Raises what the API server answers to a Shoot that is wrong in itself (422)."""
    if problems:
        raise Denied(
            "Invalid",
            f'Shoot.core.gardener.cloud "{name}" is invalid: {joined(problems)}',
            422,
            details=_details(name, "Shoot", problems),
        )


def refuse_forbidden(name: str, why: str) -> None:
    """Raises what an admission plugin answers (403)."""
    raise Denied(
        "Forbidden",
        f'shoots.core.gardener.cloud "{name}" is forbidden: {why}',
        403,
        details={"name": name, "group": "core.gardener.cloud", "kind": "shoots"},
    )


def _details(name: str, kind: str, problems: list[Problem]) -> dict[str, Any]:
    return {
        "name": name,
        "group": "core.gardener.cloud",
        "kind": kind,
        "causes": [problem.cause() for problem in problems],
    }
