"""The requests' bodies, as far as this server knows the fields; others are refused, never ignored.

Field names and value ranges: https://learn.microsoft.com/rest/api/virtualnetwork and
https://learn.microsoft.com/rest/api/resources/resource-groups/create-or-update. What only the server sets may be sent
back to it and is ignored, so that what was read can be written.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from sandbox.azure.errors import failed, refused
from sandbox.clouds import Document, Refusal

__all__ = [
    "Body",
    "Group",
    "GroupPatch",
    "InterfaceBody",
    "NatBody",
    "NetworkBody",
    "PeeringBody",
    "PublicIpBody",
    "Reference",
    "ResourceBody",
    "RouteBody",
    "RouteTableBody",
    "SecurityGroupBody",
    "SecurityRuleBody",
    "SubnetBody",
    "TagsBody",
    "parse",
]

_SERVERS = frozenset({"provisioningState", "resourceGuid"})


class Body(BaseModel):
    """camelCase on the wire, nothing unknown; `server` names what only the server sets."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)
    server: ClassVar[frozenset[str]] = _SERVERS

    @model_validator(mode="before")
    @classmethod
    def _without_the_servers(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: content for key, content in value.items() if key not in cls.server and content is not None}

    def fields(self) -> Document:
        """What was given, as JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Reference(Body):
    """Another resource, by its id. The schema has the whole resource here; its other members mean nothing."""

    model_config = ConfigDict(extra="ignore")
    id: str


class Group(Body):
    """A resource group."""

    server = _SERVERS | {"id", "name", "type", "properties"}
    location: str | None = None
    tags: dict[str, str] = {}
    managed_by: str | None = None


class GroupPatch(Body):
    """What can be changed in a resource group."""

    server = _SERVERS | {"id", "name", "type", "properties", "location"}
    tags: dict[str, str] | None = None
    managed_by: str | None = None


class TagsBody(Body):
    """New tags of a resource."""

    tags: dict[str, str] = {}


class Sku(Body):
    """A resource's SKU."""

    name: Literal["Basic", "Standard", "StandardV2"] | None = None
    tier: Literal["Regional", "Global"] | None = None


class ResourceBody(Body):
    """What every resource has."""

    server = _SERVERS | {"id", "name", "type", "etag", "systemData", "kind"}
    location: str | None = None
    tags: dict[str, str] | None = None
    zones: list[Literal["1", "2", "3"]] | None = None
    sku: Sku | None = None
    properties: Body = Body()


class ChildBody(Body):
    """What every child of a resource has; its name counts only inside its parent's body."""

    server = _SERVERS | {"id", "type", "etag"}
    name: str | None = None
    properties: Body = Body()


class AddressSpace(Body):
    """The prefixes of a virtual network."""

    server = frozenset({"ipamPoolPrefixAllocations"})
    address_prefixes: list[str] = []


class DhcpOptions(Body):
    """DNS servers; none is Azure's own."""

    dns_servers: list[str] = []


class ServiceEndpoint(Body):
    """A service that is reached from a subnet by Azure's own network."""

    service: str
    locations: list[str] | None = None


class SubnetProperties(Body):
    """`subnets`."""

    server = _SERVERS | {
        "ipConfigurations", "ipConfigurationProfiles", "privateEndpoints", "purpose", "resourceNavigationLinks",
        "serviceAssociationLinks", "interfaceEndpoints",
    }  # fmt: skip
    address_prefix: str | None = None
    address_prefixes: list[str] | None = None
    network_security_group: Reference | None = None
    route_table: Reference | None = None
    nat_gateway: Reference | None = None
    service_endpoints: list[ServiceEndpoint] | None = None
    delegations: list[dict[str, Any]] | None = None
    private_endpoint_network_policies: str | None = None
    private_link_service_network_policies: str | None = None
    default_outbound_access: bool | None = None
    service_endpoint_policies: list[Reference] | None = None


