"""The journal: one line of JSON for every change, in the order in which they were made.

A line is written before its call is answered, by one write to the operating system: whatever was answered survives
`kill -9` of the process (not a power cut; it is a sandbox). A torn last line belongs to a call that was never answered,
and is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Journal", "StateError"]


class StateError(RuntimeError):
    """The state directory cannot be used; the message says why and what to do."""


class Journal:
    """An append-only file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was written, oldest first; cuts a torn end off. Raises StateError."""
        whole = 0
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                yield self._parsed(number, line)
        os.ftruncate(self._file, whole)

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            return dict(json.loads(line))
        except ValueError as error:
            raise StateError(
                f"{self._path} is damaged in line {number} ({error}): mend it, or remove {self._path.parent}/aws.* to"
                " begin with an empty cloud"
            ) from None

    def append(self, entry: dict[str, Any]) -> None:
        """Write one more."""
        data = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        if os.write(self._file, data) != len(data):
            raise OSError(f"{self._path}: the disk is full")

    def clear(self) -> None:
        """Forget everything: a snapshot holds it now."""
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
