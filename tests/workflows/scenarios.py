"""Every way that a workflow's life can go, for recording and replaying histories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from ipaddress import IPv4Network
from typing import Any

from temporalio.client import WorkflowHandle

from domain.errors import Code
from domain.states import Decision, Release
from tests.workflows.harness import Harness
from tests.workflows.world import World, refused
from workflows.cluster import ClusterWorkflow
from workflows.vpc import VpcWorkflow

Handle = WorkflowHandle[Any, Any]
# Yields the name of a history and the run that it belongs to.
Scenario = Callable[[Harness, World], AsyncIterator[tuple[str, Handle]]]


def _run(trellis: Harness, handle: Handle) -> Handle:
    return trellis.client.get_workflow_handle(handle.id, run_id=handle.result_run_id)


async def lived(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """Two clusters come and go."""
    alpha = await trellis.create("alpha")
    await trellis.ready(alpha)
    beta = await trellis.create("beta", zones=("eu-central-1a", "eu-central-1b"))
    await trellis.ready(beta)
    yield "cluster-provisioned", _run(trellis, alpha)
    for name in ("alpha", "beta"):
        await trellis.delete(name)
        await trellis.gone(name)
    yield "cluster-deprovisioned", trellis.cluster("alpha")
    await trellis.vpc().result()
    yield "vpc-two-members", trellis.vpc()


async def failed(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """A step fails for good, and is compensated; the VPC cannot be made either."""
    for step in ("plan_shoot", "create_shoot", "await_shoot", "verify_connectivity", "ensure_network"):
        world.failures[step] = [refused(Code.QUOTA)]
        await trellis.create("alpha")
        await trellis.failed("alpha")
        yield f"cluster-failed-{step}", trellis.cluster("alpha")
        if step != "plan_shoot":
            await trellis.vpc().result()
    yield "vpc-not-made", trellis.vpc()


async def held(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """A person decides: retry, skip, abort."""
    world.failures["await_shoot"] = [refused(Code.SHOOT_FAILED)]
    world.failures["verify_connectivity"] = [refused(Code.UNREACHABLE)]
    alpha = await trellis.create("alpha", on_failure="hold")
    await trellis.held("alpha")
    await alpha.signal(ClusterWorkflow.retry, Decision(who="ada", why="mended"))
    await trellis.held("alpha", calls=2)
    await alpha.signal(ClusterWorkflow.skip, Decision(who="ada", why="known"))
    await trellis.ready(alpha)
    yield "cluster-held-retried-skipped", _run(trellis, alpha)
    world.failures["create_shoot"] = [refused(Code.INVALID)]
    beta = await trellis.create("beta", on_failure="hold")
    await trellis.held("beta")
    await beta.signal(ClusterWorkflow.abort, Decision(who="ada", why="no use"))
    await trellis.failed("beta")
    yield "cluster-held-aborted", trellis.cluster("beta")


async def interrupted(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """Deprovisioned and cancelled in the middle."""
    world.gates["await_shoot"] = asyncio.Event()
    alpha = await trellis.create("alpha")
    await world.reached["await_shoot"].wait()
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    yield "cluster-deprovisioned-midway", trellis.cluster("alpha")
    world.reached["await_shoot"].clear()
    alpha = await trellis.create("alpha")
    await world.reached["await_shoot"].wait()
    await alpha.cancel()
    await trellis.failed("alpha")
    yield "cluster-cancelled-midway", trellis.cluster("alpha")


async def forgotten(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """A cluster whose workflow was terminated, one that never was, and a VPC that operators worked on."""
    await trellis.ready(await trellis.create("alpha"))
    await trellis.cluster("alpha").terminate("by mistake")
    await trellis.visible("shared")
    await trellis.vpc().signal(VpcWorkflow.retain, Decision(who="ada", why="more to come"))
    await trellis.vpc().cancel()
    await trellis.delete("alpha")
    await trellis.gone("alpha")
    yield "cluster-terminated-then-deleted", trellis.cluster("alpha")
    await trellis.delete("nobody")
    await trellis.gone("nobody")
    yield "cluster-never-seen", trellis.cluster("nobody")
    await trellis.ready(await trellis.create("beta"))
    await trellis.cluster("beta").terminate("by mistake")
    world.shoots.clear()
    await trellis.vpc().signal(VpcWorkflow.release, Release(cluster="beta", who="ada", why="gone"))
    world.failures["remove_network"] = [refused(Code.BLOCKED)]
    await trellis.vpc().signal(VpcWorkflow.delete, Decision(who="ada", why="enough"))
    await trellis.vpc().result()
    yield "vpc-retained-released-blocked", trellis.vpc()


async def lost(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """A network that somebody deleted, and subnets that somebody made."""
    await trellis.ready(await trellis.create("alpha"))
    world.foreign = [IPv4Network("10.0.4.0/24")]
    await trellis.ready(await trellis.create("beta"))
    await trellis.create("gamma", block="10.0.4.0/22")
    await trellis.failed("gamma")
    yield "cluster-refused", trellis.cluster("gamma")
    world.networks.clear()
    await trellis.create("delta")
    await trellis.failed("delta")
    for name in ("alpha", "beta"):
        await trellis.delete(name)
        await trellis.gone(name)
    await trellis.vpc().result()
    yield "vpc-lost", trellis.vpc()


async def queued(trellis: Harness, world: World) -> AsyncIterator[tuple[str, Handle]]:
    """Clusters that change a router one at a time."""
    handles = [await trellis.create(f"c{i}", provider="gcp", region="europe-west3") for i in range(3)]
    for handle in handles:
        await trellis.ready(handle)
    yield "cluster-queued", _run(trellis, handles[2])
    for i in range(3):
        await trellis.delete(f"c{i}")
    await trellis.vpc().result()
    yield "cluster-queued-deprovisioned", trellis.cluster("c1")
    yield "vpc-queued", trellis.vpc()


SCENARIOS: tuple[Scenario, ...] = (lived, failed, held, interrupted, forgotten, lost, queued)
