"""Whether a packet gets from one instance to another, as networks, peerings and firewall rules are now.

https://cloud.google.com/firewall/docs/firewalls: all VMs of a network have routes to each other; what leaves is let
out, and what comes in is refused, unless the rule with the lowest priority number that matches says otherwise. Among
equal numbers a rule that denies wins. Answers need no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from sandbox.garden.providers import Host
from sandbox.garden.providers.fresh import Fresh
from sandbox.garden.providers.gcp.session import Session, Sessions

__all__ = ["Reach"]

_TCP = ("all", "tcp", "6")


@dataclass(frozen=True)
class _View:
    """One network, read at one moment."""

    link: str
    instances: dict[str, Any]
    firewalls: list[Any]
    peers: frozenset[str]

    def admits(self, direction: str, mine: Any, theirs: Any, port: int, *, near: bool) -> bool:
        """Whether TCP passes `mine` in a direction, with `theirs` at the other end; `near` if in the same network."""
        matching = [
            (rule.priority, not rule.denied)
            for rule in self.firewalls
            if rule.direction == direction
            and not rule.disabled
            and _is_for(rule, mine)
            and _has_port(rule, port)
            and _concerns(rule, direction, theirs, near=near)
        ]
        return min(matching)[1] if matching else direction == "EGRESS"


class Reach:
    """Answers for all networks; questions that come at the same time share what is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._views: Fresh[_View | None] = Fresh()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider.reached`."""
        here = self._view(source)
        sender = here.instances.get(source.machine.name) if here else None
        if here is None or sender is None:
            return None
        for candidate in candidates:
            there = self._view(candidate)
            receiver = there.instances.get(candidate.machine.name) if there else None
            if there is None or receiver is None or _address(receiver) != address:
                continue
            near = there.link == here.link
            joined = near or (there.link in here.peers and here.link in there.peers)
            if (
                joined
                and here.admits("EGRESS", sender, receiver, port, near=near)
                and there.admits("INGRESS", receiver, sender, port, near=near)
            ):
                return candidate
        return None

    def _view(self, host: Host) -> _View | None:
        session, network = self._sessions.get(host.order.credentials), host.record.get("network", "")
        return self._views.get((session, network), lambda: _read(session, network))


def _read(session: Session, name: str) -> _View | None:
    network = session.found(session.networks.get, network=name)
    if network is None:
        return None
    link = network.self_link
    scopes = session.listed(session.instances.aggregated_list)
    return _View(
        link=link,
        instances={
            each.name: each
            for _, scope in scopes
            for each in scope.instances
            if each.status == "RUNNING" and any(face.network == link for face in each.network_interfaces)
        },
        firewalls=session.listed(session.firewalls.list, filter=f'network = "{link}"'),
        peers=frozenset(each.network for each in network.peerings if each.state == "ACTIVE"),
    )


def _is_for(rule: Any, instance: Any) -> bool:
    """Whether a rule is one of this instance: rules without a target are everybody's."""
    if rule.target_service_accounts:
        return bool(set(rule.target_service_accounts) & {each.email for each in instance.service_accounts})
    return not rule.target_tags or bool(set(rule.target_tags) & set(instance.tags.items))


def _has_port(rule: Any, port: int) -> bool:
    return any(
        part.I_p_protocol in _TCP and (not part.ports or any(_within(port, ports) for ports in part.ports))
        for part in (*rule.allowed, *rule.denied)
    )


def _within(port: int, ports: str) -> bool:
    first, _, last = ports.partition("-")
    return int(first) <= port <= int(last or first)


def _concerns(rule: Any, direction: str, other: Any, *, near: bool) -> bool:
    """Whether a rule is about this other end: tags count inside of a network only."""
    ranges = rule.destination_ranges if direction == "EGRESS" else rule.source_ranges
    if any(ip_address(_address(other)) in ip_network(cidr) for cidr in ranges):
        return True
    return near and direction == "INGRESS" and bool(set(rule.source_tags) & set(other.tags.items))


def _address(instance: Any) -> str:
    return str(instance.network_interfaces[0].network_i_p)
