"""The network of one shoot (provider-azure, `pkg/controller/infrastructure/infraflow`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.garden.providers import Order, Record
from sandbox.garden.providers.azure.codes import cloud_error
from sandbox.garden.providers.azure.config import STANDARD, InfrastructureConfig, NatGateway
from sandbox.garden.providers.azure.session import Session

__all__ = ["ROUTE_TABLE", "Infrastructure"]

ROUTE_TABLE = "worker_route_table"


@dataclass(frozen=True)
class _Subnet:
    """A subnet to be there, and the NAT gateway that it is to have."""

    name: str
    cidr: str
    endpoints: list[str]
    zone: str | None
    nat_name: str
    nat: NatGateway | None


class Infrastructure:
    """One pass that makes what is missing and mends what differs."""

    def __init__(self, session: Session, order: Order, record: Record) -> None:
        self._session = session
        self._network = session.network
        self._order = order
        self._record = record
        # The shoot's resource group has the technical id as its name.
        self._tid = order.technical_id
        self._config = InfrastructureConfig.model_validate(order.infrastructure)

    def ensure(self) -> None:
        """All of it, in the order of Gardener's flow."""
        self._record["group"] = self._tid
        self._record.save()
        self._group()
        vnet = self._vnet()
        group, name = _place(vnet)
        self._record["vnet"] = {"id": vnet.id, "group": group, "name": name}
        self._record.save()
        self._kept(self._network.route_tables, ROUTE_TABLE)
        self._kept(self._network.network_security_groups, f"{self._tid}-workers")
        wanted = list(self._subnets())
        addresses = [address for subnet in wanted for address in self._nat(subnet)]
        self._remove_superfluous(wanted, group, name)
        for subnet in wanted:
            self._subnet(subnet, group, name)
        self._record["subnets"] = {subnet.zone or "": subnet.name for subnet in wanted}
        self._record["egressCIDRs"] = [f"{address}/32" for address in addresses]
        self._record.save()

    def _group(self) -> None:
        found, region = self._session.found(self._session.groups.get, self._tid), self._order.region
        if found is None:
            self._session.made(self._session.groups.create_or_update, self._tid, {"location": region})
        elif found.location != region:
            raise cloud_error(_mismatch("Microsoft.Resources/resourceGroups", self._tid, region, found.location))

    def _vnet(self) -> Any:
        vnet, networks = self._config.networks.vnet, self._network.virtual_networks
        if vnet.is_users:
            found = self._session.found(networks.get, vnet.resourceGroup, vnet.name)
            if found is None:
                raise cloud_error(
                    "terminal error prevents successful reconciliation. Resource: Microsoft.Network/virtualNetworks, "
                    f"Name: {vnet.name}, Error: user vnet not found"
                )
            return found
        found = self._session.found(networks.get, self._tid, self._tid)
        cidr = vnet.cidr or self._config.networks.workers
        properties = dict(found.properties) if found else {}
        body = {
            "location": self._order.region,
            "tags": dict(found.tags or {}) if found else {},
            "properties": properties | {"addressSpace": {"addressPrefixes": [cidr]}},
        }
        return self._session.done(networks.begin_create_or_update, self._tid, self._tid, body)

    def _kept(self, client: Any, name: str) -> None:
        """A resource whose contents stay as they are: rules and routes of others survive."""
        found = self._session.found(client.get, self._tid, name)
        if found is not None and found.location != self._order.region:
            raise cloud_error(_mismatch(found.type, name, self._order.region, found.location))
        body = {"location": self._order.region, "properties": dict(found.properties) if found else {}}
        self._session.done(client.begin_create_or_update, self._tid, name, body)

    def _subnets(self) -> Iterator[_Subnet]:
        networks, gateway = self._config.networks, f"{self._tid}-nat-gateway"
        if networks.is_single:
            nat = networks.natGateway if networks.natGateway and networks.natGateway.enabled else None
            endpoints = networks.serviceEndpoints
            yield _Subnet(f"{self._tid}-nodes", networks.workers or "", endpoints, None, gateway, nat)
        for zone in networks.zones:
            given = zone.natGateway
            zoned = NatGateway(**given.model_dump(), zone=zone.name) if given and given.enabled else None
            yield _Subnet(
                f"{self._tid}-nodes-z{zone.name}",
                zone.cidr,
                zone.serviceEndpoints,
                str(zone.name),
                f"{gateway}-z{zone.name}",
                zoned,
            )

    def _nat(self, subnet: _Subnet) -> list[str]:
        """The NAT gateway of a subnet; gives its public addresses."""
        nat = subnet.nat
        if nat is None:
            return []
        zones = [str(nat.zone)] if nat.zone else None
        references = [(each.resourceGroup, each.name) for each in nat.ipAddresses or ()]
        if not references:
            references = [(self._tid, f"{subnet.nat_name}-ip")]
            self._public_ip(references[0][1], nat.sku or STANDARD, zones)
        ids = [self._session.id_of(group, "publicIPAddresses", name) for group, name in references]
        properties: dict[str, Any] = {"publicIpAddresses": [{"id": each} for each in ids]}
        if nat.idleConnectionTimeoutMinutes is not None:
            properties["idleTimeoutInMinutes"] = nat.idleConnectionTimeoutMinutes
        body = {"location": self._order.region, "sku": {"name": nat.sku or STANDARD}, "properties": properties}
        if zones:
            body["zones"] = zones
        self._session.done(self._network.nat_gateways.begin_create_or_update, self._tid, subnet.nat_name, body)
        found = [self._session.found(self._network.public_ip_addresses.get, *each) for each in references]
        return [each.properties.ip_address for each in found if each is not None]

    def _public_ip(self, name: str, sku: str, zones: list[str] | None) -> None:
        body: dict[str, Any] = {
            "location": self._order.region,
            "sku": {"name": sku, "tier": "Regional"},
            "properties": {"publicIPAllocationMethod": "Static"},
            "tags": {"managed-by-gardener": "true", "shoot-name": self._tid},
        }
        if zones:
            body["zones"] = zones
        self._session.done(self._network.public_ip_addresses.begin_create_or_update, self._tid, name, body)

    def _subnet(self, subnet: _Subnet, group: str, vnet: str) -> None:
        """Others' NAT gateways stay where Gardener is to have none; its security group and routes are set again."""
        client = self._network.subnets
        found = self._session.found(client.get, group, vnet, subnet.name)
        properties = dict(found.properties) if found else {}
        for member in ("networkSecurityGroup", "routeTable", "natGateway", "ipConfigurations", "provisioningState"):
            properties.pop(member, None)
        properties |= {
            "addressPrefix": subnet.cidr,
            "defaultOutboundAccess": True,
            "routeTable": {"id": self._session.id_of(self._tid, "routeTables", ROUTE_TABLE)},
            "networkSecurityGroup": {
                "id": self._session.id_of(self._tid, "networkSecurityGroups", f"{self._tid}-workers")
            },
            "serviceEndpoints": [{"service": each} for each in subnet.endpoints],
        }
        foreign = found.properties.nat_gateway.id if found and found.properties.nat_gateway else ""
        if subnet.nat is not None:
            properties["natGateway"] = {"id": self._session.id_of(self._tid, "natGateways", subnet.nat_name)}
        elif foreign and f"/resourcegroups/{self._tid}/".lower() not in foreign.lower():
            properties["natGateway"] = {"id": foreign}
        self._session.done(client.begin_create_or_update, group, vnet, subnet.name, {"properties": properties})

    def _remove_superfluous(self, wanted: list[_Subnet], group: str, vnet: str) -> None:
        """Own subnets that are not wanted any more (`IsOwnSubnetName`: by the technical id *and* `-nodes`)."""
        names = {subnet.name for subnet in wanted}
        for found in self._session.listed(self._network.subnets.list, group, vnet):
            if found.name.startswith(f"{self._tid}-nodes") and found.name not in names:
                self._session.gone(self._network.subnets.begin_delete, group, vnet, found.name)


def _place(vnet: Any) -> tuple[str, str]:
    parts = vnet.id.split("/")
    return parts[4], parts[8]


def _mismatch(kind: str, name: str, expected: str, found: str) -> str:
    return (
        "differences between the current and target spec require the object to be deleted."
        f"Resource: {kind}, Name: {name}, Field: location, Expected: {expected}, Found: {found}"
    )
