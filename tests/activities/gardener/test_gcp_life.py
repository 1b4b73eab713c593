"""Clusters on GCP from the first step to the last: the sandbox's Compute Engine, its garden, and Trellis' steps."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from google.auth.credentials import AnonymousCredentials

from activities.clouds.gcp import GcpCloud
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
from tests.sandbox.gcp_server import PROJECT, REGION, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("gcp") / "state", operation_seconds=0.01)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Path]:
    state = tmp_path_factory.mktemp("garden")
    garden = GardenServer(state, "http://127.0.0.1:1", "--gcp-endpoint", server.url)
    yield garden.kubeconfig
    assert garden.stop() == 0


@pytest.fixture
async def garden(kubeconfig: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Garden]:
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", f"{server.url}/compute/v1/")
    async with await Garden.connect(kubeconfig, NAMESPACE) as garden:
        yield garden


class World:
    """A tenant and its VPC."""

    def __init__(self, garden: Garden, cloud: GcpCloud) -> None:
        self.garden, self.cloud, self.tenant = garden, cloud, f"t{uuid.uuid4().hex[:8]}"
        self.shoots = ShootActivities(garden)
        order = NetworkOrder(
            tenant=self.tenant,
            vpc="shared",
            incarnation="1",
            provider=Provider.GCP,
            region=REGION,
            credentials="gcp",
            cidrs=(IPv4Network("10.0.0.0/16"),),
            clusters=64,
        )
        self.record = NetworkRecord(order=order, network=cloud.ensure(NetworkRecord(order=order, network=None)).network)

    def key(self, name: str) -> ClusterKey:
        return ClusterKey(tenant=self.tenant, cluster=name)

    async def create(self, name: str, slot: int) -> None:
        assert self.record.network
        spec = ClusterSpec.model_validate(
            {"tenant": self.tenant, "name": name, "provider": "gcp", "region": REGION, "vpc": "shared"}
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


async def test_clusters_share_a_network_reach_each_other_and_leave_nothing(garden: Garden, server: Server) -> None:
    secret = await garden.credentials("gcp")
    cloud = GcpCloud(REGION, secret, installation=uuid.uuid4().hex[:8])
    world = await asyncio.to_thread(World, garden, cloud)
    # The slots of two routers.
    await world.create("alpha", 0)
    await world.create("beta", 50)
    assert (await world.verify("beta")).peers == ("alpha",)

    compute = server.compute(AnonymousCredentials())  # type: ignore[no-untyped-call]
    routers = list(compute.routers.list(project=PROJECT, region=REGION))
    assert [len(router.nats) for router in routers] == [1, 1]
    seen = await asyncio.to_thread(cloud.ensure, world.record)
    assert [str(each) for each in seen.ranges] == ["10.0.0.0/23", "10.0.2.0/23", "10.0.200.0/23", "10.0.202.0/23"]

    await world.remove("alpha")
    with pytest.raises(TrellisError, match="-nodes") as caught:
        await asyncio.to_thread(cloud.remove, world.record)
    assert caught.value.failure.code is Code.BLOCKED
    assert len({each.owner for each in cloud.blockers(world.record)}) == 1, "the neighbour has everything that it had"
    await world.remove("beta")
    await asyncio.to_thread(cloud.remove, world.record)
    assert cloud.owned() == ()
    assert not list(compute.networks.list(project=PROJECT))
