"""Gardener's rules for address ranges (gardener, `pkg/utils/validation/cidr`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations
from typing import TypeAlias, cast

from sandbox.garden.problems import Problem, invalid

Network: TypeAlias = IPv4Network | IPv6Network

# gardener, `pkg/apis/core/v1beta1/constants`: ranges that map seed and shoot networks into each other.
_RESERVED = {
    "fd8f:6d53:b97a:1::/96": "default vpn network",
    "240.0.0.0/8": "reserved kube-apiserver mapping range",
    "241.0.0.0/8": "reserved seed pod network mapping range",
    "242.0.0.0/8": "reserved shoot node network mapping range",
    "243.0.0.0/8": "reserved shoot service network mapping range",
    "244.0.0.0/8": "reserved shoot pod network mapping range",
}


@dataclass(frozen=True)
class Range:
    """A range in CIDR notation as somebody wrote it, and where."""

    path: str
    text: str

    @cached_property
    def network(self) -> Network | None:
        """The range without host bits; None if the text is no CIDR."""
        try:
            return ip_network(self.text, strict=False) if "/" in self.text else None
        except ValueError:
            return None

    def parse_problems(self) -> list[Problem]:
        """The problem of a text that is no CIDR, or has host bits."""
        if self.network is None:
            return [invalid(self.path, self.text, f"invalid CIDR address: {self.text}")]
        if str(self.network) != self.text:
            return [invalid(self.path, self.text, "must be valid canonical CIDR")]
        return []

    def family_problems(self, family: str) -> list[Problem]:
        """The problem of a range of the other family; `family` is IPv4 or IPv6."""
        network = self.network
        if network is None or f"IPv{network.version}" == family:
            return []
        return [invalid(self.path, str(network.network_address), f"must be a valid {family} address")]

    def overlaps(self, other: Range) -> bool:
        """Whether the two share an address; never if one of them cannot be read."""
        mine, theirs = self.network, other.network
        return mine is not None and theirs is not None and mine.version == theirs.version and mine.overlaps(theirs)

    def contains(self, other: Range) -> bool:
        """Whether `other` lies inside; also if one of them cannot be read, which is another problem."""
        mine, theirs = self.network, other.network
        if mine is None or theirs is None:
            return True
        return mine.version == theirs.version and cast("IPv4Network", theirs).subnet_of(cast("IPv4Network", mine))

    def subset_problems(self, others: Iterable[Range]) -> list[Problem]:
        """Those of the others that are not inside."""
        return [
            invalid(other.path, other.text, f'must be a subset of "{self.path}" ("{self.text}")')
            for other in others
            if not self.contains(other)
        ]

    def overlap_problems(self, others: Iterable[Range]) -> list[Problem]:
        """Those of the others that overlap."""
        return [
            invalid(other.path, other.text, f'must not overlap with "{self.path}" ("{self.text}")')
            for other in others
            if self.overlaps(other)
        ]


def pairwise_problems(ranges: list[Range]) -> list[Problem]:
    """Ranges that overlap each other."""
    return [problem for one, other in combinations(ranges, 2) for problem in one.overlap_problems([other])]


def reserved_problems(given: Range, network_type: str) -> list[Problem]:
    """Ranges that Gardener keeps for itself; `network_type` is node, pod or service."""
    return [
        invalid(given.path, given.text, f"{network_type} network intersects with {purpose} ({reserved})")
        for reserved, purpose in _RESERVED.items()
        if given.overlaps(Range("", reserved))
    ]


def disjoint_problems(path: str, nodes: str | None, pods: str | None, services: str | None) -> list[Problem]:
    """The three networks of one shoot against each other (`ValidateShootNetworkDisjointedness`)."""
    node, pod, service = (Range("", text or "") for text in (nodes, pods, services))
    checks = (
        (pod, service, "services", "shoot pod network intersects with shoot service network"),
        (pod, node, "pods", "shoot pod network intersects with shoot node network"),
        (service, node, "services", "shoot service network intersects with shoot node network"),
    )
    values = {"pods": pods, "services": services}
    return [
        invalid(f"{path}.{field}", values[field], detail) for one, other, field, detail in checks if one.overlaps(other)
    ]
