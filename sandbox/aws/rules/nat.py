"""NAT gateways: they take their time both ways, and stay listed afterwards.

docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-basics.html and
docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html.
"""

# ruff: noqa: SLF001  # what EC2 shows and moto keeps for itself is in its private members
from __future__ import annotations

import ipaddress
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult

from sandbox.aws.agenda import later, step
from sandbox.aws.calls import Call, refuse, rule
from sandbox.aws.limits import enforce
from sandbox.aws.lookups import filters_of, passes

_COUNTED = ("pending", "available", "deleting")


@rule("CreateNatGateway")
def create_nat_gateway(call: Call) -> ActionResult:
    """Pending first, then available; or failed, with EC2's failure code, where it could not work.

    A zone holds only so many that are pending, available or being deleted:
    docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
    """
    cloud = call.cloud
    subnet = cloud.get_subnet(call.get("SubnetId"))
    allocation, private = call.get("AllocationId"), call.get("ConnectivityType") == "private"
    if not private and not allocation:
        refuse("MissingParameter", "The request must contain the parameter AllocationId")
    if private and allocation:
        refuse("InvalidParameterCombination", "AllocationId cannot be given for a private NAT gateway")
    address = cloud.address_by_allocation([allocation])[0] if allocation else None
    enforce(call, "nat_gateways_per_zone", _in_zone(cloud, subnet.availability_zone))
    failure = None if private else _failure(cloud, subnet, address)
    call.parameters["ConnectivityType"] = "private" if private else "public"
    if failure:
        call.parameters["AllocationId"] = None  # a failed gateway takes no address
    answer = call.proceed()
    gateway = answer.result["NatGateway"]
    _equip(cloud, gateway, subnet)
    gateway.state = "pending"
    if failure:
        gateway.failure_code, gateway.failure_message = failure
    then = nat_gateway_failed if failure else nat_gateway_is_available
    gateway.sandbox_listed = call.settings.delays.nat_gateway_listed
    later(cloud, call.now + call.settings.delays.nat_gateway_pending, then, gateway.id)
    return answer


def _in_zone(cloud: Any, zone: str) -> int:
    zones = {subnet.id: subnet.availability_zone for subnet in cloud.describe_subnets()}
    return sum(
        zones.get(gateway.subnet_id) == zone for gateway in cloud.nat_gateways.values() if gateway.state in _COUNTED
    )


def _failure(cloud: Any, subnet: Any, address: Any) -> tuple[str, str] | None:
    if not any(gateway.vpc and gateway.vpc.id == subnet.vpc_id for gateway in cloud.internet_gateways.values()):
        return "Gateway.NotAttached", f"Network {subnet.vpc_id} has no Internet gateway attached"
    if address.association_id:
        return (
            "Resource.AlreadyAssociated",
            f"Elastic IP address [{address.allocation_id}] is already associated",
        )
    return None


def _equip(cloud: Any, gateway: Any, subnet: Any) -> None:
    """Give the gateway's interface what EC2 gives it; moto takes any address of 10.0.0.0/8."""
    eni = gateway._eni
    taken = {other.private_ip_address for other in cloud.enis.values() if other.subnet.id == subnet.id}
    hosts = (subnet.cidr[index] for index in range(4, subnet.cidr.num_addresses - 1))
    ip = next((str(host) for host in hosts if str(host) not in taken), None)
    if ip is None:
        refuse("InsufficientFreeAddressesInSubnet", f"The subnet {subnet.id} has no free addresses")
    if ipaddress.ip_address(eni.private_ip_address) not in subnet.cidr:
        eni.private_ip_address = ip
        eni.private_ip_addresses = [{"Primary": True, "PrivateIpAddress": ip}]
    gateway.private_ip = ip
    gateway.address_set[0]["privateIp"] = ip
    eni.description = f"Interface for NAT Gateway {gateway.id}"
    eni.interface_type, eni.requester_managed, eni.status = "nat_gateway", True, "in-use"


@step
def nat_gateway_is_available(cloud: Any, gateway_id: str, due: float) -> None:
    """The gateway works."""
    gateway = cloud.nat_gateways.get(gateway_id)
    if gateway and gateway.state == "pending":
        gateway.state = "available"


@step
def nat_gateway_failed(cloud: Any, gateway_id: str, due: float) -> None:
    """The gateway could not be made; it stays listed for a while."""
    gateway = cloud.nat_gateways.get(gateway_id)
    if gateway and gateway.state == "pending":
        _strip(cloud, gateway)
        gateway.state = "failed"
        later(cloud, due + gateway.sandbox_listed, nat_gateway_is_forgotten, gateway_id)


@rule("DeleteNatGateway")
def delete_nat_gateway(call: Call) -> ActionResult:
    """Deleting first, then deleted: only then are its address and its subnet free."""
    gateway = call.cloud.nat_gateways.get(call.get("NatGatewayId"))
    if gateway is None:
        refuse("NatGatewayNotFound", f"The Nat Gateway {call.get('NatGatewayId')} was not found")
    before = gateway.state
    answer = call.proceed()
    gateway.state = before
    if before in ("pending", "available"):
        gateway.state = "deleting"
        gateway.delete_time = datetime.fromtimestamp(call.now, UTC)
        gateway.sandbox_listed = call.settings.delays.nat_gateway_listed
        later(call.cloud, call.now + call.settings.delays.nat_gateway_deleting, nat_gateway_is_deleted, gateway.id)
    return answer


@step
def nat_gateway_is_deleted(cloud: Any, gateway_id: str, due: float) -> None:
    """Address and interface are free; the gateway stays listed."""
    gateway = cloud.nat_gateways[gateway_id]
    _strip(cloud, gateway)
    gateway.state = "deleted"
    later(cloud, due + gateway.sandbox_listed, nat_gateway_is_forgotten, gateway_id)


@step
def nat_gateway_is_forgotten(cloud: Any, gateway_id: str, due: float) -> None:
    """The gateway is no longer listed."""
    cloud.nat_gateways.pop(gateway_id, None)
    cloud.tags.pop(gateway_id, None)


def _strip(cloud: Any, gateway: Any) -> None:
    eni = gateway._eni
    for address in cloud.addresses:
        if address.eni is eni:
            cloud.disassociate_address(association_id=address.association_id)
    cloud.enis.pop(eni.id, None)


@rule("DescribeNatGateways")
def describe_nat_gateways(call: Call) -> ActionResult:
    """All filters; moto looks at four of them and not at tags."""
    filters = filters_of(call)
    answer = call.proceed()
    listed = [gateway for gateway in answer.result["NatGateways"] if passes(gateway, filters, _filtered)]
    return ActionResult({"NatGateways": listed})


def _filtered(gateway: Any, name: str) -> Any:
    return {
        "nat-gateway-id": gateway.id,
        "state": gateway.state,
        "subnet-id": gateway.subnet_id,
        "vpc-id": gateway.vpc_id,
    }[name]
