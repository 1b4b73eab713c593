"""The main job on the clouds beside AWS, as a user does it and as an outsider sees it."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest
from google.oauth2 import service_account
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from domain.messages import ClusterPhase, ClusterView, VpcPhase
from domain.specs import ClusterSpec, Provider
from sandbox.supervisor import Options, Sandbox, start
from starter.cli import run
from starter.client import Trellis
from starter.outside import OUTSIDES, Outside, Thing
from starter.progress import await_cluster, await_deletion
from tests.e2e.conftest import Shell, check_no_secrets, secret_data
from tests.sandbox import gcp_server
from tests.sandbox.alicloud.server import Sdk
from tests.sandbox.azure_server import Azure

TOGETHER = ("alpha", "beta", "gamma")
FOREIGN = "10.0.64.0/24"


@dataclass(frozen=True)
class Case:
    """What a provider has, what a shoot has there, and how somebody else puts a subnet into a network.

    `foreign` gives the subnet's id, and how it is removed.
    """

    provider: Provider
    zone: str
    machine_type: str
    kinds: frozenset[str]
    foreign: Callable[[Sandbox, dict[str, str], str], tuple[str, Callable[[], Any]]]

    @property
    def region(self) -> str:
        return OUTSIDES[self.provider].region


def _gcp_subnet(sandbox: Sandbox, secret: dict[str, str], network: str) -> tuple[str, Callable[[], Any]]:
    key = json.loads(secret["serviceaccount.json"])
    credentials = service_account.Credentials.from_service_account_info(
        key, scopes=["https://www.googleapis.com/auth/compute"]
    )
    assert sandbox.world.gcp is not None
    compute = gcp_server.Compute(sandbox.world.gcp.endpoint, credentials)
    compute.done(compute.subnetwork(network, "somebodys", FOREIGN))
    where = {"project": gcp_server.PROJECT, "region": gcp_server.REGION}
    return "somebodys", lambda: compute.done(compute.subnetworks.delete_unary(subnetwork="somebodys", **where))


def _azure_subnet(sandbox: Sandbox, secret: dict[str, str], network: str) -> tuple[str, Callable[[], Any]]:
    world = sandbox.world.azure
    assert world is not None
    assert world.certificate is not None
    azure = Azure(world.endpoint, world.certificate, secret)
    place = network.split("/")[4], network.split("/")[-1]
    azure.subnet(*place, "somebodys", FOREIGN)
    return "somebodys", lambda: azure.network.subnets.begin_delete(*place, "somebodys").result()


def _alicloud_subnet(sandbox: Sandbox, secret: dict[str, str], network: str) -> tuple[str, Callable[[], Any]]:
    assert sandbox.world.alicloud is not None
    sdk = Sdk(sandbox.world.alicloud.endpoint, secret, OUTSIDES[Provider.ALICLOUD].region)
    vswitch = sdk.vswitch(network, FOREIGN)
    return vswitch, lambda: sdk("DeleteVSwitch", VSwitchId=vswitch)


CASES = (
    Case(
        Provider.GCP, "europe-west3-a", "n2-standard-2",
        frozenset({"subnetwork", "NAT gateway", "firewall rule", "instance"}), _gcp_subnet,
    ),
    Case(
        Provider.AZURE, "1", "Standard_D2s_v5",
        frozenset({"subnet", "Microsoft.Network/networkSecurityGroups", "Microsoft.Network/routeTables",
                   "resource group"}), _azure_subnet,
    ),
    Case(
        Provider.ALICLOUD, "eu-central-1a", "ecs.g7.large",
        frozenset({"vSwitch", "NAT gateway", "address", "route table", "security group"}), _alicloud_subnet,
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with all these clouds; it is what this process sees too."""
    clouds = tuple(case.provider.value for case in CASES)
    running = start(tmp_path_factory.mktemp("world"), Options(shoot_seconds=0.5, clouds=clouds))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.world.apply_to(os.environ).items():
            patch.setenv(name, value)
        yield running
    running.stop()


@pytest.fixture(params=CASES, ids=lambda case: case.provider.value)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def secret(world: Sandbox, case: Case) -> dict[str, str]:
    return secret_data(world)[case.provider.value]


@pytest.fixture
def outside(case: Case, secret: dict[str, str]) -> Outside:
    """The cloud, seen from outside."""
    return OUTSIDES[case.provider].seen(secret)


@pytest.fixture
def shell(world: Sandbox) -> Shell:
    """The command line, for a tenant of this test's own."""
    return Shell(world, tenant="t" + uuid.uuid4().hex[:12])


@pytest.fixture
async def trellis(world: Sandbox) -> Trellis:
    return Trellis(await Client.connect(world.world.temporal.address, data_converter=pydantic_data_converter))


async def _created(trellis: Trellis, case: Case, tenant: str, name: str) -> ClusterView:
    spec = ClusterSpec(tenant=tenant, name=name, provider=case.provider, region=case.region, vpc="shared")
    assert await trellis.create_cluster(spec)
    assert not await trellis.create_cluster(spec), "the same request twice is one cluster"
    async for _ in await_cluster(trellis, name, tenant):
        pass
    view = await trellis.cluster(name, tenant)
    assert view.phase is ClusterPhase.READY, view.failure
    return view


