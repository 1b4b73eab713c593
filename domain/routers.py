"""How the clusters of a VPC share cloud routers on GCP, where every cluster has one NAT gateway on a router."""

from __future__ import annotations

__all__ = ["CLUSTERS_PER_ROUTER", "ROUTERS_MAX", "router_for", "routers_for"]

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
