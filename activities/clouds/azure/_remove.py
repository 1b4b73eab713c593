"""Removing a network: in order, only what Trellis made, and nothing while anything else is inside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from azure.mgmt.network.models import VirtualNetwork

from activities.clouds.azure._subscription import GROUP, NETWORK, Place, Subscription
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkRecord

__all__ = ["remove", "staying_inside"]

_LEAVING = "deleting"
_NETWORK_TYPE = "microsoft.network/virtualnetworks"
# How Gardener names its subnets: the shoot's technical id, and then this (provider-azure, infraflow).
_NODES = "-nodes"
# Blockers named in one message.
_SHOWN = 10


@dataclass(frozen=True)
class _Inside:
    """What is in a network and its group beside the network itself: what stays, and what is on its way out."""

    staying: tuple[Blocker, ...]
    leaving: tuple[Blocker, ...]


def remove(subscription: Subscription, record: NetworkRecord) -> None:
    """See `Cloud.remove`."""
    place = _place(subscription, record)
    if place is None:
        return
    _refuse_if_used(subscription, record, place)
    try:
        network = subscription.network(place)
        if network is not None:
            what = _deletion(record, place)
            with subscription.removing(what):
                subscription.awaited(what, lambda: subscription.networks.begin_delete(place.group, place.network))
        _remove_group(subscription, record, place)
    except TrellisError as error:
        if error.failure.code is Code.BUSY:
            _refuse_if_used(subscription, record, place)  # something came in meanwhile: say what
        raise


def staying_inside(subscription: Subscription, record: NetworkRecord) -> tuple[Blocker, ...]:
    """See `Cloud.blockers`."""
    place = _place(subscription, record)
    return _look_inside(subscription, place).staying if place else ()


def _place(subscription: Subscription, record: NetworkRecord) -> Place | None:
    """Where what may be removed is; None where there is nothing of ours.

    Raises:
        TrellisError: `conflict` where what is on record does not carry our tags: then it is not ours.
    """
    place = subscription.place(record)
    group = subscription.group(place)
    if group is None:
        return None
    network = subscription.network(place)
    if record.network is None and not all(
        subscription.is_ours(record.order, each) for each in (group, network) if each
    ):
        return None
    for kind, each in ((GROUP, group), (NETWORK, network)):
        if each is not None:
            subscription.check_ours(record.order, kind, each)
    return place


def _remove_group(subscription: Subscription, record: NetworkRecord, place: Place) -> None:
    """Delete the group once it is empty: whatever is in a group is deleted with it."""
    deadline = time.monotonic() + subscription.patience.settle
    while left := list(_of_group(subscription, place)):
        # The list of a group's resources follows some seconds behind.
        if time.monotonic() > deadline or not all(_is_own(blocker, place) for blocker, _ in left):
            raise TrellisError(
                Code.BUSY, f"{_deletion(record, place)}: its resource group is not empty yet", "tried again by itself"
            )
        time.sleep(subscription.patience.poll)
    what = f"delete resource group {place.group} of {record.order.vpc}"
    with subscription.removing(what):
        subscription.awaited(what, lambda: subscription.groups.begin_delete(place.group))


def _refuse_if_used(subscription: Subscription, record: NetworkRecord, place: Place) -> None:
    inside = _look_inside(subscription, place)
    what = _deletion(record, place)
    if inside.staying:
        raise TrellisError(
            Code.BLOCKED,
            f"{what}: in use by what Trellis did not make: {_listed(inside.staying)}",
            "remove these, or have their owners do it; the deletion then goes on by itself",
        )
    if inside.leaving:
        raise TrellisError(
            Code.BUSY, f"{what}: still on its way out: {_listed(inside.leaving)}", "tried again by itself"
        )


def _look_inside(subscription: Subscription, place: Place) -> _Inside:
    network = subscription.network(place)
    found = [*_of_network(network)] if network else []
    found += [(blocker, state) for blocker, state in _of_group(subscription, place) if not _is_own(blocker, place)]
    return _Inside(
        tuple(blocker for blocker, state in found if state != _LEAVING),
        tuple(blocker for blocker, state in found if state == _LEAVING),
    )


def _of_network(network: VirtualNetwork) -> Iterator[tuple[Blocker, str]]:
    for subnet in network.subnets or []:
        name = subnet.name or ""
        owner = name.partition(_NODES)[0] if name.startswith("shoot--") else ""
        yield Blocker(kind="subnet", id=subnet.id or name, name=name, owner=owner), _state(subnet.provisioning_state)
    for peering in network.virtual_network_peerings or []:
        remote = (peering.remote_virtual_network.id or "") if peering.remote_virtual_network else ""
        name = peering.name or ""
        yield (
            Blocker(kind="peering", id=peering.id or name, name=name, owner=remote),
            _state(peering.provisioning_state),
        )


def _of_group(subscription: Subscription, place: Place) -> Iterator[tuple[Blocker, str]]:
    what = f"list what is in resource group {place.group}"
    with subscription.removing(what):
        for resource in subscription.resources.list_by_resource_group(place.group, expand="provisioningState"):
            yield (
                Blocker(kind=resource.type or "resource", id=resource.id or "", name=resource.name or ""),
                _state(resource.provisioning_state),
            )


def _is_own(blocker: Blocker, place: Place) -> bool:
    return blocker.kind.lower() == _NETWORK_TYPE and blocker.name.lower() == place.network.lower()


def _state(value: object) -> str:
    return str(getattr(value, "value", value) or "").lower()


def _deletion(record: NetworkRecord, place: Place) -> str:
    return f"delete virtual network {place.network} of {record.order.vpc} in {record.order.region}"


def _listed(blockers: tuple[Blocker, ...]) -> str:
    shown = ", ".join(str(blocker) for blocker in blockers[:_SHOWN])
    return shown if len(blockers) <= _SHOWN else f"{shown} and {len(blockers) - _SHOWN} more"
