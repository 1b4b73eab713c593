"""The networks themselves, whatever the provider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from temporalio import activity

from activities._attended import attended
from activities._deletions import waiting_for_a_person
from activities.clouds import Cloud
from domain.networks import NetworkOrder, NetworkRecord, NetworkSeen
from domain.shoots import NatGateway
from domain.specs import Provider

# A router takes seconds to change, a shoot minutes to get there.
_LOOK_SECONDS = 3.0

__all__ = ["CloudSource", "NetworkActivities"]

# The client for a provider's region with the credentials of that name. Raises `TrellisError`.
CloudSource = Callable[[Provider, str, str], Awaitable[Cloud]]


class NetworkActivities:
    """Makes and removes networks through the provider's client."""

    def __init__(self, clouds: CloudSource) -> None:
        self._clouds = clouds

    @activity.defn
    async def ensure_network(self, record: NetworkRecord) -> NetworkSeen:
        """Make the network, or adopt and mend what is there. Raises `lost` where a network on record is gone."""
        cloud = await self._cloud(record.order)
        return await attended(cloud.ensure, record)

    @activity.defn
    async def remove_network(self, record: NetworkRecord) -> None:
        """Remove the network; gone already is success.

        Whatever only a person can mend, a foreign resource inside as well as credentials without the right, is
        `blocked`: the deletion waits, and goes on when it is mended.
        """
        with waiting_for_a_person():
            cloud = await self._cloud(record.order)
            await attended(cloud.remove, record)

    @activity.defn
    async def await_nat_gateway(self, nat: NatGateway) -> None:
        """Wait until a shoot's NAT gateway is on its router, or gone from it."""
        cloud = await self._cloud(nat.record.order)
        while True:
            inside = await attended(cloud.blockers, nat.record)
            there = any(each.kind == "nat-gateway" and each.owner == nat.shoot for each in inside)
            if there is nat.present:
                return
            activity.heartbeat(f"waiting for the NAT gateway of {nat.shoot} to {'come' if nat.present else 'go'}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _cloud(self, order: NetworkOrder) -> Cloud:
        return await self._clouds(order.provider, order.region, order.credentials)
