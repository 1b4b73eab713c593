"""The core of a cloud server: one call at a time, each all or nothing, over durable documents.

A vendor subclasses nothing. It makes a `Cloud`, gives it routes (`Route`: method, path, handler) and finishers (see
`operations`), and a function that words refusals. A handler takes a `Call` and returns an `Answer`, or raises a
`Refusal`; what it wrote before a refusal is undone. A handler that has to wait raises `Later` and is called again.

Every server also has, for those who run the sandbox, `GET /sandbox/settings` and `PUT` of those to be replaced (see
`settings`): `{"clock_offset_seconds": 3600}` finishes every operation of the next hour.

Faults (throttling, lost answers and the like) are no matter of a server: `sandbox.faults` stands in front of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as WebRoute
from starlette.types import Receive, Scope, Send

from sandbox.clouds.operations import Finisher, Operation, Operations
from sandbox.clouds.settings import Settings
from sandbox.clouds.store import Document, Store

__all__ = ["Answer", "Call", "Cloud", "Handler", "Later", "Refusal", "Route"]

_log = logging.getLogger("sandbox.clouds")

_SETTINGS = "settings"
_HIDDEN = "hidden"
_NAP = 0.05


@dataclass(frozen=True)
class Answer:
    """What a handler answers: a document as JSON, or None for an empty body."""

    document: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes:
        method: GET, POST ...
        path: Without host and query.
        at: The parameters in the route's path.
        query: The parameters after the question mark; the last one of each name.
        headers: By lower-case name.
        content: The body as it came.
        received: When it came, by the server's clock.
    """

    method: str
    path: str
    at: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes
    received: float


class Refusal(Exception):  # noqa: N818 - it reads `raise Refusal(...)`
    """A call that is refused; the answer carries the vendor's error."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(str(answer.document))
        self.answer = answer


class Later(Exception):  # noqa: N818 - it reads `raise Later(...)`
    """Raised by a handler that wants to be called again at this time (by the server's clock) or a little before."""

    def __init__(self, at: float) -> None:
        super().__init__(at)
        self.at = at


Handler: TypeAlias = Callable[[Call], Answer]
# How a vendor words an error: HTTP status, code or reason, message.
Wording: TypeAlias = Callable[[int, str, str], Answer]


@dataclass(frozen=True)
class Route:
    """A method and path (with `{parameters}`), and what answers."""

    method: str
    path: str
    handler: Handler


class Cloud:
    """One server's state, clock and settings.

    Args:
        state_dir: A directory of its own, made if missing.
        broken: In the vendor's words, the error of an operation that the server itself cannot finish.

    Attributes:
        finishers: By verb, how operations end; to be filled before the first call.

    Raises:
        RuntimeError: another process has the directory in use.
    """

    def __init__(self, state_dir: Path, broken: Document) -> None:
        state_dir.mkdir(parents=True, exist_ok=True)
        self.store = Store(state_dir / "state.sqlite")
        self.finishers: dict[str, Finisher] = {}
        self.operations = Operations(self.store, self.finishers, broken)
        self._settings = Settings().changed(self.store.get(_SETTINGS, "") or {})

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self.store.put(_SETTINGS, "", settings.model_dump())
        self._settings = settings

    def now(self) -> float:
        """The server's time in seconds since 1970."""
        return time.time() + self._settings.clock_offset_seconds

    def start(self, verb: str, target: str, inputs: Document, *, name: str = "") -> Operation:
        """Begin an operation that takes as long as the settings say."""
        now = self.now()
        due = now + self._settings.seconds_of(verb)
        return self.operations.start(Operation(name or secrets.token_hex(8), verb, target, now, due, inputs))

    def hide(self, kind: str, name: str) -> None:
        """Keep a new resource from being seen by as many reads as the settings say."""
        reads = self._settings.hidden_reads.get(kind, 0)
        if reads:
            self.store.put(_HIDDEN, f"{kind}/{name}", {"reads": reads})

    def visible(self, kind: str, name: str) -> bool:
        """Whether a read sees the resource; counts as one read."""
        key = f"{kind}/{name}"
        hidden = self.store.get(_HIDDEN, key)
        if hidden is None:
            return True
        if hidden["reads"] > 1:
            self.store.put(_HIDDEN, key, {"reads": hidden["reads"] - 1})
        else:
            self.store.delete(_HIDDEN, key)
        return False

    def app(self, routes: list[Route], wording: Wording) -> Starlette:
        """The server as an ASGI application."""
        own = [
            Route("GET", "/sandbox/settings", lambda _: Answer(self._settings.model_dump())),
            Route("PUT", "/sandbox/settings", self._put_settings),
        ]
        served = [
            WebRoute(route.path, _Endpoint(self, route.handler, wording, slow=slow), methods=[route.method])
            for group, slow in ((own, False), (routes, True))
            for route in group
        ]
        return Starlette(routes=served, exception_handlers={404: _unknown(wording), 405: _unknown(wording)})

    def _put_settings(self, call: Call) -> Answer:
        try:
            self.settings = self._settings.changed(json.loads(call.content))
        except ValueError as error:
            raise Refusal(Answer({"error": str(error)}, 400)) from None
        return Answer(self._settings.model_dump())


class _Endpoint:
    """Serves one route."""

    def __init__(self, cloud: Cloud, handler: Handler, wording: Wording, *, slow: bool) -> None:
        self._cloud, self._handler, self._wording, self._slow = cloud, handler, wording, slow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        call = Call(
            method=request.method,
            path=request.url.path,
            at=request.path_params,
            query=dict(request.query_params),
            headers=dict(request.headers),
            content=await request.body(),
            received=self._cloud.now(),
        )
        if self._slow and self._cloud.settings.latency_seconds:
            await asyncio.sleep(self._cloud.settings.latency_seconds)
        await _response(await self._answer(call))(scope, receive, send)

    async def _answer(self, call: Call) -> Answer:
        while True:
            try:
                return self._once(call)
            except Later as later:
                await asyncio.sleep(min(max(later.at - self._cloud.now(), 0.001), _NAP))

    def _once(self, call: Call) -> Answer:
        try:
            self._cloud.operations.settle(self._cloud.now())
            # A GET that is refused has still been a read (see `visible`).
            with nullcontext() if call.method == "GET" else self._cloud.store.transaction():
                return self._handler(call)
        except Refusal as refusal:
            return refusal.answer
        except Later:
            raise
        except Exception:
            _log.exception("%s %s failed", call.method, call.path)
            return self._wording(500, "internalError", "Internal error encountered; see the sandbox's log.")


def _response(answer: Answer) -> Response:
    headers = dict(answer.headers)
    if answer.document is None:
        return Response(status_code=answer.status, headers=headers)
    return JSONResponse(answer.document, answer.status, headers)


def _unknown(wording: Wording) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, _: Exception) -> Response:
        return _response(wording(404, "notFound", f"{request.method} {request.url.path} is no method of this server."))

    return answer
