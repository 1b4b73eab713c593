"""Network interfaces: https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces."""

from __future__ import annotations

import secrets

from sandbox.azure.bodies import InterfaceBody, IpConfiguration
from sandbox.azure.errors import bad_request
from sandbox.azure.ids import Id
from sandbox.azure.ranges import subnet_ranges
from sandbox.azure.resources import Context, Resources
from sandbox.azure.subnets import TAKEN, Subnets
from sandbox.clouds import Document

__all__ = ["Interfaces"]


class Interfaces(Resources):
    """`networkInterfaces`."""

    collection = "networkInterfaces"
    body = InterfaceBody
    quota = "NetworkInterfaces"

    def __init__(self, context: Context, subnets: Subnets) -> None:
        super().__init__(context)
        self._subnets = subnets

    def build(self, id_: Id, body: InterfaceBody, before: Document | None) -> Document:
        """With an address of its subnet, which stays."""
        given = body.properties
        if not given.ip_configurations:
            raise bad_request("MissingIpConfiguration", f"Network interface {id_.name} must have an IP configuration.")
        location, old = self.location(id_), (before or {}).get("properties", {})
        if given.network_security_group is not None:
            self.context.referred(id_, given.network_security_group, "networkSecurityGroups", location)
        known = {each["name"]: each["properties"] for each in old.get("ipConfigurations", ())}
        configurations = [
            self._configuration(id_, each, known.get(each.name), location, first=index == 0)
            for index, each in enumerate(given.ip_configurations)
        ]
        mac = old.get("macAddress") or "-".join(f"{byte:02X}" for byte in (0x60, 0x45, 0xBD, *secrets.token_bytes(3)))
        defaults = {"enableIPForwarding": False, "enableAcceleratedNetworking": False, "primary": True}
        return defaults | given.fields() | {"ipConfigurations": configurations, "macAddress": mac}

    def written(self, id_: Id, body: InterfaceBody) -> None:
        """Its addresses are taken."""
        del body
        self.deleted(id_)
        for each in (self.find(id_) or {})["properties"]["ipConfigurations"]:
            taken = {"id": each["id"], "address": each["properties"]["privateIPAddress"], "of": id_.key}
            self.store.put(TAKEN, f"{each['properties']['subnet']['id']}/{each['id']}".lower(), taken)

    def deleted(self, id_: Id) -> None:
        """Its addresses are free."""
        for key, taken in self.store.list(TAKEN):
            if taken["of"] == id_.key:
                self.store.delete(TAKEN, key)

    def _configuration(
        self, id_: Id, given: IpConfiguration, old: Document | None, location: str, *, first: bool
    ) -> Document:
        wanted = given.properties
        subnet = self.context.referred(id_, wanted.subnet, "subnets", location)
        document = self._subnets.find(subnet) or {}
        if self._subnets.location(subnet) != location:
            message = f"Resource {subnet} referenced by resource {id_} is in another region."
            raise bad_request("InvalidResourceReference", message)
        if wanted.public_ip_address is not None:
            self.context.referred(id_, wanted.public_ip_address, "publicIPAddresses", location)
        kept = old["privateIPAddress"] if old and old["subnet"]["id"].lower() == subnet.key else None
        address = self._address(id_, subnet, document, wanted.private_ip_address, kept)
        return {
            "name": given.name,
            "id": f"{id_}/ipConfigurations/{given.name}",
            "type": "Microsoft.Network/networkInterfaces/ipConfigurations",
            "properties": {"primary": first, "privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"}
            | wanted.fields()
            | {"privateIPAddress": address, "provisioningState": "Succeeded"},
        }

    def _address(self, id_: Id, subnet: Id, document: Document, wanted: str | None, kept: str | None) -> str:
        if kept and wanted in (None, kept):
            return kept
        free = self._subnets.free_addresses(subnet, document)
        if wanted is None:
            if not free:
                message = (
                    f"Subnet {subnet.child} with address prefix {subnet_ranges(document)[0]} does not have enough "
                    "capacity for 1 IP addresses."
                )
                raise bad_request("SubnetIsFull", message)
            return free[0]
        if wanted not in free:
            message = (
                f"IP configuration of {id_} is using the private IP address {wanted} which is already allocated or not "
                f"usable in subnet {subnet.child}."
            )
            raise bad_request("PrivateIPAddressInUse", message)
        return wanted
