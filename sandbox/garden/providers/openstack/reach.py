"""Whether a packet gets from one machine to another, as subnets, routers and security groups are now.

docs.openstack.org/neutron/latest/admin/intro-os-networking.html: subnets, also those of one network, reach each other
by a router on which both hang; security groups only ever allow, and answers need no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from sandbox.garden.providers import Host
from sandbox.garden.providers.fresh import Fresh
from sandbox.garden.providers.openstack.session import Session, Sessions

__all__ = ["Reach"]

_TCP = (None, "any", "tcp", "6")


@dataclass(frozen=True)
class _View:
    """What a project sees, read at one moment."""

    ports: dict[str, Any]
    gateways: dict[str, str]
    groups: dict[str, list[dict[str, Any]]]
    routers: dict[str, Any]

    def routers_of(self, subnet_id: str) -> set[str]:
        """The routers that are a subnet's gateway."""
        return {
            port.device_id
            for port in self.ports.values()
            for each in port.fixed_ips
            if each["subnet_id"] == subnet_id
            and each["ip_address"] == self.gateways.get(subnet_id)
            and port.device_id in self.routers
            and self.routers[port.device_id].is_admin_state_up
        }

    def admits(self, direction: str, mine: Any, theirs: Any, tcp_port: int) -> bool:
        """Whether TCP passes the security groups of `mine` in a direction, with `theirs` at the other end."""
        if not mine.is_port_security_enabled:
            return True
        return any(_matches(rule, direction, theirs, tcp_port) for rule in self._rules(mine))

    def _rules(self, port: Any) -> Iterator[dict[str, Any]]:
        for group in port.security_group_ids:
            yield from self.groups.get(group, [])


class Reach:
    """Answers for all networks; questions that come at the same time share what is read."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._views: Fresh[_View] = Fresh()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider.reached`."""
        here = self._view(source)
        sender = here.ports.get(_id(source))
        if sender is None:
            return None
        for candidate in candidates:
            there = self._view(candidate)
            receiver = there.ports.get(_id(candidate))
            if (
                receiver is not None
                and _place(receiver)[1] == address
                and _joined(here, sender, there, receiver)
                and here.admits("egress", sender, receiver, port)
                and there.admits("ingress", receiver, sender, port)
            ):
                return candidate
        return None

    def _view(self, host: Host) -> _View:
        session = self._sessions.get(host.order)
        return self._views.get(session, lambda: _read(session))


def _read(session: Session) -> _View:
    return _View(
        ports={each.id: each for each in session.listed("ports")},
        gateways={each.id: each.gateway_ip for each in session.listed("subnets")},
        groups={each.id: each.security_group_rules for each in session.listed("security_groups")},
        routers={each.id: each for each in session.listed("routers")},
    )


def _id(host: Host) -> str:
    return host.machine.provider_id.rpartition("/")[2]


def _place(port: Any) -> tuple[str, str]:
    """The subnet and the address."""
    first = port.fixed_ips[0] if port.fixed_ips else {"subnet_id": "", "ip_address": ""}
    return first["subnet_id"], first["ip_address"]


def _joined(here: _View, sender: Any, there: _View, receiver: Any) -> bool:
    one, other = _place(sender)[0], _place(receiver)[0]
    return bool(one) and (one == other or bool(here.routers_of(one) & there.routers_of(other)))


def _matches(rule: dict[str, Any], direction: str, theirs: Any, tcp_port: int) -> bool:
    if rule["direction"] != direction or rule["ethertype"] != "IPv4" or rule["protocol"] not in _TCP:
        return False
    lowest, highest = rule["port_range_min"], rule["port_range_max"]
    if lowest is not None and not lowest <= tcp_port <= (highest or lowest):
        return False
    if rule["remote_group_id"]:
        return rule["remote_group_id"] in theirs.security_group_ids
    prefix = rule["remote_ip_prefix"]
    return prefix is None or ip_address(_place(theirs)[1]) in ip_network(prefix)
