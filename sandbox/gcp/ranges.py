"""Which address ranges networks hold, and which networks share an address space.

https://cloud.google.com/vpc/docs/vpc-peering#considerations ("no subnet IP range overlaps across VPC networks that
have peered networks in common") and https://cloud.google.com/vpc/docs/subnets#ipv4-ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from sandbox.clouds import Document, Store, parse_cidr
from sandbox.gcp.errors import invalid
from sandbox.gcp.names import link, path_of

__all__ = ["active_peers", "address_space", "check_subnet_range", "subnet_ranges"]

# https://cloud.google.com/vpc/docs/subnets#prohibited-ranges
_PROHIBITED = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "199.36.153.4/30",
        "199.36.153.8/30",
        "224.0.0.0/4",
        "255.255.255.255/32",
    )
)
_SMALLEST, _LARGEST = 29, 4


def check_subnet_range(field: str, text: str) -> IPv4Network:
    """The range, if a subnetwork may have it.

    Raises:
        Refusal: it is no CIDR, has host bits, is too small or large, or prohibited.
    """
    network = parse_cidr(text)
    if network is None:
        raise invalid(field, text, "Must be a CIDR address range that is contained in a valid subnet range.")
    if not _LARGEST <= network.prefixlen <= _SMALLEST:
        raise invalid(field, text, f"The prefix length must be between {_LARGEST} and {_SMALLEST}, inclusive.")
    if any(network.overlaps(prohibited) for prohibited in _PROHIBITED):
        raise invalid(field, text, "Subnetwork IP CIDR range is in a prohibited range.")
    return network


def subnet_ranges(store: Store, network: str) -> Iterator[tuple[IPv4Network, Document]]:
    """The primary and secondary ranges of a network (by path), each with its subnetwork."""
    for _, subnetwork in store.list("subnetworks"):
        if subnetwork["network"] == link(network):
            yield IPv4Network(subnetwork["ipCidrRange"]), subnetwork
            for secondary in subnetwork.get("secondaryIpRanges", ()):
                yield IPv4Network(secondary["ipCidrRange"]), subnetwork


def active_peers(store: Store, network: str) -> list[str]:
    """The networks (paths) that a network is connected with."""
    document = store.get("networks", network) or {}
    return [path_of(side["network"]) for side in document.get("peerings", ()) if side["state"] == "ACTIVE"]


def address_space(store: Store, network: str) -> list[str]:
    """The networks whose subnetworks may not overlap those of this one: itself, its peers, and theirs."""
    peers = active_peers(store, network)
    return list(dict.fromkeys([network, *peers, *(far for peer in peers for far in active_peers(store, peer))]))
