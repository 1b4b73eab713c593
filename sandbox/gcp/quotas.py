"""Quotas: defaults, what is used, and whether one more fits.

https://cloud.google.com/vpc/docs/quota ("When per-network limits are exceeded, you see QUOTA_EXCEEDED errors with the
internal quota names"), https://cloud.google.com/network-connectivity/docs/router/quotas (5 routers per network and
region), https://cloud.google.com/nat/quota (50 gateways per router).
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox.clouds import Document, Store
from sandbox.gcp.errors import limit_failure
from sandbox.gcp.names import link

__all__ = ["Quotas"]

# A fresh project's; `quotas` in the settings overrides each.
_DEFAULTS = {
    "NETWORKS": 15,
    "FIREWALLS": 1000,
    "ROUTERS": 20,
    "STATIC_ADDRESSES": 700,
    "SUBNET_RANGES_PER_NETWORK": 400,
    "STATIC_ROUTES_PER_NETWORK": 200,
    "PEERINGS_PER_NETWORK": 25,
    "ROUTERS_PER_REGION_PER_NETWORK": 5,
    "NATS_PER_ROUTER": 50,
}
_PER_PROJECT = {"NETWORKS": "networks", "FIREWALLS": "firewalls", "ROUTERS": "routers"}


class Quotas:
    """Counts what is stored.

    Args:
        store: Where the resources are.
        overrides: Gives the limits that were set, by name.
    """

    def __init__(self, store: Store, overrides: Callable[[], dict[str, int]]) -> None:
        self._store = store
        self._overrides = overrides

    def limit(self, quota: str) -> int:
        """The limit of a quota."""
        return self._overrides().get(quota, _DEFAULTS[quota])

    def of_project(self, project: str) -> list[Document]:
        """The quotas of a project, as `projects.get` shows them."""
        return [self._shown(quota, self._used(project, quota)) for quota in _PER_PROJECT]

    def of_region(self, project: str, region: str) -> list[Document]:
        """The quotas of a region, as `regions.get` shows them."""
        return [self._shown("STATIC_ADDRESSES", self.addresses(project, region))]

    def addresses(self, project: str, region: str) -> int:
        """How many external addresses are reserved in a region."""
        found = self._store.list("addresses", f"projects/{project}/regions/{region}/")
        return sum(document["addressType"] == "EXTERNAL" for _, document in found)

    def project_failure(self, project: str, quota: str) -> Document | None:
        """The error where a project is full."""
        return self.failure(quota, self._used(project, quota))

    def network_failure(self, quota: str, collection: str, network: str, region: str | None = None) -> Document | None:
        """The error where a network (by path) has as many resources of a collection as it may have."""
        documents = (document for _, document in self._store.list(collection))
        used = sum(
            document.get("network") == link(network) and region in (None, document.get("region", "").rpartition("/")[2])
            for document in documents
        )
        return self.failure(quota, used, region=region)

    def failure(self, quota: str, used: int, *, more: int = 1, region: str | None = None) -> Document | None:
        """The error where `more` do not fit beside those used."""
        limit = self.limit(quota)
        return limit_failure(quota, limit, region) if used + more > limit else None

    def _used(self, project: str, quota: str) -> int:
        return len(self._store.list(_PER_PROJECT[quota], f"projects/{project}/"))

    def _shown(self, quota: str, used: int) -> Document:
        return {"metric": quota, "limit": float(self.limit(quota)), "usage": float(used)}
