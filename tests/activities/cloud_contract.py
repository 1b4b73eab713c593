"""What every provider's adapter must do. A provider's tests inherit `CloudContract` and give it a `rig`."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

import pytest

from activities.clouds import Cloud
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord, Owned
from sandbox.faults import Fault, FaultKind, Faults

_Result = TypeVar("_Result")
_MOST_ATTEMPTS = 10


class Rig(ABC):
    """A provider's cloud in a test."""

    api: str
    # Patterns of the operations that change something, as `Fault.operation` takes them: while making, while removing.
    making: str
    removing: str
    # The operation that makes the network itself.
    create: str
    # A region that no order is for.
    elsewhere: str = "eu-west-1"

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.installation = uuid.uuid4().hex[:8]
        self.cloud = self.connect()

    @abstractmethod
    def connect(self, region: str | None = None) -> Cloud:
        """A client as the worker makes it, with little patience."""

    @abstractmethod
    def order(self) -> NetworkOrder:
        """An order for a network of its own."""

    def made(self, network: Network) -> set[str]:
        """The ids of all that is made for a network."""
        return {network.id, *network.parts.values()}

    @abstractmethod
    def networks(self, order: NetworkOrder) -> list[str]:
        """The ids of all networks that carry the order's tags, as the cloud itself tells them."""

    @abstractmethod
    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        """Puts something into the network: its id, and how to take it away again."""

    @abstractmethod
    def delete_by_hand(self, network: Network) -> None:
        """Deletes the network itself, behind the adapter's back."""

    def break_next(self, kind: FaultKind, operation: str, *, times: int = 1, after: int = 0) -> None:
        """Sets a fault."""
        self.faults.add(Fault(api=self.api, operation=operation, kind=kind, times=times, after=after))

    def left(self) -> tuple[Owned, ...]:
        """Everything that this test's installation has in the cloud."""
        return self.cloud.owned()


def insist(step: Callable[[], _Result]) -> _Result:
    """Tries again as long as the failure says that this makes sense; a worker would do it with pauses."""
    for _ in range(_MOST_ATTEMPTS):
        try:
            return step()
        except TrellisError as error:
            if not error.failure.transient:
                raise
    return step()


