"""A block is cut into subnets that its provider takes, and nothing of it is lost."""

from ipaddress import IPv4Network, collapse_addresses
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Code, TrellisError
from domain.layout import cut
from domain.networks import Layout
from domain.rules import RULES, Provider, check_block_prefix, longest_block_prefix

BLOCK = IPv4Network("10.0.4.0/22")
ZONES = ("a", "b", "c")


def net(text: str) -> IPv4Network:
    return IPv4Network(text)


def rows(layout: Layout) -> list[tuple[str | None, ...]]:
    return [
        (zone.name, *(str(part) if part else None for part in (zone.workers, zone.public, zone.internal)))
        for zone in layout.zones
    ]


def refused(*arguments: object) -> str:
    with pytest.raises(TrellisError) as caught:
        cut(*arguments)  # type: ignore[arg-type]
    assert caught.value.failure.code is Code.INVALID
    return str(caught.value)


@pytest.mark.parametrize("provider", list(Provider))
def test_a_block_is_halved_into_nodes_and_infra(provider: Provider) -> None:
    layout = cut(provider, BLOCK, ZONES)
    assert (layout.nodes, layout.infra) == (net("10.0.4.0/23"), net("10.0.6.0/23"))
    assert [zone.name for zone in layout.zones] == list(ZONES)


def test_three_zones_of_aws_use_both_halves_to_the_last_address() -> None:
    assert rows(cut(Provider.AWS, BLOCK, ZONES)) == [
        ("a", "10.0.4.0/24", "10.0.6.0/25", "10.0.6.128/25"),
        ("b", "10.0.5.0/25", "10.0.7.0/26", "10.0.7.64/26"),
        ("c", "10.0.5.128/25", "10.0.7.128/26", "10.0.7.192/26"),
    ]


def test_one_zone_of_aws_has_all_of_the_nodes() -> None:
    assert rows(cut(Provider.AWS, BLOCK, ("a",))) == [("a", "10.0.4.0/23", "10.0.6.0/24", "10.0.7.0/24")]


def test_alicloud_has_a_worker_subnet_in_every_zone_and_nothing_else() -> None:
    assert rows(cut(Provider.ALICLOUD, BLOCK, ZONES)) == [
        ("a", "10.0.4.0/24", None, None),
        ("b", "10.0.5.0/25", None, None),
        ("c", "10.0.5.128/25", None, None),
    ]


@pytest.mark.parametrize("provider", [Provider.AZURE, Provider.OPENSTACK])
def test_one_worker_subnet_spans_the_zones(provider: Provider) -> None:
    assert rows(cut(provider, BLOCK, ZONES)) == [(zone, "10.0.4.0/23", None, None) for zone in ZONES]


def test_gcp_has_an_internal_subnet_too() -> None:
    assert rows(cut(Provider.GCP, BLOCK, ZONES)) == [(zone, "10.0.4.0/23", None, "10.0.6.0/23") for zone in ZONES]


def test_the_parts_may_be_given_instead_of_the_halves() -> None:
    layout = cut(Provider.AWS, BLOCK, ("a", "b"), nodes=net("10.0.6.0/23"), infra=net("10.0.4.0/24"))
    assert rows(layout) == [
        ("a", "10.0.6.0/24", "10.0.4.0/26", "10.0.4.64/26"),
        ("b", "10.0.7.0/24", "10.0.4.128/26", "10.0.4.192/26"),
    ]


@pytest.mark.parametrize(
    ("nodes", "infra", "message"),
    [
        ("10.0.4.0/23", None, "nodes and infra belong together (give both or neither)"),
        (None, "10.0.4.0/23", "nodes and infra belong together"),
        ("10.0.8.0/23", "10.0.6.0/23", "nodes 10.0.8.0/23 is not inside block 10.0.4.0/22"),
        ("10.0.4.0/23", "10.0.0.0/20", "infra 10.0.0.0/20 is not inside block 10.0.4.0/22"),
        ("10.0.4.0/22", "10.0.6.0/23", "nodes 10.0.4.0/22 and infra 10.0.6.0/23 overlap"),
        ("10.0.4.0/31", "10.0.6.0/23", "smaller than the provider minimum /28 of aws"),
        ("10.0.4.0/23", "10.0.6.0/28", "a subnet would be a /29, smaller than the provider minimum /28 of aws"),
    ],
)
def test_parts_that_do_not_fit_are_refused(nodes: str | None, infra: str | None, message: str) -> None:
    given_parts = (net(part) if part else None for part in (nodes, infra))
    assert message in refused(Provider.AWS, BLOCK, ("a",), *given_parts)


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        ((), "0 zones are given (name one to 8 zones)"),
        (tuple("abcdefghi"), "9 zones are given (name one to 8 zones)"),
        (("a", ""), "zones 'a', '': a name is empty or there twice"),
        (("a", "b", "a"), "zones 'a', 'b', 'a': a name is empty or there twice (name each zone once)"),
    ],
)
def test_bad_zones_are_refused(zones: tuple[str, ...], message: str) -> None:
    assert message in refused(Provider.AWS, BLOCK, zones)


def test_a_block_whose_half_is_a_pair_of_addresses_is_refused_with_the_size_that_would_do() -> None:
    assert refused(Provider.AWS, net("10.0.0.0/30"), ("a",)) == (
        "block 10.0.0.0/30 is too small for 1 zone(s): a subnet would be a /31, smaller than the provider minimum /28 "
        "of aws (use a block of /26 or larger, or fewer zones)"
    )


@pytest.mark.parametrize("provider", [Provider.AWS, Provider.ALICLOUD])
def test_a_subnet_larger_than_the_provider_takes_is_refused(provider: Provider) -> None:
    assert "is too large: a subnet would be a /13" in refused(provider, net("10.0.0.0/12"), ("a",))


PROVIDERS = st.sampled_from(list(Provider))
ZONE_COUNTS = st.integers(1, 8)


@given(PROVIDERS, ZONE_COUNTS, st.integers(16, 32))
def test_a_block_is_cut_exactly_when_the_rules_say_so(provider: Provider, zones: int, prefix: int) -> None:
    names = tuple("abcdefgh"[:zones])
    block = IPv4Network((int(net("10.0.0.0/16").network_address), prefix))
    try:
        check_block_prefix(provider, prefix, None, zones=zones)
    except ValueError:
        assert f"use a block of /{longest_block_prefix(provider, zones)} or larger" in refused(provider, block, names)
    else:
        assert cut(provider, block, names).block == block


@given(PROVIDERS, ZONE_COUNTS, st.integers(0, 2**32 - 1), st.integers(16, 28))
def test_the_subnets_partition_the_block(provider: Provider, zones: int, address: int, prefix: int) -> None:
    prefix = min(prefix, longest_block_prefix(provider, zones))
    block = IPv4Network((address, prefix), strict=False)
    layout = cut(provider, block, tuple("abcdefgh"[:zones]))
    rules = RULES[provider]
    subnets = {part for zone in layout.zones for part in (zone.workers, zone.public, zone.internal) if part}
    assert not any(one.overlaps(other) for one, other in combinations(subnets, 2))
    assert all(subnet.prefixlen in rules.subnet for subnet in subnets)
    assert set(collapse_addresses(zone.workers for zone in layout.zones)) == {layout.nodes}
    assert set(collapse_addresses([layout.nodes, layout.infra])) == {block}
    if rules.infra_parts:
        assert set(collapse_addresses(subnets)) == {block}
    sizes = [zone.workers.num_addresses for zone in layout.zones]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) <= 2 * min(sizes)
    if rules.zonal:
        assert len({zone.workers for zone in layout.zones}) == zones
