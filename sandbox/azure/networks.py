"""Virtual networks: https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks.

Subnets that a PUT does not name at all stay; an empty list removes them
(https://techcommunity.microsoft.com/blog/azurenetworkingblog/azure-virtual-network-now-supports-updates-without-subnet-property/4067952).
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from sandbox.azure.bodies import NetworkBody
from sandbox.azure.errors import bad_request, not_found
from sandbox.azure.ids import Id
from sandbox.azure.peerings import Peerings
from sandbox.azure.ranges import RESERVED_FIRST, check_prefix, network_ranges, subnet_ranges
from sandbox.azure.resources import Context, Resources
from sandbox.azure.subnets import Subnets
from sandbox.clouds import Answer, Call, Document, overlapping

__all__ = ["Networks"]


class Networks(Resources):
    """`virtualNetworks`, with their subnets and peerings."""

    collection = "virtualNetworks"
    body = NetworkBody
    quota = "VirtualNetworks"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.subnets, self.peerings = Subnets(context), Peerings(context)
        self.children = {"subnets": self.subnets, "virtualNetworkPeerings": self.peerings}

    def build(self, id_: Id, body: NetworkBody, before: Document | None) -> Document:
        """Its prefixes overlap neither each other nor a peer's."""
        space = body.properties.address_space
        prefixes = list(dict.fromkeys(space.address_prefixes)) if space else []
        if not prefixes:
            message = f"Address prefix is missing in virtual network {id_.name}."
            raise bad_request("NetcfgInvalidVirtualNetworkSite", message)
        ranges: list[tuple[IPv4Network, str]] = []
        for text in prefixes:
            range_ = check_prefix(text, str(id_))
            hit = overlapping(range_, ranges)
            if hit:
                message = f"The address prefixes {text} and {hit[1]} of virtual network {id_.name} overlap."
                raise bad_request("NetcfgInvalidVirtualNetworkSite", message)
            ranges.append((range_, text))
        if before is not None:
            self.peerings.check_growth(id_, [range_ for range_, _ in ranges])
        given = body.properties.fields()
        given.pop("subnets", None)
        defaults: Document = {"enableDdosProtection": False, "privateEndpointVNetPolicies": "Disabled"}
        return defaults | given | {"addressSpace": {"addressPrefixes": prefixes}}

    def written(self, id_: Id, body: NetworkBody) -> None:
        """The subnets that the request names, or those that are there, fit into the prefixes."""
        if body.properties.subnets is not None:
            self.replace_children(id_, "subnets", body.properties.subnets)
        network = self.find(id_) or {}
        for subnet, document in self.children_of(id_, "subnets"):
            for range_ in subnet_ranges(document):
                if not any(range_.subnet_of(prefix) for prefix in network_ranges(network)):
                    message = f"Subnet '{subnet.child}' is not valid in virtual network '{id_.name}'."
                    raise bad_request("NetcfgInvalidSubnet", message)

    def done(self, id_: Id) -> None:
        """Its peers learn that its prefixes have changed."""
        self.peerings.network_changed(id_)

    def deleted(self, id_: Id) -> None:
        """Its peers are disconnected."""
        self.peerings.network_deleted(id_)

    def users(self, id_: Id) -> Sequence[str]:
        """What is in its subnets."""
        return [user for subnet, _ in self.children_of(id_, "subnets") for user in self.subnets.users(subnet)]

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """A network is in use through a subnet of it."""
        used = (subnet for subnet, _ in self.children_of(id_, "subnets") if user in self.subnets.users(subnet))
        return self.subnets.in_use(next(used), user)

    def check_address(self, call: Call) -> Answer:
        """`checkIPAddressAvailability`: whether a private address is free, and others that are."""
        id_ = self.id_of(call)
        text = call.query.get("ipAddress", "")
        if self.find(id_) is None:
            raise not_found(self.collection, id_.name, id_.group)
        try:
            wanted = IPv4Address(text)
        except ValueError:
            raise bad_request("InvalidIPAddressFormat", f"The IP address {text} is not formatted correctly.") from None
        for subnet, document in self.children_of(id_, "subnets"):
            for range_ in subnet_ranges(document):
                if wanted in range_:
                    free = self.subnets.free_addresses(subnet, document)
                    available = str(wanted) in free
                    return Answer({"available": available} | ({} if available else {"availableIPAddresses": free[:5]}))
        message = f"Private static IP address {text} does not belong to any subnet of virtual network {id_.name}."
        raise bad_request("PrivateIPAddressNotInAnySubnet", message)

    def usages(self, call: Call) -> Answer:
        """`usages`: how many addresses of each subnet are taken."""
        id_ = self.id_of(call)
        if self.find(id_) is None:
            raise not_found(self.collection, id_.name, id_.group)
        return Answer(
            {
                "value": [
                    {
                        "id": str(subnet),
                        "currentValue": float(len(self.subnets.users(subnet))),
                        "limit": float(
                            sum(range_.num_addresses - RESERVED_FIRST - 1 for range_ in subnet_ranges(document))
                        ),
                        "name": {"localizedValue": "Subnet size and usage", "value": "SubnetSpace"},
                        "unit": "Count",
                    }
                    for subnet, document in self.children_of(id_, "subnets")
                ]
            }
        )
