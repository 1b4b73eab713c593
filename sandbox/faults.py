"""A reverse proxy in front of the clouds that does wrong what it is told to do wrong.

`python -m sandbox.faults --control PORT --proxy aws=PORT=http://127.0.0.1:UPSTREAM ...` serves until it is ended. Every
API has a port of its own, so that an SDK needs to know nothing but an address. Faults are set at the control port:

    POST   /faults  {"operation": "CreateVpc", "kind": "lost-response", "times": 2}
    GET    /faults  what is set, and how often each still strikes
    DELETE /faults  all calls go through again
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Protocol
from urllib.parse import parse_qs, parse_qsl, urlencode
from xml.sax.saxutils import escape

import httpx
import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbox.alicloud.faults import AlibabaCloud
from sandbox.azure.faults import ResourceManager
from sandbox.gcp.faults import ComputeEngine
from sandbox.tls import ServerCertificate, server_certificate

__all__ = ["Fault", "FaultKind", "Faults", "control_app", "listening", "proxy_app"]

_METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]
_HOP_BY_HOP = {"connection", "content-length", "keep-alive", "transfer-encoding"}


class FaultKind(StrEnum):
    """What goes wrong."""

    THROTTLE = "throttle"  # refused: too many calls
    FORBIDDEN = "forbidden"  # refused: the credentials lack the permission
    QUOTA = "quota"  # refused: the operation's quota is used up
    ERROR_BEFORE = "error-before"  # 5xx, nothing happened
    ERROR_AFTER = "error-after"  # 5xx, and yet it happened
    LOST_RESPONSE = "lost-response"  # it happened, and the connection broke
    DELAY = "delay"  # passed on late
    NOT_YET_VISIBLE = "not-yet-visible"  # answered as if nothing were there


class Fault(BaseModel):
    """A fault to come. `operation` is what the API calls it, `*` and `?` allowed; `after` calls go through first."""

    model_config = ConfigDict(extra="forbid")

    api: str = "aws"
    operation: str = "*"
    kind: FaultKind
    times: Annotated[int, Field(ge=1)] = 1
    after: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 1.0

    def strikes(self, api: str, operation: str) -> bool:
        """Whether this call is hit; counts it."""
        if not self.times or api != self.api or not fnmatch.fnmatchcase(operation, self.operation):
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


class Faults:
    """The faults that are set, oldest first. One of them strikes a call at most."""

    def __init__(self) -> None:
        self._set: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Set a fault."""
        self._set.append(fault)

    def clear(self) -> None:
        """Let all calls through again."""
        self._set.clear()

    def pending(self) -> list[Fault]:
        """Those that still strike."""
        return [fault for fault in self._set if fault.times]

    def take(self, api: str, operation: str) -> Fault | None:
        """The fault that strikes this call."""
        return next((fault for fault in self._set if fault.strikes(api, operation)), None)


