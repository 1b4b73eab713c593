"""OpenStack: the contract, and what only OpenStack has."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Any

import pytest

from activities.clouds.openstack import OpenStackCloud, Patience
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import Faults
from tests.activities.cloud_contract import CloudContract, Rig
from tests.sandbox.openstack_server import (  # noqa: F401 - fixtures
    MARKS,
    POOL,
    REGION,
    Server,
    openstack_faults,
    openstack_server,
)

pytestmark = MARKS


class OpenStackRig(Rig):
    """OpenStack, and its SDK as somebody else would use it."""

    api = "openstack"
    making = "[!gd]*"
    removing = "delete_*"
    create = "create_network"
    elsewhere = "eu-nl-1"

    def __init__(self, faults: Faults, server: Server) -> None:
        self.server = server
        super().__init__(faults)
        self.network: Any = server.connect().network

    def connect(self, region: str | None = None, **more: str) -> OpenStackCloud:
        patience = Patience(settle=0.3, look=0.2, poll=0.02)
        secret = self.server.secret() | more
        return OpenStackCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.OPENSTACK,
            region=REGION,
            credentials="openstack",
            cidrs=(IPv4Network("10.0.0.0/16"),),
        )

    def made(self, network: Network) -> set[str]:
        return {network.id, network.parts["router"]}

    def networks(self, order: NetworkOrder) -> list[str]:
        mark = f"trellis.dev/{self.installation}/t/{order.vpc}/{order.incarnation}"
        return [each.id for each in self.network.networks(description=mark)]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        subnet = self.network.create_subnet(network_id=network.id, cidr="10.0.8.0/24", ip_version=4)
        return subnet.id, lambda: self.network.delete_subnet(subnet)

    def delete_by_hand(self, network: Network) -> None:
        self.network.delete_router(network.parts["router"])
        self.network.delete_network(network.id)

    def make(self) -> NetworkRecord:
        order = self.order()
        return NetworkRecord(order=order, network=self.cloud.ensure(NetworkRecord(order=order, network=None)).network)


@pytest.fixture
def rig(openstack_faults: Faults, openstack_server: Server) -> OpenStackRig:  # noqa: F811
    return OpenStackRig(openstack_faults, openstack_server)


class TestContract(CloudContract):
    """OpenStack does what every provider does."""
