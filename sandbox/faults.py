"""A reverse proxy in front of the clouds that does wrong what it is told to do wrong.

`python -m sandbox.faults --control PORT --proxy aws=PORT=http://127.0.0.1:UPSTREAM ...` serves until it is ended. Every
API has a port of its own, so that an SDK needs to know nothing but an address. Faults are set at the control port:

    POST   /faults      {"api": "aws", "operation": "CreateVpc", "kind": "lost-response", "times": 2}
    GET    /faults      what is set, and how often each still strikes
    DELETE /faults      all calls go through again; ?match=TEXT: those that this text was to be found in
    GET    /operations  what was called since the start or the last DELETE, by whom, how often: what faults can strike
    DELETE /operations  counts anew

Answers are passed on as they come, so that a watch works through the proxy as well.
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import logging
import signal
import socket
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Protocol

import aiohttp
import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from yarl import URL

from sandbox.alicloud.faults import AlibabaCloud
from sandbox.aws.faults import Ec2
from sandbox.azure.faults import ResourceManager
from sandbox.garden.faults import GardenApi
from sandbox.gcp.faults import ComputeEngine
from sandbox.openstack.faults import Neutron
from sandbox.tls import ServerCertificate, server_certificate

__all__ = ["Call", "Dialect", "Fault", "FaultKind", "Faults", "control_app", "listening", "proxy_app"]

_METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}
# The servers close idle connections after five seconds: one that is about to be closed is not used again.
_KEEP_ALIVE = 2.0

_log = logging.getLogger(__name__)


class FaultKind(StrEnum):
    """What goes wrong."""

    THROTTLE = "throttle"  # refused: too many calls
    FORBIDDEN = "forbidden"  # refused: the credentials lack the permission
    QUOTA = "quota"  # refused: the operation's quota is used up
    ERROR_BEFORE = "error-before"  # 5xx, nothing happened
    ERROR_AFTER = "error-after"  # 5xx, and yet it happened
    LOST_RESPONSE = "lost-response"  # it happened, and the connection broke
    SLOW = "slow"  # passed on late
    NOT_YET_VISIBLE = "not-yet-visible"  # answered as if nothing were there


class Fault(BaseModel):
    """A fault to come.

    Attributes:
        api: Whose calls it strikes: a key of `DIALECTS`.
        operation: What the API calls it, `*` and `?` allowed; `GET /operations` tells which there are.
        kind: What goes wrong.
        times: How many calls are struck.
        after: So many calls go through first.
        seconds: How long a `slow` call is held back.
        caller: A text that the caller's user agent must contain: Trellis says `trellis`, Gardener does not.
        match: Texts that must all occur in the call, be it in its path, its headers or its body: a name, a tag, an
            access key.
    """

    model_config = ConfigDict(extra="forbid")

    api: str = "aws"
    operation: Annotated[str, Field(min_length=1)] = "*"
    kind: FaultKind
    times: Annotated[int, Field(ge=1)] = 1
    after: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 1.0
    caller: str = ""
    match: tuple[str, ...] = ()

    @field_validator("api")
    @classmethod
    def _known(cls, api: str) -> str:
        if api not in DIALECTS:
            raise ValueError(f"{api!r} is none of {', '.join(DIALECTS)}")
        return api

    def strikes(self, api: str, operation: str, call: Call) -> bool:
        """Whether this call is hit; counts it."""
        if not self.times or api != self.api or not fnmatch.fnmatchcase(operation, self.operation):
            return False
        if self.caller not in call.caller or not all(call.says(text) for text in self.match):
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


class Faults:
    """The faults that are set, oldest first, and what was called. One fault strikes a call at most. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set: list[Fault] = []
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def add(self, fault: Fault) -> None:
        """Set a fault."""
        with self._lock:
            self._set.append(fault)

    def clear(self, match: str | None = None) -> None:
        """Let all calls through again, or those that faults with this text were to strike."""
        with self._lock:
            self._set = [fault for fault in self._set if match is not None and match not in fault.match]

    def pending(self) -> list[Fault]:
        """Those that still strike."""
        with self._lock:
            return [fault for fault in self._set if fault.times]

    def take(self, api: str, operation: str, call: Call) -> Fault | None:
        """The fault that strikes this call; counts the call."""
        with self._lock:
            self._seen[api, operation, call.caller] += 1
            self._set = [fault for fault in self._set if fault.times]
            return next((fault for fault in self._set if fault.strikes(api, operation, call)), None)

    def operations(self) -> list[dict[str, Any]]:
        """What was called, by whom, how often."""
        with self._lock:
            return [
                {"api": api, "operation": operation, "caller": caller, "times": times}
                for (api, operation, caller), times in sorted(self._seen.items())
            ]

    def forget_operations(self) -> None:
        """Count anew."""
        with self._lock:
            self._seen.clear()


