"""The providers, and what each takes as a VPC's, a block's and a subnet's addresses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network
from itertools import pairwise

__all__ = [
    "MAX_ZONES", "RULES", "Provider", "Rules", "Sizes",
    "check_block_prefix", "check_vpc_cidr", "check_vpc_cidrs", "longest_block_prefix", "usable_addresses",
]  # fmt: skip

# Also what Kyma's infrastructure manager carves at most (hyperscaler/aws/zones.go).
MAX_ZONES = 8


class Provider(StrEnum):
    """The clouds that Trellis builds in, by the names of Gardener's provider types."""

    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"
    ALICLOUD = "alicloud"
    OPENSTACK = "openstack"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Prefix lengths, both included: `largest` is the shortest one, a network of the greatest size."""

    largest: int
    smallest: int

    def __contains__(self, prefix: object) -> bool:
        return isinstance(prefix, int) and self.largest <= prefix <= self.smallest

    def __str__(self) -> str:
        return f"/{self.largest} to /{self.smallest}"


@dataclass(frozen=True, slots=True)
class Rules:
    """A provider's address rules.

    Attributes:
        vpc: Sizes of one of a VPC's ranges.
        subnet: Sizes of a subnet.
        reserved: Addresses of every subnet that the provider keeps for itself.
        max_cidrs: Ranges of one VPC before the quota must be raised; None: no limit that matters.
        zonal: Whether each zone has its own worker subnet; otherwise one subnet spans the zones.
        infra_parts: Subnets that a zone, or all zones together, takes out of the block's infra half.
        refused: Ranges that a VPC may not overlap on this provider.
        apart: Families of private ranges of which a VPC may use only one.
        source: Where the rules stand.
    """

    vpc: Sizes
    subnet: Sizes
    reserved: int
    max_cidrs: int | None
    zonal: bool
    infra_parts: int
    source: str
    refused: tuple[IPv4Network, ...] = ()
    apart: tuple[IPv4Network, ...] = ()


def _networks(*texts: str) -> tuple[IPv4Network, ...]:
    return tuple(IPv4Network(text) for text in texts)


RULES: dict[Provider, Rules] = {
    Provider.AWS: Rules(
        vpc=Sizes(16, 28),
        subnet=Sizes(16, 28),
        reserved=5,
        max_cidrs=5,
        zonal=True,
        infra_parts=2,
        # A VPC with a primary range in one of these takes no further range in another.
        apart=_networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.19.0.0/16"),
        source="docs.aws.amazon.com/vpc/latest/userguide: vpc-cidr-blocks, subnet-sizing, amazon-vpc-limits",
    ),
    Provider.AZURE: Rules(
        vpc=Sizes(8, 29),  # Azure itself takes /2; nothing private is larger than /8
        subnet=Sizes(8, 29),
        reserved=5,
        max_cidrs=None,
        zonal=False,
        infra_parts=0,
        refused=_networks("168.63.129.16/32"),
        source="learn.microsoft.com/azure/virtual-network/virtual-networks-faq",
    ),
    Provider.GCP: Rules(
        # A GCP network has no range of its own: this is the space that Trellis hands out.
        vpc=Sizes(8, 29),
        subnet=Sizes(8, 29),
        reserved=4,
        max_cidrs=None,
        zonal=False,
        infra_parts=1,
        refused=_networks("199.36.153.4/30", "199.36.153.8/30"),
        source="cloud.google.com/vpc/docs/subnets: valid and prohibited IPv4 ranges",
    ),
    Provider.ALICLOUD: Rules(
        vpc=Sizes(8, 24),
        subnet=Sizes(16, 29),
        reserved=4,  # the first and the last three
        max_cidrs=6,
        zonal=True,
        infra_parts=0,
        refused=_networks("100.64.0.0/10"),
        source="alibabacloud.com/help: doc-detail/100380, vpc/vpc-and-vswitch, AssociateVpcCidrBlock",
    ),
    Provider.OPENSTACK: Rules(
        # Neutron takes any size; a smaller subnet has no room for a router, a DHCP port and two machines.
        vpc=Sizes(8, 29),
        subnet=Sizes(8, 29),
        reserved=4,
        max_cidrs=None,
        zonal=False,
        infra_parts=0,
        source="docs.openstack.org/api-ref/network/v2: subnets",
    ),
}


def check_vpc_cidr(provider: Provider, cidr: IPv4Network) -> None:
    """Raises ValueError where the provider does not take `cidr` as a VPC's range."""
    rules = RULES[provider]
    if cidr.prefixlen not in rules.vpc:
        raise ValueError(
            f"vpc_cidr: {cidr} is not between /{rules.vpc.largest} and /{rules.vpc.smallest} as {provider} demands: "
            f"{_resized(cidr, rules.vpc)}"
        )
    for refused in rules.refused:
        if cidr.overlaps(refused):
            raise ValueError(
                f"vpc_cidr: {cidr} overlaps {refused}, which {provider} keeps for itself: use another range"
            )


