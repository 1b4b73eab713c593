"""Internet gateways."""

from __future__ import annotations

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule
from sandbox.aws.limits import enforce


@rule("CreateInternetGateway")
def create_internet_gateway(call: Call) -> ActionResult:
    """A Region holds only so many. docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html."""
    enforce(call, "internet_gateways", len(call.cloud.internet_gateways))
    return call.proceed()


@rule("AttachInternetGateway")
def attach_internet_gateway(call: Call) -> ActionResult:
    """One gateway per VPC. docs.aws.amazon.com/vpc/latest/userguide/VPC_Internet_Gateway.html."""
    gateway = call.cloud.get_internet_gateway(call.get("InternetGatewayId"))
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    if gateway.vpc:
        refuse("Resource.AlreadyAssociated", f"resource {gateway.id} is already attached to network {gateway.vpc.id}")
    if any(other.vpc and other.vpc.id == vpc.id for other in call.cloud.internet_gateways.values()):
        refuse("InvalidParameterValue", f"Network {vpc.id} already has an internet gateway attached")
    return call.proceed()


@rule("DetachInternetGateway")
def detach_internet_gateway(call: Call) -> ActionResult:
    """Not while public addresses are mapped. docs.aws.amazon.com/vpc/latest/userguide/VPC_Internet_Gateway.html."""
    vpc_id = call.get("VpcId")
    gateway = call.cloud.get_internet_gateway(call.get("InternetGatewayId"))
    attached = gateway.vpc and gateway.vpc.id == vpc_id
    if attached and any(eni.public_ip for eni in call.cloud.enis.values() if eni.vpc_id == vpc_id):
        refuse(
            "DependencyViolation",
            f"Network {vpc_id} has some mapped public address(es). Please unmap those public address(es) before"
            " detaching the gateway.",
        )
    return call.proceed()