class CloudContract:
    """The tests that do not depend on the provider."""

    @pytest.fixture
    def made(self, rig: Rig) -> NetworkRecord:
        """A network that exists."""
        order = rig.order()
        return NetworkRecord(order=order, network=rig.cloud.ensure(_unrecorded(order)).network)

    def test_making_a_network_twice_gives_the_same_one(self, rig: Rig, made: NetworkRecord) -> None:
        again = rig.cloud.ensure(_unrecorded(made.order))
        assert again.network == made.network
        assert rig.cloud.ensure(made) == again
        assert rig.networks(made.order) == [again.network.id]

    def test_every_incarnation_has_a_network_of_its_own(self, rig: Rig, made: NetworkRecord) -> None:
        later = made.order.model_copy(update={"incarnation": "later"})
        assert made.network is not None
        assert rig.cloud.ensure(_unrecorded(later)).network.id != made.network.id
        assert rig.networks(made.order) == [made.network.id]

    @pytest.mark.parametrize(
        "kind", [FaultKind.LOST_RESPONSE, FaultKind.ERROR_AFTER, FaultKind.ERROR_BEFORE, FaultKind.THROTTLE]
    )
    def test_one_network_comes_of_it_whichever_call_fails(self, rig: Rig, kind: FaultKind) -> None:
        struck = 0
        while True:
            order = rig.order()
            rig.break_next(kind, rig.making, after=struck)
            seen = insist(lambda order=order: rig.cloud.ensure(_unrecorded(order)))  # type: ignore[misc]
            if rig.faults.pending():
                break  # there are no more calls than that
            struck += 1
            assert rig.networks(order) == [seen.network.id]
            assert len([owned for owned in rig.left() if owned.vpc == order.vpc]) == len(rig.made(seen.network))
        assert struck > 1

    @pytest.mark.parametrize("kind", [FaultKind.LOST_RESPONSE, FaultKind.ERROR_BEFORE, FaultKind.THROTTLE])
    def test_nothing_is_left_whichever_call_of_a_removal_fails(self, rig: Rig, kind: FaultKind) -> None:
        struck = 0
        while True:
            order = rig.order()
            record = NetworkRecord(order=order, network=rig.cloud.ensure(_unrecorded(order)).network)
            rig.break_next(kind, rig.removing, after=struck)
            insist(lambda record=record: rig.cloud.remove(record))  # type: ignore[misc]
            assert rig.left() == ()
            if rig.faults.pending():
                break
            struck += 1
        assert struck > 1

    def test_nothing_is_left_of_a_half_made_network(self, rig: Rig) -> None:
        done = 0
        while True:
            order = rig.order()
            rig.break_next(FaultKind.FORBIDDEN, rig.making, after=done)
            try:
                rig.cloud.ensure(_unrecorded(order))
            except TrellisError as error:
                assert error.failure.code is Code.FORBIDDEN  # noqa: PT017 - the last round has no error
            rig.cloud.remove(_unrecorded(order))
            assert rig.left() == ()
            if rig.faults.pending():
                break
            done += 1
        assert done > 1

    def test_removing_twice_is_removing_once(self, rig: Rig, made: NetworkRecord) -> None:
        rig.cloud.remove(made)
        rig.cloud.remove(made)
        assert rig.left() == ()

    def test_a_foreign_resource_is_named_and_nothing_is_touched(self, rig: Rig, made: NetworkRecord) -> None:
        assert made.network is not None
        foreign, take_away = rig.add_foreign(made.network)
        before = rig.left()
        for _ in range(2):
            with pytest.raises(TrellisError, match=foreign) as caught:
                rig.cloud.remove(made)
            assert caught.value.failure.code is Code.BLOCKED
            assert caught.value.failure.hint
        assert foreign in {blocker.id for blocker in rig.cloud.blockers(made)}
        assert rig.left() == before
        take_away()
        assert rig.cloud.blockers(made) == ()
        rig.cloud.remove(made)
        assert rig.left() == ()

    def test_a_client_of_another_region_touches_nothing(self, rig: Rig, made: NetworkRecord) -> None:
        elsewhere = rig.connect(rig.elsewhere)
        for step in (elsewhere.remove, elsewhere.ensure, elsewhere.blockers):
            with pytest.raises(TrellisError, match=made.order.region) as caught:
                step(made)
            assert caught.value.failure.code is Code.INVALID
        assert rig.networks(made.order) != []

    def test_a_network_deleted_by_hand_is_lost_and_not_made_anew(self, rig: Rig, made: NetworkRecord) -> None:
        assert made.network is not None
        rig.delete_by_hand(made.network)
        with pytest.raises(TrellisError, match=made.network.id) as caught:
            rig.cloud.ensure(made)
        assert caught.value.failure.code is Code.LOST
        assert rig.networks(made.order) == []
        rig.cloud.remove(made)
        assert rig.left() == ()

    def test_a_used_up_quota_fails_the_first_attempt_and_leaves_nothing(self, rig: Rig) -> None:
        order = rig.order()
        rig.break_next(FaultKind.QUOTA, rig.create)
        with pytest.raises(TrellisError) as caught:
            rig.cloud.ensure(_unrecorded(order))
        assert caught.value.failure.code is Code.QUOTA
        assert not caught.value.failure.transient
        assert rig.left() == ()

    def test_a_cloud_that_goes_on_throttling_is_reported_as_such(self, rig: Rig) -> None:
        rig.break_next(FaultKind.THROTTLE, "*", times=100)
        with pytest.raises(TrellisError) as caught:
            rig.cloud.ensure(_unrecorded(rig.order()))
        assert caught.value.failure.code is Code.THROTTLED

    def test_what_is_owned_is_listed_with_the_network_it_belongs_to(self, rig: Rig, made: NetworkRecord) -> None:
        assert made.network is not None
        owned = rig.cloud.owned()
        assert {item.id for item in owned} == rig.made(made.network)
        assert {(item.tenant, item.vpc, item.incarnation) for item in owned} == {
            (made.order.tenant, made.order.vpc, made.order.incarnation)
        }


def _unrecorded(order: NetworkOrder) -> NetworkRecord:
    return NetworkRecord(order=order, network=None)
