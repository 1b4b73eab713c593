import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from activities.gardener.client import Garden
from domain.shoots import ClusterKey
from sandbox.garden import start
from sandbox.kube import Store
from tests.activities.gardener.byhand import NAMESPACE, HandGarden, garden_app, kubeconfig, served
from tests.activities.gardener.sandboxed import World, make_network, running_garden


@pytest.fixture
async def hand(tmp_path: Path) -> AsyncIterator[HandGarden]:
    """A fresh garden of one's own."""
    store = Store(tmp_path / "objects.db")
    start.furnish(store)
    async with served(garden_app(store)) as port:
        url = f"http://127.0.0.1:{port}"
        (tmp_path / "kubeconfig").write_bytes(kubeconfig(url, token="anything"))
        async with await Garden.connect(tmp_path / "kubeconfig", NAMESPACE) as garden:
            yield HandGarden(store, url, tmp_path / "kubeconfig", garden)
        store.close()


@pytest.fixture
def alpha() -> ClusterKey:
    return ClusterKey(tenant="default", cluster="alpha")


@pytest.fixture(scope="session")
def garden_url(tmp_path_factory: pytest.TempPathFactory, aws_endpoint: str) -> Iterator[tuple[str, Path]]:
    """The sandbox's garden: its URL and its kubeconfig."""
    state = tmp_path_factory.mktemp("garden")
    with running_garden(state, aws_endpoint) as url:
        yield url, state / "garden.kubeconfig"


@pytest.fixture
async def world(
    garden_url: tuple[str, Path], aws_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """A tenant and a VPC of one's own, without clusters."""
    url, file = garden_url
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_endpoint)
    async with await Garden.connect(file, NAMESPACE) as garden:
        tenant = f"t{uuid.uuid4().hex[:8]}"
        secret = await garden.credentials("aws")
        network, ec2 = await asyncio.to_thread(make_network, secret, tenant, aws_endpoint)
        here = World(garden, url, network, ec2, tenant)
        yield here
        here.setting(fail=[])
