"""The requests' bodies, as far as this server knows the fields; others are refused, never ignored.

Field names and value ranges: https://cloud.google.com/compute/docs/reference/rest/v1.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from sandbox.clouds import Document
from sandbox.gcp.errors import refused, required

__all__ = [
    "AddPeering",
    "Address",
    "Body",
    "ExpandRange",
    "Firewall",
    "Instance",
    "Labels",
    "Nat",
    "Network",
    "Peering",
    "PrivateAccess",
    "RemovePeering",
    "Resource",
    "Router",
    "StaticRoute",
    "Subnetwork",
    "UpdatePeering",
    "parse",
]


class Body(BaseModel):
    """What every body is: camelCase on the wire, nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)

    def fields(self) -> Document:
        """What was given, as JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Resource(Body):
    """What every resource has. What only the server sets may be sent back to it and is ignored."""

    name: str | None = None
    description: str | None = None
    kind: Any = Field(default=None, exclude=True)
    id: Any = Field(default=None, exclude=True)
    self_link: Any = Field(default=None, exclude=True)
    self_link_with_id: Any = Field(default=None, exclude=True)
    creation_timestamp: Any = Field(default=None, exclude=True)
    region: Any = Field(default=None, exclude=True)
    zone: Any = Field(default=None, exclude=True)
    status: Any = Field(default=None, exclude=True)
    fingerprint: str | None = Field(default=None, exclude=True)
    params: dict[str, Any] | None = Field(default=None, exclude=True)


class RoutingConfig(Body):
    """How dynamic routes spread."""

    routing_mode: Literal["REGIONAL", "GLOBAL"] = "REGIONAL"
    bgp_best_path_selection_mode: Literal["LEGACY", "STANDARD"] | None = None
    effective_bgp_always_compare_med: Any = Field(default=None, exclude=True)
    effective_bgp_inter_region_cost: Any = Field(default=None, exclude=True)


class Network(Resource):
    """`networks`."""

    auto_create_subnetworks: bool | None = None
    routing_config: RoutingConfig | None = None
    mtu: Annotated[int, Field(ge=1300, le=8896)] | None = None
    network_firewall_policy_enforcement_order: Literal["AFTER_CLASSIC_FIREWALL", "BEFORE_CLASSIC_FIREWALL"] | None = (
        None
    )
    legacy_range: str | None = Field(default=None, alias="IPv4Range")
    peerings: Any = Field(default=None, exclude=True)
    subnetworks: Any = Field(default=None, exclude=True)
    firewall_policy: Any = Field(default=None, exclude=True)


class Peering(Body):
    """One side of a peering."""

    name: str
    network: str | None = None
    exchange_subnet_routes: bool | None = None
    export_custom_routes: bool | None = None
    import_custom_routes: bool | None = None
    export_subnet_routes_with_public_ip: bool | None = None
    import_subnet_routes_with_public_ip: bool | None = None
    stack_type: Literal["IPV4_ONLY", "IPV4_IPV6"] | None = None
    peer_mtu: int | None = None
    update_strategy: Literal["INDEPENDENT", "CONSENSUS", "UNSPECIFIED"] | None = None
    state: Any = Field(default=None, exclude=True)
    state_details: Any = Field(default=None, exclude=True)
    auto_create_routes: Any = Field(default=None, exclude=True)
    connection_status: Any = Field(default=None, exclude=True)


class AddPeering(Body):
    """`networks.addPeering`, in its present form and the older one with the fields at the top."""

    network_peering: Peering | None = None
    name: str | None = None
    peer_network: str | None = None
    auto_create_routes: bool | None = None


class RemovePeering(Body):
    """`networks.removePeering`."""

    name: str


class UpdatePeering(Body):
    """`networks.updatePeering`."""

    network_peering: Peering


class SecondaryRange(Body):
    """A further range of a subnetwork, by name."""

    range_name: str
    ip_cidr_range: str
    reserved_internal_range: str | None = None


class Subnetwork(Resource):
    """`subnetworks`."""

    network: str | None = None
    ip_cidr_range: str | None = None
    secondary_ip_ranges: list[SecondaryRange] | None = None
    private_ip_google_access: bool | None = None
    purpose: str | None = None
    role: str | None = None
    stack_type: Literal["IPV4_ONLY"] | None = None
    enable_flow_logs: bool | None = None
    log_config: dict[str, Any] | None = None
    gateway_address: Any = Field(default=None, exclude=True)
    state: Any = Field(default=None, exclude=True)
    private_ipv6_google_access: Any = Field(default=None, exclude=True, alias="privateIpv6GoogleAccess")


class ExpandRange(Body):
    """`subnetworks.expandIpCidrRange`."""

    ip_cidr_range: str


class PrivateAccess(Body):
    """`subnetworks.setPrivateIpGoogleAccess`."""

    private_ip_google_access: bool


class NatSubnetwork(Body):
    """Which ranges of a subnetwork a NAT serves."""

    name: str
    source_ip_ranges_to_nat: list[Literal["ALL_IP_RANGES", "PRIMARY_IP_RANGE", "LIST_OF_SECONDARY_IP_RANGES"]] = []
    secondary_ip_range_names: list[str] = []


class Nat(Body):
    """One Cloud NAT gateway of a router."""

    name: str
    type: Literal["PUBLIC", "PRIVATE"] | None = None
    source_subnetwork_ip_ranges_to_nat: Literal[
        "ALL_SUBNETWORKS_ALL_IP_RANGES", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES", "LIST_OF_SUBNETWORKS"
    ]
    subnetworks: list[NatSubnetwork] = []
    nat_ip_allocate_option: Literal["AUTO_ONLY", "MANUAL_ONLY"] | None = None
    nat_ips: list[str] = []
    drain_nat_ips: list[str] = []
    min_ports_per_vm: Annotated[int, Field(ge=2, le=65536)] | None = None
    max_ports_per_vm: Annotated[int, Field(ge=2, le=65536)] | None = None
    enable_dynamic_port_allocation: bool | None = None
    enable_endpoint_independent_mapping: bool | None = None
    udp_idle_timeout_sec: int | None = None
    icmp_idle_timeout_sec: int | None = None
    tcp_established_idle_timeout_sec: int | None = None
    tcp_transitory_idle_timeout_sec: int | None = None
    tcp_time_wait_timeout_sec: int | None = None
    log_config: dict[str, Any] | None = None
    endpoint_types: list[str] | None = None
    auto_network_tier: str | None = None
    rules: list[dict[str, Any]] | None = None


class Router(Resource):
    """`routers`."""

    network: str | None = None
    nats: list[Nat] | None = None
    bgp: dict[str, Any] | None = None
    bgp_peers: list[dict[str, Any]] | None = None
    interfaces: list[dict[str, Any]] | None = None
    encrypted_interconnect_router: bool | None = None


class Allowed(Body):
    """A protocol and its ports in a firewall rule."""

    protocol: str = Field(alias="IPProtocol")
    ports: list[str] | None = None


class Firewall(Resource):
    """`firewalls`."""

    network: str | None = None
    priority: Annotated[int, Field(ge=0, le=65535)] | None = None
    direction: Literal["INGRESS", "EGRESS"] | None = None
    allowed: list[Allowed] | None = None
    denied: list[Allowed] | None = None
    source_ranges: list[str] | None = None
    destination_ranges: list[str] | None = None
    source_tags: list[str] | None = None
    target_tags: list[str] | None = None
    source_service_accounts: list[str] | None = None
    target_service_accounts: list[str] | None = None
    disabled: bool | None = None
    log_config: dict[str, Any] | None = None


class StaticRoute(Resource):
    """`routes`."""

    network: str | None = None
    dest_range: str | None = None
    priority: Annotated[int, Field(ge=0, le=65535)] | None = None
    tags: list[str] | None = None
    next_hop_instance: str | None = None
    next_hop_ip: str | None = None
    next_hop_gateway: str | None = None
    route_type: Any = Field(default=None, exclude=True)
    warnings: Any = Field(default=None, exclude=True)


class Address(Resource):
    """`addresses` and `globalAddresses`."""

    address: str | None = None
    prefix_length: Annotated[int, Field(ge=8, le=96)] | None = None
    address_type: Literal["EXTERNAL", "INTERNAL"] | None = None
    purpose: str | None = None
    network: str | None = None
    subnetwork: str | None = None
    network_tier: Literal["PREMIUM", "STANDARD"] | None = None
    ip_version: Literal["IPV4"] | None = None
    labels: dict[str, str] | None = None
    label_fingerprint: Any = Field(default=None, exclude=True)
    users: Any = Field(default=None, exclude=True)


class Labels(Body):
    """`setLabels`."""

    labels: dict[str, str] = {}
    label_fingerprint: str = ""


class Interface(Body):
    """A network interface of an instance."""

    network: str | None = None
    subnetwork: str | None = None
    network_ip: str | None = Field(default=None, alias="networkIP")
    access_configs: list[dict[str, Any]] | None = None
    alias_ip_ranges: list[dict[str, Any]] | None = None
    name: str | None = None
    stack_type: Literal["IPV4_ONLY"] | None = None
    nic_type: str | None = None
    kind: Any = Field(default=None, exclude=True)
    fingerprint: Any = Field(default=None, exclude=True)


class Instance(Resource):
    """`instances`; disks, metadata and the like are kept as they come."""

    machine_type: str | None = None
    network_interfaces: Annotated[list[Interface], BeforeValidator(lambda value: value or [])] = []
    can_ip_forward: bool | None = None
    labels: dict[str, str] | None = None
    tags: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    disks: list[dict[str, Any]] | None = None
    service_accounts: list[dict[str, Any]] | None = None
    scheduling: dict[str, Any] | None = None
    hostname: str | None = None
    label_fingerprint: Any = Field(default=None, exclude=True)


_AnyBody = TypeVar("_AnyBody", bound=Body)


def parse(model: type[_AnyBody], content: bytes) -> _AnyBody:
    """The body of a request.

    Raises:
        Refusal: it is no JSON object, has unknown fields, lacks one, or a value cannot be.
    """
    try:
        raw = json.loads(content or b"{}")
    except ValueError:
        raise refused(400, "parseError", "Parse Error") from None
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problem = error.errors()[0]
        field = _field(problem["loc"])
        if problem["type"] == "extra_forbidden":
            raise refused(
                400,
                "invalid",
                f"Invalid JSON payload received. Unknown name \"{problem['loc'][-1]}\" at '{field}': "
                "Cannot find field.",
            ) from None
        if problem["type"] == "missing":
            raise required(field) from None
        value = problem["input"]
        raise refused(400, "invalid", f"Invalid value for field '{field}': '{value}'. {problem['msg']}") from None


def _field(location: tuple[int | str, ...]) -> str:
    text = "resource"
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text
