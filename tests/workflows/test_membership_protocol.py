"""Clusters and their VPC: who joins is served, who leaves is forgotten, and nothing is lost in between."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Network

import pytest

from domain.errors import Code
from domain.messages import ClusterPhase, Join, Leave, VpcPhase
from domain.names import cluster_workflow_id
from domain.states import Decision, Release
from tests.workflows.harness import Harness
from tests.workflows.world import World, refused
from workflows.cluster import ClusterWorkflow
from workflows.vpc import VpcWorkflow


async def test_a_cluster_becomes_ready_inside_its_vpc_and_leaves_nothing(trellis: Harness, world: World) -> None:
    view = await trellis.ready(await trellis.create("alpha"))
    assert view.phase is ClusterPhase.READY
    assert view.block == IPv4Network("10.0.0.0/22")
    assert view.nodes == IPv4Network("10.0.0.0/23")
    assert view.infra == IPv4Network("10.0.2.0/23")
    assert view.shoot is not None
    vpc = await trellis.vpc_view()
    assert vpc.phase is VpcPhase.READY
    assert [member.cluster for member in vpc.members] == ["alpha"]
    assert vpc.free.blocks == 63

    await trellis.delete("alpha")
    assert (await trellis.gone("alpha")).phase is ClusterPhase.DELETED
    assert (await trellis.vpc().result()).phase is VpcPhase.GONE
    assert world.made == world.removed
    assert len(world.made) == 1


async def test_sixty_four_clusters_at_once_fill_the_vpc_and_the_next_is_refused(trellis: Harness, world: World) -> None:
    handles = await asyncio.gather(*(trellis.create(f"c{i}") for i in range(64)))
    views = await asyncio.gather(*(trellis.ready(handle) for handle in handles))
    blocks = sorted(view.block for view in views if view.block)
    assert blocks == list(IPv4Network("10.0.0.0/16").subnets(new_prefix=22))

    await trellis.create("late")
    failure = await trellis.failed("late")
    assert failure.code is Code.VPC_FULL
    assert "nothing at all is free" in failure.message
    assert failure.hint
    assert "late" not in {m.cluster for m in (await trellis.vpc_view()).members}
    assert len(world.shoots) == 64

    await asyncio.gather(*(trellis.delete(f"c{i}") for i in range(64)))
    await asyncio.gather(*(trellis.gone(f"c{i}") for i in range(64)))
    await trellis.vpc().result()
    assert len(world.removed) == 1
    assert not world.shoots


async def test_a_join_during_the_deletion_gets_a_fresh_network(trellis: Harness, world: World) -> None:
    await trellis.ready(await trellis.create("first"))
    world.gates["remove_network"] = asyncio.Event()
    await trellis.delete("first")
    await trellis.gone("first")
    await world.reached["remove_network"].wait()
    second = await trellis.create("second")
    world.gates["remove_network"].set()
    view = await trellis.ready(second)
    assert view.phase is ClusterPhase.READY
    assert len(world.made) == 2
    assert world.removed == world.made[:1]


@pytest.mark.parametrize("step", ["plan_shoot", "ensure_network", "create_shoot", "await_shoot", "verify_connectivity"])
async def test_deleting_in_the_middle_of_any_step_leaves_nothing(trellis: Harness, world: World, step: str) -> None:
    world.gates[step] = asyncio.Event()
    await trellis.create("alpha")
    await world.reached[step].wait()
    await trellis.delete("alpha")
    if step == "ensure_network":  # a network that is being made is finished first; activities of the cluster end early
        world.gates[step].set()
    assert (await trellis.gone("alpha")).phase is ClusterPhase.DELETED
    if step != "plan_shoot":
        assert (await trellis.vpc().result()).phase is VpcPhase.GONE
    assert not world.networks
    assert not world.shoots


@pytest.mark.parametrize("step", ["ensure_network", "create_shoot", "await_shoot", "verify_connectivity"])
async def test_cancelling_in_the_middle_of_any_step_leaves_nothing(trellis: Harness, world: World, step: str) -> None:
    world.gates[step] = asyncio.Event()
    handle = await trellis.create("alpha")
    await world.reached[step].wait()
    await handle.cancel()
    world.gates[step].set()
    assert (await trellis.failed("alpha")).code is Code.CANCELLED
    await trellis.vpc().result()
    assert not world.networks
    assert not world.shoots


@pytest.mark.parametrize("step", ["ensure_network", "create_shoot", "await_shoot", "verify_connectivity"])
async def test_a_step_that_fails_for_good_is_cleaned_up_and_told(trellis: Harness, world: World, step: str) -> None:
    world.failures[step] = [refused(Code.QUOTA, f"quota at {step}")]
    await trellis.create("alpha")
    failure = await trellis.failed("alpha")
    assert failure.code is Code.QUOTA
    assert failure.message == f"quota at {step}"
    assert failure.hint == "try something else"
    view = await trellis.view("alpha")
    assert view.phase is ClusterPhase.FAILED
    assert view.failure == failure
    await trellis.vpc().result()
    assert world.calls[step] == 1, "a quota is not tried twice"
    assert not world.networks
    assert not world.shoots


async def test_a_network_that_cannot_be_made_fails_everyone_who_waits_and_the_name_is_free_again(
    trellis: Harness, world: World
) -> None:
    world.gates["ensure_network"] = asyncio.Event()
    world.failures["ensure_network"] = [refused(Code.FORBIDDEN)]
    await asyncio.gather(*(trellis.create(f"c{i}") for i in range(5)))
    await world.reached["ensure_network"].wait()
    world.gates["ensure_network"].set()
    codes = await asyncio.gather(*(trellis.failed(f"c{i}") for i in range(5)))
    assert {failure.code for failure in codes} <= {Code.FORBIDDEN}
    await trellis.vpc().result()
    await trellis.ready(await trellis.create("again"))


async def test_a_held_cluster_goes_on_when_told_to_retry(trellis: Harness, world: World) -> None:
    world.failures["create_shoot"] = [refused(Code.NO_CAPACITY)] * 2
    handle = await trellis.create("alpha", on_failure="hold")
    held = await trellis.held("alpha")
    assert held.failure is not None
    assert held.failure.code is Code.NO_CAPACITY
    await handle.signal(ClusterWorkflow.skip, Decision(who="ada", why="only connectivity can be skipped"))
    await handle.signal(ClusterWorkflow.retry, Decision(who="ada", why="capacity is back"))
    await trellis.held("alpha", calls=2)
    await handle.signal(ClusterWorkflow.retry, Decision(who="ada", why="now it is"))
    assert (await trellis.ready(handle)).phase is ClusterPhase.READY


async def test_a_held_connectivity_step_can_be_skipped_and_a_held_cluster_aborted(
    trellis: Harness, world: World
) -> None:
    world.failures["verify_connectivity"] = [refused(Code.UNREACHABLE)]
    handle = await trellis.create("alpha", on_failure="hold")
    await trellis.held("alpha")
    await handle.signal(ClusterWorkflow.skip, Decision())
    assert (await trellis.ready(handle)).phase is ClusterPhase.READY
    world.failures["await_shoot"] = [refused(Code.SHOOT_FAILED)]
    handle = await trellis.create("beta", on_failure="hold")
    await trellis.held("beta")
    await handle.signal(ClusterWorkflow.abort, Decision())
    assert (await trellis.failed("beta")).code is Code.SHOOT_FAILED
    assert [m.cluster for m in (await trellis.vpc_view()).members] == ["alpha"]


async def test_a_terminated_cluster_is_found_and_cleaned_up_by_name(trellis: Harness, world: World) -> None:
    await trellis.ready(await trellis.create("alpha"))
    await trellis.cluster("alpha").terminate("by mistake")
    assert [m.cluster for m in (await trellis.vpc_view()).members] == ["alpha"]
    await trellis.visible("shared")
    await trellis.delete("alpha")
    assert (await trellis.gone("alpha")).phase is ClusterPhase.DELETED
    await trellis.vpc().result()
    assert not world.networks
    assert not world.shoots


async def test_deleting_a_cluster_that_never_was_succeeds(trellis: Harness) -> None:
    await trellis.delete("nobody")
    assert (await trellis.gone("nobody")).phase is ClusterPhase.DELETED


async def test_a_terminated_cluster_created_again_gets_its_block_back(trellis: Harness) -> None:
    first = await trellis.ready(await trellis.create("alpha"))
    await trellis.ready(await trellis.create("beta"))
    await trellis.cluster("alpha").terminate("by mistake")
    again = await trellis.ready(await trellis.create("alpha"))
    assert again.block == first.block


async def test_late_duplicates_of_an_earlier_life_do_nothing(trellis: Harness) -> None:
    await trellis.ready(await trellis.create("keeper"))
    await trellis.ready(await trellis.create("alpha"))
    vpc = trellis.vpc()
    spec = trellis.spec("alpha")
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    await vpc.signal(VpcWorkflow.join, Join(cluster="alpha", token=1, vpc=spec.vpc_spec()))
    await vpc.signal(VpcWorkflow.leave, Leave(cluster="keeper", token=1))
    assert [m.cluster for m in (await trellis.vpc_view()).members] == ["keeper"]


async def test_a_malformed_signal_is_dropped_and_the_workflow_lives(trellis: Harness) -> None:
    handle = await trellis.create("alpha")
    await trellis.ready(handle)
    await trellis.vpc().signal("join", {"cluster": 7})
    await trellis.vpc().signal("no-such-signal", "what")
    await handle.signal("retry", "not a decision")
    await handle.signal("deprovision", args=[1, 2, 3])
    assert (await trellis.vpc_view()).phase is VpcPhase.READY
    await trellis.ready(await trellis.create("beta"))


async def test_an_operator_releases_a_member_and_keeps_an_empty_vpc(trellis: Harness, world: World) -> None:
    await trellis.ready(await trellis.create("alpha"))
    vpc = trellis.vpc()
    await vpc.signal(VpcWorkflow.delete, Decision(who="ada", why="tidy up"))
    await vpc.signal(VpcWorkflow.retain, Decision(who="ada", why="more to come"))
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    explained = await vpc.query(VpcWorkflow.explain)
    assert any("retained" in line for line in explained)
    assert any("refused: 1 members" in line and "ada" in line for line in explained)
    assert not world.removed, "a delete that was refused is forgotten"
    await trellis.ready(await trellis.create("beta"))
    await trellis.cluster("beta").terminate("gone for good")
    world.shoots.clear()
    await vpc.signal(VpcWorkflow.release, Release(cluster="beta", who="ada", why="its workflow is gone"))
    await vpc.signal(VpcWorkflow.delete, Decision(who="ada", why="now"))
    assert (await vpc.result()).phase is VpcPhase.GONE
    assert world.removed == world.made


async def test_a_blocked_deletion_is_told_and_goes_on_by_itself(trellis: Harness, world: World) -> None:
    await trellis.ready(await trellis.create("alpha"))
    world.failures["remove_network"] = [refused(Code.BLOCKED, "VPC has subnet subnet-1 (theirs)")] * 2
    world.gates["remove_network"] = asyncio.Event()
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    await world.reached["remove_network"].wait()
    world.reached["remove_network"].clear()
    world.gates["remove_network"].set()
    world.gates["remove_network"] = asyncio.Event()
    await world.reached["remove_network"].wait()
    view = await trellis.vpc_view()
    assert view.phase is VpcPhase.BLOCKED
    assert view.failure is not None
    assert "subnet-1" in view.failure.message
    world.gates["remove_network"].set()
    await trellis.vpc().result()
    assert world.removed == world.made


async def test_a_vpc_deleted_by_hand_is_lost_under_its_members_and_refuses_joins(
    trellis: Harness, world: World
) -> None:
    await trellis.ready(await trellis.create("alpha"))
    world.networks.clear()
    await trellis.create("beta")
    failure = await trellis.failed("beta")
    assert failure.code is Code.LOST
    assert "alpha" in failure.message
    assert (await trellis.vpc_view()).phase is VpcPhase.LOST
    await trellis.create("gamma")
    assert (await trellis.failed("gamma")).code is Code.LOST
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    await trellis.vpc().result()
    await trellis.ready(await trellis.create("delta"))


async def test_subnets_that_somebody_else_made_are_stepped_around(trellis: Harness, world: World) -> None:
    world.foreign = [IPv4Network("10.0.0.0/24"), IPv4Network("10.0.8.128/25")]
    blocks = [(await trellis.ready(await trellis.create(name))).block for name in ("alpha", "beta")]
    assert [str(block) for block in blocks] == ["10.0.4.0/22", "10.0.12.0/22"]
    await trellis.create("gamma", block="10.0.0.0/22")
    failure = await trellis.failed("gamma")
    assert failure.code is Code.BLOCK_TAKEN
    assert "10.0.0.0/24" in failure.message


async def test_an_exact_block_is_given_once_and_its_owner_is_named(trellis: Harness) -> None:
    view = await trellis.ready(await trellis.create("alpha", block="10.0.64.0/22"))
    assert view.block == IPv4Network("10.0.64.0/22")
    await trellis.create("beta", block="10.0.64.0/22")
    failure = await trellis.failed("beta")
    assert failure.code is Code.BLOCK_TAKEN
    assert "alpha" in failure.message


async def test_what_the_vpc_does_not_have_is_refused_by_name(trellis: Harness) -> None:
    await trellis.ready(await trellis.create("alpha"))
    await trellis.create("beta", credentials="aws-other")
    failure = await trellis.failed("beta")
    assert failure.code is Code.VPC_MISMATCH
    assert "aws-other" in failure.message
    await trellis.create("gamma", vpc_cidr="10.1.0.0/16")
    assert (await trellis.failed("gamma")).code is Code.VPC_MISMATCH


async def test_no_vpc_name_means_a_vpc_of_its_own(trellis: Harness) -> None:
    first = await trellis.ready(await trellis.create("solo", vpc=None))
    await trellis.ready(await trellis.create("other", vpc="solo"))
    assert first.vpc == "own--solo"
    assert [m.cluster for m in (await trellis.vpc_view("own--solo")).members] == ["solo"]
    assert [m.cluster for m in (await trellis.vpc_view("solo")).members] == ["other"]


async def test_the_history_of_a_provision_and_of_a_membership_stays_within_budget(trellis: Harness) -> None:
    await trellis.ready(await trellis.create("keeper"))
    vpc = trellis.vpc()
    before = len((await vpc.fetch_history()).events)
    handle = await trellis.create("alpha")
    await trellis.ready(handle)
    provision = await trellis.client.get_workflow_handle(handle.id, run_id=handle.result_run_id).fetch_history()
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    membership = len((await vpc.fetch_history()).events) - before
    assert len(provision.events) <= 45
    assert membership <= 25


async def test_a_cancelled_vpc_with_members_stays(trellis: Harness, world: World) -> None:
    await trellis.ready(await trellis.create("alpha"))
    await trellis.vpc().cancel()
    await trellis.ready(await trellis.create("beta"))
    assert {m.cluster for m in (await trellis.vpc_view()).members} == {"alpha", "beta"}
    assert not world.removed


async def test_joins_and_leaves_in_any_order_never_use_a_deleted_network_nor_keep_an_empty_one(
    trellis: Harness, world: World
) -> None:
    async def lives(name: str) -> None:
        for _ in range(4):
            handle = await trellis.create(name, vpc=f"v{world.random.randrange(2)}")
            if world.random.random() < 0.7:
                await trellis.ready(handle)
            await trellis.delete(name)
            await trellis.gone(name)

    await asyncio.gather(*(lives(f"c{i}") for i in range(12)))
    for vpc in ("v0", "v1"):
        await trellis.vpc(vpc).result()
    assert not world.networks
    assert not world.shoots
    assert sorted(world.made) == sorted(world.removed)


async def test_cluster_ids_are_readable(trellis: Harness) -> None:
    view = await trellis.ready(await trellis.create("alpha"))
    assert view.workflow_id == cluster_workflow_id(trellis.tenant, "alpha") == f"cluster/{trellis.tenant}/alpha"


GCP = {"provider": "gcp", "region": "europe-west3"}


async def test_clusters_change_their_router_one_at_a_time(trellis: Harness, world: World) -> None:
    world.pause = 0.05
    handles = [await trellis.create(f"c{i}", **GCP) for i in range(12)]
    await asyncio.gather(*(trellis.ready(handle) for handle in handles))
    for i in range(12):
        await trellis.delete(f"c{i}")
    await trellis.vpc().result()
    assert not world.routers
    assert not world.shoots


async def test_a_cluster_that_gives_up_while_it_works_on_the_router_hands_it_on(trellis: Harness, world: World) -> None:
    world.gates["await_nat_gateway"] = asyncio.Event()
    world.gates["await_shoot"] = asyncio.Event()
    first = await trellis.create("first", **GCP)
    await world.reached["await_nat_gateway"].wait()
    second = await trellis.create("second", **GCP)
    await first.signal(ClusterWorkflow.deprovision, Decision())
    await trellis.gone("first")
    world.gates["await_shoot"].set()
    assert (await trellis.ready(second)).phase is ClusterPhase.READY


async def test_a_shoot_that_fails_on_a_shared_router_hands_it_on(trellis: Harness, world: World) -> None:
    world.gates["await_nat_gateway"] = asyncio.Event()
    world.failures["await_shoot"] = [refused(Code.SHOOT_FAILED)]
    await trellis.create("first", **GCP)
    assert (await trellis.failed("first")).code is Code.SHOOT_FAILED
    second = await trellis.create("second", **GCP)
    assert (await trellis.ready(second)).phase is ClusterPhase.READY
