"""Objects of any number of API servers in one SQLite file, with watches.

The store does what is the same for every kind: it sets uid, resourceVersion, generation and timestamps, honours
finalizers, and holds a deleted namespace back until it is empty. What differs by kind is the API's business.

One counter gives all resourceVersions. Recent events are kept in memory only: a watch that resumes from before a
restart, or from too long ago, is told `Expired`, as an API server does after compaction.
"""

from __future__ import annotations

import asyncio
import bisect
import json
import sqlite3
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sandbox.kube.errors import Denied, denied, details_of

Object = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
_Key = tuple[str, str]  # server, resource
_Place = tuple[str, str]  # namespace, name

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    server TEXT, resource TEXT, namespace TEXT, name TEXT, body TEXT NOT NULL,
    PRIMARY KEY (server, resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (1, 1);
"""
# Once written by the server, never changed by a writer.
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Event(NamedTuple):
    """A change of one object. Its objects are shared with others: copy before changing one.

    `object` is the state after the change (for DELETED: the last one), `previous` the one before (ADDED: None).
    A BOOKMARK has an empty object and says that there was nothing else up to `version`.
    """

    type: EventType
    version: int
    object: Object
    previous: Object | None


class _Log:
    """The recent events of one kind on one server."""

    def __init__(self, floor: int, limit: int) -> None:
        self.floor = floor  # events up to this version are forgotten
        self.news = asyncio.Event()
        self._limit = limit
        self._events: list[Event] = []

    def add(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) >= 2 * self._limit:
            self.floor = self._events[self._limit - 1].version
            del self._events[: self._limit]
        self.wake()

    def wake(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()

    def after(self, version: int) -> list[Event]:
        return self._events[bisect.bisect_right(self._events, version, key=lambda event: event.version) :]


class Store:
    """Keeps objects. All methods are called from one event loop; objects given and taken are copies.

    Args:
        path: The SQLite file. One store at a time may have it open.
        log_size: How many recent events of each kind a watch can resume over (at least).
    """

    def __init__(self, path: Path, *, log_size: int = 1000) -> None:
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        try:
            # An exclusive lock: two processes on one file would each trust its own memory.
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._database.close()
            raise RuntimeError(f"{path} cannot be opened; is another sandbox using it? ({error})") from error
        self._version: int
        (self._version,) = self._database.execute("SELECT version FROM counter").fetchone()
        self._objects: dict[_Key, dict[_Place, Object]] = {}
        for server, resource, namespace, name, body in self._database.execute("SELECT * FROM objects"):
            self._objects.setdefault((server, resource), {})[namespace, name] = json.loads(body)
        self._start, self._log_size, self._closed = self._version, log_size, False
        self._logs: dict[_Key, _Log] = {}

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        return self._version

    def get(self, server: str, resource: str, namespace: str | None, name: str) -> Object | None:
        """The object, or None. `namespace` is None (or "") for cluster-wide kinds."""
        found = self._objects.get((server, resource), {}).get((namespace or "", name))
        return None if found is None else clone(found)

    def list(self, server: str, resource: str, namespace: str | None = None) -> list[Object]:
        """All objects of a kind, in order of namespace and name; of every namespace if it is None."""
        places = self._objects.get((server, resource), {})
        return [clone(places[place]) for place in sorted(places) if namespace in (None, place[0])]

    def create(self, server: str, resource: str, obj: Object, *, dry_run: bool = False) -> Object:
        """Stores a new object; sets uid, creationTimestamp, resourceVersion, and generation if it has a spec.

        Raises:
            Denied: AlreadyExists.
        """
        obj = clone(obj)
        meta = obj["metadata"]
        if _place(obj) in self._objects.get((server, resource), {}):
            raise Denied(
                "AlreadyExists",
                f'{resource} "{meta["name"]}" already exists',
                409,
                details=details_of(resource, meta["name"]),
            )
        for name in (*_FIXED, "generation"):
            meta.pop(name, None)
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        if "spec" in obj:
            meta["generation"] = 1
        return self._write(server, resource, "ADDED", obj, None, dry_run)

    def update(
        self, server: str, resource: str, obj: Object, expected: str | None = None, *, dry_run: bool = False
    ) -> Object:
        """Replaces an object (name and namespace as in its metadata).

        The generation grows with a change of spec, or to the one in `obj` if that is higher. An object that is being
        deleted goes with its last finalizer. If nothing changed, nothing is written.

        Args:
            server: The API server.
            resource: The kind, `plural.group`.
            obj: The whole object.
            expected: The resourceVersion that the caller has seen; None to write in any case.
            dry_run: Do everything but the change.

        Raises:
            Denied: Conflict if the stored resourceVersion (or uid) is another; NotFound.
        """
        obj = clone(obj)
        old = self._existing(server, resource, *_place(obj))
        meta, old_meta = obj["metadata"], old["metadata"]
        uid, version = old_meta["uid"], old_meta["resourceVersion"]
        if meta.get("uid", uid) != uid or expected not in (None, "", version):
            raise denied(
                409,
                f'Operation cannot be fulfilled on {resource} "{meta["name"]}": the object has been modified; '
                "please apply your changes to the latest version and try again",
                **details_of(resource, meta["name"]),
            )
        for name in _FIXED:
            meta.pop(name, None)
            if name in old_meta:
                meta[name] = old_meta[name]
        meta["resourceVersion"] = version
        if "spec" in obj:
            grown = old_meta.get("generation", 0) + (obj["spec"] != old.get("spec"))
            meta["generation"] = max(grown, meta.get("generation", 0))
        if obj == old:
            return obj
        gone = "deletionTimestamp" in meta and not self._held(server, resource, obj)
        return self._write(server, resource, "DELETED" if gone else "MODIFIED", obj, old, dry_run)

    def delete(self, server: str, resource: str, namespace: str | None, name: str, *, dry_run: bool = False) -> Object:
        """Deletes an object; while finalizers (or, for a namespace, contents) remain, marks it only.

        Returns:
            The object as it is now or last was; without `deletionTimestamp` if it went at once.

        Raises:
            Denied: NotFound.
        """
        old = self._existing(server, resource, namespace or "", name)
        if not self._held(server, resource, old):
            return self._write(server, resource, "DELETED", clone(old), old, dry_run)
        if "deletionTimestamp" in old["metadata"]:
            return clone(old)
        obj = clone(old)
        obj["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
        if "generation" in obj["metadata"]:
            obj["metadata"]["generation"] += 1
        if resource == "namespaces":
            obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        return self._write(server, resource, "MODIFIED", obj, old, dry_run)

    def drop(self, server: str) -> None:
        """Forgets an API server and all its objects; its watches end as expired."""
        with self._database:
            self._database.execute("DELETE FROM objects WHERE server = ?", [server])
        for key in [key for key in self._objects if key[0] == server]:
            del self._objects[key]
        self._version += 1
        self._database.execute("UPDATE counter SET version = ?", [self._version])
        for key in [key for key in self._logs if key[0] == server]:
            old, self._logs[key] = self._logs[key], _Log(self._version, self._log_size)
            old.wake()

    def watch(
        self,
        server: str,
        resource: str,
        namespace: str | None = None,
        since: int | None = None,
        *,
        bookmark_every: float | None = None,
    ) -> AsyncIterator[Event]:
        """Changes after `since` (default: from now on), in order, until the store is closed.

        A watch costs a suspended coroutine; there is no queue that could overflow. One that falls behind the log
        raises. With `bookmark_every`, that many quiet seconds give a BOOKMARK.

        Raises:
            Denied: Expired (410) if the events after `since` are no longer known.
        """
        since = self._version if since is None else since
        self._log_after(server, resource, since)
        return self._follow(server, resource, namespace, since, bookmark_every)

    def close(self) -> None:
        """Ends all watches and closes the file."""
        self._closed = True
        for log in self._logs.values():
            log.wake()
        self._database.close()

    async def _follow(
        self, server: str, resource: str, namespace: str | None, since: int, bookmark_every: float | None
    ) -> AsyncIterator[Event]:
        while not self._closed:
            log = self._log_after(server, resource, since)
            events = log.after(since)
            if not events:
                seen = self._version
                try:
                    async with asyncio.timeout(bookmark_every):
                        await log.news.wait()
                except TimeoutError:
                    yield Event("BOOKMARK", seen, {}, None)
            for event in events:
                since = event.version
                if namespace in (None, event.object["metadata"].get("namespace", "")):
                    yield event

    def _log_after(self, server: str, resource: str, since: int) -> _Log:
        """The log of a kind, if it reaches back to `since`."""
        log = self._logs.setdefault((server, resource), _Log(self._start, self._log_size))
        if not log.floor <= since <= self._version:
            raise denied(410, f"too old resource version: {since} ({log.floor})")
        return log

    def _existing(self, server: str, resource: str, namespace: str, name: str) -> Object:
        found = self._objects.get((server, resource), {}).get((namespace, name))
        if found is None:
            raise denied(404, f'{resource} "{name}" not found', **details_of(resource, name))
        return found

    def _held(self, server: str, resource: str, obj: Object) -> bool:
        """Whether something keeps a deleted object from going."""
        if obj["metadata"].get("finalizers"):
            return True
        if resource != "namespaces":
            return False
        name = obj["metadata"]["name"]
        return any(
            place[0] == name for (owner, _), places in self._objects.items() if owner == server for place in places
        )

    def _write(
        self,
        server: str,
        resource: str,
        kind: EventType,
        obj: Object,
        old: Object | None,
        dry_run: bool = False,
    ) -> Object:
        """Makes one change durable, then visible, then known."""
        if dry_run:
            return obj
        version = self._version + 1
        obj["metadata"]["resourceVersion"] = str(version)
        place = _place(obj)
        row = (server, resource, *place)
        body = json.dumps(obj, separators=(",", ":"))
        with self._database:
            self._database.execute("BEGIN")
            self._database.execute("UPDATE counter SET version = ?", [version])
            if kind == "DELETED":
                self._database.execute(
                    "DELETE FROM objects WHERE (server, resource, namespace, name) = (?, ?, ?, ?)", row
                )
            else:
                self._database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", (*row, body))
        self._version = version
        places = self._objects.setdefault((server, resource), {})
        if kind == "DELETED":
            del places[place]
        else:
            places[place] = obj
        log = self._logs.setdefault((server, resource), _Log(self._start, self._log_size))
        log.add(Event(kind, version, obj, old))
        if kind == "DELETED" and place[0]:
            self._settle_namespace(server, place[0])
        return clone(obj)

    def _settle_namespace(self, server: str, name: str) -> None:
        """Removes a deleted namespace once its last object is gone."""
        namespace = self._objects.get((server, "namespaces"), {}).get(("", name))
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        if not self._held(server, "namespaces", namespace):
            self._write(server, "namespaces", "DELETED", clone(namespace), namespace)


def clone(obj: Object) -> Object:
    """A deep copy of an object of JSON data; several times quicker than `copy.deepcopy`."""
    return {key: clone_value(value) for key, value in obj.items()}


def clone_value(value: Any) -> Any:
    """A deep copy of any JSON data."""
    if isinstance(value, dict):
        return clone(value)
    if isinstance(value, list):
        return [clone_value(item) for item in value]
    return value


def now() -> str:
    """The present time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _place(obj: Object) -> _Place:
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]
