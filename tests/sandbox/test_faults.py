"""The proxy that does wrong on request, in front of a server that counts."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from sandbox.faults import Call, Fault, FaultKind, Faults, control_app, listening, proxy_app
from sandbox.garden.faults import GardenApi


class Cloud:
    """Answers with what it was asked, and remembers it."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []
        self.more = threading.Semaphore(0)

    async def answer(self, request: Request) -> Response:
        self.seen.append(dict(parse_qsl((await request.body()).decode())))
        return JSONResponse(self.seen[-1], headers={"x-path": request.url.path, "x-query": request.url.query})

    async def lines(self, request: Request) -> Response:
        async def each() -> AsyncIterator[str]:
            for number in range(3):
                await asyncio.to_thread(self.more.acquire)
                yield f"line {number}\n"

        return StreamingResponse(each())


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
        served(
            Starlette(routes=[Route("/lines", cloud.lines), Route("/{path:path}", cloud.answer, methods=["POST"])])
        ) as upstream,
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
    put(control, FaultKind.SLOW, seconds=0.3)
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
    put(control, FaultKind.QUOTA, operation="CreateVpc", match=["tenant-1"])
    (left,) = httpx.delete(control, params={"match": "tenant-1"}, trust_env=False).json()["faults"]
    assert left == shown
    assert httpx.delete(control, trust_env=False).json() == {"faults": []}
    assert call(proxy, "CreateVpc").status_code == 200


def test_a_text_that_must_occur_says_whose_calls_are_struck(proxy: str, control: str) -> None:
    put(control, FaultKind.THROTTLE, match=["tenant-1", "CreateVpc"], caller="python-httpx", times=3)
    called = [call(proxy, "CreateVpc", Name="tenant-2"), call(proxy, "CreateVpc", Name="tenant-1")]
    called.append(httpx.post(f"{proxy}/tenant-1", data={"Action": "CreateVpc"}, trust_env=False))
    other = {"Action": "CreateVpc", "Name": "tenant-1"}
    called.append(httpx.post(proxy, data=other, headers={"user-agent": "somebody"}, trust_env=False))
    assert [answer.status_code for answer in called] == [200, 503, 503, 200]


def test_what_was_called_is_counted_until_it_is_forgotten(proxy: str, control: str) -> None:
    operations = control.replace("/faults", "/operations")
    httpx.delete(operations, trust_env=False)
    for action in ("CreateVpc", "DescribeVpcs", "CreateVpc"):
        call(proxy, action)
    seen = httpx.get(operations, trust_env=False).json()["operations"]
    assert [(each["api"], each["operation"], each["times"]) for each in seen] == [
        ("aws", "CreateVpc", 2),
        ("aws", "DescribeVpcs", 1),
    ]
    assert all(each["caller"].startswith("python-httpx") for each in seen)
    assert httpx.delete(operations, trust_env=False).json() == {"operations": []}


def test_an_answer_passes_while_it_is_still_being_written(proxy: str, cloud: Cloud) -> None:
    with httpx.stream("GET", f"{proxy}/lines", trust_env=False, timeout=10) as answer:
        lines = answer.iter_lines()
        for number in range(3):
            cloud.more.release()
            assert next(lines) == f"line {number}"


def test_a_server_that_is_away_breaks_the_connection(control: str) -> None:
    nobody = listening(0)
    port = nobody.getsockname()[1]
    nobody.close()
    with (
        served(proxy_app("aws", f"http://127.0.0.1:{port}", Faults())) as proxy,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        call(proxy, "CreateVpc")


GARDEN = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-x"


@pytest.mark.parametrize(
    ("method", "target", "operation"),
    [
        ("GET", f"{GARDEN}/shoots?labelSelector=a", "list:shoots"),
        ("GET", f"{GARDEN}/shoots?watch=true&resourceVersion=7", "watch:shoots"),
        ("GET", f"{GARDEN}/shoots/alpha", "get:shoots"),
        ("POST", f"{GARDEN}/shoots", "create:shoots"),
        ("POST", f"{GARDEN}/shoots/alpha/adminkubeconfig", "create:shoots/adminkubeconfig"),
        ("PATCH", f"{GARDEN}/shoots/alpha", "patch:shoots"),
        ("PUT", f"{GARDEN}/shoots/alpha/status", "update:shoots/status"),
        ("DELETE", f"{GARDEN}/shoots/alpha", "delete:shoots"),
        ("GET", "/apis/core.gardener.cloud/v1beta1/cloudprofiles/aws", "get:cloudprofiles"),
        ("GET", "/api/v1/namespaces/garden-x", "get:namespaces"),
        ("GET", "/api/v1/namespaces/garden-x/secrets/aws", "get:secrets"),
        ("POST", "/shoots/garden-x/alpha/api/v1/namespaces", "shoot/create:namespaces"),
        ("GET", "/shoots/garden-x/alpha/api/v1/namespaces/n/pods/p:80/proxy/dial?host=h", "shoot/get:pods/proxy"),
        ("GET", "/version", ""),
        ("GET", "/apis", ""),
    ],
)
def test_operations_of_the_garden_are_verbs_and_resources(method: str, target: str, operation: str) -> None:
    assert GardenApi().operation(Call(method, target, {}, b"")) == operation


@pytest.mark.parametrize(
    ("kind", "status", "reason", "says"),
    [
        (FaultKind.THROTTLE, 429, "TooManyRequests", "too many"),
        (FaultKind.FORBIDDEN, 403, "Forbidden", "cannot"),
        (FaultKind.QUOTA, 403, "Forbidden", "exceeded quota"),
        (FaultKind.ERROR_BEFORE, 500, "InternalError", "Internal error"),
    ],
)
def test_the_garden_refuses_as_api_servers_do(kind: FaultKind, status: int, reason: str, says: str) -> None:
    answer = GardenApi().error(kind, "create:shoots")
    body = json.loads(bytes(answer.body))
    assert (answer.status_code, body["kind"], body["reason"]) == (status, "Status", reason)
    assert says in body["message"]


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
