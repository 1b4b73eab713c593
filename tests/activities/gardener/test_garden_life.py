"""The shoot's steps against the sandbox's Gardener, which builds and removes in the cloud."""

import pytest

from activities.shoot import ShootActivities
from domain.errors import Code, TrellisError
from tests.activities.gardener.sandboxed import World, run

# One garden for all of them, also where tests run side by side.
pytestmark = pytest.mark.xdist_group("garden")


async def test_a_shoot_takes_its_subnets_and_its_nodes_the_shared_group_and_leaves_nothing(world: World) -> None:
    (order,) = await world.create("alpha")
    assert world.subnets() == ["10.0.0.0/23", "10.0.2.0/24", "10.0.3.0/24"]
    shoot = await world.garden.shoot(order.plan.shoot.name)
    assert shoot
    assert shoot["status"]["networking"]["nodes"] == ["10.0.0.0/23"]
    await world.remove("alpha")
    assert world.subnets() == []
    await world.remove("alpha")


async def test_a_cloud_that_throttles_gardener_only_delays_the_shoot(world: World) -> None:
    world.setting(fail=[{"codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"], "message": "RequestLimitExceeded", "times": 2}])
    order = await world.ask("alpha", "10.0.0.0/22")
    await run(ShootActivities(world.garden, throttled_pause=0.05).await_shoot, world.key("alpha"))
    assert await world.garden.shoot(order.plan.shoot.name)


async def test_a_quota_ends_the_wait_and_a_second_wait_tries_again(world: World) -> None:
    world.setting(fail=[{"codes": ["ERR_INFRA_QUOTA_EXCEEDED"], "message": "VpcLimitExceeded", "times": 2}])
    shoots = ShootActivities(world.garden)
    await world.ask("alpha", "10.0.0.0/22")
    with pytest.raises(TrellisError, match="VpcLimitExceeded") as caught:
        await run(shoots.await_shoot, world.key("alpha"))
    assert caught.value.failure.code is Code.QUOTA
    await run(shoots.await_shoot, world.key("alpha"))


async def test_a_zone_without_machines_is_told_at_once(world: World) -> None:
    world.setting(
        fail=[{"codes": ["ERR_INFRA_RESOURCES_DEPLETED"], "message": "InsufficientInstanceCapacity", "times": 100}]
    )
    await world.ask("alpha", "10.0.0.0/22")
    with pytest.raises(TrellisError, match="InsufficientInstanceCapacity") as caught:
        await run(ShootActivities(world.garden).await_shoot, world.key("alpha"))
    assert caught.value.failure.code is Code.NO_CAPACITY


async def test_a_foreign_thing_in_the_shoots_subnet_blocks_until_it_goes(world: World) -> None:
    await world.create("alpha")
    subnet = world.ec2.describe_subnets(
        Filters=[
            {"Name": "vpc-id", "Values": [world.network.id]},
            {"Name": "cidr-block", "Values": ["10.0.0.0/23"]},
        ]
    )["Subnets"][0]["SubnetId"]
    interface = world.ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    with pytest.raises(TrellisError, match="DependencyViolation") as caught:
        await world.remove("alpha")
    assert caught.value.failure.code is Code.BLOCKED
    with pytest.raises(TrellisError) as caught:
        await run(ShootActivities(world.garden).await_shoot_gone, world.key("alpha"))
    assert caught.value.failure.code is Code.BLOCKED
    world.ec2.delete_network_interface(NetworkInterfaceId=interface)
    await run(ShootActivities(world.garden).await_shoot_gone, world.key("alpha"))
    assert world.subnets() == []


async def test_what_gardener_refuses_is_told_with_the_field_it_names(world: World) -> None:
    with pytest.raises(TrellisError, match=r"nodes") as caught:
        await world.ask("alpha", "240.0.0.0/22")
    assert caught.value.failure.code is Code.INVALID
