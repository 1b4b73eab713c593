import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.kube import Denied, Event, Object, Store, ensure_namespace

ROOT = Path(__file__).parents[3]


def thing(name: str, namespace: str = "n", **spec: object) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


async def take(events: AsyncIterator[Event], amount: int) -> list[Event]:
    async with asyncio.timeout(10):
        return [await anext(events) for _ in range(amount)]


def test_the_store_sets_what_the_server_sets(store: Store) -> None:
    made = store.create("s", "things", thing("a", size=1))
    meta = made["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["generation"] == 1
    assert meta["resourceVersion"] == str(store.version)
    changed = store.update("s", "things", {**made, "spec": {"size": 2}})
    assert changed["metadata"]["generation"] == 2
    assert int(changed["metadata"]["resourceVersion"]) > int(meta["resourceVersion"])
    forged = {**changed, "metadata": {**changed["metadata"], "creationTimestamp": "1970-01-01T00:00:00Z"}}
    assert store.update("s", "things", forged)["metadata"]["creationTimestamp"] == meta["creationTimestamp"]


def test_an_update_without_a_change_is_no_event(store: Store) -> None:
    made = store.create("s", "things", thing("a"))
    version = store.version
    assert store.update("s", "things", made) == made
    assert store.version == version


def test_what_is_given_and_taken_are_copies(store: Store) -> None:
    given = thing("a", sizes=[1])
    taken = store.create("s", "things", given)
    given["spec"]["sizes"].append(2)
    taken["spec"]["sizes"].append(3)
    store.list("s", "things")[0]["spec"]["sizes"].append(4)
    found = store.get("s", "things", "n", "a")
    assert found
    assert found["spec"] == {"sizes": [1]}


def test_refusals_name_the_object_and_the_reason(store: Store) -> None:
    made = store.create("s", "things.example.org", thing("a"))
    with pytest.raises(Denied, match=r'things\.example\.org "a" already exists') as exists:
        store.create("s", "things.example.org", thing("a"))
    assert (exists.value.reason, exists.value.code) == ("AlreadyExists", 409)
    store.update("s", "things.example.org", {**made, "spec": {"size": 2}}, made["metadata"]["resourceVersion"])
    with pytest.raises(Denied, match="the object has been modified") as conflict:
        store.update("s", "things.example.org", {**made, "spec": {}}, made["metadata"]["resourceVersion"])
    assert (conflict.value.reason, conflict.value.code) == ("Conflict", 409)
    with pytest.raises(Denied, match=r'things\.example\.org "b" not found') as missing:
        store.delete("s", "things.example.org", "n", "b")
    assert missing.value.status()["details"] == {"name": "b", "kind": "things", "group": "example.org"}


def test_an_update_never_hits_a_namesake(store: Store) -> None:
    first = store.create("s", "things", thing("a"))
    store.delete("s", "things", "n", "a")
    store.create("s", "things", thing("a"))
    with pytest.raises(Denied, match="modified"):
        store.update("s", "things", first)


def test_finalizers_hold_a_deleted_object(store: Store) -> None:
    made = store.create("s", "things", thing("a"))
    held = store.update("s", "things", {**made, "metadata": {**made["metadata"], "finalizers": ["x", "y"]}})
    marked = store.delete("s", "things", "n", "a")
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["generation"] == held["metadata"]["generation"] + 1
    assert store.delete("s", "things", "n", "a") == marked
    marked["metadata"]["finalizers"] = ["y"]
    marked = store.update("s", "things", marked)
    assert store.get("s", "things", "n", "a") == marked
    marked["metadata"]["finalizers"] = []
    store.update("s", "things", marked)
    assert store.get("s", "things", "n", "a") is None


def test_a_namespace_goes_with_its_last_object(store: Store) -> None:
    ensure_namespace(store, "s", "n")
    ensure_namespace(store, "other", "n")
    store.create("s", "things", thing("a"))
    assert store.delete("s", "namespaces", None, "n")["status"]["phase"] == "Terminating"
    store.delete("s", "things", "n", "a")
    assert store.get("s", "namespaces", None, "n") is None
    assert store.get("other", "namespaces", None, "n")


def test_servers_do_not_see_each_other(store: Store) -> None:
    store.create("one", "things", thing("a"))
    store.create("two", "things", thing("a"))
    store.drop("one")
    assert store.list("one", "things") == []
    assert [obj["metadata"]["name"] for obj in store.list("two", "things")] == ["a"]


async def test_a_watch_tells_changes_in_order_and_only_of_its_namespace(store: Store) -> None:
    events = store.watch("s", "things", "n")
    made = store.create("s", "things", thing("a", size=1))
    store.create("s", "things", thing("b", "elsewhere"))
    store.create("t", "things", thing("c"))
    changed = store.update("s", "things", {**made, "spec": {"size": 2}})
    store.delete("s", "things", "n", "a")
    seen = await take(events, 3)
    assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.object["spec"] for event in seen] == [{"size": 1}, {"size": 2}, {"size": 2}]
    assert seen[1].object == changed
    assert seen[1].previous == made
    assert [event.version for event in seen] == sorted(event.version for event in seen)
    assert seen[2].object["metadata"]["resourceVersion"] == str(seen[2].version)


