"""Security groups, route tables, NAT gateways and public addresses: what subnets refer to.

https://learn.microsoft.com/rest/api/virtualnetwork/network-security-groups, .../route-tables, .../nat-gateways and
.../public-ip-addresses; the rules that every security group has:
https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#default-security-rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Any

from sandbox.azure.bodies import (
    NatBody,
    PublicIpBody,
    RouteBody,
    RouteTableBody,
    SecurityGroupBody,
    SecurityRuleBody,
)
from sandbox.azure.errors import bad_request
from sandbox.azure.ids import Id
from sandbox.azure.resources import Context, Resources, referring
from sandbox.clouds import Document, parse_cidr

__all__ = ["NatGateways", "PublicIps", "RouteTables", "SecurityGroups"]

# RFC 2544: addresses of benchmarks stand for the Internet's.
_PUBLIC = IPv4Network("198.18.0.0/15")
_ANY = {"sourcePortRange": "*", "destinationPortRange": "*", "protocol": "*"}
_DEFAULT_RULES = (
    ("AllowVnetInBound", 65000, "Inbound", "Allow", "VirtualNetwork", "VirtualNetwork"),
    ("AllowAzureLoadBalancerInBound", 65001, "Inbound", "Allow", "AzureLoadBalancer", "*"),
    ("DenyAllInBound", 65500, "Inbound", "Deny", "*", "*"),
    ("AllowVnetOutBound", 65000, "Outbound", "Allow", "VirtualNetwork", "VirtualNetwork"),
    ("AllowInternetOutBound", 65001, "Outbound", "Allow", "*", "Internet"),
    ("DenyAllOutBound", 65500, "Outbound", "Deny", "*", "*"),
)


class _UsedBySubnets(Resources):
    """What subnets refer to, by one member of their properties."""

    member: str

    def users(self, id_: Id) -> Sequence[str]:
        """The subnets that use it."""
        return referring(self.context, "subnets", self._references, id_)

    def shown(self, id_: Id, document: Document) -> Document:
        """With these subnets."""
        del document
        subnets = [{"id": user} for user in self.users(id_)]
        return {"subnets": subnets} if subnets else {}

    def _references(self, properties: Any) -> list[Any]:
        return [properties[self.member]] if self.member in properties else []


class SecurityRules(Resources):
    """`networkSecurityGroups/securityRules`."""

    collection = "networkSecurityGroups"
    child = "securityRules"
    body = SecurityRuleBody

    def build(self, id_: Id, body: SecurityRuleBody, before: Document | None) -> Document:
        """Of one direction, each with a priority of its own."""
        siblings = [each for each in self.all(f"{id_.root_key}/securityrules/") if each[0].key != id_.key]
        if before is None:
            self.context.quotas.check("SecurityRulesPerNetworkSecurityGroup", len(siblings))
        given = body.properties.fields()
        for sibling, document in siblings:
            other = document["properties"]
            if (other["priority"], other["direction"]) == (given["priority"], given["direction"]):
                message = (
                    f"Security rule {id_.child} conflicts with rule {sibling.child}. Rules cannot have the same "
                    "Priority and Direction."
                )
                raise bad_request("SecurityRuleConflict", message)
        return given


class SecurityGroups(_UsedBySubnets):
    """`networkSecurityGroups`."""

    collection = "networkSecurityGroups"
    body = SecurityGroupBody
    quota = "NetworkSecurityGroups"
    member = "networkSecurityGroup"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.children = {"securityRules": SecurityRules(context)}

    def build(self, id_: Id, body: SecurityGroupBody, before: Document | None) -> Document:
        """Its own rules are children; the default ones cannot be changed."""
        del body, before
        rules = [
            {
                "name": name,
                "id": f"{id_}/defaultSecurityRules/{name}",
                "properties": _ANY
                | {
                    "priority": priority,
                    "direction": direction,
                    "access": access,
                    "sourceAddressPrefix": source,
                    "destinationAddressPrefix": destination,
                    "provisioningState": "Succeeded",
                },
            }
            for name, priority, direction, access, source, destination in _DEFAULT_RULES
        ]
        return {"defaultSecurityRules": rules}

    def written(self, id_: Id, body: SecurityGroupBody) -> None:
        """The rules that the request names, and no others."""
        self.replace_children(id_, "securityRules", body.properties.security_rules or [])

    def users(self, id_: Id) -> Sequence[str]:
        """Subnets and interfaces."""
        return [*super().users(id_), *referring(self.context, "networkInterfaces", self._references, id_)]

    def shown(self, id_: Id, document: Document) -> Document:
        """With both."""
        del document
        kinds = {"subnets": "subnets", "networkInterfaces": "networkInterfaces"}
        found = {name: referring(self.context, kind, self._references, id_) for name, kind in kinds.items()}
        return {name: [{"id": user} for user in users] for name, users in found.items() if users}

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """Something refers to it."""
        message = (
            f"Network security group {id_} cannot be deleted because it is in use by the following resources: {user}. "
            "In order to delete the Network security group, remove the association with the resource(s). To learn how "
            "to do this, see aka.ms/deletensg."
        )
        return "InUseNetworkSecurityGroupCannotBeDeleted", message


class Routes(Resources):
    """`routeTables/routes`."""

    collection = "routeTables"
    child = "routes"
    body = RouteBody

    def build(self, id_: Id, body: RouteBody, before: Document | None) -> Document:
        """Each to a prefix of its own."""
        siblings = [each for each in self.all(f"{id_.root_key}/routes/") if each[0].key != id_.key]
        if before is None:
            self.context.quotas.check("RoutesPerRouteTable", len(siblings))
        given = body.properties.fields()
        prefix = given["addressPrefix"]
        if "/" in prefix and parse_cidr(prefix) is None:
            message = f"The address prefix {prefix} in resource {id_} has an invalid CIDR notation."
            raise bad_request("InvalidCIDRNotation", message)
        if (given["nextHopType"] == "VirtualAppliance") != ("nextHopIpAddress" in given):
            message = f"Route {id_} has a next hop address if, and only if, its next hop type is VirtualAppliance."
            raise bad_request("InvalidRouteNextHop", message)
        for sibling, document in siblings:
            if document["properties"]["addressPrefix"] == prefix:
                message = f"Route {id_.child} conflicts with route {sibling.child}. Both have the prefix {prefix}."
                raise bad_request("RouteConflict", message)
        return given | {"hasBgpOverride": False}


class RouteTables(_UsedBySubnets):
    """`routeTables`."""

    collection = "routeTables"
    body = RouteTableBody
    quota = "RouteTables"
    member = "routeTable"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.children = {"routes": Routes(context)}

    def build(self, id_: Id, body: RouteTableBody, before: Document | None) -> Document:
        """Its routes are children."""
        del id_, before
        return {"disableBgpRoutePropagation": bool(body.properties.disable_bgp_route_propagation)}

    def written(self, id_: Id, body: RouteTableBody) -> None:
        """The routes that the request names, and no others."""
        self.replace_children(id_, "routes", body.properties.routes or [])

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes/inuseroutetablecannotbedeleted-error."""
        del user
        return "InUseRouteTableCannotBeDeleted", f"Route table {id_.name} is in use and cannot be deleted."


