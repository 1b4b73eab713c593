"""What is inside a network: everything that keeps Compute Engine from deleting it, and the addresses it takes.

Source: cloud.google.com/vpc/docs/create-modify-vpc-networks (deleting a network), and the error
RESOURCE_IN_USE_BY_ANOTHER_RESOURCE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Network
from typing import Any

from activities.clouds.gcp._project import Project, last
from domain.networks import Blocker

__all__ = ["ranges_of", "take_inventory"]

# What Gardener and its cloud controller append to a shoot's technical id.
_OF_SHOOT = re.compile(
    r"(shoot--.+?)-(?:nodes|internal|services|cloud-nat|allow-[a-z0-9-]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$"
)


def ranges_of(project: Project, network: Any) -> Iterator[IPv4Network]:
    """The IPv4 ranges of all subnets in all regions, and those reserved for the services of others (cloud.google.com/
    vpc/docs/private-services-access): they share one address space.
    """  # noqa: D205 - a link
    for subnet in _in_regions(project, "subnetworks", network):
        yield IPv4Network(subnet.ip_cidr_range)
        yield from (IPv4Network(each.ip_cidr_range) for each in subnet.secondary_ip_ranges)
    for address in _reserved(project, network):
        yield IPv4Network(f"{address.address}/{address.prefix_length}")


def take_inventory(project: Project, network: Any, ours: frozenset[str]) -> tuple[Blocker, ...]:
    """What is in the network, without the routers `ours` and what Compute Engine makes and removes with it itself."""
    subnets = _in_regions(project, "subnetworks", network)
    routers = _in_regions(project, "routers", network)
    found = [_blocker("subnetwork", subnet) for subnet in subnets]
    # No machine without a subnet; a project may have very many.
    machines = _in_scopes(project, "instances") if subnets else []
    found += [_blocker("instance", each) for each in machines if _is_in(each, network)]
    found += [_nat(router, nat) for router in routers for nat in router.nats]
    found += [_blocker("router", each) for each in routers if each.name not in ours]
    found += [_blocker("firewall", each) for each in _global(project, "firewalls", network)]
    found += [_blocker("route", each) for each in _global(project, "routes", network) if not _comes_with_network(each)]
    found += [_blocker("address", each) for each in _reserved(project, network)]
    return (*found, *(Blocker(kind="peering", id=each.name, name=last(each.network)) for each in network.peerings))


def _global(project: Project, kind: str, network: Any) -> list[Any]:
    call: Callable[..., Any] = getattr(project, kind).list
    found = project.listed(f"list {kind} of network {network.name}", call, filter=_of(network))
    return [each for each in found if last(each.network) == network.name]


def _in_regions(project: Project, kind: str, network: Any) -> list[Any]:
    found = _in_scopes(project, kind, filter=_of(network))
    return [each for each in found if last(each.network) == network.name]


def _in_scopes(project: Project, kind: str, **fields: str) -> list[Any]:
    call: Callable[..., Any] = getattr(project, kind).aggregated_list
    scopes = project.listed(f"list {kind} of project {project.id}", call, **fields)
    return [each for _, scope in scopes for each in getattr(scope, kind)]


def _reserved(project: Project, network: Any) -> list[Any]:
    found = project.listed(f"list addresses of project {project.id}", project.global_addresses.list)
    return [each for each in found if last(each.network) == network.name and each.prefix_length]


def _of(network: Any) -> str:
    # A part of the URL only: what is filtered is looked at once more.
    return f'network eq ".*/{network.name}"'


def _is_in(instance: Any, network: Any) -> bool:
    return any(last(each.network) == network.name for each in instance.network_interfaces)


def _comes_with_network(route: Any) -> bool:
    """Routes to subnets, by peerings, and the default route of a new network."""
    if route.next_hop_network or route.next_hop_peering:
        return True
    return bool(route.name.startswith("default-route-") and route.next_hop_gateway)


def _blocker(kind: str, thing: Any) -> Blocker:
    return Blocker(kind=kind, id=thing.name, name=_place(thing), owner=_owner(thing))


def _nat(router: Any, nat: Any) -> Blocker:
    return Blocker(kind="nat-gateway", id=nat.name, name=f"on router {router.name}", owner=_shoot(nat.name))


def _place(thing: Any) -> str:
    return last(getattr(thing, "zone", "") or getattr(thing, "region", ""))


def _owner(thing: Any) -> str:
    """The shoot that something seems to belong to: by its name, or by the network tags of its machines."""
    tags: Iterable[str] = [*getattr(getattr(thing, "tags", None), "items", ()), *getattr(thing, "target_tags", ())]
    return _shoot(thing.name) or next((tag for tag in tags if tag.startswith("shoot--")), "")


def _shoot(name: str) -> str:
    match = _OF_SHOOT.match(name)
    return match[1] if match else ""
