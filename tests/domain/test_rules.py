"""Each provider's sizes and combinations hold before anything is asked of it."""

from ipaddress import IPv4Network

import pytest

from domain.rules import (
    RULES,
    Provider,
    check_block_prefix,
    check_vpc_cidr,
    check_vpc_cidrs,
    longest_block_prefix,
    usable_addresses,
)  # fmt: skip

ANY_PROVIDER = pytest.mark.parametrize("provider", list(Provider))


def net(text: str) -> IPv4Network:
    return IPv4Network(text)


@pytest.mark.parametrize(
    ("provider", "takes", "refuses"),
    [
        (
            Provider.AWS,
            ["10.0.0.0/16", "10.0.0.0/28", "100.64.0.0/16"],
            ["10.0.0.0/15", "10.0.0.0/29", "100.64.0.0/10"],
        ),
        (Provider.AZURE, ["10.0.0.0/8", "10.0.0.0/29"], ["8.0.0.0/7", "10.0.0.0/30"]),
        (Provider.GCP, ["10.0.0.0/8", "10.0.0.0/29"], ["8.0.0.0/7", "10.0.0.0/30"]),
        (Provider.ALICLOUD, ["10.0.0.0/8", "10.0.0.0/24"], ["8.0.0.0/7", "10.0.0.0/25"]),
        (Provider.OPENSTACK, ["10.0.0.0/8", "10.0.0.0/29"], ["8.0.0.0/7", "10.0.0.0/30"]),
    ],
)
def test_a_vpc_has_a_size_that_its_provider_takes(provider: Provider, takes: list[str], refuses: list[str]) -> None:
    for text in takes:
        check_vpc_cidr(provider, net(text))
    for text in refuses:
        with pytest.raises(
            ValueError, match=rf"^vpc_cidr: {text} is not between .* as {provider} demands: use a "
        ) as caught:
            check_vpc_cidr(provider, net(text))
        suggestion = str(caught.value).rpartition(" ")[2]
        assert net(suggestion).overlaps(net(text))
        if provider is not Provider.ALICLOUD or not suggestion.startswith("100."):
            check_vpc_cidr(provider, net(suggestion))


def test_the_size_rule_of_aws_is_spelled_out() -> None:
    with pytest.raises(ValueError) as caught:
        check_vpc_cidr(Provider.AWS, net("100.64.0.0/10"))
    assert str(caught.value) == (
        "vpc_cidr: 100.64.0.0/10 is not between /16 and /28 as aws demands: use a smaller range, such as 100.64.0.0/16"
    )


def test_a_provider_keeps_some_ranges_for_itself() -> None:
    with pytest.raises(ValueError, match=r"100.64.0.0/16 overlaps 100.64.0.0/10, which alicloud keeps for itself"):
        check_vpc_cidr(Provider.ALICLOUD, net("100.64.0.0/16"))
    with pytest.raises(ValueError, match=r"overlaps 168.63.129.16/32, which azure keeps for itself"):
        check_vpc_cidr(Provider.AZURE, net("168.63.128.0/20"))


def test_aws_takes_five_ranges_in_one_vpc_and_not_six() -> None:
    ranges = tuple(net(f"10.{n}.0.0/16") for n in range(1, 7))
    check_vpc_cidrs(Provider.AWS, ranges[:5])
    with pytest.raises(ValueError, match=r"6 ranges are more than the 5 that aws allows a VPC by default"):
        check_vpc_cidrs(Provider.AWS, ranges)
    check_vpc_cidrs(Provider.GCP, ranges)


@ANY_PROVIDER
def test_the_ranges_of_one_vpc_are_disjoint(provider: Provider) -> None:
    with pytest.raises(ValueError, match=r"10.0.0.0/16 and 10.0.128.0/20 of one VPC overlap"):
        check_vpc_cidrs(provider, (net("10.0.128.0/20"), net("10.5.0.0/16"), net("10.0.0.0/16")))