class NatGateways(_UsedBySubnets):
    """`natGateways`."""

    collection = "natGateways"
    body = NatBody
    quota = "NatGateways"
    member = "natGateway"

    def build(self, id_: Id, body: NatBody, before: Document | None) -> Document:
        """With public addresses that nothing else has."""
        del before
        location = self.location(id_)
        sku = body.sku.name if body.sku else None
        if sku not in ("Standard", "StandardV2"):
            raise bad_request("InvalidNatGatewaySku", f"The SKU of NAT gateway {id_} must be Standard or StandardV2.")
        if body.zones and len(body.zones) > 1 and sku == "Standard":
            message = f"Resource {id_} has {len(body.zones)} zones specified. Only one zone can be specified for it."
            raise bad_request("ResourceCannotHaveMultipleZonesSpecified", message)
        for reference in body.properties.public_ip_addresses or []:
            address = self.context.referred(id_, reference, "publicIPAddresses", location)
            user = _user_of_address(self.context, address, besides=id_.key)
            if user:
                message = f"Public IP address {address} is already allocated to resource {user}."
                raise bad_request("PublicIPAddressInUse", message)
        return {"idleTimeoutInMinutes": 4} | body.properties.fields()

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """A subnet refers to it."""
        message = (
            f"NAT gateway {id_.name} cannot be deleted because it is in use by the following resources: {user}. In "
            "order to delete the NAT gateway, remove the association with the resource(s)."
        )
        return "InUseNatGatewayCannotBeDeleted", message


class PublicIps(Resources):
    """`publicIPAddresses`."""

    collection = "publicIPAddresses"
    body = PublicIpBody
    quota = "PublicIPAddresses"

    def build(self, id_: Id, body: PublicIpBody, before: Document | None) -> Document:
        """A Standard one is static (https://learn.microsoft.com/azure/virtual-network/ip-services/public-ip-addresses)."""
        if body.sku is None or body.sku.name in (None, "Basic"):
            message = "Basic SKU public IP addresses can no longer be created; use the Standard SKU."
            raise bad_request("IPv4BasicSkuPublicIpCountLimitReached", message)
        method = body.properties.public_ip_allocation_method or "Dynamic"
        if method != "Static":
            message = f"Standard sku publicIp {id_} must have AllocationMethod set to Static."
            raise bad_request("PublicIPAndAllocationMethodMismatch", message)
        taken = {each["properties"].get("ipAddress") for _, each in self.all()}
        address = (before or {}).get("properties", {}).get("ipAddress")
        free = address or next(str(each) for each in _PUBLIC.hosts() if str(each) not in taken)
        defaults = {"publicIPAddressVersion": "IPv4", "idleTimeoutInMinutes": 4, "ipTags": []}
        return defaults | body.properties.fields() | {"publicIPAllocationMethod": method, "ipAddress": free}

    def users(self, id_: Id) -> Sequence[str]:
        """The NAT gateway or interface that has it."""
        user = _user_of_address(self.context, id_)
        return [user] if user else []

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """It is allocated."""
        message = (
            f"Public IP address {id_} can not be deleted since it is still allocated to resource {user}. In order to "
            "delete the public IP, disassociate/detach the Public IP address from the resource. To learn how to do "
            "this, see aka.ms/deletepublicip."
        )
        return "PublicIPAddressCannotBeDeleted", message

    def shown(self, id_: Id, document: Document) -> Document:
        """With who has it."""
        del document
        user = _user_of_address(self.context, id_)
        if user is None:
            return {}
        return {"natGateway" if "/natgateways/" in user.lower() else "ipConfiguration": {"id": user}}


def _user_of_address(context: Context, address: Id, besides: str = "") -> str | None:
    gateways = referring(context, "natGateways", lambda properties: properties.get("publicIpAddresses", ()), address)
    configurations = [
        str(configuration["id"])
        for _, interface in context.store.list("networkInterfaces")
        for configuration in interface["properties"].get("ipConfigurations", ())
        if configuration["properties"].get("publicIPAddress", {}).get("id", "").lower() == address.key
    ]
    return next((user for user in [*gateways, *configurations] if user.lower() != besides), None)