async def test_a_quiet_watch_gives_bookmarks(store: Store) -> None:
    events = store.watch("s", "things", bookmark_every=0.01)
    store.create("s", "others", thing("a"))
    (event,) = await take(events, 1)
    assert (event.type, event.version) == ("BOOKMARK", store.version)


async def test_closing_the_store_ends_watches(tmp_path: Path) -> None:
    store = Store(tmp_path / "closing.db")
    waiting = asyncio.create_task(anext(store.watch("s", "things"), None))
    await asyncio.sleep(0)
    store.close()
    assert await waiting is None


async def test_dropping_a_server_expires_its_watches(store: Store) -> None:
    store.create("s", "things", thing("a"))
    waiting = asyncio.create_task(anext(store.watch("s", "things")))
    await asyncio.sleep(0)
    store.drop("s")
    with pytest.raises(Denied, match="too old resource version"):
        await waiting


async def test_resuming_works_as_far_back_as_the_log_goes(tmp_path: Path) -> None:
    with contextlib.closing(Store(tmp_path / "short.db", log_size=10)) as store:
        versions = [int(store.create("s", "things", thing(f"a{i}"))["metadata"]["resourceVersion"]) for i in range(35)]
        seen = await take(store.watch("s", "things", since=versions[24]), 10)
        assert [event.version for event in seen] == versions[25:]
        with pytest.raises(Denied) as expired:
            store.watch("s", "things", since=versions[0])
        assert (expired.value.reason, expired.value.code) == ("Expired", 410)
        with pytest.raises(Denied):
            store.watch("s", "things", since=store.version + 1)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with contextlib.closing(Store(tmp_path / "kept.db")) as store:
        kept = store.create("s", "things", thing("kept", text="ü", nothing=None))
        store.create("s", "things", thing("gone"))
        store.delete("s", "things", "n", "gone")
        version = store.version
    with contextlib.closing(Store(tmp_path / "kept.db")) as store:
        assert store.list("s", "things") == [kept]
        assert store.version == version
        store.watch("s", "things", since=version)
        with pytest.raises(Denied):
            store.watch("s", "things", since=version - 1)


def test_one_file_is_for_one_store(tmp_path: Path) -> None:
    with (
        contextlib.closing(Store(tmp_path / "one.db")),
        pytest.raises(RuntimeError, match=r"one\.db cannot be opened; is another sandbox using it"),
    ):
        Store(tmp_path / "one.db")