@dataclass(frozen=True)
class Call:
    """A request on its way to an API."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


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


class Ec2:
    """The query API of EC2 (docs.aws.amazon.com/AWSEC2/latest/APIReference)."""

    _QUOTAS: Mapping[str, str] = {
        "AllocateAddress": "AddressLimitExceeded",
        "AssociateVpcCidrBlock": "CidrLimitExceeded",
        "CreateInternetGateway": "InternetGatewayLimitExceeded",
        "CreateNatGateway": "NatGatewayLimitExceeded",
        "CreateSecurityGroup": "SecurityGroupLimitExceeded",
        "CreateSubnet": "SubnetLimitExceeded",
        "CreateVpc": "VpcLimitExceeded",
    }
    _UNKNOWN_IDS: Mapping[str, str] = {
        "VpcId": "InvalidVpcID.NotFound",
        "SubnetId": "InvalidSubnetID.NotFound",
        "GroupId": "InvalidGroup.NotFound",
        "InternetGatewayId": "InvalidInternetGatewayID.NotFound",
        "DhcpOptionsId": "InvalidDhcpOptionID.NotFound",
        "RouteTableId": "InvalidRouteTableID.NotFound",
        "NatGatewayId": "NatGatewayNotFound",
    }

    def operation(self, call: Call) -> str:
        """The Action."""
        return parse_qs(call.body.decode()).get("Action", [""])[0]

    def error(self, kind: FaultKind, operation: str) -> Response:
        """EC2 says 503 to too many calls, and 400 where a quota is used up."""
        if kind is FaultKind.THROTTLE:
            return self._answer(503, "RequestLimitExceeded", "Request limit exceeded.")
        if kind is FaultKind.FORBIDDEN:
            return self._answer(403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
        if kind is FaultKind.QUOTA:
            code = self._QUOTAS.get(operation, "ResourceLimitExceeded")
            return self._answer(400, code, f"The maximum number for {operation} has been reached.")
        return self._answer(500, "InternalError", "An internal error has occurred")

    def blinded(self, call: Call) -> Call | Response:
        """A describe call gets a filter that nothing passes; others are told that the id they name is unknown."""
        parameters = parse_qsl(call.body.decode(), keep_blank_values=True)
        named = [(key.partition(".")[0], value) for key, value in parameters]
        for key, value in named:
            if key in self._UNKNOWN_IDS:
                return self._answer(400, self._UNKNOWN_IDS[key], f"The ID '{value}' does not exist")
        number = 1 + sum(key.startswith("Filter.") and key.endswith(".Name") for key, _ in parameters)
        parameters += [(f"Filter.{number}.Name", "tag-key"), (f"Filter.{number}.Value.1", "sandbox/no-such-tag")]
        return Call(call.method, call.target, call.headers, urlencode(parameters).encode())

    def _answer(self, status: int, code: str, message: str) -> Response:
        error = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
        body = f"<Response><Errors>{error}</Errors><RequestID>sandbox-fault</RequestID></Response>"
        return Response(body, status, media_type="text/xml")


DIALECTS: Mapping[str, Dialect] = {
    "aws": Ec2(),
    "alicloud": AlibabaCloud(),
    "azure": ResourceManager(),
    "gcp": ComputeEngine(),
}


def proxy_app(api: str, upstream: str, faults: Faults, authority: Path | None = None) -> ASGIApp:
    """The proxy in front of one API, whose dialect must be known; `authority` signed an upstream's HTTPS."""
    dialect = DIALECTS[api]
    verify = ssl.create_default_context(cafile=authority) if authority else True
    client = httpx.AsyncClient(base_url=upstream, timeout=None, trust_env=False, verify=verify)  # noqa: S113 - callers have time-outs

    async def passed_on(call: Call) -> Response:
        request = client.build_request(call.method, call.target, headers=call.headers, content=call.body)
        answer = await client.send(request, stream=True)
        body = b"".join([chunk async for chunk in answer.aiter_raw()])
        await answer.aclose()
        return Response(body, answer.status_code, _end_to_end(answer.headers))

    async def handle(request: Request) -> Response:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        call = Call(request.method, target, _end_to_end(request.headers), await request.body())
        operation = dialect.operation(call)
        match faults.take(api, operation):
            case None:
                return await passed_on(call)
            case Fault(kind=FaultKind.DELAY, seconds=seconds):
                await asyncio.sleep(seconds)
                return await passed_on(call)
            case Fault(kind=FaultKind.NOT_YET_VISIBLE):
                blinded = dialect.blinded(call)
                return blinded if isinstance(blinded, Response) else await passed_on(blinded)
            case Fault(kind=FaultKind.LOST_RESPONSE):
                await passed_on(call)
                return _Broken()
            case Fault(kind=FaultKind.ERROR_AFTER as kind):
                await passed_on(call)
                return dialect.error(kind, operation)
            case Fault(kind=kind):
                return dialect.error(kind, operation)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(routes=[Route("/{path:path}", handle, methods=_METHODS)], lifespan=lifespan)


def control_app(faults: Faults) -> ASGIApp:
    """Where faults are set and looked at."""

    async def handle(request: Request) -> Response:
        if request.method == "DELETE":
            faults.clear()
        if request.method == "POST":
            try:
                fault = Fault.model_validate_json(await request.body())
            except ValidationError as error:
                return JSONResponse({"errors": error.errors(include_url=False, include_context=False)}, 400)
            if fault.api not in DIALECTS:
                return JSONResponse({"errors": f"api {fault.api!r} is none of {', '.join(DIALECTS)}"}, 400)
            faults.add(fault)
        return JSONResponse({"faults": [fault.model_dump(mode="json") for fault in faults.pending()]})

    return Starlette(routes=[Route("/faults", handle, methods=["DELETE", "GET", "POST"])])


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
    plain: dict[int, ASGIApp] = {arguments.control: control_app(faults)}
    secured: list[uvicorn.Server] = []
    for proxy in arguments.proxy:
        api, port, upstream = proxy.split("=", 2)
        if api not in DIALECTS:
            parser.error(f"--proxy {proxy}: {api!r} is none of {', '.join(DIALECTS)}")
        files = certificates.get(api)
        app = proxy_app(api, upstream, faults, files.authority if files else None)
        if files is None:
            plain[int(port)] = app
        else:
            secured.append(_serve_https(app, files, listening(int(port))))

    async def by_port(scope: Scope, receive: Receive, send: Send) -> None:
        await plain[scope["server"][1]](scope, receive, send)

    config = uvicorn.Config(by_port, lifespan="off", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[listening(port) for port in plain])
    for server in secured:
        server.should_exit = True


def _serve_https(app: ASGIApp, files: ServerCertificate, one: socket.socket) -> uvicorn.Server:
    """Serves in a thread of its own: a server speaks either HTTP or HTTPS, and the main thread's gets the signals."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        access_log=False,
        log_level="warning",
        ssl_certfile=files.certificate,
        ssl_keyfile=files.key,
    )
    server = uvicorn.Server(config)
    threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[one])), daemon=True).start()
    return server


if __name__ == "__main__":
    main()