@dataclass(frozen=True)
class Call:
    """A request on its way to an API."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def caller(self) -> str:
        """The user agent."""
        return self.headers.get("user-agent", "")

    def says(self, text: str) -> bool:
        """Whether a text occurs anywhere in it."""
        return text in self.target or text.encode() in self.body or any(text in one for one in self.headers.values())


class Dialect(Protocol):
    """How one API names its operations and shapes its errors."""

    def operation(self, call: Call) -> str:
        """The operation's name, as the API's reference has it."""
        ...

    def error(self, kind: FaultKind, operation: str) -> Response:
        """The API's own answer when it refuses a call, or fails."""
        ...

    def blinded(self, call: Call) -> Call | Response:
        """The call changed so that it finds nothing, or the API's own "not found"."""
        ...


DIALECTS: Mapping[str, Dialect] = {
    "aws": Ec2(),
    "garden": GardenApi(),
    "alicloud": AlibabaCloud(),
    "azure": ResourceManager(),
    "gcp": ComputeEngine(),
    "openstack": Neutron(),
}


def proxy_app(api: str, upstream: str, faults: Faults, authority: Path | None = None) -> ASGIApp:
    """The proxy in front of one API, whose dialect must be known; `authority` signed an upstream's HTTPS."""
    server = _Upstream(upstream, authority)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await server.close()

    proxy = _Proxy(api, server, faults)
    return Starlette(routes=[Route("/{path:path}", proxy.handle, methods=_METHODS)], lifespan=lifespan)


class _Proxy:
    def __init__(self, api: str, upstream: _Upstream, faults: Faults) -> None:
        self._api, self._upstream, self._faults = api, upstream, faults
        self._dialect = DIALECTS[api]

    async def handle(self, request: Request) -> Response:
        call = await _call(request)
        operation = self._dialect.operation(call)
        fault = self._faults.take(self._api, operation, call)
        try:
            return await self._struck(fault, operation, call) if fault else await self._passed_on(call)
        except (aiohttp.ClientError, OSError) as error:
            # As it would be without a proxy: the server is away, or went away in the middle.
            _log.warning("%s %s: %s: %s", self._api, operation, type(error).__name__, error)
            return _Broken()

    async def _struck(self, fault: Fault, operation: str, call: Call) -> Response:
        match fault.kind:
            case FaultKind.SLOW:
                await asyncio.sleep(fault.seconds)
                return await self._passed_on(call)
            case FaultKind.NOT_YET_VISIBLE:
                blinded = self._dialect.blinded(call)
                return blinded if isinstance(blinded, Response) else await self._passed_on(blinded)
            case FaultKind.LOST_RESPONSE:
                await self._let_happen(call)
                return _Broken()
            case FaultKind.ERROR_AFTER:
                await self._let_happen(call)
        return self._dialect.error(fault.kind, operation)

    async def _passed_on(self, call: Call) -> Response:
        answer = await self._upstream.send(call)
        return StreamingResponse(
            answer.content.iter_any(),
            answer.status,
            _end_to_end(answer.headers),
            background=BackgroundTask(answer.close),
        )

    async def _let_happen(self, call: Call) -> None:
        (await self._upstream.send(call)).close()


