"""Whether a packet gets from one instance to another, as the VPC's routes and security groups have it now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from typing import Any, cast

from botocore.exceptions import ClientError

from sandbox.garden.providers import Host, Machine
from sandbox.garden.providers.aws.session import Session, Sessions
from sandbox.garden.providers.fresh import Fresh


@dataclass(frozen=True)
class _View:
    """One VPC, read at one moment."""

    instances: dict[str, Any]
    groups: dict[str, Any]
    tables: list[Any]
    cidrs: list[IPv4Network]
    peers: dict[str, str]

    def table_of(self, subnet: str) -> Any | None:
        """The route table that counts for a subnet: its own, else the VPC's main one."""
        own = main = None
        for table in self.tables:
            for association in table.get("Associations", []):
                if association.get("SubnetId") == subnet:
                    own = table
                elif association.get("Main"):
                    main = table
        return own or main

    def next_hop(self, subnet: str, address: IPv4Address) -> str:
        """Where a packet goes: `local`, the id of a peering connection or of another target; "" without a route."""
        table = self.table_of(subnet)
        best, hop = -1, ""
        for cidr in self.cidrs:
            # The local route of every CIDR of the VPC cannot be taken out of a table.
            if address in cidr and cidr.prefixlen > best:
                best, hop = cidr.prefixlen, "local"
        for route in (table or {}).get("Routes", []):
            destination = route.get("DestinationCidrBlock")
            if destination is None or route.get("State") == "blackhole":
                continue
            network = cast("IPv4Network", ip_network(destination))
            if address in network and network.prefixlen > best:
                best, hop = network.prefixlen, _target(route)
        return hop

    def admits(self, direction: str, mine: Any, theirs: Any, port: int) -> bool:
        """Whether a group of `mine` has a rule for TCP with `theirs` on the port."""
        address = ip_address(theirs["PrivateIpAddress"])
        others = _groups(theirs)
        return any(
            _port_matches(permission, port)
            and (
                any(address in ip_network(each["CidrIp"]) for each in permission.get("IpRanges", []))
                or any(each.get("GroupId") in others for each in permission.get("UserIdGroupPairs", []))
            )
            for group in _groups(mine)
            for permission in self.groups.get(group, {}).get(direction, [])
        )


class Reach:
    """Answers for all VPCs; questions that come at the same time share what is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._views: Fresh[_View] = Fresh()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider.reached`."""
        here = self._view(source)
        sender = here.instances.get(_instance_id(source.machine))
        if sender is None:
            return None
        hop = here.next_hop(sender["SubnetId"], cast("IPv4Address", ip_address(address)))
        for candidate in candidates:
            vpc = candidate.record.get("vpc")
            if vpc != (source.record["vpc"] if hop == "local" else here.peers.get(hop)):
                continue
            there = here if vpc == source.record["vpc"] else self._view(candidate)
            receiver = there.instances.get(_instance_id(candidate.machine))
            if receiver is None or receiver["PrivateIpAddress"] != address:
                continue
            way_back = there.next_hop(receiver["SubnetId"], cast("IPv4Address", ip_address(sender["PrivateIpAddress"])))
            if (
                way_back == hop
                and here.admits("IpPermissionsEgress", sender, receiver, port)
                and there.admits("IpPermissions", receiver, sender, port)
            ):
                return candidate
        return None

    def _view(self, host: Host) -> _View:
        session = self._sessions.get(host.order.region, host.order.credentials)
        vpc = host.record["vpc"]
        return self._views.get((session, vpc), lambda: _read(session, vpc))


def _read(session: Session, vpc: str) -> _View:
    ec2 = session.ec2
    in_vpc: Any = [{"Name": "vpc-id", "Values": [vpc]}]
    running: Any = [*in_vpc, {"Name": "instance-state-name", "Values": ["running"]}]
    try:
        vpcs = ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"]
    except ClientError:
        vpcs = []
    return _View(
        instances={
            each["InstanceId"]: each
            for page in ec2.get_paginator("describe_instances").paginate(Filters=running)
            for reservation in page["Reservations"]
            for each in reservation["Instances"]
        },
        groups={each["GroupId"]: each for each in ec2.describe_security_groups(Filters=in_vpc)["SecurityGroups"]},
        tables=list(ec2.describe_route_tables(Filters=in_vpc)["RouteTables"]),
        cidrs=[
            cast("IPv4Network", ip_network(each["CidrBlock"]))
            for found in vpcs
            for each in found.get("CidrBlockAssociationSet", [])
            if each["CidrBlockState"]["State"] == "associated"
        ],
        peers=_peers(ec2.describe_vpc_peering_connections()["VpcPeeringConnections"], vpc),
    )


def _peers(connections: Iterable[Any], vpc: str) -> dict[str, str]:
    """Active peering connections of a VPC, and who is at the other end."""
    peers = {}
    for each in connections:
        ends = [each["RequesterVpcInfo"]["VpcId"], each["AccepterVpcInfo"]["VpcId"]]
        if each["Status"]["Code"] == "active" and vpc in ends:
            ends.remove(vpc)
            peers[each["VpcPeeringConnectionId"]] = ends[0]
    return peers


def _groups(instance: Any) -> set[str]:
    """The security groups of an instance: they belong to its interfaces."""
    return {group["GroupId"] for each in instance["NetworkInterfaces"] for group in each["Groups"]}


def _target(route: Any) -> str:
    peering = route.get("VpcPeeringConnectionId")
    return str(peering or route.get("GatewayId") or route.get("NatGatewayId") or route.get("TransitGatewayId") or "")


def _port_matches(permission: Any, port: int) -> bool:
    if permission["IpProtocol"] == "-1":
        return True
    return permission["IpProtocol"] in ("tcp", "6") and permission["FromPort"] <= port <= permission["ToPort"]


def _instance_id(machine: Machine) -> str:
    return machine.provider_id.rsplit("/", 1)[-1]
