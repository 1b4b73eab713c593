import asyncio
import itertools
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from sandbox.kube import Store, ensure_namespace
from tests.sandbox.kube import sample


class Served(NamedTuple):
    url: str
    store: Store


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Kubectl:
    """The real kubectl, asking the main server in the test's namespace if no other is named."""

    def __init__(self, url: str, namespace: str, home: Path) -> None:
        self._url, self._namespace, self._home = url, namespace, home
        (home / "kubeconfig").touch()

    async def __call__(self, *arguments: str, stdin: str = "", path: str = "", **environment: str) -> Result:
        process = await self.start(*arguments, path=path, **environment)
        async with asyncio.timeout(60):
            out, err = await process.communicate(stdin.encode())
        return Result(process.returncode or 0, out.decode(), err.decode())

    async def start(self, *arguments: str, path: str = "", **environment: str) -> asyncio.subprocess.Process:
        home = {name: str(self._home) for name in ("HOME", "TMPDIR")}
        return await asyncio.create_subprocess_exec(
            *("kubectl", "--server", self._url + path, "--namespace", self._namespace, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "KUBECONFIG": str(self._home / "kubeconfig"), **home, **environment},
        )


_numbers = itertools.count(1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "objects.db")
    yield store
    store.close()


@pytest.fixture(scope="session")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    store = Store(tmp_path_factory.mktemp("kube") / "objects.db")
    started = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(sample.serve(store, started))
    yield Served(f"http://127.0.0.1:{await started}", store)
    serving.cancel()
    await serving


@pytest.fixture(scope="session")
async def http(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=served.url) as client:
        yield client


@pytest.fixture
def namespace(served: Served) -> str:
    """A fresh namespace of the main server."""
    name = f"test-{next(_numbers)}"
    ensure_namespace(served.store, "main", name)
    return name


@pytest.fixture
def kubectl(served: Served, tmp_path: Path, namespace: str) -> Kubectl:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    return Kubectl(served.url, namespace, tmp_path)
