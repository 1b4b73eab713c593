"""Asynchronous operations: begun now, finished when their time has come, whatever happens to the server meanwhile.

An operation is a document with a due time. Nothing runs in the background: before every call is answered, all
operations that are due are finished, in order of their due times. So they survive a kill, and a clock that is set
ahead finishes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from sandbox.clouds.store import Document, Store

__all__ = ["Finisher", "Operation", "Operations", "Outcome"]

_log = logging.getLogger("sandbox.clouds")

_KIND = "operations"
_RUNNING = "operations-running"


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: Unique on this server.
        verb: What it does, such as `networks.insert`; names its finisher.
        target: The name of the resource that it works on.
        started: When it began (seconds since 1970, by the server's clock).
        due: When it ends.
        inputs: What the finisher needs to know, and what else the vendor wants to keep.
        done: Whether it has ended.
        error: How it failed, in the vendor's words; None while it runs and if it succeeded.
    """

    name: str
    verb: str
    target: str
    started: float
    due: float
    inputs: Document = field(default_factory=dict)
    done: bool = False
    error: Document | None = None


# What a finisher returns: None, or the error (in the vendor's words) with which the operation fails.
Outcome: TypeAlias = Document | None
Finisher: TypeAlias = Callable[[Operation], Outcome]


class Operations:
    """All operations of one server.

    Args:
        store: Where they are kept.
        finishers: By verb, what happens at the end. A finisher that returns an error must have changed nothing but
            what it wants to keep.
        broken: The error with which an operation fails whose finisher raises: a defect of the server.
    """

    def __init__(self, store: Store, finishers: Mapping[str, Finisher], broken: Document) -> None:
        self._store = store
        self._finishers = finishers
        self._broken = broken

    def start(self, operation: Operation) -> Operation:
        """Begin an operation. One that takes no time is finished by the next call's `settle`."""
        if operation.verb not in self._finishers:
            raise ValueError(f"no finisher for {operation.verb}")
        self._store.put(_KIND, operation.name, asdict(operation))
        self._store.put(_RUNNING, operation.name, {"due": operation.due})
        return operation

    def get(self, name: str) -> Operation | None:
        """The operation, or None."""
        document = self._store.get(_KIND, name)
        return None if document is None else Operation(**document)

    def all(self) -> list[Operation]:
        """Every operation that was not deleted, in order of name."""
        return [Operation(**document) for _, document in self._store.list(_KIND)]

    def running(self) -> list[Operation]:
        """Those that have not ended, in order of their due times."""
        found = (self.get(name) for name, _ in self._store.list(_RUNNING))
        return sorted((operation for operation in found if operation), key=lambda each: (each.due, each.name))

    def delete(self, name: str) -> None:
        """Forget an operation that has ended."""
        self._store.delete(_KIND, name)

    def settle(self, now: float) -> None:
        """Finish what is due."""
        waiting = sorted((document["due"], name) for name, document in self._store.list(_RUNNING))
        for due, name in waiting:
            if due > now:
                return
            self._finish(name)

    def _finish(self, name: str) -> None:
        with self._store.transaction():
            operation = self.get(name)
            if operation is not None:
                error = self._outcome(operation)
                record: dict[str, Any] = asdict(operation) | {"done": True, "error": error}
                self._store.put(_KIND, name, record)
            self._store.delete(_RUNNING, name)

    def _outcome(self, operation: Operation) -> Outcome:
        try:
            with self._store.transaction():
                return self._finishers[operation.verb](operation)
        except Exception:
            # One that cannot be finished must not stop all others.
            _log.exception("%s of %s cannot be finished", operation.verb, operation.target)
            return self._broken
