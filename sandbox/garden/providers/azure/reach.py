"""Whether a packet gets from one machine to another, as networks, peerings, routes and security rules are now.

https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview: a rule with a lower priority number
counts first, the security group of the subnet and that of the interface both have to let the packet through, and
answers need no rule. https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview: the route with
the longest prefix counts, among equal ones the user's. The tag VirtualNetwork stands for the network, its peers, and
what routes lead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from typing import Any, cast

from sandbox.garden.providers import Host
from sandbox.garden.providers.azure.machines import interface_of
from sandbox.garden.providers.azure.session import Session, Sessions
from sandbox.garden.providers.fresh import Fresh

__all__ = ["Reach"]

_TCP = ("*", "tcp")


@dataclass(frozen=True)
class _View:
    """One network, read at one moment."""

    id: str
    space: list[IPv4Network]
    # By the peers' ids: their ranges.
    peers: dict[str, list[IPv4Network]]
    subnets: dict[str, Any]
    interfaces: dict[str, Any]
    groups: dict[str, Any]
    tables: dict[str, Any]

    def address(self, interface: str) -> str:
        """The private address of an interface."""
        return str(_configuration(self.interfaces[interface]).private_ip_address)

    def leads_to(self, interface: str, address: IPv4Address) -> bool:
        """Whether what leaves an interface for an address stays on the networks' own way."""
        near = [(cidr.prefixlen, 0, "") for cidr in self._virtual() if address in cidr]
        table = self.tables.get(_id(self._subnet(interface).route_table))
        own = [
            (cidr.prefixlen, 1, route.properties)
            for route in (table.properties.routes or () if table else ())
            for cidr in [_range(route.properties.address_prefix)]
            if cidr and address in cidr
        ]
        if not near:
            return False
        *_, hop = max([*near, *own], key=lambda each: each[:2])
        return bool(hop == "" or hop.next_hop_type == "VnetLocal" or hop.next_hop_ip_address == str(address))

    def admits(self, direction: str, interface: str, other: str, port: int) -> bool:
        """Whether TCP passes an interface in a direction, with an address at the other end."""
        references = (self._subnet(interface).network_security_group, self._nic(interface).network_security_group)
        groups = [self.groups[_id(each)] for each in references if _id(each) in self.groups]
        return all(self._allows(group, direction, self.address(interface), other, port) for group in groups)

    def _allows(self, group: Any, direction: str, mine: str, other: str, port: int) -> bool:
        source, destination = (mine, other) if direction == "Outbound" else (other, mine)
        for rule in _rules(group, direction):
            if (
                rule.protocol.lower() in _TCP
                and _has_port(rule, port)
                and self._matches(rule.source_address_prefix, rule.source_address_prefixes, source)
                and self._matches(rule.destination_address_prefix, rule.destination_address_prefixes, destination)
            ):
                return bool(rule.access == "Allow")
        return False

    def _matches(self, prefix: str | None, prefixes: list[str] | None, text: str) -> bool:
        address = cast("IPv4Address", ip_address(text))
        virtual = any(address in cidr for cidr in self._virtual())
        for each in [prefix, *(prefixes or ())]:
            cidr = _range(each or "")
            named = {"*": True, "VirtualNetwork": virtual, "Internet": not virtual}.get(each or "", False)
            if named or (cidr is not None and address in cidr):
                return True
        return False

    def _virtual(self) -> Iterator[IPv4Network]:
        yield from self.space
        for ranges in self.peers.values():
            yield from ranges

    def _nic(self, interface: str) -> Any:
        return self.interfaces[interface].properties

    def _subnet(self, interface: str) -> Any:
        return self.subnets[_id(_configuration(self.interfaces[interface]).subnet)].properties


class Reach:
    """Answers for all networks; questions that come at the same time share what is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._views: Fresh[_View | None] = Fresh()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider.reached`."""
        here, sender = self._view(source), _interface(source)
        if here is None or sender not in here.interfaces:
            return None
        target = cast("IPv4Address", ip_address(address))
        for candidate in candidates:
            there, receiver = self._view(candidate), _interface(candidate)
            if there is None or receiver not in there.interfaces or there.address(receiver) != address:
                continue
            joined = there.id == here.id or (there.id in here.peers and here.id in there.peers)
            origin = here.address(sender)
            if (
                joined
                and here.leads_to(sender, target)
                and there.leads_to(receiver, cast("IPv4Address", ip_address(origin)))
                and here.admits("Outbound", sender, address, port)
                and there.admits("Inbound", receiver, origin, port)
            ):
                return candidate
        return None

    def _view(self, host: Host) -> _View | None:
        session, vnet = self._sessions.get(host.order.credentials), host.record.get("vnet") or {}
        place = vnet.get("group", ""), vnet.get("name", "")
        return self._views.get((session, place), lambda: _read(session, *place)) if all(place) else None


def _read(session: Session, group: str, name: str) -> _View | None:
    network = session.network
    vnet = session.found(network.virtual_networks.get, group, name)
    if vnet is None:
        return None
    subnets = {each.id.lower(): each for each in vnet.properties.subnets or ()}
    return _View(
        id=vnet.id.lower(),
        space=_ranges(vnet.properties.address_space),
        peers={
            _id(each.properties.remote_virtual_network): _ranges(each.properties.remote_virtual_network_address_space)
            for each in vnet.properties.virtual_network_peerings or ()
            if each.properties.peering_state == "Connected" and each.properties.allow_virtual_network_access
        },
        subnets=subnets,
        interfaces={
            each.id.lower(): each
            for each in session.listed(network.network_interfaces.list_all)
            if each.properties.provisioning_state == "Succeeded" and _id(_configuration(each).subnet) in subnets
        },
        groups={each.id.lower(): each for each in session.listed(network.network_security_groups.list_all)},
        tables={each.id.lower(): each for each in session.listed(network.route_tables.list_all)},
    )


def _interface(host: Host) -> str:
    group = host.machine.provider_id.partition("/providers/")[0].removeprefix("azure://")
    return f"{group}/providers/Microsoft.Network/networkInterfaces/{interface_of(host.machine.name)}".lower()


def _configuration(interface: Any) -> Any:
    return interface.properties.ip_configurations[0].properties


def _id(reference: Any) -> str:
    return str(reference.id).lower() if reference else ""


def _ranges(space: Any) -> list[IPv4Network]:
    return [IPv4Network(text) for text in space.address_prefixes or ()] if space else []


def _range(text: str) -> IPv4Network | None:
    try:
        return cast("IPv4Network", ip_network(text))
    except ValueError:
        return None


def _rules(group: Any, direction: str) -> list[Any]:
    rules = [*(group.properties.security_rules or ()), *(group.properties.default_security_rules or ())]
    found = [each.properties for each in rules if each.properties.direction == direction]
    return sorted(found, key=lambda rule: rule.priority)


def _has_port(rule: Any, port: int) -> bool:
    ranges = [rule.destination_port_range, *(rule.destination_port_ranges or ())]
    return any(each == "*" or _within(port, each) for each in ranges if each)


def _within(port: int, ports: str) -> bool:
    first, _, last = ports.partition("-")
    return int(first) <= port <= int(last or first)
