"""What is inside a network and on its router, and the addresses that it takes.

Neutron deletes a network's subnets with it as long as no port is left (neutron, db/db_base_plugin_v2.py,
`delete_network`), so what it would refuse is not all that counts: a subnet is somebody's too.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

from activities.clouds.openstack._project import Project
from domain.networks import Blocker

__all__ = ["ranges_of", "take_inventory"]

_IPV4 = 4
_SHOOT = "shoot--"
_INTERFACE = "network:router_interface"
# Made and removed by Neutron itself (neutron, common/_constants.py, AUTO_DELETE_PORT_OWNERS).
_NEUTRONS_OWN = {"network:dhcp", "network:distributed", "network:floatingip_agent_gateway"}


def ranges_of(project: Project, network_id: str, router_id: str) -> tuple[IPv4Network, ...]:
    """The IPv4 ranges of all subnets in the network, and of others that hang on its router: none may overlap."""
    subnets = {each.id: each for each in project.listed("subnets", network_id=network_id)}
    for port in _interfaces(project, router_id):
        if port.network_id != network_id:
            subnets |= {each.id: each for each in project.listed("subnets", network_id=port.network_id)}
    return tuple(sorted({IPv4Network(each.cidr) for each in subnets.values() if each.ip_version == _IPV4}))


def take_inventory(project: Project, network_id: str | None, router_ids: list[str]) -> tuple[Blocker, ...]:
    """What is in the network, and what uses the routers."""
    subnets = project.listed("subnets", network_id=network_id) if network_id else []
    shoots = {each.id: each.name for each in subnets if each.name.startswith(_SHOOT)}
    ports = {each.id: each for each in (project.listed("ports", network_id=network_id) if network_id else [])}
    floating: list[Any] = []
    for router_id in router_ids:
        ports |= {each.id: each for each in _interfaces(project, router_id)}
        floating += project.listed("ips", router_id=router_id)
    found = [Blocker(kind="subnet", id=each.id, name=each.name, owner=shoots.get(each.id, "")) for each in subnets]
    found += [_blocker(port, shoots) for port in ports.values() if port.device_owner not in _NEUTRONS_OWN]
    found += [Blocker(kind="floating-ip", id=each.id, name=each.floating_ip_address) for each in floating]
    return tuple(found)


def _interfaces(project: Project, router_id: str) -> Iterator[Any]:
    """The ports by which subnets hang on a router; those of routers that are distributed or redundant too."""
    for port in project.listed("ports", device_id=router_id):
        if _is_interface(port):
            yield port


def _is_interface(port: Any) -> bool:
    return (
        str(port.device_owner).startswith(_INTERFACE) or port.device_owner == "network:ha_router_replicated_interface"
    )


def _blocker(port: Any, shoots: dict[str, str]) -> Blocker:
    if _is_interface(port):
        kind, name = "router-interface", f"of router {port.device_id}"
    elif port.trunk_details:
        kind, name = "trunk-port", f"{port.name} of trunk {port.trunk_details['trunk_id']}".strip()
    else:
        kind, name = "port", port.name or port.device_owner
    of_shoots = (shoots[each["subnet_id"]] for each in port.fixed_ips if each["subnet_id"] in shoots)
    return Blocker(
        kind=kind,
        id=port.id,
        name=name,
        owner=next(of_shoots, "" if name == port.device_owner else port.device_owner or ""),
    )
