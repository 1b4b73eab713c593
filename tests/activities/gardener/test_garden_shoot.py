import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from temporalio.testing import ActivityEnvironment

from activities.gardener.manifest import shoot_manifest
from activities.shoot import ShootActivities
from domain.errors import Code, TrellisError
from domain.networks import Network
from domain.shoots import ClusterKey
from domain.specs import ClusterSpec
from sandbox.garden.kinds import GARDEN, SHOOTS_KEY
from tests.activities.gardener.byhand import NAMESPACE, HandGarden, order

NAME = order().plan.shoot.name
T = TypeVar("T")


class Steps:
    """Runs activities as a worker does, and hears their heartbeats."""

    def __init__(self, hand: HandGarden) -> None:
        self.shoots = ShootActivities(hand.garden, throttled_pause=0.01)
        self.environment = ActivityEnvironment()
        self.environment.info = replace(self.environment.info, heartbeat_timeout=timedelta(seconds=10))
        self.environment.on_heartbeat = lambda *details: self._heard.put_nowait(details[0])
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    async def run(self, step: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        return await asyncio.wait_for(self.environment.run(step, *arguments), 20)

    def start(self, step: Callable[..., Awaitable[T]], *arguments: Any) -> asyncio.Task[T]:
        return asyncio.create_task(self.run(step, *arguments))

    async def hears(self, words: str) -> None:
        async with asyncio.timeout(10):
            while words not in await self._heard.get():
                """An earlier heartbeat."""


@pytest.fixture
def steps(hand: HandGarden) -> Steps:
    return Steps(hand)


@pytest.fixture
async def made(hand: HandGarden, steps: Steps) -> HandGarden:
    """Alpha's shoot is there, and Gardener has not begun."""
    await steps.run(steps.shoots.create_shoot, order())
    return hand


async def refused(task: Awaitable[Any], code: Code) -> TrellisError:
    with pytest.raises(TrellisError) as caught:
        await task
    assert caught.value.failure.code is code, caught.value
    return caught.value


async def asked_to_retry(hand: HandGarden) -> None:
    """Waits until Gardener is asked to."""

    def asked() -> bool:
        annotations = hand.shoot(NAME)["metadata"].get("annotations") or {}
        return annotations.get("gardener.cloud/operation") == "retry"

    async with asyncio.timeout(10):
        events = hand.store.watch(GARDEN, SHOOTS_KEY, NAMESPACE, hand.store.version)
        while not asked():
            await anext(events)


# --- planning -------------------------------------------------------------------------------------


async def test_a_plan_names_the_shoot_and_what_was_chosen(steps: Steps) -> None:
    spec = ClusterSpec.model_validate({"name": "alpha", "provider": "aws", "region": "eu-central-1"})
    plan = await steps.run(steps.shoots.plan_shoot, spec)
    assert (plan.shoot.namespace, plan.shoot.name) == (NAMESPACE, NAME)
    assert plan.zones == ("eu-central-1a",)


async def test_credentials_that_are_not_there_or_not_the_providers_are_refused_with_those_that_are(
    steps: Steps,
) -> None:
    for wrong in ("nobody", "gcp"):
        spec = ClusterSpec.model_validate(
            {"name": "alpha", "provider": "aws", "region": "eu-central-1", "credentials": wrong}
        )
        error = await refused(steps.run(steps.shoots.plan_shoot, spec), Code.INVALID)
        assert wrong in error.failure.message
        assert "aws, aws-other" in error.failure.hint


async def test_a_landscape_without_the_providers_profile_says_so(hand: HandGarden) -> None:
    steps = Steps(hand)
    spec = ClusterSpec.model_validate({"name": "alpha", "provider": "aws", "region": "eu-central-1"})
    shoots = ShootActivities(hand.garden, {spec.provider: "aws-of-old"})
    assert "aws-of-old" in str(await refused(steps.run(shoots.plan_shoot, spec), Code.INVALID))


# --- creating -------------------------------------------------------------------------------------


async def test_asking_twice_is_one_shoot(made: HandGarden, steps: Steps) -> None:
    await steps.run(steps.shoots.create_shoot, order())
    assert made.names() == [NAME]


async def test_a_shoot_of_the_cluster_in_another_place_is_not_taken_over(made: HandGarden, steps: Steps) -> None:
    elsewhere = [
        order(block="10.0.4.0/22"),
        order(vpc="other"),
        order().model_copy(update={"network": Network(id="vpc-2")}),
    ]
    for each in elsewhere:
        await refused(steps.run(steps.shoots.create_shoot, each), Code.CLUSTER_EXISTS)


async def test_a_shoot_on_its_way_out_is_waited_for(made: HandGarden, steps: Steps) -> None:
    hold(made)
    await steps.run(steps.shoots.delete_shoot, ClusterKey(tenant="default", cluster="alpha"))
    await refused(steps.run(steps.shoots.create_shoot, order()), Code.BUSY)


async def test_somebody_elses_shoot_is_left_alone(hand: HandGarden, steps: Steps, alpha: ClusterKey) -> None:
    foreign = shoot_manifest(order())
    foreign["metadata"]["labels"] = {"trellis.dev/tenant": "other", "trellis.dev/cluster": "alpha"}
    await hand.garden.create_shoot(foreign)
    await refused(steps.run(steps.shoots.create_shoot, order()), Code.CONFLICT)
    await refused(steps.run(steps.shoots.await_shoot, alpha), Code.CONFLICT)
    assert await steps.run(steps.shoots.find_shoot, alpha) is None
    await steps.run(steps.shoots.delete_shoot, alpha)
    await steps.run(steps.shoots.await_shoot_gone, alpha)
    assert "deletionTimestamp" not in hand.shoot(NAME)["metadata"]


async def test_a_shoot_that_lost_its_labels_counts_as_the_clusters_and_blocks_its_removal(
    hand: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    bare = shoot_manifest(order())
    del bare["metadata"]["labels"]
    await hand.garden.create_shoot(bare)
    for step in (steps.shoots.delete_shoot, steps.shoots.await_shoot_gone):
        assert "labels" in str(await refused(steps.run(step, alpha), Code.BLOCKED))
    assert "deletionTimestamp" not in hand.shoot(NAME)["metadata"]


# --- waiting --------------------------------------------------------------------------------------


async def test_the_wait_tells_how_far_it_is_and_ends_when_all_is_healthy(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    await steps.hears("waiting for Gardener to begin")
    made.gardener_says(NAME, "Processing", description="Creating infrastructure")
    await steps.hears("42% Creating infrastructure")
    made.gardener_says(NAME, "Succeeded", healthy=("APIServerAvailable",))
    await steps.hears("EveryNodeReady")
    made.gardener_says(NAME, "Succeeded")
    await waiting


async def test_what_gardener_gave_up_ends_the_wait_with_its_words(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    made.gardener_says(NAME, "Processing")
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    await steps.hears("42%")
    made.gardener_says(NAME, "Failed", codes=["ERR_INFRA_QUOTA_EXCEEDED"], description="VpcLimitExceeded: five")
    assert "VpcLimitExceeded: five" in str(await refused(waiting, Code.QUOTA))


async def test_a_shoot_that_the_cloud_throttled_is_tried_again_until_it_works(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    await steps.hears("waiting")
    for _ in range(2):
        made.gardener_says(NAME, "Failed", codes=["ERR_INFRA_RATE_LIMITS_EXCEEDED"], description="slow down")
        await asked_to_retry(made)
        made.gardener_says(NAME, "Processing")
        await steps.hears("42%")
    made.gardener_says(NAME, "Succeeded")
    await waiting


async def test_what_had_failed_before_the_wait_is_tried_again_and_fails_only_anew(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    made.gardener_says(NAME, "Failed", codes=["ERR_INFRA_QUOTA_EXCEEDED"], description="as before")
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    await asked_to_retry(made)
    made.gardener_says(NAME, "Processing")
    await steps.hears("42%")
    made.gardener_says(NAME, "Failed", codes=["ERR_INFRA_QUOTA_EXCEEDED"], description="still the same")
    assert "still the same" in str(await refused(waiting, Code.QUOTA))


async def test_a_shoot_that_somebody_deletes_is_lost(made: HandGarden, steps: Steps, alpha: ClusterKey) -> None:
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    await steps.hears("waiting")
    made.remove(NAME)
    await refused(waiting, Code.LOST)


async def test_a_wait_that_is_cancelled_ends_at_once_and_leaves_nobody_waiting(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    await steps.hears("waiting")
    steps.environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not made.garden._watch._followers


async def test_a_wait_heartbeats_three_times_within_the_heartbeat_timeout(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    steps.environment.info = replace(steps.environment.info, heartbeat_timeout=timedelta(milliseconds=30))
    waiting = steps.start(steps.shoots.await_shoot, alpha)
    for _ in range(3):
        await steps.hears("waiting for Gardener")
    made.gardener_says(NAME, "Succeeded")
    await waiting


# --- deleting -------------------------------------------------------------------------------------


def hold(hand: HandGarden) -> None:
    """Gardener's finalizer: the shoot stays until it is cleaned up."""
    shoot = hand.shoot(NAME)
    shoot["metadata"]["finalizers"] = ["gardener"]
    hand.store.update(GARDEN, SHOOTS_KEY, shoot)


async def test_a_deletion_is_confirmed_and_ends_when_the_shoot_is_gone(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    made.gardener_says(NAME, "Failed", codes=["ERR_INFRA_DEPENDENCIES"])  # of the creation: no matter now
    hold(made)
    await steps.run(steps.shoots.delete_shoot, alpha)
    await steps.run(steps.shoots.delete_shoot, alpha)
    meta = made.shoot(NAME)["metadata"]
    assert meta["annotations"]["confirmation.gardener.cloud/deletion"] == "true"
    assert meta["deletionTimestamp"]
    waiting = steps.start(steps.shoots.await_shoot_gone, alpha)
    made.gardener_says(NAME, "Processing", kind="Delete", description="Destroying workers")
    await steps.hears("Destroying workers")
    made.remove(NAME)
    await waiting
    await steps.run(steps.shoots.delete_shoot, alpha)
    await steps.run(steps.shoots.await_shoot_gone, alpha)


async def test_a_deletion_that_is_blocked_names_the_blocker_and_is_tried_again_by_the_next_wait(
    made: HandGarden, steps: Steps, alpha: ClusterKey
) -> None:
    hold(made)
    await steps.run(steps.shoots.delete_shoot, alpha)
    made.gardener_says(NAME, "Processing", kind="Delete")
    waiting = steps.start(steps.shoots.await_shoot_gone, alpha)
    await steps.hears("42%")
    blocked: dict[str, Any] = {"kind": "Delete", "codes": ["ERR_INFRA_DEPENDENCIES"], "description": "eni-1 is in use"}
    made.gardener_says(NAME, "Failed", **blocked)
    assert "eni-1 is in use" in str(await refused(waiting, Code.BLOCKED))
    waiting = steps.start(steps.shoots.await_shoot_gone, alpha)
    await asked_to_retry(made)
    made.remove(NAME)
    await waiting


async def test_a_shoot_is_found_by_its_cluster_alone(made: HandGarden, steps: Steps, alpha: ClusterKey) -> None:
    found = await steps.run(steps.shoots.find_shoot, alpha)
    assert found
    assert (found.vpc, str(found.block), found.deleting) == ("shared", "10.0.0.0/22", False)
    assert await steps.run(steps.shoots.find_shoot, ClusterKey(tenant="default", cluster="beta")) is None
