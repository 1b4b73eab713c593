"""Subnets: https://learn.microsoft.com/rest/api/virtualnetwork/subnets.

What is refused: https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-subnet,
https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes/inusesubnetcannotbedeleted-error and, for
overlaps, https://github.com/MicrosoftDocs/azure-docs/pull/123869.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from sandbox.azure.bodies import SubnetBody
from sandbox.azure.errors import bad_request
from sandbox.azure.ids import Id
from sandbox.azure.ranges import RESERVED_FIRST, check_prefix, network_ranges, subnet_ranges
from sandbox.azure.resources import Resources
from sandbox.clouds import Document, overlapping

__all__ = ["TAKEN", "Subnets"]

# What the addresses in subnets are kept under: the subnet's key, and the IP configuration that has the address.
TAKEN = "taken-addresses"

_REFERENCES = {
    "networkSecurityGroup": "networkSecurityGroups",
    "routeTable": "routeTables",
    "natGateway": "natGateways",
}


class Subnets(Resources):
    """`virtualNetworks/subnets`."""

    collection = "virtualNetworks"
    child = "subnets"
    body = SubnetBody

    def build(self, id_: Id, body: SubnetBody, before: Document | None) -> Document:
        """Inside the network's prefixes, apart from its other subnets."""
        given = body.properties
        texts = given.address_prefixes or ([given.address_prefix] if given.address_prefix else [])
        if not texts:
            message = f"Subnet '{id_.child}' is not valid in virtual network '{id_.name}'."
            raise bad_request("NetcfgInvalidSubnet", message)
        ranges = [check_prefix(text, str(id_)) for text in texts]
        siblings = self._siblings(id_)
        if before is None:
            self.context.quotas.check("SubnetsPerVirtualNetwork", len(siblings))
        self._check_ranges(id_, ranges, siblings)
        if before is not None and ranges != subnet_ranges(before):
            users = self.users(id_)
            if users:
                message = f"Subnet {id_.child} is in use by {users[0]} and cannot be updated."
                raise bad_request("InUsePrefixCannotBeDeleted", message)
        references = self._references(id_, body)
        defaults: Document = {
            "delegations": [],
            "privateEndpointNetworkPolicies": "Disabled",
            "privateLinkServiceNetworkPolicies": "Enabled",
        }
        return defaults | given.fields() | references

    def users(self, id_: Id) -> Sequence[str]:
        """The IP configurations in it."""
        return [configuration for configuration, _ in self._configurations(id_)]

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """Something is in it."""
        message = (
            f"Subnet {id_.child} is in use by {user} and cannot be deleted. In order to delete the subnet, delete all "
            "the resources within the subnet. See aka.ms/deletesubnet."
        )
        return "InUseSubnetCannotBeDeleted", message

    def shown(self, id_: Id, document: Document) -> Document:
        """With what is in it."""
        del document
        configurations = [{"id": configuration} for configuration in self.users(id_)]
        return {"ipConfigurations": configurations} if configurations else {}

    def free_addresses(self, id_: Id, document: Document) -> list[str]:
        """The addresses that an interface may have."""
        taken = {address for _, address in self._configurations(id_)}
        usable = (address for range_ in subnet_ranges(document) for address in list(range_)[RESERVED_FIRST:-1])
        return [str(address) for address in usable if str(address) not in taken]

    def _siblings(self, id_: Id) -> list[tuple[Id, Document]]:
        found = self.all(f"{id_.root_key}/subnets/")
        # One that is being written right now has no range yet.
        return [(sibling, each) for sibling, each in found if sibling.key != id_.key and subnet_ranges(each)]

    def _check_ranges(self, id_: Id, ranges: Sequence[IPv4Network], siblings: Sequence[tuple[Id, Document]]) -> None:
        network = self.store.get(self.collection, id_.root_key) or {}
        taken = [(range_, sibling) for sibling, each in siblings for range_ in subnet_ranges(each)]
        for range_ in ranges:
            if not any(range_.subnet_of(prefix) for prefix in network_ranges(network)):
                message = (
                    f"Subnet '{id_.child}' is not valid because its IP address range is outside the IP address range "
                    f"of virtual network '{id_.name}'."
                )
                raise bad_request("NetcfgSubnetRangeOutsideVnet", message)
            if overlapping(range_, taken):
                message = (
                    f"Subnet '{id_.child}' is not valid because its IP address range overlaps with that of an existing "
                    f"subnet in virtual network '{id_.name}'."
                )
                raise bad_request("NetcfgSubnetRangesOverlap", message)
            taken.append((range_, id_))

    def _references(self, id_: Id, body: SubnetBody) -> Document:
        location, given = self.location(id_), body.properties
        found: Document = {}
        for member, reference in (
            ("networkSecurityGroup", given.network_security_group),
            ("routeTable", given.route_table),
            ("natGateway", given.nat_gateway),
        ):
            if reference is not None:
                self.context.referred(id_, reference, _REFERENCES[member], location)
                found[member] = {"id": reference.id}
        if given.nat_gateway is not None:
            self._check_nat(id_, given.nat_gateway.id)
        return found

    def _check_nat(self, id_: Id, gateway: str) -> None:
        """A NAT gateway serves subnets of one network only."""
        for subnet, document in self.all():
            used = (document["properties"].get("natGateway") or {}).get("id", "")
            if used.lower() == gateway.lower() and subnet.root_key != id_.root_key:
                message = (
                    f"NAT Gateway {gateway} cannot be used by subnets {subnet} and {id_}, which belong to different "
                    "virtual networks."
                )
                raise bad_request("NatGatewayCannotBeUsedBySubnetsBelongingToDifferentVirtualNetworks", message)

    def _configurations(self, id_: Id) -> Iterator[tuple[str, str]]:
        for _, each in self.store.list(TAKEN, f"{id_.key}/"):
            yield each["id"], each["address"]
