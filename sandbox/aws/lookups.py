"""What every Describe call checks in EC2: the filters' names, and that the ids asked for exist."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from .calls import Call, refuse

__all__ = ["check_filters", "check_ids", "filters_of", "is_match", "passes"]

# The filters that the action's page in the API reference lists. `tag:<key>` and `tag-key` go everywhere.
_FILTERS: dict[str, frozenset[str]] = {
    action: frozenset(names.split())
    for action, names in {
        "DescribeVpcs": """
            cidr cidr-block cidrBlock cidr-block-association.association-id
            cidr-block-association.cidr-block cidr-block-association.state dhcp-options-id dhcpOptionsId
            ipv6-cidr-block-association.association-id ipv6-cidr-block-association.ipv6-cidr-block
            ipv6-cidr-block-association.ipv6-pool ipv6-cidr-block-association.state is-default isDefault
            owner-id state vpc-id
        """,
        "DescribeSubnets": """
            availability-zone availabilityZone availability-zone-id availabilityZoneId
            available-ip-address-count cidr cidr-block cidrBlock customer-owned-ipv4-pool default-for-az
            defaultForAz enable-dns64 enable-lni-at-device-index ipv6-cidr-block-association.association-id
            ipv6-cidr-block-association.ipv6-cidr-block ipv6-cidr-block-association.state ipv6-native
            map-customer-owned-ip-on-launch map-public-ip-on-launch outpost-arn owner-id
            private-dns-name-options-on-launch.hostname-type
            private-dns-name-options-on-launch.enable-resource-name-dns-a-record
            private-dns-name-options-on-launch.enable-resource-name-dns-aaaa-record state subnet-arn
            subnet-id vpc-id
        """,
        "DescribeInternetGateways": "attachment.state attachment.vpc-id internet-gateway-id owner-id",
        "DescribeEgressOnlyInternetGateways": "",
        "DescribeNatGateways": "nat-gateway-id state subnet-id vpc-id",
        "DescribeDhcpOptions": "dhcp-options-id key owner-id value",
        "DescribeRouteTables": """
            association.gateway-id association.route-table-association-id association.route-table-id
            association.subnet-id association.main owner-id route-table-id route.destination-cidr-block
            route.destination-ipv6-cidr-block route.destination-prefix-list-id
            route.egress-only-internet-gateway-id route.gateway-id route.instance-id route.nat-gateway-id
            route.transit-gateway-id route.origin route.state route.vpc-peering-connection-id vpc-id
        """,
        "DescribeAddresses": """
            allocation-id association-id instance-id network-border-group network-interface-id
            network-interface-owner-id private-ip-address public-ip domain
        """,
        "DescribeSecurityGroups": """
            description egress.ip-permission.cidr egress.ip-permission.from-port
            egress.ip-permission.group-id egress.ip-permission.group-name egress.ip-permission.ipv6-cidr
            egress.ip-permission.prefix-list-id egress.ip-permission.protocol egress.ip-permission.to-port
            egress.ip-permission.user-id group-id group-name ip-permission.cidr ip-permission.from-port
            ip-permission.group-id ip-permission.group-name ip-permission.ipv6-cidr
            ip-permission.prefix-list-id ip-permission.protocol ip-permission.to-port ip-permission.user-id
            owner-id vpc-id
        """,
        "DescribeSecurityGroupRules": "group-id security-group-rule-id",
        "DescribeVpcPeeringConnections": """
            accepter-vpc-info.cidr-block accepter-vpc-info.owner-id accepter-vpc-info.vpc-id expiration-time
            requester-vpc-info.cidr-block requester-vpc-info.owner-id requester-vpc-info.vpc-id status-code
            status-message vpc-peering-connection-id
        """,
        "DescribeNetworkAcls": """
            association.association-id association.network-acl-id association.subnet-id default entry.cidr
            entry.icmp.code entry.icmp.type entry.ipv6-cidr entry.port-range.from entry.port-range.to
            entry.protocol entry.rule-action entry.egress entry.rule-number network-acl-id owner-id vpc-id
        """,
        "DescribeNetworkInterfaces": """
            addresses.association.owner-id addresses.association.public-ip addresses.primary
            addresses.private-ip-address association.allocation-id association.association-id
            association.ip-owner-id association.public-dns-name association.public-ip attachment.attach-time
            attachment.attachment-id attachment.delete-on-termination attachment.device-index
            attachment.instance-id attachment.instance-owner-id attachment.status availability-zone
            availability-zone-id description group-id interface-type ipv6-addresses.ipv6-address mac-address
            network-interface-id operator.managed operator.principal owner-id private-dns-name
            private-ip-address requester-id requester-managed source-dest-check status subnet-id vpc-id
        """,
        "DescribeAvailabilityZones": """
            group-long-name group-name message opt-in-status parent-zone-id parent-zone-name region-name
            state zone-id zone-name zone-type
        """,
        "DescribeTags": "key resource-id resource-type value",
    }.items()
}


class _Listed(NamedTuple):
    parameter: str
    code: str
    kind: str
    known: Callable[[Any], Iterable[str]]


_IDS = {
    "DescribeVpcs": _Listed("VpcIds", "InvalidVpcID.NotFound", "vpc ID", lambda cloud: cloud.vpcs),
    "DescribeSubnets": _Listed(
        "SubnetIds", "InvalidSubnetID.NotFound", "subnet ID", lambda cloud: chain(*cloud.subnets.values())
    ),
    "DescribeInternetGateways": _Listed(
        "InternetGatewayIds",
        "InvalidInternetGatewayID.NotFound",
        "internetGateway ID",
        lambda cloud: cloud.internet_gateways,
    ),
    "DescribeNatGateways": _Listed(
        "NatGatewayIds", "NatGatewayNotFound", "Nat Gateway", lambda cloud: cloud.nat_gateways
    ),
    "DescribeDhcpOptions": _Listed(
        "DhcpOptionsIds", "InvalidDhcpOptionID.NotFound", "dhcpOption ID", lambda cloud: cloud.dhcp_options_sets
    ),
    "DescribeRouteTables": _Listed(
        "RouteTableIds", "InvalidRouteTableID.NotFound", "routeTable ID", lambda cloud: cloud.route_tables
    ),
    "DescribeAddresses": _Listed(
        "AllocationIds",
        "InvalidAllocationID.NotFound",
        "allocation ID",
        lambda cloud: [address.allocation_id for address in cloud.addresses],
    ),
    "DescribeSecurityGroups": _Listed(
        "GroupIds", "InvalidGroup.NotFound", "security group", lambda cloud: chain(*cloud.groups.values())
    ),
    "DescribeNetworkInterfaces": _Listed(
        "NetworkInterfaceIds", "InvalidNetworkInterfaceID.NotFound", "networkInterface ID", lambda cloud: cloud.enis
    ),
    "DescribeVpcPeeringConnections": _Listed(
        "VpcPeeringConnectionIds",
        "InvalidVpcPeeringConnectionID.NotFound",
        "vpcPeeringConnection ID",
        lambda cloud: cloud.vpc_pcxs,
    ),
}


def filters_of(call: Call) -> dict[str, list[str]]:
    """The call's filters. EC2 calls the parameter Filters, and Filter for a few actions."""
    given = call.get("Filters") or call.get("Filter") or []
    return {str(one.get("Name")): list(one.get("Values") or []) for one in given}


