"""Azure: the contract, and what only Azure has."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest

from activities.clouds.azure import AzureCloud, Patience
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import Faults
from tests.activities.cloud_contract import CloudContract, Rig
from tests.activities.proxied import proxied
from tests.sandbox.azure_server import LOCATION, Azure, Server

REGION = LOCATION


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud itself, without faults, and closed to those without credentials."""
    server = Server(tmp_path_factory.mktemp("azure") / "state", operation_seconds=0.01, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def secret(azure: Server) -> dict[str, str]:
    return azure.principal()


@pytest.fixture(scope="session")
def witness(azure: Server, secret: dict[str, str]) -> Azure:
    """Azure as somebody else would use it."""
    return azure.azure(secret)


@pytest.fixture(scope="session")
def _proxied(azure: Server) -> Iterator[tuple[str, Faults]]:
    with proxied("azure", azure.url, azure.certificate) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], azure: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", endpoint)
    monkeypatch.setenv("AZURE_RESOURCE_MANAGER_ENDPOINT", endpoint)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(azure.certificate.authority))
    faults.clear()
    yield faults
    faults.clear()


class AzureRig(Rig):
    """Azure in a test."""

    api = "azure"
    making = "*.put"
    removing = "*.delete"
    create = "virtualNetworks.put"
    elsewhere = "northeurope"

    def __init__(self, faults: Faults, witness: Azure, secret: dict[str, str]) -> None:
        self.witness, self.secret = witness, secret
        super().__init__(faults)

    def connect(self, region: str | None = None, **more: Any) -> AzureCloud:
        patience = Patience(settle=0.5, operation=5, poll=0.02)
        secret = more.get("secret", self.secret)
        return AzureCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self, *cidrs: str, vpc: str = "", tenant: str = "t") -> NetworkOrder:
        return NetworkOrder(
            tenant=tenant,
            vpc=vpc or uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.AZURE,
            region=REGION,
            credentials="azure",
            cidrs=tuple(map(IPv4Network, cidrs or ("10.0.0.0/16",))),
        )

    def make(self, *cidrs: str) -> NetworkRecord:
        order = self.order(*cidrs)
        network = self.cloud.ensure(NetworkRecord(order=order, network=None)).network
        return NetworkRecord(order=order, network=network)

    def networks(self, order: NetworkOrder) -> list[str]:
        wanted = {
            "trellis-installation": self.installation,
            "trellis-vpc": order.vpc,
            "trellis-incarnation": order.incarnation,
        }
        found = self.witness.network.virtual_networks.list_all()
        return [str(each.id) for each in found if wanted.items() <= (each.tags or {}).items()]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        group, vnet = names(network)
        subnet = self.witness.subnet(group, vnet, "other", "10.0.8.0/24")
        return subnet.id, lambda: self.witness.network.subnets.begin_delete(group, vnet, "other").result()

    def delete_by_hand(self, network: Network) -> None:
        self.witness.network.virtual_networks.begin_delete(*names(network)).result()


@pytest.fixture
def rig(faults: Faults, witness: Azure, secret: dict[str, str]) -> AzureRig:
    return AzureRig(faults, witness, secret)


def names(network: Network) -> tuple[str, str]:
    """The resource group's and the network's."""
    parts = network.id.split("/")
    return parts[4], parts[8]


class TestContract(CloudContract):
    """Azure does what every provider does."""
