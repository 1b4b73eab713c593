"""Lists and watches."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.kube.errors import Denied, denied
from sandbox.kube.resources import Object, Resource
from sandbox.kube.selectors import Predicate, selector
from sandbox.kube.store import Event, Store
from sandbox.kube.tables import Shape, listed, shown

_BOOKMARK_SECONDS = 60.0  # as kube-apiserver does
_WATCH_SECONDS = 1800  # its --min-request-timeout; a watch without timeoutSeconds lasts up to twice that


@dataclass(frozen=True)
class Reader:
    """One request to read the objects of a kind.

    Attributes:
        store: Where they are.
        server: The API server.
        resource: The kind.
        namespace: One namespace, None for all.
        shape: How objects are shown.
        query: labelSelector, fieldSelector, limit, continue, resourceVersion, timeoutSeconds and so on.
        name: One object's name, "" for all.
    """

    store: Store
    server: str
    resource: Resource
    namespace: str | None
    shape: Shape
    query: Mapping[str, str]
    name: str = ""

    def page(self) -> Object:
        """The answer to a list.

        All pages carry the version of the first, so that a watch from there misses nothing.
        """
        limit = _number(self.query, "limit") or 0
        items, version = self.selected(), str(self.store.version)
        if token := self.query.get("continue"):
            version, after = _decode(token)
            items = [obj for obj in items if _place(obj) > after]
        meta: Object = {"resourceVersion": version}
        if limit and len(items) > limit:
            meta["remainingItemCount"] = len(items) - limit
            items = items[:limit]
            meta["continue"] = _encode(version, _place(items[-1]))
        return listed(self.resource, items, meta, self.shape, self.query.get("includeObject", ""))

    def selected(self) -> list[Object]:
        """The objects that the selectors match."""
        matches = self._predicate()
        found = self.store.list(self.server, self.resource.key, self.namespace)
        return [obj for obj in found if matches(obj)]

    def watch(self) -> AsyncIterator[bytes]:
        """The lines of a watch. What cannot be asked is raised here; a version too old is an ERROR in the stream.

        Raises:
            Denied: BadRequest, Invalid.
        """
        matches = self._predicate()
        timeout = _number(self.query, "timeoutSeconds") or random.uniform(1, 2) * _WATCH_SECONDS  # noqa: S311
        since = _number(self.query, "resourceVersion") or 0
        initial = self.query.get("sendInitialEvents") == "true"
        if initial and self.query.get("resourceVersionMatch") != "NotOlderThan":
            raise denied(422, "sendInitialEvents is invalid: resourceVersionMatch: Forbidden: it must be NotOlderThan")
        bookmarks = self.query.get("allowWatchBookmarks") in ("true", "1")
        start: list[bytes] = []
        if initial or not since:
            if self.query.get("sendInitialEvents") != "false":
                start = [self._line("ADDED", obj) for obj in self.selected()]
            since = self.store.version
            if initial and bookmarks:
                start.append(self._bookmark(since, {"k8s.io/initial-events-end": "true"}))
        return self._lines(start, since, matches, timeout, _BOOKMARK_SECONDS if bookmarks else None)

    async def _lines(
        self, start: list[bytes], since: int, matches: Predicate, timeout: float, bookmark_every: float | None
    ) -> AsyncIterator[bytes]:
        deadline = asyncio.get_running_loop().time() + timeout
        if start:
            yield b"".join(start)
        key = self.resource.key
        try:
            events = self.store.watch(self.server, key, self.namespace, since, bookmark_every=bookmark_every)
            while True:
                async with asyncio.timeout_at(deadline):
                    event = await anext(events)
                if event.type == "BOOKMARK":
                    yield self._bookmark(event.version)
                elif kind := _seen_as(event, matches):
                    yield self._line(kind, event.object)
        except (TimeoutError, StopAsyncIteration):
            return
        except Denied as error:
            yield _json_line({"type": "ERROR", "object": error.status()})

    def _predicate(self) -> Predicate:
        fields = self.query.get("fieldSelector", "")
        if self.name:
            fields = ",".join(filter(None, [fields, f"metadata.name={self.name}"]))
        return selector(self.resource, self.query.get("labelSelector", ""), fields)

    def _line(self, kind: str, obj: Object) -> bytes:
        body = shown(self.resource, obj, self.shape, self.query.get("includeObject", ""))
        return _json_line({"type": kind, "object": body})

    def _bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        meta: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        obj: Object = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": meta}
        if self.shape == "table":
            obj = listed(self.resource, [], meta, "table")
        return _json_line({"type": "BOOKMARK", "object": obj})


def _seen_as(event: Event, matches: Predicate) -> str | None:
    """What an event is to a watcher whose selection the object may enter or leave."""
    before = event.previous is not None and matches(event.previous)
    after = event.type != "DELETED" and matches(event.object)
    if after:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise denied(400, f"{name}: Invalid value: {text!r}: a number is needed")
    return int(text)


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _encode(version: str, place: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *place]).encode()).decode()


def _decode(token: str) -> tuple[str, tuple[str, str]]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise denied(400, f"continue key is not valid: {error}") from error
    return version, (namespace, name)


def _json_line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
