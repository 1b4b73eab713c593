import base64
import tempfile
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from activities.gardener.api import Api
from activities.gardener.client import Garden
from activities.gardener.kubeconfig import short_lived
from activities.gardener.manifest import shoot_manifest
from domain.errors import Code, TrellisError
from sandbox.garden.kinds import GARDEN
from tests.activities.gardener.byhand import HandGarden, kubeconfig, order, served


def answering(response: Response) -> Starlette:
    async def answer(_: Request) -> Response:
        return response

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "DELETE", "PATCH"])])


def api_at(port: int) -> Api:
    return Api.from_kubeconfig(kubeconfig(f"http://127.0.0.1:{port}", token="t0ken"), "the garden")


def status(code: int, message: str, reason: str = "", causes: list[dict[str, str]] | None = None) -> JSONResponse:
    body = {"kind": "Status", "code": code, "message": message, "reason": reason, "details": {"causes": causes or []}}
    return JSONResponse(body, code)


CAUSES = [{"field": "spec.region", "message": 'Unsupported value: "mars-1"'}]


@pytest.mark.parametrize(
    ("response", "expected", "named"),
    [
        (status(400, "the body is odd"), Code.INVALID, "the body is odd"),
        (status(401, "Unauthorized"), Code.FORBIDDEN, "renew"),
        (status(403, 'User "x" cannot create shoots', "Forbidden"), Code.FORBIDDEN, "cannot create"),
        (status(403, "forbidden: exceeded quota: shoots", "Forbidden"), Code.QUOTA, "exceeded quota"),
        (status(403, 'spec.region: Unsupported value: "mars-1"', "Forbidden"), Code.INVALID, "mars-1"),
        (status(404, "shoots not found", "NotFound"), Code.NOT_FOUND, "not found"),
        (status(409, "exists", "AlreadyExists"), Code.CONFLICT, "exists"),
        (status(409, "the object has been modified", "Conflict"), Code.BUSY, "modified"),
        (status(422, "shoot is invalid", "Invalid", CAUSES), Code.INVALID, 'spec.region: Unsupported value: "mars-1"'),
        (status(429, "slow down"), Code.THROTTLED, "slow down"),
        (status(500, "etcd is away"), Code.UNAVAILABLE, "etcd is away"),
        (PlainTextResponse("Bad Gateway", 502), Code.UNAVAILABLE, "Bad Gateway"),
        (PlainTextResponse("<html>not an API server</html>", 200), Code.UNAVAILABLE, "/thing"),
    ],
    ids=lambda value: value.value if isinstance(value, Code) else None,
)
async def test_every_refusal_becomes_a_failure_with_the_servers_words(
    response: Response, expected: Code, named: str
) -> None:
    async with served(answering(response)) as port, api_at(port) as api:
        with pytest.raises(TrellisError) as caught:
            await api.post("/thing", {"kind": "Thing"})
    assert caught.value.failure.code is expected
    assert named in str(caught.value)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with served(answering(JSONResponse({}))) as port:
        pass
    async with api_at(port) as api:
        with pytest.raises(TrellisError) as caught:
            await api.get("/thing")
    assert caught.value.failure.code is Code.UNAVAILABLE


async def test_long_lists_are_read_page_by_page(hand: HandGarden) -> None:
    for index in range(7):
        await hand.garden.create_shoot(shoot_manifest(order(f"c{index}")))
    async with await Api.from_file(hand.kubeconfig) as api:
        path = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-trellis/shoots"
        items, version = await api.read_all(path, {"limit": "2"})
    assert sorted(each["metadata"]["name"] for each in items) == sorted(hand.names())
    assert int(version) == hand.store.version


async def test_credentials_come_decoded_from_the_secret_behind_the_binding(hand: HandGarden) -> None:
    secret = await hand.garden.credentials("aws")
    assert secret["accessKeyID"] == "AKIAIOSFODNN7EXAMPLE"
    assert await hand.garden.credentials("aws-other") != secret


async def test_a_missing_binding_or_secret_is_not_found(hand: HandGarden) -> None:
    hand.store.delete(GARDEN, "secrets", "garden-trellis", "aws")
    for name in ("aws", "nobody"):
        with pytest.raises(TrellisError) as caught:
            await hand.garden.credentials(name)
        assert caught.value.failure.code is Code.NOT_FOUND
        assert name in str(caught.value)


async def test_the_access_to_a_shoot_is_a_token_for_its_own_server(hand: HandGarden) -> None:
    name = order().plan.shoot.name
    await hand.garden.create_shoot(shoot_manifest(order()))
    async with await hand.garden.admin_access(name) as api:
        with pytest.raises(TrellisError) as caught:
            await api.get("/version")
    assert f"shoot {name}" in str(caught.value)
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"a: b: c", b"{}", b'{"current-context": "x", "contexts": [], "clusters": [], "users": []}'],
    ids=["empty", "a list", "no YAML", "nothing in it", "no such context"],
)
def test_what_is_no_kubeconfig_is_refused_without_being_quoted(content: bytes) -> None:
    with pytest.raises(TrellisError) as caught, short_lived(content, "shoot x"):
        pass
    assert caught.value.failure.code is Code.INVALID
    assert caught.value.__cause__ is None


def test_a_kubeconfig_from_the_wire_runs_no_command(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(ran)]}
    user: dict[str, Any] = {"exec": command}
    with (
        pytest.raises(TrellisError, match="shoot x"),
        short_lived(kubeconfig("https://x.example.org", **user), "shoot x"),
    ):
        pass
    assert not ran.exists()


def test_a_clients_key_is_on_disk_only_while_the_client_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    key = {name: base64.b64encode(b"s3cret").decode() for name in ("client-key-data", "client-certificate-data")}
    with short_lived(kubeconfig("https://x.example.org", **key), "shoot x") as configuration:
        path = Path(configuration.key_file)
        assert path.read_bytes() == b"s3cret"
        assert path.parent.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []


async def test_a_kubeconfig_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrellisError) as caught:
        await Garden.connect(tmp_path / "nowhere", "garden-x")
    assert str(tmp_path / "nowhere") in str(caught.value)
    (tmp_path / "garbage").write_text("a: b: c: password")
    with pytest.raises(TrellisError) as caught:
        await Garden.connect(tmp_path / "garbage", "garden-x")
    assert "password" not in str(caught.value)
