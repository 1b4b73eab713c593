"""VPC peering connections.

See docs.aws.amazon.com/vpc/latest/peering/vpc-peering-basics.html (lifecycle and limitations).
"""

# ruff: noqa: SLF001  # what EC2 shows and moto keeps for itself is in its private members
from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends

from sandbox.aws.agenda import later, step
from sandbox.aws.calls import Call, refuse, rule
from sandbox.aws.cidrs import overlapping, vpc_networks
from sandbox.aws.limits import enforce
from sandbox.aws.lookups import filters_of, passes

_OPEN = ("initiating-request", "pending-acceptance", "provisioning", "active")


@rule("CreateVpcPeeringConnection")
def create_vpc_peering_connection(call: Call) -> ActionResult:
    """Two VPCs with overlapping ranges: the request fails, visibly. Two that are peered already: refused."""
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    peer = _peer(call)
    if peer is vpc:
        refuse("InvalidParameterValue", f"The VPC {vpc.id} cannot be peered with itself")
    for pcx in call.cloud.vpc_pcxs.values():
        if _is_open(pcx) and {pcx.vpc.id, pcx.peer_vpc.id} == {vpc.id, peer.id}:
            refuse("VpcPeeringConnectionAlreadyExists", f"{pcx.id} already connects {vpc.id} and {peer.id}")
    answer = call.proceed()
    pcx = answer.result["VpcPeeringConnection"]
    if overlapping(vpc_networks(vpc), vpc_networks(peer)):
        pcx._status.code = "failed"
        pcx._status.message = "Failed due to incorrect VPC-ID, Account ID, or overlapping CIDR range"
        later(call.cloud, call.now + call.settings.delays.peering_listed, peering_is_forgotten, pcx.id)
    return answer


def _peer(call: Call) -> Any:
    account = call.get("PeerOwnerId") or call.cloud.account_id
    region = call.get("PeerRegion") or call.cloud.region_name
    if region not in ec2_backends[account]:
        refuse("InvalidParameterValue", f"The region '{region}' does not exist")
    return ec2_backends[account][region].get_vpc(call.get("PeerVpcId"))


@rule("AcceptVpcPeeringConnection")
def accept_vpc_peering_connection(call: Call) -> ActionResult:
    """A VPC has only so many active ones. docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html."""
    pcx = _found(call)
    for vpc in (pcx.vpc, pcx.peer_vpc):
        enforce(call, "peerings_per_vpc", len(peered_vpcs(vpc.ec2_backend, vpc.id)))
    return call.proceed()


@rule("RejectVpcPeeringConnection")
def reject_vpc_peering_connection(call: Call) -> ActionResult:
    """What is rejected stays listed for a while."""
    pcx = _found(call)
    answer = call.proceed()
    _forget_later(call, pcx)
    return answer


@rule("DeleteVpcPeeringConnection")
def delete_vpc_peering_connection(call: Call) -> ActionResult:
    """What is over already cannot be deleted; what is deleted stays listed for a while."""
    pcx = _found(call)
    if not _is_open(pcx):
        refuse(
            "InvalidStateTransition",
            f"Invalid state transition for {pcx.id}, attempted to transition from {pcx.status['Code']} to deleting",
        )
    answer = call.proceed()
    _forget_later(call, pcx)
    return answer


@rule("DescribeVpcPeeringConnections")
def describe_vpc_peering_connections(call: Call) -> ActionResult:
    """All filters; moto looks at none."""
    filters = filters_of(call)
    answer = call.proceed()
    listed = [pcx for pcx in answer.result["VpcPeeringConnections"] if passes(pcx, filters, _filtered)]
    return ActionResult({"VpcPeeringConnections": listed})


def _found(call: Call) -> Any:
    pcx_id = call.get("VpcPeeringConnectionId")
    pcx = call.cloud.vpc_pcxs.get(pcx_id)
    if pcx is None:
        refuse("InvalidVpcPeeringConnectionID.NotFound", f"The vpcPeeringConnection ID '{pcx_id}' does not exist")
    return pcx


def _filtered(pcx: Any, name: str) -> Any:
    side, _, field = name.partition(".")
    if side in ("accepter-vpc-info", "requester-vpc-info"):
        vpc = pcx.peer_vpc if side == "accepter-vpc-info" else pcx.vpc
        return {"cidr-block": list(map(str, vpc_networks(vpc))), "owner-id": vpc.owner_id, "vpc-id": vpc.id}[field]
    return {
        "status-code": pcx.status["Code"],
        "status-message": pcx.status["Message"],
        "vpc-peering-connection-id": pcx.id,
        "expiration-time": None,
    }[name]


def peered_vpcs(cloud: Any, vpc_id: str) -> list[Any]:
    """The VPCs at the other end of the active peerings of this one."""
    active = [pcx for pcx in cloud.vpc_pcxs.values() if pcx.status["Code"] == "active"]
    return [
        pcx.peer_vpc if pcx.vpc.id == vpc_id else pcx.vpc for pcx in active if vpc_id in (pcx.vpc.id, pcx.peer_vpc.id)
    ]


def close_peerings(call: Call, vpc_id: str) -> None:
    """Delete the peerings of a VPC that is being deleted."""
    for pcx in call.cloud.vpc_pcxs.values():
        if _is_open(pcx) and vpc_id in (pcx.vpc.id, pcx.peer_vpc.id):
            pcx._status.deleted(deleter_id=call.cloud.account_id)
            _forget_later(call, pcx)


def _forget_later(call: Call, pcx: Any) -> None:
    for cloud in {id(end): end for end in (pcx.vpc.ec2_backend, pcx.peer_vpc.ec2_backend)}.values():
        later(cloud, call.now + call.settings.delays.peering_listed, peering_is_forgotten, pcx.id)


@step
def peering_is_forgotten(cloud: Any, pcx_id: str, due: float) -> None:
    """The peering is no longer listed."""
    cloud.vpc_pcxs.pop(pcx_id, None)
    cloud.tags.pop(pcx_id, None)


def _is_open(pcx: Any) -> bool:
    return pcx.status["Code"] in _OPEN
