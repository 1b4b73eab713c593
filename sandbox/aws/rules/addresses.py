"""Elastic IP addresses and network interfaces."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule
from sandbox.aws.limits import enforce


@rule("AllocateAddress")
def allocate_address(call: Call) -> ActionResult:
    """A Region holds only so many. docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html."""
    enforce(call, "elastic_ips", len(call.cloud.addresses))
    return call.proceed()


@rule("ReleaseAddress")
def release_address(call: Call) -> ActionResult:
    """Not while it is associated. docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html."""
    address = _address(call)
    if address.association_id:
        refuse("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")
    return call.proceed()


@rule("DisassociateAddress")
def disassociate_address(call: Call) -> ActionResult:
    """The address of a NAT gateway belongs to the gateway.

    See docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html.
    """
    if association := call.get("AssociationId"):
        address = call.cloud.address_by_association([association])[0]
        if address.eni and address.eni.requester_managed:
            refuse("AuthFailure", "You do not have permission to access the specified resource.")
    return call.proceed()


@rule("CreateNetworkInterface")
def create_network_interface(call: Call) -> ActionResult:
    """Its groups must exist (moto makes them), its address must lie in the subnet.

    See docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html.
    """
    subnet = call.cloud.get_subnet(call.get("SubnetId"))
    for group_id in call.get("Groups", []):
        group = call.cloud.get_security_group_from_id(group_id)
        if group is None:
            refuse("InvalidSecurityGroupID.NotFound", f"The security group '{group_id}' does not exist")
        if group.vpc_id != subnet.vpc_id:
            refuse(
                "InvalidParameter", f"Security group {group_id} and subnet {subnet.id} belong to different networks."
            )
    address = call.get("PrivateIpAddress")
    if address and not _lies_in(address, subnet.cidr):
        refuse("InvalidParameterValue", "Address does not fall within the subnet's address range")
    return call.proceed()


@rule("DeleteNetworkInterface")
def delete_network_interface(call: Call) -> ActionResult:
    """Only an interface that nothing uses can be deleted.

    See docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-eni.html.
    """
    eni = call.cloud.get_network_interface(call.get("NetworkInterfaceId"))
    if eni.requester_managed or eni.attachment_id:
        refuse("InvalidNetworkInterface.InUse", f"Network interface '{eni.id}' is currently in use.")
    return call.proceed()


def _lies_in(address: str, cidr: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(address) in cidr
    except ValueError:
        return False


def _address(call: Call) -> Any:
    if allocation := call.get("AllocationId"):
        return call.cloud.address_by_allocation([allocation])[0]
    ip = call.get("PublicIp")
    if not ip:
        refuse("MissingParameter", "Either public IP or allocation id must be specified")
    return call.cloud.address_by_ip([ip])[0]
