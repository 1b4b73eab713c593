"""Security groups."""

from __future__ import annotations

from itertools import chain
from typing import Any

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule
from sandbox.aws.cidrs import checked
from sandbox.aws.limits import enforce


@rule("CreateSecurityGroup")
def create_security_group(call: Call) -> ActionResult:
    """A Region holds only so many, and the VPC must exist.

    See docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
    """
    if vpc_id := call.get("VpcId"):
        call.cloud.get_vpc(vpc_id)
    enforce(call, "security_groups", sum(map(len, call.cloud.groups.values())))
    return call.proceed()


@rule("DeleteSecurityGroup")
def delete_security_group(call: Call) -> ActionResult:
    """Not the default one, not while an interface or another group's rule names it.

    docs.aws.amazon.com/vpc/latest/userguide/deleting-security-groups.html.
    """
    wanted = call.get("GroupId") or call.get("GroupName")
    if wanted is None:
        refuse("MissingParameter", "The request must contain the parameter groupName or groupId")
    group = call.cloud.get_security_group_by_name_or_id(wanted)
    if group is None:
        refuse("InvalidGroup.NotFound", f"The security group '{wanted}' does not exist")
    if group.name == "default":
        refuse("CannotDelete", f'the specified group: "{group.id}" name: "default" cannot be deleted by a user')
    used = any(group in eni.group_set for eni in call.cloud.enis.values())
    if used or any(_names(other, group.id) for other in _others(call.cloud, group)):
        refuse("DependencyViolation", f"resource {group.id} has a dependent object")
    return call.proceed()


def _others(cloud: Any, group: Any) -> Any:
    return (other for other in chain(*(groups.values() for groups in cloud.groups.values())) if other is not group)


def _names(group: Any, group_id: str) -> bool:
    return any(
        entry.source_group.get("GroupId") == group_id for entry in chain(group.ingress_rules, group.egress_rules)
    )


@rule(
    "AuthorizeSecurityGroupIngress",
    "AuthorizeSecurityGroupEgress",
    "RevokeSecurityGroupIngress",
    "RevokeSecurityGroupEgress",
)
def change_rules(call: Call) -> ActionResult:
    """No host bits, not more rules than a group holds, and all of the call's rules or none.

    See docs.aws.amazon.com/AWSEC2/latest/APIReference/API_IpRange.html and
    docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
    """
    if call.get("CidrIp"):
        call.parameters["CidrIp"] = checked(call, call.get("CidrIp"))
    for permission in call.get("IpPermissions", []):
        if permission.get("IpProtocol") in ("tcp", "udp", "6", "17") and None in _ports(permission):
            refuse("InvalidParameterValue", "Invalid value 'null' for portRange. Must specify both from and to ports")
        for entry in permission.get("IpRanges") or []:
            entry["CidrIp"] = checked(call, entry["CidrIp"])
    group = call.cloud.get_security_group_by_name_or_id(call.get("GroupId") or call.get("GroupName"))
    if group is None:
        return call.proceed()
    ingress, egress = list(group.ingress_rules), list(group.egress_rules)
    if call.action.startswith("Authorize"):
        present = egress if call.action.endswith("Egress") else ingress
        enforce(call, "rules_per_security_group", len(present), _asked_for(call))
    try:
        return call.proceed()
    except Exception:
        # moto has applied the rules before the one that it refuses.
        group.ingress_rules, group.egress_rules = ingress, egress
        raise


def _ports(permission: Any) -> tuple[Any, Any]:
    return permission.get("FromPort"), permission.get("ToPort")


def _asked_for(call: Call) -> int:
    permissions = call.get("IpPermissions")
    if not permissions:
        return 1
    sources = ("IpRanges", "Ipv6Ranges", "UserIdGroupPairs", "PrefixListIds")
    return sum(len(permission.get(source) or []) for permission in permissions for source in sources)