async def test_hundreds_of_watches_cost_no_threads_and_little_time(store: Store) -> None:
    async def count(name: str) -> int:
        seen = 0
        async for event in store.watch("s", "things"):
            seen += event.object["metadata"]["name"] == name
            if event.object["metadata"]["name"] == "last":
                break
        return seen

    threads = threading.active_count()
    watches = [asyncio.create_task(count(f"a{number % 50}")) for number in range(500)]
    await asyncio.sleep(0)
    for number in range(50):
        store.create("s", "things", thing(f"a{number}"))
        await asyncio.sleep(0)
    store.create("s", "things", thing("last"))
    assert await asyncio.gather(*watches) == [1] * 500
    assert threading.active_count() == threads


_STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "update", "delete", "watch"]), st.sampled_from("abc"), st.integers(0, 2)),
    max_size=30,
)


@given(_STEPS)
@settings(max_examples=60, deadline=None)
def test_who_lists_and_then_watches_knows_what_is_stored(steps: list[tuple[str, str, int]]) -> None:
    async def replay() -> None:
        with tempfile.TemporaryDirectory() as directory, contextlib.closing(Store(Path(directory) / "x.db")) as store:
            known: dict[str, Object] = {}
            since = store.version
            for verb, name, size in [*steps, ("watch", "", 0)]:
                with contextlib.suppress(Denied):
                    if verb == "create":
                        store.create("s", "things", thing(name, size=size))
                    elif verb == "update":
                        store.update("s", "things", thing(name, size=size))
                    elif verb == "delete":
                        store.delete("s", "things", "n", name)
                    else:
                        since = await catch_up(store, known, since)
            assert sorted(known) == [obj["metadata"]["name"] for obj in store.list("s", "things")]
            assert [known[name] for name in sorted(known)] == store.list("s", "things")

    async def catch_up(store: Store, known: dict[str, Object], since: int) -> int:
        async for event in store.watch("s", "things", since=since, bookmark_every=0.001):
            if event.type == "BOOKMARK":
                return event.version
            name = event.object["metadata"]["name"]
            assert (event.previous is None) is (name not in known)
            if event.type == "DELETED":
                del known[name]
            else:
                known[name] = event.object
        raise AssertionError("the watch ended")

    asyncio.run(replay())


async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    database = tmp_path / "killed.db"
    acknowledged: list[Object] = []

    async with running(database) as (process, url), httpx.AsyncClient() as client:

        async def write(writer: int) -> None:
            with contextlib.suppress(httpx.HTTPError):
                for number in range(1000):
                    body = {"metadata": {"name": f"w{writer}-{number}"}, "spec": {"flag": "de"}}
                    answer = await client.post(f"{url}{VESSELS}", json=body)
                    acknowledged.append(answer.raise_for_status().json())
                    if len(acknowledged) == 150:
                        os.kill(process.pid, signal.SIGKILL)

        await asyncio.gather(*(write(writer) for writer in range(4)))
        assert await process.wait() == -signal.SIGKILL

    async with running(database) as (_, url), httpx.AsyncClient() as client:
        page = (await client.get(f"{url}{VESSELS}")).json()
        found = {obj["metadata"]["name"]: obj for obj in page["items"]}
        for obj in acknowledged:
            assert found[obj["metadata"]["name"]]["metadata"] == obj["metadata"]
        # Only a write that was under way when the server died may be there without an answer.
        assert len(found) <= len(acknowledged) + 4
        latest = max(int(obj["metadata"]["resourceVersion"]) for obj in acknowledged)
        assert int(page["metadata"]["resourceVersion"]) >= latest
        old = {"watch": "true", "resourceVersion": str(latest - 100)}
        assert '"code":410' in (await client.get(f"{url}{VESSELS}", params=old)).text


VESSELS = "/apis/fleet.example.org/v1beta1/namespaces/default/vessels"


@contextlib.asynccontextmanager
async def running(database: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The sample server as a process of its own, and its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.sandbox.kube.sample", str(database)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        async with asyncio.timeout(60):
            port = (await process.stdout.readline()).decode().strip()
        assert port, "the server did not start"
        yield process, f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
