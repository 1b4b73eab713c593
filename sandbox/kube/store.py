"""Objects of any number of API servers in one SQLite file, with watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

Object = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Event(NamedTuple):
    """A change of one object. For DELETED, `object` is its last state; `previous` is the state before (None for ADDED)."""

    type: EventType
    version: int
    object: Object
    previous: Object | None


class Store:
    """Keeps objects; every method is called from one event loop. Objects given and taken are copies."""

    def __init__(self, path: Path) -> None:
        raise NotImplementedError

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        raise NotImplementedError

    def get(self, server: str, resource: str, namespace: str | None, name: str) -> Object | None:
        """The object, or None. `namespace` is None (or "") for cluster-wide kinds."""
        raise NotImplementedError

    def list(self, server: str, resource: str, namespace: str | None = None) -> list[Object]:
        """All objects of a kind, in order of namespace and name; of every namespace when it is None."""
        raise NotImplementedError

    def create(self, server: str, resource: str, obj: Object) -> Object:
        """Stores a new object; sets uid, creationTimestamp, resourceVersion and generation. Denied AlreadyExists."""
        raise NotImplementedError

    def update(self, server: str, resource: str, obj: Object, expected: str | None = None) -> Object:
        """Replaces an object (name and namespace from its metadata).

        Generation grows with a change of spec. An object that is being deleted and has no finalizer left goes.
        `expected` is a resourceVersion; another one in the store is Denied Conflict. Denied NotFound if it is gone.
        """
        raise NotImplementedError

    def delete(self, server: str, resource: str, namespace: str | None, name: str) -> Object:
        """Deletes an object, or marks it (deletionTimestamp) while finalizers remain. Denied NotFound."""
        raise NotImplementedError

    def drop(self, server: str) -> None:
        """Forgets an API server and all its objects."""
        raise NotImplementedError

    def watch(
        self, server: str, resource: str, namespace: str | None = None, since: int | None = None
    ) -> AsyncIterator[Event]:
        """Changes after `since` (default: now), without end. Denied Expired (410) if `since` is too old."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends all watches and closes the file."""
        raise NotImplementedError
