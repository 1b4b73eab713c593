"""The network steps, with AWS behind them."""

from __future__ import annotations

import pytest
from temporalio.testing import ActivityEnvironment

from activities.clouds import Cloud
from activities.network import NetworkActivities
from domain.errors import Code, TrellisError
from domain.networks import NetworkRecord
from domain.specs import Provider
from sandbox.faults import FaultKind, Faults
from tests.activities.test_aws import AwsRig


@pytest.fixture
def rig(faults: Faults) -> AwsRig:
    return AwsRig(faults)


@pytest.fixture
def steps(rig: AwsRig) -> NetworkActivities:
    async def clouds(provider: Provider, region: str, credentials: str) -> Cloud:
        if credentials != "aws":
            raise TrellisError(Code.NOT_FOUND, f"no credentials {credentials} for {provider} in {region}", "make them")
        return rig.cloud

    return NetworkActivities(clouds)


async def test_a_network_is_made_looked_at_and_removed(rig: AwsRig, steps: NetworkActivities) -> None:
    order = rig.order()
    seen = await ActivityEnvironment().run(steps.ensure_network, NetworkRecord(order=order, network=None))
    record = NetworkRecord(order=order, network=seen.network)
    assert await ActivityEnvironment().run(steps.ensure_network, record) == seen
    await ActivityEnvironment().run(steps.remove_network, record)
    assert rig.left() == ()


async def test_a_removal_that_only_a_person_can_help_waits_and_says_why(rig: AwsRig, steps: NetworkActivities) -> None:
    record = rig.make()
    rig.break_next(FaultKind.FORBIDDEN, "DeleteVpc")
    with pytest.raises(TrellisError, match=r"UnauthorizedOperation.*\[forbidden\]") as caught:
        await ActivityEnvironment().run(steps.remove_network, record)
    assert caught.value.failure.code is Code.BLOCKED
    assert caught.value.failure.hint
    await ActivityEnvironment().run(steps.remove_network, record)
    assert rig.left() == ()


async def test_a_removal_without_credentials_waits_for_them(rig: AwsRig, steps: NetworkActivities) -> None:
    record = NetworkRecord(order=rig.order().model_copy(update={"credentials": "gone"}), network=None)
    with pytest.raises(TrellisError, match="no credentials gone") as caught:
        await ActivityEnvironment().run(steps.remove_network, record)
    assert caught.value.failure.code is Code.BLOCKED


async def test_a_removal_that_may_succeed_by_itself_keeps_its_code(rig: AwsRig, steps: NetworkActivities) -> None:
    record = rig.make()
    rig.break_next(FaultKind.THROTTLE, "DeleteVpc")
    with pytest.raises(TrellisError) as caught:
        await ActivityEnvironment().run(steps.remove_network, record)
    assert caught.value.failure.code is Code.THROTTLED
