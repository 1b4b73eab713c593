"""Subnets."""

# ruff: noqa: SLF001  # what EC2 shows and moto keeps for itself is in its private members
from __future__ import annotations

from itertools import chain

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule, violated
from sandbox.aws.cidrs import network, tidy
from sandbox.aws.limits import enforce


@rule("CreateSubnet")
def create_subnet(call: Call) -> ActionResult:
    """Between /16 and /28, and a VPC holds only so many.

    See docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html and .../amazon-vpc-limits.html.
    """
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    tidy(call, "CidrBlock")
    if not (call.get("CidrBlock") or call.get("Ipv6CidrBlock")):
        refuse("MissingParameter", "The request must contain the parameter cidrBlock")
    wanted = network(call.get("CidrBlock", ""))
    if wanted and not 16 <= wanted.prefixlen <= 28:
        refuse("InvalidSubnet.Range", f"The CIDR '{wanted}' is invalid.")
    present = chain(*(subnets.values() for subnets in call.cloud.subnets.values()))
    enforce(call, "subnets_per_vpc", sum(subnet.vpc_id == vpc.id for subnet in present))
    return call.proceed()


@rule("DeleteSubnet")
def delete_subnet(call: Call) -> ActionResult:
    """Nothing may be left inside: every network interface counts, that of a NAT gateway too.

    docs.aws.amazon.com/vpc/latest/userguide/subnet-deleting.html.
    """
    subnet_id = call.get("SubnetId")
    call.cloud.get_subnet(subnet_id)
    if any(eni.subnet.id == subnet_id for eni in call.cloud.enis.values()):
        violated("subnet", subnet_id)
    answer = call.proceed()
    # EC2 drops the subnet's association with its route table; moto keeps it, and the table could never be deleted.
    for table in call.cloud.route_tables.values():
        for association in [one for one, target in table._associations.items() if target == subnet_id]:
            table._associations.pop(association)
    for acl in call.cloud.network_acls.values():
        for association in [one for one, value in acl._associations.items() if value.subnet_id == subnet_id]:
            acl._associations.pop(association)
    return answer
