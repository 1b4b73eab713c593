"""The proxy that does wrong on request, in front of a server that counts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sandbox.faults import Fault, FaultKind, Faults, control_app, listening, proxy_app


class Cloud:
    """Answers with what it was asked, and remembers it."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    async def answer(self, request: Request) -> Response:
        self.seen.append(dict(parse_qsl((await request.body()).decode())))
        return JSONResponse(self.seen[-1], headers={"x-path": request.url.path, "x-query": request.url.query})


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    one = listening(0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[one])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{one.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def _running() -> Iterator[tuple[Cloud, Faults, str, str]]:
    cloud, faults = Cloud(), Faults()
    with (
        served(Starlette(routes=[Route("/{path:path}", cloud.answer, methods=["POST"])])) as upstream,
        served(proxy_app("aws", upstream, faults)) as proxy,
        served(control_app(faults)) as control,
    ):
        yield cloud, faults, proxy, control


@pytest.fixture
def cloud(_running: tuple[Cloud, Faults, str, str]) -> Cloud:
    _running[0].seen.clear()
    _running[1].clear()
    return _running[0]


@pytest.fixture
def proxy(cloud: Cloud, _running: tuple[Cloud, Faults, str, str]) -> str:
    return _running[2]


@pytest.fixture
def control(cloud: Cloud, _running: tuple[Cloud, Faults, str, str]) -> str:
    return f"{_running[3]}/faults"


def call(proxy: str, action: str, **parameters: str) -> httpx.Response:
    return httpx.post(f"{proxy}/some/path?a=b", data={"Action": action, **parameters}, trust_env=False)


def put(control: str, kind: FaultKind, **fields: object) -> None:
    httpx.post(control, json={"kind": kind, **fields}, trust_env=False).raise_for_status()


def test_without_faults_a_call_passes_unchanged(proxy: str, cloud: Cloud) -> None:
    answer = call(proxy, "CreateVpc", CidrBlock="10.0.0.0/16")
    assert answer.json() == {"Action": "CreateVpc", "CidrBlock": "10.0.0.0/16"} == cloud.seen[0]
    assert (answer.headers["x-path"], answer.headers["x-query"]) == ("/some/path", "a=b")


@pytest.mark.parametrize(
    ("kind", "status", "code", "arrives"),
    [
        (FaultKind.THROTTLE, 503, "RequestLimitExceeded", False),
        (FaultKind.QUOTA, 400, "VpcLimitExceeded", False),
        (FaultKind.FORBIDDEN, 403, "UnauthorizedOperation", False),
        (FaultKind.ERROR_BEFORE, 500, "InternalError", False),
        (FaultKind.ERROR_AFTER, 500, "InternalError", True),
    ],
)
def test_a_refused_call_is_answered_in_the_clouds_own_words(
    proxy: str, control: str, cloud: Cloud, kind: FaultKind, status: int, code: str, arrives: bool
) -> None:
    put(control, kind, operation="CreateVpc")
    answer = call(proxy, "CreateVpc")
    assert answer.status_code == status
    assert f"<Code>{code}</Code>" in answer.text
    assert len(cloud.seen) == arrives
    assert call(proxy, "CreateVpc").status_code == 200


def test_a_lost_response_is_a_broken_connection_after_the_effect(proxy: str, control: str, cloud: Cloud) -> None:
    put(control, FaultKind.LOST_RESPONSE)
    with pytest.raises(httpx.RemoteProtocolError):
        call(proxy, "CreateVpc")
    assert len(cloud.seen) == 1


def test_a_delay_holds_the_call_back(proxy: str, control: str) -> None:
    put(control, FaultKind.DELAY, seconds=0.3)
    begun = time.monotonic()
    assert call(proxy, "DescribeVpcs").status_code == 200
    assert time.monotonic() - begun >= 0.3


def test_what_is_not_yet_visible_is_filtered_away_or_unknown(proxy: str, control: str, cloud: Cloud) -> None:
    put(control, FaultKind.NOT_YET_VISIBLE, times=2)
    call(proxy, "DescribeVpcs", **{"Filter.1.Name": "vpc-id", "Filter.1.Value.1": "vpc-1"})
    assert cloud.seen[0]["Filter.1.Value.1"] == "vpc-1"
    assert cloud.seen[0]["Filter.2.Name"] == "tag-key"
    assert "InvalidVpcID.NotFound" in call(proxy, "AttachInternetGateway", VpcId="vpc-1").text
    assert len(cloud.seen) == 1


def test_operation_times_and_after_say_which_calls_are_struck(proxy: str, control: str) -> None:
    put(control, FaultKind.THROTTLE, operation="Create*", times=2, after=1)
    actions = ["CreateVpc", "DescribeVpcs", "CreateSubnet", "CreateVpc", "CreateVpc"]
    assert [call(proxy, action).status_code for action in actions] == [200, 200, 503, 503, 200]


def test_faults_are_shown_until_they_have_struck_and_can_be_taken_back(proxy: str, control: str) -> None:
    put(control, FaultKind.THROTTLE, operation="CreateVpc", times=2)
    call(proxy, "CreateVpc")
    (shown,) = httpx.get(control, trust_env=False).json()["faults"]
    assert Fault.model_validate(shown).times == 1
    assert httpx.delete(control, trust_env=False).json() == {"faults": []}
    assert call(proxy, "CreateVpc").status_code == 200


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ({"kind": "no-such"}, "kind"),
        ({"kind": "throttle", "times": 0}, "times"),
        ({"kind": "throttle", "colour": "red"}, "colour"),
        ({"kind": "throttle", "api": "nowhere"}, "nowhere"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_with_its_reason(control: str, fault: dict[str, object], named: str) -> None:
    answer = httpx.post(control, json=fault, trust_env=False)
    assert answer.status_code == 400
    assert named in answer.text
    assert httpx.get(control, trust_env=False).json() == {"faults": []}
