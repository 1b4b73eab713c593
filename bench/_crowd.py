"""A VPC with thousands of members: how large its memory is, and how long a worker takes to remember it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from ipaddress import IPv4Network
from itertools import count
from statistics import median
from time import perf_counter

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from bench import Measure
from bench._server import workers
from domain.membership import Membership
from domain.messages import Join, Leave
from domain.names import NAME_MAX, cluster_workflow_id, vpc_workflow_id
from domain.networks import Network
from domain.specs import Provider, VpcSpec
from domain.states import Note, VpcInput, VpcState
from tests.workflows.harness import Harness
from worker.wiring import WORKFLOWS, sandboxed
from workflows.vpc import VpcWorkflow

__all__ = ["replay", "state_size"]

# A VPC that takes a worker too long never gets there: each of its tasks is given up and begun again.
_STUCK_SECONDS = 300
_REPLAYS = 7
_REPLAYS_SECONDS = 30  # enough of them by then, however slow they are
# The most that a VPC remembers beside its members (domain/membership.py, workflows/vpc.py).
_DEPARTED, _NOTES = 1_000, 50


async def state_size() -> list[Measure]:
    """What a continue-as-new carries; every name is as long as a name may be, and nothing is left out."""
    sizes = []
    for members in (1_000, 5_000):
        (payload,) = await pydantic_data_converter.encode([_crowd("t" * NAME_MAX, members, name_length=NAME_MAX)])
        what = f"continue-as-new with {members:,} members: size"
        sizes.append(Measure(what, payload.ByteSize() / 1_000_000, "MB", 2))
    return sizes


async def replay(client: Client) -> list[Measure]:
    """A VPC with 1,000 members: at the end of the longest history that it ever has, and when it has just continued."""
    async with workers(client) as trellis:
        longest, fresh = await _histories(trellis, _crowd(trellis.tenant, 1_000))
    return [
        Measure("1,000 members, longest history: events", len(longest.events), "events"),
        Measure("1,000 members, longest history: replay", await _replayed(longest), "s", 1),
        Measure("1,000 members, just continued as new: replay", await _replayed(fresh), "s", 1),
    ]


async def _histories(trellis: Harness, start: VpcInput) -> tuple[WorkflowHistory, WorkflowHistory]:
    """One more comes and goes until the server asks the VPC to continue as new: the run that ended, and the next."""
    network = start.state.network
    assert network
    trellis.world.networks[start.spec.tenant, start.spec.name] = network.id
    # Every member has a subnet, which the VPC is told of whenever somebody joins.
    trellis.world.foreign = [next(member.block.subnets()) for member in start.state.members]
    vpc = await trellis.client.start_workflow(
        VpcWorkflow.run, start, id=vpc_workflow_id(start.spec.tenant, start.spec.name), task_queue=trellis.tenant
    )
    tokens = count(1)

    async def come_or_go() -> None:
        token = next(tokens)
        if token % 2:
            await vpc.signal(VpcWorkflow.join, Join(cluster="visitor", token=token, vpc=start.spec))
        else:
            await vpc.signal(VpcWorkflow.leave, Leave(cluster="visitor", token=token))

    await come_or_go()
    first = trellis.client.get_workflow_handle(vpc.id, run_id=vpc.result_run_id)
    answered = False
    async with asyncio.timeout(_STUCK_SECONDS):
        async for event in first.fetch_history_events(wait_new_event=True):
            # The visitor has no workflow of its own, so that nobody takes its answers: it is the VPC that is measured.
            answered |= event.event_type == EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED
            if answered and event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                answered = False
                await come_or_go()
    second = trellis.vpc(start.spec.name)
    await second.query(VpcWorkflow.describe)  # answered when its first task is done
    return await first.fetch_history(), await second.fetch_history()


async def _replayed(history: WorkflowHistory) -> float:
    """Median seconds, each time with a replayer that knows nothing."""
    times: list[float] = []
    while len(times) < _REPLAYS and sum(times) < _REPLAYS_SECONDS:
        replayer = Replayer(workflows=WORKFLOWS, data_converter=pydantic_data_converter, workflow_runner=sandboxed())
        started = perf_counter()
        await replayer.replay_workflow(history)
        times.append(perf_counter() - started)
    return median(times)


def _crowd(tenant: str, members: int, name_length: int = 12) -> VpcInput:
    """A VPC that continues as new with so many members."""
    spec = VpcSpec(
        tenant=tenant,
        name="crowded",
        provider=Provider.AZURE,
        region="westeurope",
        credentials="azure",
        cidrs=(IPv4Network("10.0.0.0/10"),),
        cluster_prefix=24,
    )
    now = datetime.now(UTC)
    token = int(now.timestamp() * 1000)
    network = Network(id="/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/crowded")
    names = [f"c{number:0{name_length - 1}}" for number in range(members + _DEPARTED)]
    book = Membership(spec)
    for name in names[:members]:
        book.join(Join(cluster=name, token=token, vpc=spec), cluster_workflow_id(tenant, name), now)
    book.grant(network)
    for name in names[members:]:
        book.leave(Leave(cluster=name, token=token), cluster_workflow_id(tenant, name))
    assert len(book.members) == members
    state = VpcState(
        incarnation="01890a5d-ac96-774b-bcce-b302099a8057",
        network=network,
        members=book.members,
        departed=book.departed,
        notes=(Note(at=now, what="retain", who="ada", why="more to come"),) * _NOTES,
    )
    return VpcInput(spec=spec, state=state)