@pytest.mark.parametrize(
    ("primary", "secondary", "allowed"),
    [
        ("10.0.0.0/16", "10.31.0.0/16", True),
        ("10.0.0.0/16", "100.64.0.0/16", True),
        ("10.0.0.0/16", "172.16.0.0/16", False),
        ("10.0.0.0/16", "192.168.0.0/16", False),
        ("10.0.0.0/16", "198.19.0.0/16", False),
        ("172.16.0.0/16", "172.18.0.0/16", True),
        ("172.16.0.0/16", "10.0.0.0/16", False),
        ("192.168.0.0/20", "10.0.0.0/16", False),
        ("100.64.0.0/16", "10.0.0.0/16", False),
        ("100.64.0.0/16", "100.65.0.0/16", True),
    ],
)
def test_aws_mixes_no_private_families_in_one_vpc(primary: str, secondary: str, allowed: bool) -> None:
    ranges = (net(primary), net(secondary))
    if allowed:
        check_vpc_cidrs(Provider.AWS, ranges)
    else:
        with pytest.raises(
            ValueError, match=rf"aws adds no {secondary} .* whose first range is {primary}: use a range"
        ):
            check_vpc_cidrs(Provider.AWS, ranges)
    check_vpc_cidrs(Provider.GCP, ranges)


@pytest.mark.parametrize(
    ("provider", "zones", "longest"),
    [
        (Provider.AWS, 1, 26), (Provider.AWS, 2, 25), (Provider.AWS, 3, 24),
        (Provider.AWS, 4, 24), (Provider.AWS, 8, 23),
        (Provider.ALICLOUD, 1, 28), (Provider.ALICLOUD, 3, 26),
        (Provider.AZURE, 3, 28), (Provider.GCP, 3, 28), (Provider.OPENSTACK, 3, 28),
    ],
)  # fmt: skip
def test_a_block_is_large_enough_for_all_its_subnets(provider: Provider, zones: int, longest: int) -> None:
    assert longest_block_prefix(provider, zones) == longest
    check_block_prefix(provider, longest, None, zones=zones)
    with pytest.raises(ValueError) as caught:
        check_block_prefix(provider, longest + 1, None, zones=zones)
    message = str(caught.value)
    assert message.startswith(f"cluster_prefix: /{longest + 1} is too small a block for {provider}")
    assert f"provider minimum /{RULES[provider].subnet.smallest}" in message
    assert message.endswith(f"to /{longest}")


@ANY_PROVIDER
@pytest.mark.parametrize("prefix", [-1, 0, 1, 6])
def test_a_block_larger_than_any_subnet_could_use_is_refused(provider: Provider, prefix: int) -> None:
    with pytest.raises(ValueError, match=rf"cluster_prefix: /{prefix} is too large a block for {provider}: use /"):
        check_block_prefix(provider, prefix, None)


@ANY_PROVIDER
@pytest.mark.parametrize("prefix", [32, 33, 128])
def test_a_block_without_room_is_refused(provider: Provider, prefix: int) -> None:
    with pytest.raises(ValueError, match=rf"cluster_prefix: /{prefix} is too small a block"):
        check_block_prefix(provider, prefix, None)


@ANY_PROVIDER
def test_a_block_is_not_larger_than_the_vpc(provider: Provider) -> None:
    check_block_prefix(provider, 24, net("10.0.0.0/24"))
    with pytest.raises(
        ValueError, match=r"^block: 10.0.0.0/22 is larger than the VPC's range 10.0.0.0/24: use /24 to /"
    ):
        check_block_prefix(provider, 22, net("10.0.0.0/24"), asked="block: 10.0.0.0/22")


@pytest.mark.parametrize(
    ("provider", "subnet", "usable"),
    [
        (Provider.AWS, "10.0.0.0/23", 507),
        (Provider.GCP, "10.0.0.0/23", 508),
        (Provider.AWS, "10.0.0.0/28", 11),
        (Provider.AZURE, "10.0.0.0/29", 3),
        (Provider.AWS, "10.0.0.0/31", 0),
        (Provider.AWS, "10.0.0.0/32", 0),
    ],
)
def test_the_provider_keeps_some_addresses_of_every_subnet(provider: Provider, subnet: str, usable: int) -> None:
    assert usable_addresses(provider, net(subnet)) == usable