class SubnetBody(ChildBody):
    """`subnets`."""

    properties: SubnetProperties = SubnetProperties()


class PeeringProperties(Body):
    """`virtualNetworkPeerings`."""

    server = _SERVERS | {"peeringState", "peeringSyncLevel", "remoteBgpCommunities", "remoteVirtualNetworkEncryption"}
    remote_virtual_network: Reference | None = None
    allow_virtual_network_access: bool | None = None
    allow_forwarded_traffic: bool | None = None
    allow_gateway_transit: bool | None = None
    use_remote_gateways: bool | None = None
    do_not_verify_remote_gateways: bool | None = None
    peer_complete_vnets: Literal[True] | None = None
    remote_address_space: AddressSpace | None = None
    remote_virtual_network_address_space: AddressSpace | None = None


class PeeringBody(ChildBody):
    """`virtualNetworkPeerings`."""

    properties: PeeringProperties = PeeringProperties()


class NetworkProperties(Body):
    """`virtualNetworks`."""

    server = _SERVERS | {"flowLogs", "defaultPublicNatGateway", "virtualNetworkPeerings"}
    address_space: AddressSpace | None = None
    dhcp_options: DhcpOptions | None = None
    subnets: list[SubnetBody] | None = None
    enable_ddos_protection: bool | None = None
    enable_vm_protection: bool | None = None
    ddos_protection_plan: Reference | None = None
    flow_timeout_in_minutes: int | None = None
    encryption: dict[str, Any] | None = None
    bgp_communities: dict[str, Any] | None = None
    private_endpoint_vnet_policies: str | None = Field(default=None, alias="privateEndpointVNetPolicies")


class NetworkBody(ResourceBody):
    """`virtualNetworks`."""

    properties: NetworkProperties = NetworkProperties()


class SecurityRuleProperties(Body):
    """`securityRules`."""

    description: str | None = None
    protocol: Literal["Tcp", "Udp", "Icmp", "Esp", "Ah", "*"] = "*"
    source_port_range: str | None = None
    source_port_ranges: list[str] | None = None
    destination_port_range: str | None = None
    destination_port_ranges: list[str] | None = None
    source_address_prefix: str | None = None
    source_address_prefixes: list[str] | None = None
    destination_address_prefix: str | None = None
    destination_address_prefixes: list[str] | None = None
    access: Literal["Allow", "Deny"]
    priority: Annotated[int, Field(ge=100, le=4096)]
    direction: Literal["Inbound", "Outbound"]


class SecurityRuleBody(ChildBody):
    """`securityRules`."""

    properties: SecurityRuleProperties


class SecurityGroupProperties(Body):
    """`networkSecurityGroups`."""

    server = _SERVERS | {"defaultSecurityRules", "networkInterfaces", "subnets", "flowLogs"}
    security_rules: list[SecurityRuleBody] | None = None
    flush_connection: bool | None = None


class SecurityGroupBody(ResourceBody):
    """`networkSecurityGroups`."""

    properties: SecurityGroupProperties = SecurityGroupProperties()


class RouteProperties(Body):
    """`routes`."""

    server = _SERVERS | {"hasBgpOverride"}
    address_prefix: str
    next_hop_type: Literal["VirtualNetworkGateway", "VnetLocal", "Internet", "VirtualAppliance", "None"]
    next_hop_ip_address: str | None = None


class RouteBody(ChildBody):
    """`routes`."""

    properties: RouteProperties


class RouteTableProperties(Body):
    """`routeTables`."""

    server = _SERVERS | {"subnets"}
    routes: list[RouteBody] | None = None
    disable_bgp_route_propagation: bool | None = None


class RouteTableBody(ResourceBody):
    """`routeTables`."""

    properties: RouteTableProperties = RouteTableProperties()


