"""Ranges that clusters must keep clear of, each with its reason and where that stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network

__all__ = ["RESERVED", "Ban", "Reserved", "check_ranges", "discouraged"]


class Ban(StrEnum):
    """How strictly a range is to be avoided."""

    ALWAYS = "always"  # nothing works with it
    LEGACY = "legacy"  # older landscapes and Kyma's broker refuse it
    DISCOURAGED = "discouraged"  # it works, with trouble


@dataclass(frozen=True, slots=True)
class Reserved:
    """A range to avoid."""

    network: IPv4Network | IPv6Network
    ban: Ban
    reason: str
    source: str

    def __str__(self) -> str:
        return f"{self.network} ({self.reason})"


_GARDENER = "gardener: docs/usage/networking/shoot_networking.md, pkg/utils/validation/cidr/disjoint.go"
_KEB = "kyma-environment-broker: internal/networking/cidr.go"
_IANA = "RFC 6890"

RESERVED: tuple[Reserved, ...] = tuple(
    Reserved(ip_network(text), ban, reason, source)
    for text, ban, reason, source in (
        ("0.0.0.0/8", Ban.ALWAYS, "this network", _IANA),
        ("127.0.0.0/8", Ban.ALWAYS, "loopback", _IANA),
        ("169.254.0.0/16", Ban.ALWAYS, "link-local", _IANA),
        ("224.0.0.0/4", Ban.ALWAYS, "multicast", "RFC 5771"),
        ("240.0.0.0/8", Ban.ALWAYS, "Gardener maps the kube-apiserver there", _GARDENER),
        ("241.0.0.0/8", Ban.ALWAYS, "Gardener's VPN maps the seed's pods there", _GARDENER),
        ("242.0.0.0/8", Ban.ALWAYS, "Gardener's VPN maps the shoot's nodes there", _GARDENER),
        ("243.0.0.0/8", Ban.ALWAYS, "Gardener's VPN maps the shoot's services there", _GARDENER),
        ("244.0.0.0/8", Ban.ALWAYS, "Gardener's VPN maps the shoot's pods there", _GARDENER),
        ("245.0.0.0/8", Ban.ALWAYS, "not assigned to anyone", "RFC 1112"),
        ("246.0.0.0/7", Ban.ALWAYS, "not assigned to anyone", "RFC 1112"),
        ("248.0.0.0/5", Ban.ALWAYS, "not assigned to anyone", "RFC 1112"),
        ("::1/128", Ban.ALWAYS, "loopback", _IANA),
        ("fd8f:6d53:b97a:1::/96", Ban.ALWAYS, "Gardener's VPN", _GARDENER),
        ("fe80::/10", Ban.ALWAYS, "link-local", _IANA),
        ("ff00::/8", Ban.ALWAYS, "multicast", "RFC 4291"),
        ("10.242.0.0/16", Ban.LEGACY, "a seed's nodes, pods or services", _KEB),
        ("10.243.0.0/16", Ban.LEGACY, "a seed's nodes, pods or services", _KEB),
        ("10.64.0.0/11", Ban.LEGACY, "a seed's nodes, pods or services", _KEB),
        ("10.254.0.0/16", Ban.LEGACY, "a seed's nodes, pods or services", _KEB),
        ("192.168.123.0/24", Ban.LEGACY, "the VPN of older Gardener releases", _KEB),
        (
            "172.17.0.0/16",
            Ban.DISCOURAGED,
            "Docker's bridge; some cloud services use it too",
            "docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html",
        ),
    )
)


def check_ranges(
    *, vpc: tuple[IPv4Network, ...], pods: IPv4Network, services: IPv4Network, legacy: bool = True
) -> None:
    """Checks a cluster's ranges against each other and against what is reserved.

    Args:
        vpc: All ranges of the VPC.
        pods: The cluster's pods.
        services: The cluster's services.
        legacy: Whether to keep clear of what only older landscapes and Kyma's broker refuse.

    Raises:
        ValueError: one error for all problems, each naming both ranges and the fix.
    """
    ranges = _named(vpc, pods, services)
    problems = [
        f"{field}: {network} overlaps {of} {other}: change one of the two"
        for index, (field, network) in enumerate(ranges)
        for of, other in ranges[:index]
        if field != of and network.overlaps(other)
    ]
    bans = (Ban.ALWAYS, Ban.LEGACY) if legacy else (Ban.ALWAYS,)
    problems += [
        f"{field}: {network} overlaps {reserved}: choose {field} outside {reserved.network}{_switch(reserved)}"
        for field, network, reserved in _conflicts(ranges, bans)
    ]
    if problems:
        raise ValueError("; ".join(problems))


def discouraged(*, vpc: tuple[IPv4Network, ...], pods: IPv4Network, services: IPv4Network) -> tuple[str, ...]:
    """What works but will make trouble, one sentence each."""
    return tuple(
        f"{field}: {network} overlaps {reserved}: better choose {field} outside {reserved.network}"
        for field, network, reserved in _conflicts(_named(vpc, pods, services), (Ban.DISCOURAGED,))
    )


def _named(vpc: tuple[IPv4Network, ...], pods: IPv4Network, services: IPv4Network) -> list[tuple[str, IPv4Network]]:
    return [*(("vpc_cidr", cidr) for cidr in vpc), ("pods", pods), ("services", services)]


def _conflicts(ranges: list[tuple[str, IPv4Network]], bans: tuple[Ban, ...]) -> list[tuple[str, IPv4Network, Reserved]]:
    return [
        (field, network, reserved)
        for field, network in ranges
        for reserved in RESERVED
        if reserved.ban in bans and isinstance(reserved.network, IPv4Network) and network.overlaps(reserved.network)
    ]


def _switch(reserved: Reserved) -> str:
    return ", or set legacy_ranges to false if the landscape allows it" if reserved.ban is Ban.LEGACY else ""
