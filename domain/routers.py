"""How the clusters of a VPC share cloud routers on GCP, where every cluster has one NAT gateway on a router."""

from __future__ import annotations

from domain.networks import Network
from domain.specs import Provider

__all__ = ["CLUSTERS_PER_ROUTER", "ROUTERS_MAX", "router_for", "router_of", "routers_for"]

# NAT gateways of a router: fixed (cloud.google.com/nat/quota).
CLUSTERS_PER_ROUTER = 50
# Routers of a network in a region: fixed (cloud.google.com/network-connectivity/docs/router/quotas).
ROUTERS_MAX = 5


def routers_for(clusters: int) -> int:
    """How many routers a network for so many clusters has: at least one, and no more than GCP allows."""
    return min(max(1, -(-clusters // CLUSTERS_PER_ROUTER)), ROUTERS_MAX)


def router_for(slot: int, routers: int) -> int:
    """Which of so many routers takes the cluster in this slot; slots beyond the last one's begin again at the first."""
    return slot // CLUSTERS_PER_ROUTER % routers


def router_of(provider: Provider, network: Network, slot: int) -> str | None:
    """The router that the cluster in this slot shares with others; None where clusters share none that they change."""
    if provider is not Provider.GCP:
        return None
    names = [name for part, name in sorted(network.parts.items()) if part.startswith("router")]
    return names[router_for(slot, len(names))] if names else None