def check_vpc_cidrs(provider: Provider, cidrs: tuple[IPv4Network, ...]) -> None:
    """Raises ValueError where the provider does not take `cidrs` together as one VPC's ranges, primary first."""
    rules = RULES[provider]
    for cidr in cidrs:
        check_vpc_cidr(provider, cidr)
    if rules.max_cidrs is not None and len(cidrs) > rules.max_cidrs:
        raise ValueError(
            f"vpc_cidr: {len(cidrs)} ranges are more than the {rules.max_cidrs} that {provider} allows a VPC "
            "by default: use fewer and larger ranges"
        )
    ordered = sorted(cidrs)
    for lower, upper in pairwise(ordered):
        if lower.overlaps(upper):
            raise ValueError(f"vpc_cidr: {lower} and {upper} of one VPC overlap: leave one out")
    _check_apart(provider, cidrs)


def _check_apart(provider: Provider, cidrs: tuple[IPv4Network, ...]) -> None:
    families = RULES[provider].apart
    primary = next((family for family in families if cidrs[0].overlaps(family)), None)
    for cidr in cidrs[1:]:
        family = next((family for family in families if cidr.overlaps(family)), None)
        if family is not None and family != primary:
            fix = f"a range of {primary} or of 100.64.0.0/10" if primary else "a range of 100.64.0.0/10"
            raise ValueError(
                f"vpc_cidr: {provider} adds no {cidr} (of {family}) to a VPC whose first range is {cidrs[0]}: use {fix}"
            )


def longest_block_prefix(provider: Provider, zones: int = 1) -> int:
    """The prefix length of the smallest block whose subnets all have the provider's minimum size.

    A block is halved into nodes and infra; a zone's part of a half is one of 2, 4 or 8 at worst.
    """
    rules = RULES[provider]
    zone_bits = (zones - 1).bit_length() if rules.zonal else 0
    return rules.subnet.smallest - 1 - zone_bits - (rules.infra_parts > 1)


def check_block_prefix(
    provider: Provider,
    prefix: int,
    vpc_cidr: IPv4Network | None,
    *,
    zones: int = 1,
    asked: str | None = None,
) -> None:
    """Checks the size of a cluster's block.

    Args:
        provider: Whose rules hold.
        prefix: The block's prefix length.
        vpc_cidr: The VPC's range that holds the block; None where it is not known yet.
        zones: How many zones share the block.
        asked: The user's field and value, as an error names them; None: `cluster_prefix: /22`.

    Raises:
        ValueError: the block is larger than the VPC, or a subnet of it would be outside the provider's sizes.
    """
    rules = RULES[provider]
    asked = asked or f"cluster_prefix: /{prefix}"
    sizes = Sizes(max(rules.vpc.largest, rules.subnet.largest - 1), longest_block_prefix(provider, zones))
    if vpc_cidr is not None and prefix < vpc_cidr.prefixlen:
        raise ValueError(
            f"{asked} is larger than the VPC's range {vpc_cidr}: use /{vpc_cidr.prefixlen} to /{sizes.smallest}, "
            "or a larger VPC"
        )
    if prefix < sizes.largest:
        raise ValueError(f"{asked} is too large a block for {provider}: use {sizes}")
    if prefix > sizes.smallest:
        raise ValueError(
            f"{asked} is too small a block for {provider}: in {zones} zone(s) its subnets would be smaller than "
            f"the provider minimum /{rules.subnet.smallest}: use {sizes}"
        )


def usable_addresses(provider: Provider, subnet: IPv4Network) -> int:
    """How many machines and load balancers a subnet has addresses for: a /23 on AWS has 507."""
    return max(0, subnet.num_addresses - RULES[provider].reserved)


def _resized(cidr: IPv4Network, sizes: Sizes) -> str:
    if cidr.prefixlen < sizes.largest:
        return f"use a smaller range, such as {next(cidr.subnets(new_prefix=sizes.largest))}"
    return f"use a larger range, such as {cidr.supernet(new_prefix=sizes.smallest)}"
