"""Making a network, or finding what an earlier attempt made of it, and mending what is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Network, ip_network

from azure.mgmt.network.models import AddressSpace, VirtualNetwork, VirtualNetworkPropertiesFormat
from azure.mgmt.resource.resources.models import ResourceGroup

from activities.clouds.azure._remove import remove
from activities.clouds.azure._subscription import GROUP, NETWORK, Place, Subscription
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord, NetworkSeen

__all__ = ["ensure"]

_READY = "succeeded"
_FAILED = {"failed", "canceled"}
_LEAVING = "deleting"
_UPDATING = "updating"


def ensure(subscription: Subscription, record: NetworkRecord) -> NetworkSeen:
    """See `Cloud.ensure`."""
    with _visible_soon():
        return _Ensuring(subscription, record).network()


@contextmanager
def _visible_soon() -> Iterator[None]:
    """While a network is being made, what is not found was made a moment ago: another look tells."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise
        raise TrellisError(Code.EVENTUAL, error.failure.message, "tried again by itself") from None


class _Ensuring:
    def __init__(self, subscription: Subscription, record: NetworkRecord) -> None:
        self._subscription = subscription
        self._record = record
        self._order: NetworkOrder = record.order
        self._place: Place = subscription.place(record)
        self._patience = subscription.patience

    def network(self) -> NetworkSeen:
        group = self._group()
        network = self._with_ranges(self._ready(self._recorded() if self._record.network else self._found_or_made()))
        assert network.id
        assert group.id
        return NetworkSeen(
            network=Network(id=network.id, account=self._subscription.id, parts={GROUP: group.id}),
            ranges=tuple(sorted(_ranges(network))),
        )

    # --- the resource group ----------------------------------------------------------------------------------------

    def _group(self) -> ResourceGroup:
        group = self._subscription.group(self._place)
        if group is None and self._record.network is not None:
            self._recorded()  # which is gone with its group, or the group is not visible for a moment
            group = self._subscription.group(self._place)
        if group is None:
            what = f"create resource group {self._place.group} for {self._order.vpc} in {self._subscription.region}"
            wanted = ResourceGroup(location=self._subscription.region, tags=self._subscription.tags(self._order))
            with self._subscription.changing(what):
                group = self._subscription.groups.create_or_update(self._place.group, wanted)
        self._subscription.check_ours(self._order, GROUP, group)
        if group.properties is not None and _state(group.properties.provisioning_state) == _LEAVING:
            raise TrellisError(
                Code.BUSY, f"resource group {self._place.group} is being deleted", "tried again by itself"
            )
        return group

    # --- the network -----------------------------------------------------------------------------------------------

    def _recorded(self) -> VirtualNetwork:
        """The network on record. Not found for the whole time means that somebody deleted it."""
        deadline = time.monotonic() + self._patience.settle
        while (network := self._subscription.network(self._place)) is None:
            if time.monotonic() > deadline:
                assert self._record.network
                raise TrellisError(
                    Code.LOST,
                    f"virtual network {self._record.network.id} of {self._order.vpc} is not there any more: "
                    f"not found for {self._patience.settle:.0f} s",
                    "somebody else deleted it: delete its clusters, then the name is free again",
                )
            time.sleep(self._patience.poll)
        return network

    def _found_or_made(self) -> VirtualNetwork:
        if network := self._subscription.network(self._place):
            return network
        wanted = VirtualNetwork(
            location=self._subscription.region,
            tags=self._subscription.tags(self._order),
            properties=_properties([str(cidr) for cidr in self._order.cidrs]),
        )
        try:
            self._put(wanted, "create")
        except TrellisError as error:
            if not error.failure.transient:
                # What stops the network leaves no group behind, either; the reason is what the caller has to know.
                with suppress(TrellisError):
                    remove(self._subscription, self._record)
            raise
        return self._recorded_again()

    def _recorded_again(self) -> VirtualNetwork:
        network = self._subscription.network(self._place)
        if network is None:
            raise TrellisError(
                Code.EVENTUAL, f"virtual network {self._place.network} is not visible yet", "tried again by itself"
            )
        return network

    def _put(self, network: VirtualNetwork, verb: str) -> None:
        cidrs = ", ".join(str(cidr) for cidr in self._order.cidrs)
        what = f"{verb} virtual network {self._place.network} with {cidrs} for {self._order.vpc}"
        # What somebody else changed meanwhile, such as a subnet, is not written over.
        headers = {"If-Match": network.etag} if network.etag else {"If-None-Match": "*"}
        with self._subscription.changing(what):
            self._subscription.awaited(
                what,
                lambda: self._subscription.networks.begin_create_or_update(
                    self._place.group, self._place.network, network, headers=headers
                ),
            )

    def _ready(self, network: VirtualNetwork) -> VirtualNetwork:
        """The network, which must be ours, once no operation works on it; one that failed is written again."""
        self._subscription.check_ours(self._order, NETWORK, network)
        if _state(network.provisioning_state) in _FAILED:
            self._put(network, "mend")
            network = self._recorded_again()
        deadline = time.monotonic() + self._patience.operation
        while (state := _state(network.provisioning_state)) != _READY:
            if state == _UPDATING and self._record.network is not None:
                break  # with a subnet of one of its clusters; the network itself was ready before
            if time.monotonic() > deadline or state in _FAILED:
                raise TrellisError(
                    Code.BUSY, f"virtual network {self._place.network} is {state}", "tried again by itself"
                )
            time.sleep(self._patience.poll)
            network = self._recorded_again()
        return network

    def _with_ranges(self, network: VirtualNetwork) -> VirtualNetwork:
        """The network once it has all ranges of the order."""
        assert network.properties
        space = network.properties.address_space
        have = list(space.address_prefixes or []) if space else []
        missing = [str(cidr) for cidr in self._order.cidrs if str(cidr) not in have]
        if not missing:
            return network
        network.properties.address_space = AddressSpace(address_prefixes=[*have, *missing])
        self._put(network, "extend")
        return self._ready(self._recorded_again())


def _properties(cidrs: list[str]) -> VirtualNetworkPropertiesFormat:
    return VirtualNetworkPropertiesFormat(address_space=AddressSpace(address_prefixes=cidrs))


def _state(value: object) -> str:
    """A provisioning state, which the SDK gives as text or as a member of an enumeration."""
    return str(getattr(value, "value", value) or _READY).lower()


def _ranges(network: VirtualNetwork) -> Iterator[IPv4Network]:
    for subnet in network.subnets or []:
        for text in subnet.address_prefixes or [subnet.address_prefix]:
            range_ = ip_network(text) if text else None
            if isinstance(range_, IPv4Network):
                yield range_
