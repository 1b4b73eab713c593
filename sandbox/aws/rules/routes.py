"""Route tables and routes. docs.aws.amazon.com/vpc/latest/userguide/VPC_Route_Tables.html."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule, violated
from sandbox.aws.cidrs import network, tidy, vpc_networks
from sandbox.aws.limits import enforce

__all__ = ["state_of"]


@rule("CreateRouteTable")
def create_route_table(call: Call) -> ActionResult:
    """A VPC holds only so many, the main one included.

    See docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
    """
    vpc = call.cloud.get_vpc(call.get("VpcId"))
    enforce(call, "route_tables_per_vpc", sum(table.vpc_id == vpc.id for table in call.cloud.route_tables.values()))
    return call.proceed()


@rule("DeleteRouteTable")
def delete_route_table(call: Call) -> ActionResult:
    """The main one stays with its VPC."""
    table = call.cloud.get_route_table(call.get("RouteTableId"))
    if table.main_association_id:
        violated("routeTable", table.id)
    return call.proceed()


@rule("CreateRoute")
def create_route(call: Call) -> ActionResult:
    """A table holds only so many routes; the target must exist and belong to the same VPC."""
    table = call.cloud.get_route_table(call.get("RouteTableId"))
    tidy(call, "DestinationCidrBlock")
    enforce(call, "routes_per_route_table", sum(not route.local for route in table.routes))
    _check_target(call, table)
    _check_destination(call, table)
    return call.proceed()


@rule("DeleteRoute")
def delete_route(call: Call) -> ActionResult:
    """The local routes stay."""
    table = call.cloud.get_route_table(call.get("RouteTableId"))
    tidy(call, "DestinationCidrBlock")
    destination = call.get("DestinationCidrBlock")
    if any(route.local and route.destination_cidr_block == destination for route in table.routes):
        refuse("InvalidParameterValue", f"cannot remove local route {destination} in route table {table.id}")
    return call.proceed()


@rule("AssociateRouteTable")
def associate_route_table(call: Call) -> ActionResult:
    """A subnet has one table, of its own VPC; the same association again is the same."""
    table = call.cloud.get_route_table(call.get("RouteTableId"))
    if subnet_id := call.get("SubnetId"):
        if call.cloud.get_subnet(subnet_id).vpc_id != table.vpc_id:
            refuse(
                "InvalidParameterValue", f"Route table {table.id} and subnet {subnet_id} belong to different networks"
            )
        for other in call.cloud.route_tables.values():
            if other is not table and any(one.get("SubnetId") == subnet_id for one in other.associations):
                refuse(
                    "Resource.AlreadyAssociated",
                    f"the specified association for route table {table.id} conflicts with an existing association",
                )
    return call.proceed()


@rule("ReplaceRoute")
def replace_route(call: Call) -> ActionResult:
    """As for a new route."""
    table = call.cloud.get_route_table(call.get("RouteTableId"))
    tidy(call, "DestinationCidrBlock")
    _check_target(call, table)
    return call.proceed()


def _check_target(call: Call, table: Any) -> None:
    cloud = call.cloud
    gateway_id = call.get("GatewayId") or ""
    if gateway_id.startswith("igw-"):
        gateway = cloud.internet_gateways.get(gateway_id)
        if gateway is None:
            refuse("InvalidGatewayID.NotFound", f"The gateway ID '{gateway_id}' does not exist")
        _check_home(table, "network gateway", gateway_id, {gateway.vpc.id} if gateway.vpc else set())
    if nat_id := call.get("NatGatewayId"):
        nat = cloud.nat_gateways.get(nat_id)
        if nat is None or nat.state in ("deleted", "failed"):
            refuse("InvalidNatGatewayID.NotFound", f"The natGateway ID '{nat_id}' does not exist")
        _check_home(table, "NAT gateway", nat_id, {nat.vpc_id})
    if pcx_id := call.get("VpcPeeringConnectionId"):
        pcx = cloud.vpc_pcxs.get(pcx_id)
        if pcx is None:
            refuse("InvalidVpcPeeringConnectionID.NotFound", f"The vpcPeeringConnection ID '{pcx_id}' does not exist")
        _check_home(table, "VPC peering connection", pcx_id, {pcx.vpc.id, pcx.peer_vpc.id})


def _check_destination(call: Call, table: Any) -> None:
    """The VPC itself is reached locally: only an interface, an instance or a NAT gateway may come between."""
    destination = network(call.get("DestinationCidrBlock", ""))
    for own in vpc_networks(call.cloud.get_vpc(table.vpc_id)):
        if not isinstance(destination, IPv4Network) or not destination.subnet_of(own):
            continue
        if any(call.get(name) for name in ("GatewayId", "VpcPeeringConnectionId", "TransitGatewayId")):
            refuse(
                "InvalidParameterValue",
                f"The destination CIDR block {destination} is equal to or more specific than one of this VPC's CIDR"
                " blocks. This route can target only an interface or an instance.",
            )
        if destination == own:
            refuse("RouteAlreadyExists", f"The route identified by {destination} already exists.")


def _check_home(table: Any, kind: str, target_id: str, homes: set[str]) -> None:
    if table.vpc_id not in homes:
        refuse("InvalidParameterValue", f"route table {table.id} and {kind} {target_id} belong to different networks")


def state_of(route: Any) -> str:
    """Whether a route still leads anywhere: `blackhole` once its target is gone (`state` in the data type Route)."""
    return "active" if _leads_on(route) else "blackhole"


def _leads_on(route: Any) -> bool:
    if route.nat_gateway:
        return route.nat_gateway.state in ("pending", "available")
    if route.vpc_pcx:
        return bool(route.vpc_pcx.status["Code"] == "active")
    if (route.gateway_id or "").startswith("igw-"):
        return bool(route.gateway.vpc and route.gateway.vpc.id == route.route_table.vpc_id)
    return True
