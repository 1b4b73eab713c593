"""Takes away what was made for one shoot, and nothing else (provider-aws, `infraflow/delete.go`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from sandbox.garden.providers import CloudError, Order, Record
from sandbox.garden.providers.aws.codes import error_code
from sandbox.garden.providers.aws.inventory import Inventory, cluster_tag, tag_of, take_inventory
from sandbox.garden.providers.aws.session import Session

_SECONDS = 180.0
_ABSENT = ("NotFound", "NoSuchEntity", "InvalidGroupId.Malformed")


def delete_infrastructure(session: Session, order: Order, record: Record) -> None:
    """All that carries the cluster's tag in its VPC. VPC, gateway and groups of others stay.

    What others put into the shoot's subnets stops it: EC2 answers DependencyViolation.
    """
    tid, ec2 = order.technical_id, session.ec2
    found = take_inventory(session, tid, record["vpc"])
    _delete_service_groups(session, found, tid)
    _delete_identity(session, record, tid)
    for endpoint in found.endpoints:
        ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])
    for gateway in found.nat_gateways:
        ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    _await_gone(session, [gateway["NatGatewayId"] for gateway in found.nat_gateways])
    for address in found.addresses:
        gone_is_fine(ec2.release_address, AllocationId=address["AllocationId"])
    for subnet in found.subnets:
        delete_subnet(session, subnet["SubnetId"])
    for table in found.route_tables:
        _delete_route_table(session, table)
    own = f"{tid}-nodes"
    for group in found.security_groups:
        if group["GroupName"] == own:
            gone_is_fine(ec2.delete_security_group, GroupId=group["GroupId"])


def delete_subnet(session: Session, subnet: str) -> None:
    """A subnet, which must be empty."""
    gone_is_fine(session.ec2.delete_subnet, SubnetId=subnet)


def gone_is_fine(call: Callable[..., Any], **arguments: Any) -> None:
    """Makes a call that removes something, which may be gone already."""
    try:
        call(**arguments)
    except ClientError as error:
        if not any(part in error_code(error) for part in _ABSENT):
            raise


def _delete_service_groups(session: Session, found: Inventory, tid: str) -> None:
    # Groups that the cloud controller made for load balancers carry the cluster's tag too.
    for group in found.security_groups:
        if group["GroupName"] != f"{tid}-nodes" and tag_of(group, cluster_tag(tid)) == "owned":
            gone_is_fine(session.ec2.delete_security_group, GroupId=group["GroupId"])


def _delete_identity(session: Session, record: Record, tid: str) -> None:
    if not record.get("identity"):
        return
    name, iam = f"{tid}-nodes", session.iam
    gone_is_fine(session.ec2.delete_key_pair, KeyName=f"{tid}-ssh-publickey")
    gone_is_fine(iam.remove_role_from_instance_profile, InstanceProfileName=name, RoleName=name)
    gone_is_fine(iam.delete_role_policy, RoleName=name, PolicyName=name)
    gone_is_fine(iam.delete_instance_profile, InstanceProfileName=name)
    gone_is_fine(iam.delete_role, RoleName=name)
    del record["identity"]


def _delete_route_table(session: Session, table: Any) -> None:
    for association in table.get("Associations", []):
        if not association.get("Main") and association.get("RouteTableAssociationId"):
            association_id = association["RouteTableAssociationId"]
            gone_is_fine(session.ec2.disassociate_route_table, AssociationId=association_id)
    gone_is_fine(session.ec2.delete_route_table, RouteTableId=table["RouteTableId"])


def _await_gone(session: Session, gateways: list[str]) -> None:
    deadline = time.monotonic() + _SECONDS
    pause = 0.1
    while gateways:
        try:
            described = session.ec2.describe_nat_gateways(NatGatewayIds=gateways)["NatGateways"]
        except ClientError as error:
            if error_code(error) != "NatGatewayNotFound":
                raise
            return
        gateways = [each["NatGatewayId"] for each in described if each["State"] != "deleted"]
        if not gateways:
            return
        if time.monotonic() > deadline:
            raise CloudError(f"NAT gateways {', '.join(gateways)} are still being deleted", ())
        time.sleep(pause)
        pause = min(2 * pause, 5.0)
