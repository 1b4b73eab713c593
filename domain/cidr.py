"""CIDRs as text, read strictly: what is not exactly a network is refused with the form to use."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from netaddr import AddrFormatError, IPNetwork

__all__ = ["parse_cidr", "parse_network"]

_SHOWN = 60  # characters of a bad value that an error repeats


def parse_cidr(value: object) -> IPv4Network:
    """The IPv4 network that `value` (text such as `10.0.0.0/16`, or a network) names.

    Raises:
        ValueError: not a CIDR, no prefix length, host bits set, or IPv6; the message says what to write instead.
    """
    network = parse_network(value)
    if isinstance(network, IPv6Network):
        raise ValueError(f"{network} is IPv6 where IPv4 is wanted: write it like 10.0.0.0/16")  # noqa: TRY004
    return network


def parse_network(value: object) -> IPv4Network | IPv6Network:
    """Like `parse_cidr`, for either address family."""
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    if not isinstance(value, str):
        # Not a TypeError: pydantic makes a finding about the field out of a ValueError only.
        raise ValueError(f"{value!r} is not a CIDR: write it as text like 10.0.0.0/16")  # noqa: TRY004
    return _parse_text(value.strip())


# A crowded VPC is told of the same thousand ranges with every join, and again when its history is replayed.
@lru_cache(maxsize=16_384)
def _parse_text(text: str) -> IPv4Network | IPv6Network:
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    address, slash, prefix = text.partition("/")
    # A netmask, a sign or leading zeros mean something to a library, and nothing to a cloud.
    if slash and not (prefix.isdecimal() and prefix == str(int(prefix))):
        raise ValueError(f"{shown} is not a CIDR: after the slash stands a prefix length, as in 10.0.0.0/16")
    try:
        parsed = IPNetwork(text)
    except (AddrFormatError, ValueError) as error:
        raise ValueError(f"{shown} is not a CIDR: write it like 10.0.0.0/16") from error
    network = ip_network(str(parsed.cidr))
    if not slash:
        usual = 16 if network.version == 4 else 64
        raise ValueError(
            f"{shown} has no prefix length: write {IPNetwork(f'{address}/{usual}').cidr} for a network, "
            f"or {network} for one address"
        )
    if parsed.ip != parsed.network:
        raise ValueError(f"{shown} has host bits set: a /{network.prefixlen} here is {_candidates(parsed, network)}")
    return network


def _candidates(parsed: IPNetwork, network: IPv4Network | IPv6Network) -> str:
    last_of_all = 2**network.max_prefixlen - 1
    return f"{network}" if parsed.last == last_of_all else f"{network} or {parsed.next().cidr}"