class NatProperties(Body):
    """`natGateways`."""

    server = _SERVERS | {"subnets"}
    idle_timeout_in_minutes: Annotated[int, Field(ge=4, le=120)] | None = None
    public_ip_addresses: list[Reference] | None = None
    public_ip_prefixes: list[Reference] | None = None


class NatBody(ResourceBody):
    """`natGateways`."""

    properties: NatProperties = NatProperties()


class PublicIpProperties(Body):
    """`publicIPAddresses`."""

    server = _SERVERS | {
        "ipAddress",
        "ipConfiguration",
        "natGateway",
        "servicePublicIPAddress",
        "linkedPublicIPAddress",
    }
    public_ip_allocation_method: Literal["Static", "Dynamic"] | None = Field(
        default=None, alias="publicIPAllocationMethod"
    )
    public_ip_address_version: Literal["IPv4"] | None = Field(default=None, alias="publicIPAddressVersion")
    idle_timeout_in_minutes: Annotated[int, Field(ge=4, le=30)] | None = None
    ip_tags: list[dict[str, str]] | None = None
    dns_settings: dict[str, Any] | None = None
    ddos_settings: dict[str, Any] | None = None
    delete_option: str | None = None


class PublicIpBody(ResourceBody):
    """`publicIPAddresses`."""

    properties: PublicIpProperties = PublicIpProperties()


class IpConfigurationProperties(Body):
    """An address of a network interface."""

    subnet: Reference
    private_ip_address: str | None = Field(default=None, alias="privateIPAddress")
    private_ip_allocation_method: Literal["Static", "Dynamic"] | None = Field(
        default=None, alias="privateIPAllocationMethod"
    )
    private_ip_address_version: Literal["IPv4"] | None = Field(default=None, alias="privateIPAddressVersion")
    public_ip_address: Reference | None = Field(default=None, alias="publicIPAddress")
    primary: bool | None = None


class IpConfiguration(Body):
    """An address of a network interface, by name."""

    server = _SERVERS | {"id", "etag", "type"}
    name: str
    properties: IpConfigurationProperties


class InterfaceProperties(Body):
    """`networkInterfaces`."""

    server = _SERVERS | {
        "macAddress", "primary", "virtualMachine", "hostedWorkloads", "vnetEncryptionSupported", "tapConfigurations",
        "nicType", "allowPort25Out", "defaultOutboundConnectivityEnabled",
    }  # fmt: skip
    ip_configurations: list[IpConfiguration] = []
    network_security_group: Reference | None = None
    enable_ip_forwarding: bool | None = Field(default=None, alias="enableIPForwarding")
    enable_accelerated_networking: bool | None = None
    disable_tcp_state_tracking: bool | None = None
    dns_settings: dict[str, Any] | None = None
    auxiliary_mode: str | None = None
    auxiliary_sku: str | None = None


class InterfaceBody(ResourceBody):
    """`networkInterfaces`."""

    properties: InterfaceProperties = InterfaceProperties()


_AnyBody = TypeVar("_AnyBody", bound=Body)


def parse(model: type[_AnyBody], content: bytes) -> _AnyBody:
    """The body of a request.

    Raises:
        Refusal: it is no JSON object, has unknown fields, lacks one, or a value cannot be.
    """
    try:
        raw = json.loads(content or b"{}")
    except ValueError:
        raise _unreadable("InvalidJson", "Error converting the request's body to JSON.") from None
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problem = error.errors()[0]
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            message = f"Could not find member '{problem['loc'][-1]}' on the object. Path '{path}'."
            raise _unreadable("InvalidJson", message) from None
        if problem["type"] == "missing":
            raise _unreadable("MissingJsonReferenceId", f"Value for '{path}' is missing.") from None
        message = f"Error converting value '{problem['input']}' of '{path}': {problem['msg']}."
        raise _unreadable("InvalidJson", message) from None


def _unreadable(code: str, message: str) -> Refusal:
    return refused(400, "InvalidRequestFormat", "Cannot parse the request.", details=[failed(code, message)])
