"""One watch for all shoots of a namespace, whoever waits for whichever of them."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import defaultdict
from collections.abc import AsyncGenerator

from activities.gardener.api import Api, ExpiredError, Object
from domain.errors import TrellisError

__all__ = ["ShootWatch"]

_log = logging.getLogger(__name__)

# The server ends a watch after so many seconds, and it is resumed where it ended.
_WATCH_SECONDS = 240
_PAUSE_MIN, _PAUSE_MAX = 0.5, 10.0
# Followers of a watch that has been down for so many seconds are told.
_DOWN_AFTER = 60.0


class ShootWatch:
    """A list, then a watch, resumed or listed anew as long as somebody follows a shoot.

    A follower costs one read of its shoot, then nothing until the shoot changes. Versions are compared as numbers, as
    Kubernetes allows (KEP-5504): an event that is older than what a follower has seen is no news.
    """

    def __init__(self, api: Api, path: str) -> None:
        """`path` is the collection's, such as `/apis/core.gardener.cloud/v1beta1/namespaces/garden-x/shoots`."""
        self._api = api
        self._path = path
        self._followers: defaultdict[str, set[_Follower]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None

    async def follow(self, name: str) -> AsyncGenerator[Object | None]:
        """The shoot as it is now, then each time it changed, at last None when it is gone.

        States that follow quickly on each other may be left out, the newest never. A shoot that is gone and made anew
        is gone. Close the iterator (`contextlib.aclosing`) to stop following.

        Raises:
            TrellisError: `forbidden` where the garden does not let us look, `unavailable` where it has not answered
                for a minute.
        """
        follower = _Follower()
        self._followers[name].add(follower)
        self._ensure_running()
        try:
            shoot = await self._api.find(f"{self._path}/{name}")
            if shoot is not None:
                follower.start(shoot)
            while shoot is not None:
                yield shoot
                shoot = await follower.next()
            yield None
        finally:
            self._followers[name].discard(follower)
            if not self._followers[name]:
                del self._followers[name]

    async def close(self) -> None:
        """Stop watching."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def _ensure_running(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="shoot watch")

    async def _run(self) -> None:
        """Keep watching; what goes wrong is retried with growing pauses, and followers are told when it lasts."""
        version, pause, down_since = "", _PAUSE_MIN, None
        while True:
            try:
                version = version or await self._list()
                async for event, shoot in self._api.watch(self._path, version, _WATCH_SECONDS):
                    version, pause, down_since = shoot["metadata"]["resourceVersion"], _PAUSE_MIN, None
                    self._tell(event, shoot)
            except ExpiredError:
                version = ""
            except TrellisError as error:
                now = time.monotonic()
                down_since = down_since or now
                if not error.failure.transient or now - down_since > _DOWN_AFTER:
                    self._fail(error)
                _log.warning("the watch on the garden's shoots pauses for %.1f s: %s", pause, error)
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - jitter
            pause = min(pause * 2, _PAUSE_MAX)

    async def _list(self) -> str:
        """Tell the followers what is there and what is not; returns the version to go on from."""
        shoots, version = await self._api.read_all(self._path)
        by_name = {shoot["metadata"]["name"]: shoot for shoot in shoots}
        for name, followers in self._followers.items():
            for follower in followers:
                if name in by_name:
                    follower.see(by_name[name])
                else:
                    follower.miss(int(version))
        return version

    def _tell(self, event: str, shoot: Object) -> None:
        if event == "BOOKMARK":
            return
        for follower in self._followers.get(shoot["metadata"]["name"], ()):
            if event == "DELETED":
                follower.miss(_version(shoot))
            else:
                follower.see(shoot)

    def _fail(self, error: TrellisError) -> None:
        for followers in self._followers.values():
            for follower in followers:
                follower.fail(error)


class _Follower:
    """One wait: the newest state of one incarnation of a shoot, and a bell."""

    def __init__(self) -> None:
        self._version = -1
        self._uid = ""
        self._state: Object | None = None
        self._gone = False
        self._early: list[Object | int] = []
        self._error: TrellisError | None = None
        self._bell = asyncio.Event()

    def start(self, shoot: Object) -> None:
        """What was read first; what the watch told meanwhile is weighed against it."""
        self._version, self._uid = _version(shoot), shoot["metadata"]["uid"]
        for news in self._early:
            self.miss(news) if isinstance(news, int) else self.see(news)
        self._early.clear()

    def see(self, shoot: Object) -> None:
        """It was there, so."""
        if not self._uid:
            self._early.append(shoot)
        elif _version(shoot) > self._version:
            same = shoot["metadata"]["uid"] == self._uid
            self._news(_version(shoot), shoot if same else None)

    def miss(self, version: int) -> None:
        """It was not there, or was deleted, at that version."""
        if not self._uid:
            self._early.append(version)
        elif version > self._version:
            self._news(version, None)

    def fail(self, error: TrellisError) -> None:
        """Nothing can be seen."""
        self._error = error
        self._bell.set()

    async def next(self) -> Object | None:
        """The newest state, once there is one that was not taken yet."""
        await self._bell.wait()
        self._bell.clear()
        if self._error:
            raise TrellisError.of(self._error.failure)
        return self._state

    def _news(self, version: int, state: Object | None) -> None:
        if self._gone:
            return
        self._version, self._state, self._gone = version, state, state is None
        self._bell.set()


def _version(shoot: Object) -> int:
    return int(shoot["metadata"]["resourceVersion"])