class _Upstream:
    """The API itself."""

    def __init__(self, url: str, authority: Path | None) -> None:
        self._url = url
        self._verify = ssl.create_default_context(cafile=authority) if authority else True
        self._session: aiohttp.ClientSession | None = None

    async def send(self, call: Call) -> aiohttp.ClientResponse:
        """The answer as soon as it begins: the effect has happened."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE, ssl=self._verify),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            )
        url = URL(self._url + call.target, encoded=True)
        return await self._session.request(
            call.method, url, headers=call.headers, data=call.body or None, allow_redirects=False
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def control_app(faults: Faults) -> ASGIApp:
    """Where faults are set and looked at, and what was called."""

    async def handle_faults(request: Request) -> Response:
        if request.method == "DELETE":
            faults.clear(request.query_params.get("match"))
        if request.method == "POST":
            try:
                faults.add(Fault.model_validate_json(await request.body()))
            except ValidationError as error:
                return JSONResponse({"errors": error.errors(include_url=False, include_context=False)}, 400)
        return JSONResponse({"faults": [fault.model_dump(mode="json") for fault in faults.pending()]})

    async def handle_operations(request: Request) -> Response:
        if request.method == "DELETE":
            faults.forget_operations()
        return JSONResponse({"operations": faults.operations()})

    return Starlette(
        routes=[
            Route("/faults", handle_faults, methods=["DELETE", "GET", "POST"]),
            Route("/operations", handle_operations, methods=["DELETE", "GET"]),
        ]
    )


def listening(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1; port 0 is any free one."""
    # asyncio switches Nagle's algorithm off only where the protocol is spelled out: 40 ms for every call otherwise.
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    one.listen()
    return one


class _Broken(Response):
    """Begins and never ends: the server then breaks the connection off, and every client notices."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"<", "more_body": True})


async def _call(request: Request) -> Call:
    """The request as it came: its path is not decoded."""
    query = request.scope["query_string"].decode()
    target = request.scope["raw_path"].decode() + (f"?{query}" if query else "")
    headers = _end_to_end(request.headers)
    headers.pop("content-length", None)  # a call may be changed on its way
    return Call(request.method, target, headers, await request.body())


def _end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}


def main() -> None:
    """Serve on 127.0.0.1 until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.faults", description="Faults in front of the clouds.")
    parser.add_argument("--control", type=int, required=True, metavar="PORT", help="where faults are set")
    parser.add_argument("--proxy", action="append", default=[], metavar="API=PORT=UPSTREAM", help="repeatable")
    parser.add_argument(
        "--https", action="append", default=[], metavar="API=DIR", help="with the API's own certificate; repeatable"
    )
    arguments = parser.parse_args()
    certificates = {
        api: server_certificate(Path(directory), api)
        for api, _, directory in (each.partition("=") for each in arguments.https)
    }
    faults = Faults()
    servers = [_Server(_config(control_app(faults)), arguments.control)]
    for proxy in arguments.proxy:
        api, port, upstream = proxy.split("=", 2)
        if api not in DIALECTS:
            parser.error(f"--proxy {proxy}: {api!r} is none of {', '.join(DIALECTS)}")
        files = certificates.get(api)
        app = proxy_app(api, upstream, faults, files.authority if files else None)
        servers.append(_Server(_config(app, files), int(port)))
    asyncio.run(_serve(servers))


class _Server(uvicorn.Server):
    """One of several on one loop, each with a port of its own; signals are for all of them."""

    def __init__(self, config: uvicorn.Config, port: int) -> None:
        super().__init__(config)
        self._socket = listening(port)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def run_on_loop(self) -> None:
        await self.serve([self._socket])

    def end(self) -> None:
        self.should_exit = True


async def _serve(servers: list[_Server]) -> None:
    def end() -> None:
        for server in servers:
            server.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    await asyncio.gather(*(server.run_on_loop() for server in servers))


def _config(app: ASGIApp, files: ServerCertificate | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=1,
        ssl_certfile=files.certificate if files else None,
        ssl_keyfile=files.key if files else None,
    )


if __name__ == "__main__":
    main()
