"""What the sandbox's own cloud servers stand on: documents, operations and the HTTP around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbox.clouds import Answer, Call, Cloud, Later, Operation, Refusal, Route, Settings, SettingsError, Store

BROKEN = {"code": "Broken"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "state.sqlite")
    yield store
    store.close()


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path / "cloud", BROKEN)
    yield cloud
    cloud.store.close()


def client(cloud: Cloud, *routes: Route) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(cloud.app(list(routes), wording))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def wording(status: int, code: str, message: str) -> Answer:
    return Answer({"code": code, "message": message}, status)


def test_a_transaction_is_all_or_nothing_and_an_inner_one_undoes_its_own_part_only(store: Store) -> None:
    def undone() -> None:
        with store.transaction():
            store.put("net", "b", {"n": 2})
            store.delete("net", "a")
            raise KeyError

    with store.transaction():
        store.put("net", "a", {"n": 1})
        with pytest.raises(KeyError):
            undone()
    assert store.list("net") == [("a", {"n": 1})]
    with pytest.raises(KeyError):
        undone()
    assert store.get("net", "a") == {"n": 1}


def test_a_list_has_the_names_that_begin_so_whatever_characters_they_hold(store: Store) -> None:
    for name in ("p/a", "p/b%", "p/B", "p_a", "q/a"):
        store.put("net", name, {})
    assert [name for name, _ in store.list("net", "p/")] == ["p/B", "p/a", "p/b%"]


def test_one_file_has_one_store(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="another sandbox"):
        Store(tmp_path / "state.sqlite")


def test_operations_end_in_the_order_of_their_times(cloud: Cloud) -> None:
    ended: list[str] = []
    cloud.finishers["go"] = lambda operation: ended.append(operation.target)
    for target, due in (("late", 30.0), ("early", 10.0), ("middle", 20.0), ("never", 99.0)):
        cloud.operations.start(Operation(target, "go", target, 0.0, due))
    cloud.operations.settle(30.0)
    assert ended == ["early", "middle", "late"]
    assert [operation.name for operation in cloud.operations.running()] == ["never"]
    cloud.operations.settle(30.0)
    assert len(ended) == 3


def test_an_operation_that_cannot_be_finished_fails_alone_and_leaves_nothing(cloud: Cloud) -> None:
    def crash(operation: Operation) -> None:
        cloud.store.put("net", operation.target, {})
        raise ZeroDivisionError

    cloud.finishers |= {"crash": crash, "go": lambda _: None}
    for verb in ("crash", "go"):
        cloud.operations.start(Operation(verb, verb, "net", 0.0, 1.0))
    cloud.operations.settle(2.0)
    assert {each.name: (each.done, each.error) for each in cloud.operations.all()} == {
        "crash": (True, BROKEN),
        "go": (True, None),
    }
    assert cloud.store.get("net", "net") is None


def test_an_operation_without_a_finisher_cannot_be_begun(cloud: Cloud) -> None:
    with pytest.raises(ValueError, match="no finisher for fly"):
        cloud.start("fly", "net", {})


async def test_a_refused_call_leaves_nothing_and_a_crashed_one_is_worded(cloud: Cloud) -> None:
    def refuse(_: Call) -> Answer:
        cloud.store.put("net", "a", {})
        raise Refusal(wording(409, "Taken", "taken"))

    def crash(_: Call) -> Answer:
        raise ZeroDivisionError

    async with client(cloud, Route("POST", "/refuse", refuse), Route("POST", "/crash", crash)) as http:
        assert ((await http.post("/refuse")).status_code, cloud.store.get("net", "a")) == (409, None)
        assert (await http.post("/crash")).json()["code"] == "internalError"
        unknown = await http.get("/nowhere")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "notFound")


async def test_a_handler_may_wait_without_holding_up_others(cloud: Cloud) -> None:
    cloud.finishers["go"] = lambda _: None
    cloud.settings = Settings(operation_seconds=0.2)
    operation = cloud.start("go", "net", {})

    def wait(_: Call) -> Answer:
        seen = cloud.operations.get(operation.name)
        assert seen is not None
        if not seen.done:
            raise Later(seen.due)
        return Answer(None, 204)

    async with client(cloud, Route("GET", "/wait", wait), Route("GET", "/now", lambda _: Answer({}))) as http:
        waiting = asyncio.create_task(http.get("/wait"))
        assert (await http.get("/now")).json() == {}
        assert not waiting.done()
        answer = await waiting
    assert (answer.status_code, answer.content) == (204, b"")


async def test_settings_outlive_the_process(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path, BROKEN)
    async with client(cloud) as http:
        assert (await http.put("/sandbox/settings", json={"operation_seconds": 3})).status_code == 200
    cloud.store.close()
    again = Cloud(tmp_path, BROKEN)
    assert again.settings == Settings(operation_seconds=3)
    again.store.close()


def test_a_settings_file_that_is_none_names_itself(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    for text in ("{", json.dumps({"colour": 1})):
        file.write_text(text)
        with pytest.raises(SettingsError, match=r"settings\.json|colour"):
            Settings.patch_from(file)
