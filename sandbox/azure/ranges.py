"""Address prefixes: how they are written, and which a virtual network or a subnet may have.

https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq ("What address ranges can I use in my virtual
networks?", "How small and how large can virtual networks and subnets be?").
"""

from __future__ import annotations

from ipaddress import IPv4Network

from sandbox.azure.errors import bad_request
from sandbox.clouds import Document, overlapping, parse_cidr

__all__ = ["RESERVED_FIRST", "check_prefix", "network_ranges", "subnet_ranges"]

# The first four and the last address of a subnet are Azure's.
RESERVED_FIRST = 4
_LARGEST, _SMALLEST = 2, 29
_RESERVED = [
    (IPv4Network(text), None)
    for text in ("224.0.0.0/4", "255.255.255.255/32", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32")
]


def check_prefix(text: str, owner: str) -> IPv4Network:
    """The range that a text is.

    Raises:
        Refusal: it is none, has host bits, is too large or too small, or is Azure's own.
    """
    if "/" not in text:
        message = (
            f"Address prefix {text} of resource {owner} is not formatted correctly. It should follow CIDR notation, "
            "for example 10.0.0.0/24."
        )
        raise bad_request("InvalidAddressPrefixFormat", message)
    range_ = parse_cidr(text)
    if range_ is None:
        try:
            hint = f" For the given prefix length, the address prefix should be {IPv4Network(text, strict=False)}."
        except ValueError:
            hint = ""
        message = f"The address prefix {text} in resource {owner} has an invalid CIDR notation.{hint}"
        raise bad_request("InvalidCIDRNotation", message)
    if not _LARGEST <= range_.prefixlen <= _SMALLEST or overlapping(range_, _RESERVED):
        raise bad_request("NetcfgInvalidIPAddressPrefix", f"The address prefix {text} in resource {owner} is invalid.")
    return range_


def network_ranges(network: Document) -> list[IPv4Network]:
    """The prefixes of a virtual network."""
    return [IPv4Network(text) for text in network["properties"]["addressSpace"]["addressPrefixes"]]


def subnet_ranges(subnet: Document) -> list[IPv4Network]:
    """The prefixes of a subnet."""
    properties = subnet["properties"]
    texts = properties.get("addressPrefixes") or [properties.get("addressPrefix")]
    return [IPv4Network(text) for text in texts if text]
