"""VPCs and their ranges."""

# ruff: noqa: SLF001  # what EC2 shows and moto keeps for itself is in its private members
from __future__ import annotations

import ipaddress
from typing import Any

from moto.core.responses import ActionResult

from sandbox.aws.agenda import later, step
from sandbox.aws.calls import Call, refuse, rule, violated
from sandbox.aws.cidrs import network, overlapping, tidy, vpc_networks
from sandbox.aws.limits import enforce

from .dhcp import release_options
from .peerings import close_peerings, peered_vpcs

_RFC_1918 = [ipaddress.IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
_BENCHMARK = ipaddress.IPv4Network("198.19.0.0/16")
_TEN_0 = ipaddress.IPv4Network("10.0.0.0/16")
_TEN_0_AND_1 = ipaddress.IPv4Network("10.0.0.0/15")
_LINK_LOCAL = ipaddress.IPv4Network("169.254.0.0/16")


@rule("CreateVpc")
def create_vpc(call: Call) -> ActionResult:
    """A VPC is pending first; a Region holds only so many.

    See docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
    """
    tidy(call, "CidrBlock")
    enforce(call, "vpcs", len(call.cloud.vpcs))
    answer = call.proceed()
    vpc = answer.result["Vpc"]
    vpc.state = "pending"
    later(call.cloud, call.now + call.settings.delays.vpc_pending, vpc_is_available, vpc.id)
    return answer


@step
def vpc_is_available(cloud: Any, vpc_id: str, due: float) -> None:
    """The VPC can be used."""
    if vpc := cloud.vpcs.get(vpc_id):
        vpc.state = "available"


@rule("DeleteVpc")
def delete_vpc(call: Call) -> ActionResult:
    """Only an empty VPC can be deleted; what EC2 made with it, and its peerings, go with it.

    See docs.aws.amazon.com/vpc/latest/userguide/delete-vpc.html and
    docs.aws.amazon.com/vpc/latest/peering/vpc-peering-basics.html.
    """
    cloud, vpc_id = call.cloud, call.get("VpcId")
    vpc = cloud.get_vpc(vpc_id)
    if any(_contents(cloud, vpc_id)):
        violated("vpc", vpc_id)
    close_peerings(call, vpc_id)
    # moto would delete the DHCP options with the VPC; EC2 keeps them.
    release_options(cloud, vpc)
    answer = call.proceed()
    for acl in [acl for acl in cloud.network_acls.values() if acl.vpc_id == vpc_id]:
        cloud.network_acls.pop(acl.id)
    return answer


def _contents(cloud: Any, vpc_id: str) -> list[Any]:
    """What has to go before the VPC (moto itself looks for subnets, route tables and VPN gateways)."""
    return [
        *(gateway for gateway in cloud.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id),
        *(gateway for gateway in cloud.egress_only_internet_gateways.values() if gateway.vpc_id == vpc_id),
        *(group for group in cloud.groups.get(vpc_id, {}).values() if group.name != "default"),
        *(eni for eni in cloud.enis.values() if eni.vpc_id == vpc_id),
        *(
            acl
            for acl in cloud.network_acls.values()
            if acl.vpc_id == vpc_id and acl.default != "true" and not acl.default
        ),
        *(end for end in cloud.vpc_end_points.values() if end.vpc_id == vpc_id and end.state != "deleted"),
    ]


@rule("ModifyVpcAttribute")
def modify_vpc_attribute(call: Call) -> ActionResult:
    """One attribute per request, and host names only with DNS support (parameter EnableDnsHostnames)."""
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    given = [name for name in ("EnableDnsSupport", "EnableDnsHostnames") if call.get(name)]
    if len(given) > 1:
        refuse("InvalidParameterCombination", "Fields for multiple attribute types specified: " + ", ".join(given))
    if given == ["EnableDnsHostnames"] and call.get("EnableDnsHostnames")["Value"] and not vpc.enable_dns_support:
        refuse(
            "InvalidParameterValue", f"DNS hostnames of {vpc.id} cannot be enabled while its DNS support is disabled"
        )
    return call.proceed()


@rule("AssociateVpcCidrBlock")
def associate_vpc_cidr_block(call: Call) -> ActionResult:
    """One more range: of the right size, free here, with the peers and in the routes, and of a permitted kind.

    docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html (VPC CIDR block association restrictions).
    """
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    tidy(call, "CidrBlock")
    cidr = call.get("CidrBlock")
    if cidr is None and call.get("AmazonProvidedIpv6CidrBlock"):
        return call.proceed()
    if cidr is None:
        refuse("MissingParameter", "The request must contain the parameter cidrBlock or amazonProvidedIpv6CidrBlock")
    wanted = network(cidr)
    if not isinstance(wanted, ipaddress.IPv4Network):
        refuse(
            "InvalidParameterValue",
            f"Value ({cidr}) for parameter cidrBlock is invalid. This is not a valid CIDR block.",
        )
    if not 16 <= wanted.prefixlen <= 28:
        refuse("InvalidVpc.Range", f"The CIDR '{cidr}' is invalid.")
    present = vpc_networks(vpc)
    if taken := overlapping([wanted], present):
        refuse("CidrConflict", f"The CIDR '{cidr}' conflicts with the CIDR {taken} of the same VPC")
    if _restricted(wanted, present):
        refuse(
            "InvalidVpc.Range",
            f"The CIDR '{cidr}' is restricted. Use a CIDR from the same private address range as the current VPC CIDR,"
            " or use a publicly-routable CIDR. For additional restrictions, see"
            " https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html",
        )
    for peer in peered_vpcs(call.cloud, vpc.id):
        if taken := overlapping([wanted], vpc_networks(peer)):
            refuse("CidrConflict", f"The CIDR '{cidr}' conflicts with the CIDR {taken} of the peered VPC {peer.id}")
    if destination := _routed(call.cloud, vpc.id, wanted):
        refuse("CidrConflict", f"The CIDR '{cidr}' conflicts with the route to {destination}")
    return call.proceed()


def _restricted(wanted: ipaddress.IPv4Network, present: list[ipaddress.IPv4Network]) -> bool:
    """The table of restricted associations, row by row."""
    if wanted.overlaps(_LINK_LOCAL):
        return True
    kind = next((kind for kind in _RFC_1918 if wanted.overlaps(kind)), None)
    primary = next((kind for kind in _RFC_1918 if present[0].overlaps(kind)), None)
    if wanted.overlaps(_BENCHMARK):
        return not present[0].overlaps(_BENCHMARK)
    if kind is not None and kind != primary:
        return True
    if wanted.overlaps(_TEN_0) and any(own.overlaps(_TEN_0_AND_1) for own in present):
        return True
    return primary == _RFC_1918[1] and wanted.overlaps(ipaddress.IPv4Network("172.31.0.0/16"))


def _routed(cloud: Any, vpc_id: str, wanted: ipaddress.IPv4Network) -> str | None:
    """A route of the VPC whose destination is the wanted range or inside it."""
    for table in cloud.route_tables.values():
        for route in table.routes if table.vpc_id == vpc_id else []:
            destination = network(route.destination_cidr_block or "")
            inside = isinstance(destination, ipaddress.IPv4Network) and destination.subnet_of(wanted)
            if inside and not route.local:
                return str(destination)
    return None


@rule("DisassociateVpcCidrBlock")
def disassociate_vpc_cidr_block(call: Call) -> ActionResult:
    """A range with subnets in it stays. docs.aws.amazon.com/vpc/latest/userguide/add-ipv4-cidr.html."""
    association = call.get("AssociationId")
    if not any(association in vpc._cidr_block_association_set for vpc in call.cloud.vpcs.values()):
        refuse("InvalidVpcCidrBlockAssociationID.NotFound", f"The association ID '{association}' does not exist")
    for vpc in call.cloud.vpcs.values():
        found = vpc._cidr_block_association_set.get(association)
        going = network(found["cidr_block"]) if found else None
        for subnet in call.cloud.describe_subnets(filters={"vpc-id": [vpc.id]}):
            if going and subnet.cidr.version == going.version and subnet.cidr.subnet_of(going):
                refuse(
                    "DependencyViolation",
                    f"The CIDR '{going}' has dependencies and cannot be disassociated: {subnet.id}",
                )
    return call.proceed()
