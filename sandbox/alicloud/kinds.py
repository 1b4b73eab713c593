"""The kinds of resources, with the vendor's words for one that is not there.

Codes: https://api.alibabacloud.com/document/Vpc/2016-04-28/errorCode, .../VpcPeer/2022-01-01/errorCode and
.../Ecs/2014-05-26/errorCode.
"""

from __future__ import annotations

from sandbox.alicloud.resources import Kind

__all__ = ["EIP", "ENTRY", "GROUP", "INSTANCE", "NAT", "PEERING", "SNAT", "TABLE", "VPC", "VSWITCH"]

VPC = Kind("Vpc", "vpc", "VpcId", ("InvalidVpcId.NotFound", "Specified VPC does not exist."))
VSWITCH = Kind("VSwitch", "vsw", "VSwitchId", ("InvalidVSwitchId.NotFound", "VSwitch not exist."))
NAT = Kind("NatGateway", "ngw", "NatGatewayId", ("InvalidNatGatewayId.NotFound", "NatGatewayId not exist."))
SNAT = Kind("SnatEntry", "snat", "SnatEntryId", ("InvalidSnatEntryId.NotFound", "Specified SNAT entry does not exist."))
EIP = Kind("Eip", "eip", "AllocationId", ("InvalidAllocationId.NotFound", "Specified allocation ID is not found"))
TABLE = Kind(
    "RouteTable", "vtb", "RouteTableId", ("InvalidRouteTableId.NotFound", "Specified route table does not exist.")
)
ENTRY = Kind("RouteEntry", "rte", "RouteEntryId", ("InvalidRouteEntry.NotFound", "Route entry not exists."))
GROUP = Kind(
    "SecurityGroup",
    "sg",
    "SecurityGroupId",
    ("InvalidSecurityGroupId.NotFound", "The specified SecurityGroupId does not exist."),
)
INSTANCE = Kind(
    "Instance", "i", "InstanceId", ("InvalidInstanceId.NotFound", "The specified InstanceId does not exist.")
)
PEERING = Kind("VpcPeer", "pcc", "InstanceId", ("ResourceNotFound.InstanceId", "The specified resource is not found."))
