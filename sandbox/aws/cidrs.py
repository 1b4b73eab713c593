"""CIDRs in requests."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from .calls import Call, refuse

__all__ = ["checked", "network", "overlapping", "tidy", "vpc_networks"]


def network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The network, or None where this is no CIDR (moto then refuses it by its own rule)."""
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return None


def checked(call: Call, cidr: str) -> str:
    """The CIDR as it goes to moto: host bits are refused or cleared, as the settings say."""
    parsed = network(cidr)
    if parsed is None or "/" not in cidr or str(parsed.network_address) == cidr.split("/")[0] or parsed.version != 4:
        return cidr
    if call.settings.host_bits == "refuse":
        refuse(
            "InvalidParameterValue",
            f"Value ({cidr}) for parameter cidrBlock is invalid. It has host bits set; the network is {parsed}.",
        )
    return str(parsed)


def tidy(call: Call, name: str) -> None:
    """Check the CIDR parameter of this name, where it was given."""
    if cidr := call.get(name):
        call.parameters[name] = checked(call, str(cidr))


def vpc_networks(vpc: Any) -> list[ipaddress.IPv4Network]:
    """The IPv4 ranges of a VPC, the primary one first."""
    return [
        ipaddress.IPv4Network(one["cidr_block"])
        for one in vpc.get_cidr_block_association_set(ipv6=False)
        if one["cidr_block_state"]["state"] == "associated"
    ]


def overlapping(
    one: Iterable[ipaddress.IPv4Network], other: Iterable[ipaddress.IPv4Network]
) -> ipaddress.IPv4Network | None:
    """A range of `other` that overlaps one of `one`."""
    mine = list(one)
    return next((theirs for theirs in other if any(theirs.overlaps(own) for own in mine)), None)