async def _deleted(trellis: Trellis, tenant: str, name: str) -> None:
    await trellis.delete_cluster(name, tenant)
    async for _ in await_deletion(trellis, name, tenant):
        pass
    view = await trellis.last_of_cluster(name, tenant)
    assert view.phase is ClusterPhase.DELETED, view.failure


async def _things(outside: Outside) -> list[Thing]:
    return await asyncio.to_thread(lambda: [*outside.things()])


def _of(view: ClusterView, things: list[Thing], *others: ClusterView) -> dict[tuple[str, str], str]:
    """What belongs to one cluster alone, by kind and id, as the cloud describes it."""

    def mentions(thing: Thing, cluster: ClusterView) -> bool:
        assert cluster.shoot is not None
        return cluster.shoot.name in f"{thing.id} {thing.description}"

    return {
        (thing.kind, thing.id): json.dumps(_lasting(thing.description), sort_keys=True, default=str)
        for thing in things
        if mentions(thing, view) and not any(mentions(thing, other) for other in others)
    }


def _lasting(description: Any) -> Any:
    """A description without the marks of a version: Azure's change with anything in the same network."""
    if isinstance(description, dict):
        return {key: _lasting(value) for key, value in description.items() if key != "etag"}
    if isinstance(description, list | tuple):
        return [_lasting(each) for each in description]
    return description


async def test_clusters_share_a_network_and_the_last_one_out_removes_it(
    case: Case, outside: Outside, shell: Shell, trellis: Trellis
) -> None:
    assert await _things(outside) == []
    views = await asyncio.gather(*(_created(trellis, case, shell.tenant, name) for name in TOGETHER))
    blocks = [view.block for view in views]
    assert not any(one.overlaps(other) for one, other in combinations(blocks, 2) if one and other)
    vpc = await trellis.vpc("shared", shell.tenant)
    assert sorted(member.cluster for member in vpc.members) == list(TOGETHER)
    assert vpc.network is not None
    assert await asyncio.to_thread(outside.networks) == [vpc.network.id]
    listed = (await asyncio.to_thread(shell, "cluster", "list", "--output", "json")).json
    assert [each["name"] for each in listed] == list(TOGETHER)

    gone, *neighbours = views
    before = await _things(outside)
    await _deleted(trellis, shell.tenant, gone.name)
    after = await _things(outside)
    for neighbour in neighbours:
        own = _of(neighbour, before, *(view for view in views if view is not neighbour))
        now = _of(neighbour, after)
        assert {kind for kind, _ in own} >= case.kinds
        assert {key: now.get(key) for key in own} == own, "the neighbour's things are untouched"
    assert not _of(gone, after), "nothing of it is left"

    await asyncio.gather(*(_deleted(trellis, shell.tenant, view.name) for view in neighbours))
    await trellis.vpc_handle("shared", shell.tenant).result()
    assert await _things(outside) == []


async def test_a_subnet_of_somebody_else_blocks_the_deletion_until_it_goes(
    case: Case, outside: Outside, shell: Shell, trellis: Trellis, secret: dict[str, str]
) -> None:
    await _created(trellis, case, shell.tenant, "alpha")
    (network,) = await asyncio.to_thread(outside.networks)
    foreign, take_away = await asyncio.to_thread(case.foreign, shell.sandbox, secret, network)
    blocked = await asyncio.to_thread(shell.delete, "alpha", status=1)
    assert "error: blocked" in blocked.err
    assert foreign in blocked.err
    view = await trellis.vpc("shared", shell.tenant)
    assert view.phase is VpcPhase.BLOCKED
    assert view.failure is not None
    assert foreign in view.failure.message
    assert foreign in {thing.id for thing in await _things(outside)}, "foreign things are not touched"
    await asyncio.to_thread(take_away)
    await trellis.vpc_handle("shared", shell.tenant).result()
    assert await _things(outside) == []


def test_what_the_landscape_does_not_have_is_refused_with_what_it_has(
    case: Case, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--provider", case.provider.value, "--region", case.region)
    for arguments, wrong, right in (
        (("--provider", case.provider.value, "--region", "mars-1"), "mars-1", case.region),
        ((*where, "--zones", "mars-1z"), "mars-1z", case.zone),
        ((*where, "--machine-type", "m1.huge"), "m1.huge", case.machine_type),
    ):
        # In this process, whose environment is the sandbox's: it has the clouds' SDKs already.
        assert run(["cluster", "create", "alpha", "--tenant", shell.tenant, *arguments]) == 2
        said = capsys.readouterr().err
        assert wrong in said
        assert right in said
    assert run(["cluster", "list", "--tenant", shell.tenant, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [], "nothing was started"


async def test_no_credential_is_in_any_history_log_or_error(world: Sandbox, shell: Shell, trellis: Trellis) -> None:
    async def lives(case: Case) -> None:
        tenant = f"{shell.tenant}-{case.provider.value}"
        await _created(trellis, case, tenant, "alpha")
        await _deleted(trellis, tenant, "alpha")
        await trellis.vpc_handle("shared", tenant).result()

    await asyncio.gather(*map(lives, CASES))
    await asyncio.to_thread(check_no_secrets, world, *(case.provider.value for case in CASES))
