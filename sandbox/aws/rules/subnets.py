"""Subnets."""

# ruff: noqa: SLF001  # what EC2 shows and moto keeps for itself is in its private members
from __future__ import annotations

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, rule, violated
from sandbox.aws.cidrs import tidy
from sandbox.aws.limits import enforce


@rule("CreateSubnet")
def create_subnet(call: Call) -> ActionResult:
    """A VPC holds only so many subnets. docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html."""
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    tidy(call, "CidrBlock")
    enforce(call, "subnets_per_vpc", len(call.cloud.describe_subnets(filters={"vpc-id": [vpc.id]})))
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