def check_filters(call: Call) -> None:
    """Refuse filters that EC2 does not know; moto fails on them, or does not look at them."""
    known = _FILTERS.get(call.action)
    for name in filters_of(call):
        if known is not None and name not in known and name != "tag-key" and not name.startswith("tag:"):
            refuse("InvalidParameterValue", f"The filter '{name}' is invalid")


def check_ids(call: Call) -> None:
    """Refuse ids that do not exist."""
    listed = _IDS.get(call.action)
    wanted = call.get(listed.parameter, []) if listed else []
    if not listed or not wanted:
        return
    if missing := sorted(set(wanted) - set(listed.known(call.cloud))):
        plural = "s" if len(missing) > 1 else ""
        verb = "do" if plural else "does"
        refuse(listed.code, f"The {listed.kind}{plural} '{', '.join(missing)}' {verb} not exist")


def passes(resource: Any, filters: dict[str, list[str]], values: Callable[[Any, str], Any]) -> bool:
    """Whether a resource passes every filter; `values` gives what a filter of that name looks at (tags apart)."""
    tags = {tag["key"]: tag["value"] for tag in resource.get_tags()}
    for name, patterns in filters.items():
        if name == "tag-key":
            value: Any = list(tags)
        elif name.startswith("tag:"):
            value = tags.get(name.removeprefix("tag:"))
        else:
            value = values(resource, name)
        if not is_match(value, patterns):
            return False
    return True


def is_match(value: Any, patterns: list[str] | str) -> bool:
    """Whether a value, or one of several, matches one of the patterns (`*` and `?`)."""
    if value is None:
        return False
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, datetime):
        value = value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    values = [str(value)] if isinstance(value, str | int) else [str(one) for one in value]
    wanted = [patterns] if isinstance(patterns, str) else patterns
    # A bracket is an ordinary character in EC2's patterns, and a character class in Python's.
    plain = {str(pattern) for pattern in wanted}
    globs = [pattern.replace("[", "[[]") for pattern in plain if "*" in pattern or "?" in pattern]
    return any(one in plain or any(fnmatch.fnmatchcase(one, glob) for glob in globs) for one in values)
