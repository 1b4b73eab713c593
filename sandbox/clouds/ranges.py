"""Address ranges in CIDR notation."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import TypeVar

__all__ = ["overlapping", "parse_cidr"]

_Owner = TypeVar("_Owner")


def parse_cidr(text: str) -> IPv4Network | None:
    """The IPv4 range without host bits, or None if the text is none."""
    try:
        return IPv4Network(text) if "/" in text else None
    except ValueError:
        return None


def overlapping(given: IPv4Network, taken: Iterable[tuple[IPv4Network, _Owner]]) -> tuple[IPv4Network, _Owner] | None:
    """The first of the taken ranges that shares an address with `given`, with its owner."""
    return next(((network, owner) for network, owner in taken if network.overlaps(given)), None)
