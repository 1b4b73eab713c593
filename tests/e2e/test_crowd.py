"""Sixty-four clusters at once: as many as a VPC holds."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Network
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from domain.errors import Code
from domain.messages import ClusterPhase, ClusterView
from domain.specs import ClusterSpec, Provider
from sandbox.supervisor import Sandbox
from starter.client import Trellis
from starter.progress import await_cluster, await_deletion
from tests.e2e.conftest import Shell, ours, subnets


async def _ready(client: Trellis, name: str, tenant: str) -> ClusterView:
    async for _ in await_cluster(client, name, tenant):
        pass
    return await client.last_of_cluster(name, tenant)


async def test_sixty_four_clusters_fill_a_vpc_and_leave_it_all_at_once(
    trellis: Shell, sandbox: Sandbox, ec2: Any
) -> None:
    client = Trellis(await Client.connect(sandbox.world.temporal.address, data_converter=pydantic_data_converter))
    names = [f"c{i}" for i in range(64)]

    def spec(name: str) -> ClusterSpec:
        return ClusterSpec(tenant=trellis.tenant, name=name, provider=Provider.AWS, region="eu-central-1", vpc="shared")

    await asyncio.gather(*(client.create_cluster(spec(name)) for name in names))
    views = await asyncio.gather(*(_ready(client, name, trellis.tenant) for name in names))
    assert {view.phase for view in views} == {ClusterPhase.READY}, [v.failure for v in views if v.failure]
    assert sorted(v.block for v in views if v.block) == list(IPv4Network("10.0.0.0/16").subnets(new_prefix=22))
    (vpc,) = ours(ec2, trellis.tenant)
    inside = [IPv4Network(subnet["CidrBlock"]) for subnet in subnets(ec2, vpc["VpcId"])]
    assert len(inside) == 64 * 3

    await client.create_cluster(spec("late"))
    late = await _ready(client, "late", trellis.tenant)
    assert late.failure is not None
    assert late.failure.code is Code.VPC_FULL
    assert late.failure.hint
    assert len(subnets(ec2, vpc["VpcId"])) == 64 * 3

    await asyncio.gather(*(client.delete_cluster(name, trellis.tenant) for name in names))
    for name in names:
        async for _ in await_deletion(client, name, trellis.tenant):
            pass
    gone = await client.vpc_handle("shared", trellis.tenant).result()
    assert gone["phase"] == "gone"
    assert not ours(ec2, trellis.tenant)
    history = await client.vpc_handle("shared", trellis.tenant).fetch_history()
    removals = [
        event for event in history.events
        if event.activity_task_scheduled_event_attributes.activity_type.name == "remove_network"
    ]  # fmt: skip
    assert len(removals) == 1, "exactly one deletion of the VPC"
