import asyncio
import itertools
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
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


Kubectl = Callable[..., Awaitable[Result]]
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
async def kubectl(served: Served, tmp_path: Path, namespace: str) -> Kubectl:
    """Runs the real kubectl against the main server, in the test's namespace if no other is named."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    (tmp_path / "kubeconfig").touch()

    async def run(*arguments: str, stdin: str = "", path: str = "", **environment: str) -> Result:
        options = ["--server", served.url + path, "--namespace", namespace]
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            *options,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "TMPDIR": str(tmp_path),
                "KUBECONFIG": str(tmp_path / "kubeconfig"),
                **environment,
            },
        )
        async with asyncio.timeout(60):
            out, err = await process.communicate(stdin.encode())
        return Result(process.returncode or 0, out.decode(), err.decode())

    return run
