"""Quotas: defaults, what is used, and whether one more fits.

https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#networking-limits
(per region and subscription) and https://learn.microsoft.com/rest/api/virtualnetwork/usages/list for their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sandbox.azure.errors import bad_request
from sandbox.clouds import Document, Store

__all__ = ["Quotas"]


class _Quota(NamedTuple):
    limit: int
    code: str
    noun: str
    text: str


_QUOTAS = {
    "VirtualNetworks": _Quota(1000, "VnetCountLimitReached", "virtual networks", "Virtual Networks"),
    "PublicIPAddresses": _Quota(1000, "PublicIPCountLimitReached", "public IP addresses", "Public IP Addresses"),
    "NetworkSecurityGroups": _Quota(
        5000, "NetworkSecurityGroupCountLimitReached", "network security groups", "Network Security Groups"
    ),
    "RouteTables": _Quota(200, "RouteTableCountLimitReached", "route tables", "Route Tables"),
    "NatGateways": _Quota(1000, "NatGatewayCountLimitReached", "NAT gateways", "NAT Gateways"),
    "NetworkInterfaces": _Quota(65536, "NetworkInterfaceCountLimitReached", "network interfaces", "Network Interfaces"),
    "SubnetsPerVirtualNetwork": _Quota(
        3000, "SubnetCountLimitReached", "subnets per virtual network", "Subnets per Virtual Network"
    ),
    "PeeringsPerVirtualNetwork": _Quota(
        500, "VnetPeeringCountLimitReached", "peerings per virtual network", "Peerings per Virtual Network"
    ),
    "RoutesPerRouteTable": _Quota(400, "RouteCountLimitReached", "routes per route table", "Routes per Route Table"),
    "SecurityRulesPerNetworkSecurityGroup": _Quota(
        1000, "SecurityRuleCountLimitReached", "rules per security group", "Security rules per Network Security Group"
    ),
}
# Counted by region; the others are limits of one resource.
_KINDS = {
    "VirtualNetworks": "virtualNetworks",
    "PublicIPAddresses": "publicIPAddresses",
    "NetworkSecurityGroups": "networkSecurityGroups",
    "RouteTables": "routeTables",
    "NatGateways": "natGateways",
    "NetworkInterfaces": "networkInterfaces",
}


class Quotas:
    """Knows the limits.

    Args:
        store: Where the resources are.
        replaced: Gives the limits that replace the defaults.
    """

    def __init__(self, store: Store, replaced: Callable[[], Mapping[str, int]]) -> None:
        self._store = store
        self._replaced = replaced

    def limit(self, name: str) -> int:
        """The limit in force."""
        return self._replaced().get(name, _QUOTAS[name].limit)

    def check(self, name: str, used: int, location: str = "") -> None:
        """Refuse one more than the limit.

        https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes/publicipcountlimitreached-error
        shows the wording.
        """
        quota, limit = _QUOTAS[name], self.limit(name)
        if used >= limit:
            where = " for this subscription in this region" if location else ""
            raise bad_request(quota.code, f"Cannot create more than {limit} {quota.noun}{where}.")

    def usages(self, subscription: str, location: str) -> list[Document]:
        """How much of each quota is used in a region."""
        base = f"/subscriptions/{subscription}/providers/Microsoft.Network/locations/{location}/usages"
        return [
            {
                "id": f"{base}/{name}",
                "unit": "Count",
                "currentValue": self._used(subscription, location, name),
                "limit": self.limit(name),
                "name": {"value": name, "localizedValue": quota.text},
            }
            for name, quota in _QUOTAS.items()
        ]

    def _used(self, subscription: str, location: str, name: str) -> int:
        if name not in _KINDS:
            return 0
        documents = self._store.list(_KINDS[name], f"/subscriptions/{subscription}/".lower())
        return sum(1 for _, document in documents if document["location"] == location)
