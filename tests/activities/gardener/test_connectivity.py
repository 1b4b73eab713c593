import asyncio
import hashlib

import pytest
from temporalio.testing import ActivityEnvironment

from activities.gardener.probe import Probe, probe
from domain.errors import Code, TrellisError
from tests.activities.gardener.sandboxed import World

# One garden for all of them, also where tests run side by side.
pytestmark = pytest.mark.xdist_group("garden")
IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.53"


async def test_clusters_of_one_vpc_reach_each_other_and_the_check_leaves_nothing(world: World) -> None:
    (alpha,) = await world.create("alpha")
    alone = await world.verify("alpha")
    assert alone.peers == ()
    assert "no other cluster of VPC shared" in alone.note

    (beta,) = await world.create("beta")
    assert await world.verify("beta") == alone.model_copy(update={"peers": ("alpha",), "note": ""})
    for order in (alpha, beta):
        await until_no_probes(world, order.plan.shoot.name)


async def test_of_many_peers_a_sample_is_called_the_same_at_each_attempt(world: World) -> None:
    await world.create("alpha", "beta", "gamma")
    reach = await world.verify("gamma", sample=1)
    assert len(reach.peers) == 1
    assert await world.verify("gamma", sample=1) == reach


async def test_a_rule_that_is_missing_is_named_with_who_does_not_reach_whom_and_where(world: World) -> None:
    orders = await world.create("alpha", "beta")
    group = world.network.parts["nodes-security-group"]
    world.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=world.self_rules())
    with pytest.raises(TrellisError) as caught:
        await world.verify("beta")
    failure = caught.value.failure
    assert failure.code is Code.UNREACHABLE
    assert "cluster beta does not reach cluster alpha at 10.0.0." in failure.message
    assert "i/o timeout" in failure.message
    assert "30000-32767" in failure.hint
    for order in orders:
        await until_no_probes(world, order.plan.shoot.name)


async def test_a_peer_that_leaves_meanwhile_does_not_fail_the_newcomer(world: World) -> None:
    await world.create("alpha", "beta")
    group = world.network.parts["nodes-security-group"]
    world.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=world.self_rules())
    environment, calling = ActivityEnvironment(), asyncio.Event()
    environment.on_heartbeat = lambda text: calling.set() if "calling alpha" in text else None
    verifying = asyncio.create_task(world.verify("beta", environment, patience=30))
    await calling.wait()
    await world.remove("alpha")
    assert await verifying == (await world.verify("beta")).model_copy(update={"note": "alpha left meanwhile"})


async def test_a_check_that_is_cancelled_removes_its_probes(world: World) -> None:
    orders = await world.create("alpha", "beta")
    group = world.network.parts["nodes-security-group"]
    world.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=world.self_rules())
    environment = ActivityEnvironment()
    verifying = asyncio.create_task(world.verify("beta", environment, patience=30))
    await world.probes(orders[0].plan.shoot.name, lambda names: bool(names))
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await verifying
    for order in orders:
        await until_no_probes(world, order.plan.shoot.name)


async def test_what_a_killed_attempt_left_does_not_disturb_the_next(world: World) -> None:
    alpha, _ = await world.create("alpha", "beta")
    info = ActivityEnvironment().info
    nonce = hashlib.sha256(f"{info.workflow_run_id}/{info.activity_id}".encode()).hexdigest()[:10]
    shoot = alpha.plan.shoot.name
    async with await world.garden.admin_access(shoot) as api:
        await Probe(api, "alpha", nonce, IMAGE).start()
    assert await world.probes(shoot) == {f"trellis-probe-{nonce}"}
    assert (await world.verify("beta")).peers == ("alpha",)
    await until_no_probes(world, shoot)


async def test_an_answer_of_anybody_else_does_not_count(world: World) -> None:
    (alpha,) = await world.create("alpha")
    async with (
        await world.garden.admin_access(alpha.plan.shoot.name) as api,
        probe(api, "alpha", "1", IMAGE) as one,
        probe(api, "alpha", "2", IMAGE) as other,
    ):
        assert await one.dial(other) == ""
        other.hostname = "beta-2"
        assert await one.dial(other) == "another machine answered: alpha-2"


async def test_a_cluster_without_room_fails_as_a_newcomer_and_is_passed_over_as_a_peer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha, _ = await world.create("alpha", "beta")
    monkeypatch.setattr("activities.gardener.probe._START_SECONDS", 1.5)
    async with await world.garden.admin_access(alpha.plan.shoot.name) as api:
        nodes, _ = await api.read_all("/api/v1/nodes")
        for node in nodes:
            await api.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"unschedulable": True}})
    with pytest.raises(TrellisError, match="Unschedulable") as caught:
        await world.verify("alpha")
    assert caught.value.failure.code is Code.TIMEOUT
    reach = await world.verify("beta")
    assert reach.peers == ()
    assert "alpha could not take part" in reach.note
    await until_no_probes(world, alpha.plan.shoot.name)


async def until_no_probes(world: World, shoot: str) -> None:
    """A namespace that was deleted takes a moment to go."""
    await world.probes(shoot, lambda names: not names)
