"""GCP: the contract, and what only GCP has."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest
from google.oauth2 import service_account

from activities.clouds.gcp import GcpCloud, Patience
from domain.networks import Network, NetworkOrder
from domain.specs import Provider
from sandbox.faults import Faults
from tests.activities.cloud_contract import CloudContract, Rig
from tests.activities.proxied import proxied
from tests.sandbox.gcp_server import PROJECT, REGION, Compute, Server

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
QUOTAS = {"NETWORKS": 5000, "ROUTERS": 5000}


@pytest.fixture(scope="session")
def gcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud itself, without faults, and closed to those without credentials."""
    server = Server(tmp_path_factory.mktemp("gcp") / "state", operation_seconds=0.01, quotas=QUOTAS, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def key(gcp: Server) -> dict[str, Any]:
    return gcp.key()


@pytest.fixture(scope="session")
def _proxied(gcp: Server) -> Iterator[tuple[str, Faults]]:
    with proxied("gcp", gcp.url) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", f"{endpoint}/compute/v1/")
    faults.clear()
    yield faults
    faults.clear()


class GcpRig(Rig):
    """GCP, and its SDK as somebody else would use it."""

    api = "gcp"
    making = "*.insert"
    removing = "*.delete"
    create = "networks.insert"
    elsewhere = "us-central1"

    def __init__(self, faults: Faults, server: Server, key: dict[str, Any]) -> None:
        self.server, self.key = server, key
        super().__init__(faults)
        self.compute: Compute = server.compute(
            service_account.Credentials.from_service_account_info(key, scopes=SCOPES)
        )

    def connect(self, region: str | None = None, **more: Any) -> GcpCloud:
        secret = {"serviceaccount.json": json.dumps(more.get("key", self.key))}
        patience = Patience(settle=1, operation=5, retry=1, poll=0.02)
        return GcpCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self, clusters: int = 64) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.GCP,
            region=REGION,
            credentials="gcp",
            cidrs=(IPv4Network("10.0.0.0/16"),),
            clusters=clusters,
        )

    def networks(self, order: NetworkOrder) -> list[str]:
        wanted = {"installation": self.installation, "vpc": order.vpc, "incarnation": order.incarnation}
        return [
            each.name
            for each in self.compute.networks.list(project=PROJECT)
            if each.description
            and wanted.items()
            <= {k.removeprefix("trellis.dev/"): v for k, v in json.loads(each.description).items()}.items()
        ]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        name = f"s-{uuid.uuid4().hex[:8]}"
        self.compute.done(self.compute.subnetwork(network.id, name, "10.0.8.0/24"))
        return name, lambda: self.delete_subnetwork(name)

    def delete_subnetwork(self, name: str) -> None:
        self.compute.done(self.compute.subnetworks.delete_unary(project=PROJECT, region=REGION, subnetwork=name))

    def delete_by_hand(self, network: Network) -> None:
        for router in network.parts.values():
            self.compute.done(self.compute.routers.delete_unary(project=PROJECT, region=REGION, router=router))
        self.compute.done(self.compute.networks.delete_unary(project=PROJECT, network=network.id))


@pytest.fixture
def rig(faults: Faults, gcp: Server, key: dict[str, Any]) -> GcpRig:
    return GcpRig(faults, gcp, key)


class TestContract(CloudContract):
    """GCP does what every provider does."""
