"""Whether a packet gets from one instance to another, as routes, peerings and security groups are now.

https://www.alibabacloud.com/help/en/vpc/user-guide/route-table-overview: the longest prefix wins, and all vSwitches of
a VPC have routes to each other. https://www.alibabacloud.com/help/en/ecs/user-guide/security-group-rules: of the rules
that match, the one with the lowest priority number counts, and among equals one that drops; where none matches, what
leaves is let out, and what comes in is let in from the same group only. Answers need no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from sandbox.garden.providers import Host, Machine
from sandbox.garden.providers.alicloud.inventory import Look
from sandbox.garden.providers.alicloud.session import Json, Session, Sessions
from sandbox.garden.providers.fresh import Fresh

__all__ = ["Reach"]

_LOCAL = "local"


@dataclass(frozen=True)
class _View:
    """One VPC, read at one moment."""

    instances: dict[str, Json]
    rules: dict[str, list[Json]]
    vswitches: list[Json]
    routes: dict[str, list[Json]]
    peers: dict[str, str]

    def next_hop(self, vswitch_id: str, address: IPv4Address) -> str:
        """Where a packet goes: `local`, the id of a peering connection or of another target; "" without a route."""
        own = next((each for each in self.vswitches if each["VSwitchId"] == vswitch_id), None)
        if own is None:
            return ""
        hops = [(IPv4Network(each["CidrBlock"]), _LOCAL) for each in self.vswitches]
        hops += [
            (IPv4Network(route["DestinationCidrBlock"]), route["NextHops"]["NextHop"][0]["NextHopId"])
            for route in self.routes.get(own["RouteTable"]["RouteTableId"], [])
        ]
        matching = [(network.prefixlen, hop) for network, hop in hops if address in network]
        return max(matching, key=lambda pair: pair[0])[1] if matching else ""

    def admits(self, direction: str, mine: Json, theirs: Json, port: int) -> bool:
        """Whether TCP passes `mine` in a direction, with `theirs` at the other end."""
        groups, others = _groups(mine), _groups(theirs)
        matching = [
            (int(rule["Priority"]), rule["Policy"] == "Accept")
            for group in groups
            for rule in self.rules.get(group, [])
            if rule["Direction"] == direction and _has_port(rule, port) and _concerns(rule, direction, theirs, others)
        ]
        if matching:
            return bool(min(matching)[1])
        return direction == "egress" or bool(groups & others)


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
        hop = here.next_hop(_vswitch(sender), IPv4Address(address))
        for candidate in candidates:
            vpc = candidate.record.get("vpc")
            if vpc != (source.record["vpc"] if hop == _LOCAL else here.peers.get(hop)):
                continue
            there = here if vpc == source.record["vpc"] else self._view(candidate)
            receiver = there.instances.get(_instance_id(candidate.machine))
            if receiver is None or _address(receiver) != address:
                continue
            back = there.next_hop(_vswitch(receiver), IPv4Address(_address(sender)))
            if (
                back == hop
                and here.admits("egress", sender, receiver, port)
                and there.admits("ingress", receiver, sender, port)
            ):
                return candidate
        return None

    def _view(self, host: Host) -> _View:
        session = self._sessions.get(host.order.region, host.order.credentials)
        vpc = host.record["vpc"]
        return self._views.get((session, vpc), lambda: _read(session, vpc))


def _read(session: Session, vpc: str) -> _View:
    look = Look(session)
    instances = [each for each in look.instances(VpcId=vpc) if each["Status"] == "Running"]
    used = {group for each in instances for group in _groups(each)}
    vswitches = look.vswitches(VpcId=vpc)
    tables = {each["RouteTable"]["RouteTableId"] for each in vswitches}
    return _View(
        instances={each["InstanceId"]: each for each in instances},
        rules={group: _rules(session, group) for group in used},
        vswitches=vswitches,
        routes={table: look.custom_routes(table) for table in tables},
        peers=_peers(session, vpc),
    )


def _rules(session: Session, group: str) -> list[Json]:
    answer = session.call("ecs", "DescribeSecurityGroupAttribute", SecurityGroupId=group, Direction="all")
    return list(answer["Permissions"]["Permission"])


def _peers(session: Session, vpc: str) -> dict[str, str]:
    """Active peering connections of a VPC, and who is at the other end."""
    answer = session.call("vpcpeer", "ListVpcPeerConnections", VpcId__1=vpc, MaxResults=100)
    peers = {}
    for each in answer["VpcPeerConnects"]:
        ends = [each["Vpc"]["VpcId"], each["AcceptingVpc"]["VpcId"]]
        if each["Status"] == "Activated":
            ends.remove(vpc)
            peers[each["InstanceId"]] = ends[0]
    return peers


def _has_port(rule: Json, port: int) -> bool:
    if rule["IpProtocol"] == "ALL":
        return True
    first, _, last = rule["PortRange"].partition("/")
    return rule["IpProtocol"] == "TCP" and int(first) <= port <= int(last)


def _concerns(rule: Json, direction: str, other: Json, groups: set[str]) -> bool:
    peer = "Dest" if direction == "egress" else "Source"
    cidr, group = rule.get(f"{peer}CidrIp"), rule.get(f"{peer}GroupId")
    return group in groups if group else bool(cidr) and IPv4Address(_address(other)) in IPv4Network(cidr)


def _groups(instance: Json) -> set[str]:
    return set(instance["SecurityGroupIds"]["SecurityGroupId"])


def _address(instance: Any) -> str:
    return str(instance["VpcAttributes"]["PrivateIpAddress"]["IpAddress"][0])


def _vswitch(instance: Json) -> str:
    return str(instance["VpcAttributes"]["VSwitchId"])


def _instance_id(machine: Machine) -> str:
    return machine.provider_id.partition(".")[2]
