"""Alibaba Cloud: the contract, and what only Alibaba Cloud has."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest

from activities.clouds.alicloud import AlicloudCloud, Patience
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import Faults
from tests.activities.cloud_contract import CloudContract, Rig
from tests.activities.proxied import proxied
from tests.sandbox.alicloud_server import REGION, Sdk, Server

QUOTAS = {f"vpc_quota_instances_num_{REGION}": 5000}


@pytest.fixture(scope="session")
def alicloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud itself, without faults, and closed to those without credentials."""
    state = tmp_path_factory.mktemp("alicloud") / "state"
    server = Server(state, operation_seconds=0.02, quotas=QUOTAS, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def key(alicloud: Server) -> dict[str, str]:
    return alicloud.key()


@pytest.fixture(scope="session")
def _proxied(alicloud: Server) -> Iterator[tuple[str, Faults]]:
    with proxied("alicloud", alicloud.url) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    for product in ("VPC", "VPCPEER", "ECS", "STS"):
        monkeypatch.setenv(f"ALIBABA_CLOUD_ENDPOINT_{product}", endpoint)
    faults.clear()
    yield faults
    faults.clear()


class AlicloudRig(Rig):
    """Alibaba Cloud, and its SDK as somebody else would use it."""

    api = "alicloud"
    making = "[CA]*"
    # What a removal asks and does, and `owned` does not.
    removing = "De*[!s]"
    create = "CreateVpc"

    def __init__(self, faults: Faults, server: Server, key: dict[str, str]) -> None:
        self.server, self.key = server, key
        super().__init__(faults)
        self.sdk: Sdk = server.sdk(key)

    def connect(self, region: str | None = None, **more: Any) -> AlicloudCloud:
        patience = Patience(settle=2, poll=0.01)
        secret = more.get("key", self.key)
        return AlicloudCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self, *cidrs: str) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.ALICLOUD,
            region=REGION,
            credentials="alicloud",
            cidrs=tuple(map(IPv4Network, cidrs or ("10.0.0.0/16", "10.1.0.0/16"))),
        )

    def networks(self, order: NetworkOrder) -> list[str]:
        tags = {"installation": self.installation, "vpc": order.vpc, "incarnation": order.incarnation}
        filters = {}
        for number, (name, value) in enumerate(tags.items(), 1):
            filters |= {f"Tag.{number}.Key": f"trellis.dev/{name}", f"Tag.{number}.Value": value}
        return [vpc["VpcId"] for vpc in self.sdk.vpcs(**filters)]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        vswitch = self.sdk.vswitch(network.id, "10.0.8.0/24")

        def take_away() -> None:
            self.sdk("DeleteVSwitch", VSwitchId=vswitch)
            self.sdk.until("DescribeVSwitches", "VSwitches", "VSwitch", None, VSwitchId=vswitch)

        return vswitch, take_away

    def delete_by_hand(self, network: Network) -> None:
        self.sdk("DeleteVpc", VpcId=network.id)
        self.sdk.until("DescribeVpcs", "Vpcs", "Vpc", None, VpcId=network.id)

    def make(self, *cidrs: str) -> NetworkRecord:
        order = self.order(*cidrs)
        return NetworkRecord(order=order, network=self.cloud.ensure(NetworkRecord(order=order, network=None)).network)


@pytest.fixture
def rig(faults: Faults, alicloud: Server, key: dict[str, str]) -> AlicloudRig:
    return AlicloudRig(faults, alicloud, key)


class TestContract(CloudContract):
    """Alibaba Cloud does what every provider does."""
