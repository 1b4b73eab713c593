from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from activities.gardener.client import Garden
from domain.shoots import ClusterKey
from sandbox.garden import start
from sandbox.kube import Store
from tests.activities.gardener.byhand import NAMESPACE, HandGarden, garden_app, kubeconfig, served


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
