import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from activities.gardener.client import Garden
from activities.gardener.manifest import shoot_manifest
from domain.errors import Code, TrellisError
from sandbox.garden import start
from sandbox.garden.kinds import GARDEN, SHOOTS_KEY
from sandbox.kube import Object, Store
from tests.activities.gardener.byhand import NAMESPACE, HandGarden, garden_app, kubeconfig, order, served

NAME = order().plan.shoot.name


def progress(shoot: Object | None) -> int | None:
    return shoot["status"]["lastOperation"]["progress"] if shoot and "status" in shoot else None


async def soon(states: AsyncIterator[Object | None]) -> Object | None:
    return await asyncio.wait_for(anext(states), 10)


async def test_a_follower_sees_the_shoot_now_then_each_change_then_its_end(hand: HandGarden) -> None:
    await hand.garden.create_shoot(shoot_manifest(order()))
    async with hand.garden.follow_shoot(NAME) as states:
        assert progress(await soon(states)) is None
        for percent in (10, 20):
            hand.gardener_says(NAME, "Processing", progress=percent)
            while progress(await soon(states)) != percent:
                """An earlier change."""
        hand.remove(NAME)
        assert [shoot async for shoot in states][-1] is None


async def test_a_shoot_that_is_not_there_is_told_at_once(hand: HandGarden) -> None:
    async with hand.garden.follow_shoot(NAME) as states:
        assert [shoot async for shoot in states] == [None]


async def test_a_shoot_made_anew_under_the_same_name_is_the_end_of_the_first(hand: HandGarden) -> None:
    await hand.garden.create_shoot(shoot_manifest(order()))
    async with hand.garden.follow_shoot(NAME) as states:
        await soon(states)
        hand.remove(NAME)
        await hand.garden.create_shoot(shoot_manifest(order()))
        async for shoot in states:
            last = shoot
        assert last is None
    async with hand.garden.follow_shoot(NAME) as states:
        assert await soon(states) is not None


async def test_three_hundred_waits_share_one_watch_and_cost_one_read_each(hand: HandGarden) -> None:
    hand.store.create(GARDEN, SHOOTS_KEY, shoot_manifest(order()))
    calls: list[str] = []
    api = hand.garden._api
    send = api._send

    async def counted(method: str, path: str, *args: object, **kwargs: object) -> object:
        calls.append(f"{method} {path.removesuffix(NAME)}" + (" watch" if "timeout" in kwargs else ""))
        return await send(method, path, *args, **kwargs)  # type: ignore[arg-type]

    api._send = counted  # type: ignore[method-assign, assignment]
    async with AsyncExitStack() as stack:
        follows = [await stack.enter_async_context(hand.garden.follow_shoot(NAME)) for _ in range(300)]
        await asyncio.gather(*(soon(states) for states in follows))
        hand.gardener_says(NAME, "Succeeded")
        assert {progress(each) for each in await asyncio.gather(*(soon(states) for states in follows))} == {100}
    shoots = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-trellis/shoots"
    assert {call: calls.count(call) for call in set(calls)} == {
        f"GET {shoots}/": 300,
        f"GET {shoots}": 1,
        f"GET {shoots} watch": 1,
    }
    assert not hand.garden._watch._followers


async def test_a_watch_survives_the_api_servers_restart_and_forgetfulness(tmp_path: Path) -> None:
    store = Store(tmp_path / "objects.db")
    start.furnish(store)
    (tmp_path / "kubeconfig").touch()
    async with served(garden_app(store)) as port:
        (tmp_path / "kubeconfig").write_bytes(kubeconfig(f"http://127.0.0.1:{port}"))
        garden = await Garden.connect(tmp_path / "kubeconfig", NAMESPACE)
        first = HandGarden(store, "", tmp_path / "kubeconfig", garden)
        for name in ("alpha", "beta"):
            await garden.create_shoot(shoot_manifest(order(name)))
        beta = order("beta").plan.shoot.name
        follow, follow_beta = garden.follow_shoot(NAME), garden.follow_shoot(beta)
        states, states_beta = await follow.__aenter__(), await follow_beta.__aenter__()
        await soon(states)
        await soon(states_beta)
        store.close()
    # Down: what happens now, no watch will ever tell.
    store = Store(tmp_path / "objects.db")
    again = HandGarden(store, "", first.kubeconfig, garden)
    again.gardener_says(NAME, "Processing", progress=77)
    again.remove(beta)
    async with served(garden_app(store), port):
        while progress(await soon(states)) != 77:
            """What it was before."""
        assert await soon(states_beta) is None
        await follow.__aexit__(None, None, None)
        await follow_beta.__aexit__(None, None, None)
        await garden.close()
        store.close()


async def test_followers_are_told_when_the_garden_does_not_let_them_look(
    hand: HandGarden, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hand.garden.create_shoot(shoot_manifest(order()))
    api = hand.garden._api

    async def refuse(*_: object) -> None:
        raise TrellisError(Code.FORBIDDEN, "cannot list shoots")

    monkeypatch.setattr(api, "read_all", refuse)
    async with hand.garden.follow_shoot(NAME) as states:
        assert await soon(states)
        with pytest.raises(TrellisError, match="cannot list shoots"):
            await soon(states)


async def test_followers_are_told_when_the_garden_stays_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.gardener.watch._DOWN_AFTER", 0.5)
    store = Store(tmp_path / "objects.db")
    start.furnish(store)
    async with served(garden_app(store)) as port:
        (tmp_path / "kubeconfig").write_bytes(kubeconfig(f"http://127.0.0.1:{port}"))
        garden = await Garden.connect(tmp_path / "kubeconfig", NAMESPACE)
        await garden.create_shoot(shoot_manifest(order()))
        follow = garden.follow_shoot(NAME)
        states = await follow.__aenter__()
        await soon(states)
        store.close()
    with pytest.raises(TrellisError) as caught:
        await soon(states)
    assert caught.value.failure.code is Code.UNAVAILABLE
    await follow.__aexit__(None, None, None)
    await garden.close()
