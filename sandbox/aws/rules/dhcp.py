"""DHCP options: moto lets a set belong to one VPC, EC2 to any number.

See docs.aws.amazon.com/vpc/latest/userguide/VPC_DHCP_Options.html.
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule

_OPTIONS = (
    "domain-name-servers",
    "domain-name",
    "ntp-servers",
    "netbios-name-servers",
    "netbios-node-type",
    "ipv6-address-preferred-lease-time",
)


@rule("CreateDhcpOptions")
def create_dhcp_options(call: Call) -> ActionResult:
    """Only options that there are; the tags of the call are set (moto drops them)."""
    for option in call.get("DhcpConfigurations", []):
        if option.get("Key") not in _OPTIONS:
            refuse(
                "InvalidParameterValue",
                f"Value ({option.get('Key')}) for parameter name is invalid. Unknown DHCP option",
            )
    answer = call.proceed()
    answer.result["DhcpOptions"].add_tags(call.tags())
    return answer


@rule("AssociateDhcpOptions")
def associate_dhcp_options(call: Call) -> ActionResult:
    """The options that the VPC had before are no longer in use by it."""
    release_options(call.cloud, call.cloud.get_vpc(call.get("VpcId")))
    return call.proceed()


@rule("DeleteDhcpOptions")
def delete_dhcp_options(call: Call) -> ActionResult:
    """Not while any VPC uses them."""
    options = call.cloud.dhcp_options_sets.get(call.get("DhcpOptionsId"))
    if options and _users(call.cloud, options):
        refuse("DependencyViolation", f"The dhcpOptions '{options.id}' has dependencies and cannot be deleted.")
    return call.proceed()


def release_options(cloud: Any, vpc: Any) -> None:
    """Part a VPC from its options, which stay with the other VPCs that use them."""
    options, vpc.dhcp_options = vpc.dhcp_options, None
    if options:
        options.vpc = next(iter(_users(cloud, options)), None)


def _users(cloud: Any, options: Any) -> list[Any]:
    return [vpc for vpc in cloud.vpcs.values() if vpc.dhcp_options is options]
