"""Clusters on OpenStack from the first step to the last: Keystone and Neutron, the garden, and Trellis' steps."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from activities.clouds.openstack import OpenStackCloud
from activities.connectivity import ConnectivityActivities
from activities.gardener.client import Garden
from activities.shoot import ShootActivities
from domain.errors import Code, TrellisError
from domain.layout import cut
from domain.networks import NetworkOrder, NetworkRecord
from domain.shoots import ClusterKey, Reach, ShootOrder, VerifyConnectivity
from domain.specs import ClusterSpec, Provider
from tests.activities.gardener.sandboxed import run
from tests.sandbox.garden.garden_server import NAMESPACE
from tests.sandbox.garden.garden_server import Garden as GardenServer
from tests.sandbox.openstack_server import MARKS, REGION, Server, openstack_server  # noqa: F401 - a fixture

pytestmark = MARKS


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory, openstack_server: Server) -> Iterator[Path]:  # noqa: F811
    state = tmp_path_factory.mktemp("garden")
    garden = GardenServer(state, "http://127.0.0.1:1", "--openstack-auth-url", openstack_server.auth_url)
    yield garden.kubeconfig
    assert garden.stop() == 0


@pytest.fixture
async def garden(kubeconfig: Path) -> AsyncIterator[Garden]:
    async with await Garden.connect(kubeconfig, NAMESPACE) as garden:
        yield garden


class World:
    """A tenant and its VPC."""

    def __init__(self, garden: Garden, cloud: OpenStackCloud) -> None:
        self.garden, self.cloud, self.tenant = garden, cloud, f"t{uuid.uuid4().hex[:8]}"
        self.shoots = ShootActivities(garden)
        order = NetworkOrder(
            tenant=self.tenant,
            vpc="shared",
            incarnation="1",
            provider=Provider.OPENSTACK,
            region=REGION,
            credentials="openstack",
            cidrs=(IPv4Network("10.0.0.0/16"),),
        )
        self.record = NetworkRecord(order=order, network=cloud.ensure(NetworkRecord(order=order, network=None)).network)

    def key(self, name: str) -> ClusterKey:
        return ClusterKey(tenant=self.tenant, cluster=name)

    async def create(self, name: str, slot: int) -> None:
        assert self.record.network
        spec = ClusterSpec.model_validate(
            {"tenant": self.tenant, "name": name, "provider": "openstack", "region": REGION, "vpc": "shared"}
        )
        plan = await run(self.shoots.plan_shoot, spec)
        layout = cut(spec.provider, IPv4Network(f"10.0.{4 * slot}.0/22"), plan.zones)
        order = ShootOrder(spec=spec, plan=plan, network=self.record.network, layout=layout, slot=slot)
        await run(self.shoots.create_shoot, order)
        await run(self.shoots.await_shoot, self.key(name))

    async def remove(self, name: str) -> None:
        await run(self.shoots.delete_shoot, self.key(name))
        await run(self.shoots.await_shoot_gone, self.key(name))

    async def verify(self, name: str) -> Reach:
        step = ConnectivityActivities(self.garden, patience=0.5).verify_connectivity
        reach: Reach = await run(step, VerifyConnectivity(tenant=self.tenant, cluster=name, vpc="shared"))
        return reach


async def test_clusters_share_a_network_and_its_router_reach_each_other_and_leave_nothing(
    garden: Garden,
    openstack_server: Server,  # noqa: F811
) -> None:
    # The Secret says where Keystone is; the garden's provider put that there.
    cloud = OpenStackCloud(REGION, await garden.credentials("openstack"), installation=uuid.uuid4().hex[:8])
    world = await asyncio.to_thread(World, garden, cloud)
    await asyncio.gather(world.create("alpha", 0), world.create("beta", 1))
    assert (await world.verify("beta")).peers == ("alpha",)
    seen = await asyncio.to_thread(cloud.ensure, world.record)
    assert [str(each) for each in seen.ranges] == ["10.0.0.0/23", "10.0.4.0/23"]

    await world.remove("alpha")
    with pytest.raises(TrellisError, match="shoot--trellis--") as caught:
        await asyncio.to_thread(cloud.remove, world.record)
    assert caught.value.failure.code is Code.BLOCKED
    blockers = await asyncio.to_thread(cloud.blockers, world.record)
    assert {each.kind for each in blockers} == {"subnet", "router-interface", "port"}
    assert len({each.owner for each in blockers}) == 1, "the neighbour has everything that it had"
    await world.remove("beta")
    await asyncio.to_thread(cloud.remove, world.record)
    assert cloud.owned() == ()
    network = openstack_server.connect().network
    assert [each.name for each in network.security_groups() if each.name.startswith("shoot--")] == []
