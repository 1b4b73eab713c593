"""A cluster's ranges keep clear of each other and of what is reserved."""

from ipaddress import IPv4Network, IPv6Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ranges import RESERVED, Ban, check_ranges, discouraged
from domain.specs import DEFAULT_PODS, DEFAULT_SERVICES, DEFAULT_VPC_CIDR

V4 = [reserved for reserved in RESERVED if isinstance(reserved.network, IPv4Network)]


def net(text: str) -> IPv4Network:
    return IPv4Network(text)


def check(vpc: str = "10.0.0.0/16", pods: str = "10.96.0.0/13", services: str = "10.104.0.0/13", **more: bool) -> None:
    check_ranges(vpc=(net(vpc),), pods=net(pods), services=net(services), **more)


def test_the_defaults_keep_clear_of_everything() -> None:
    check_ranges(vpc=(DEFAULT_VPC_CIDR,), pods=DEFAULT_PODS, services=DEFAULT_SERVICES)
    assert not discouraged(vpc=(DEFAULT_VPC_CIDR,), pods=DEFAULT_PODS, services=DEFAULT_SERVICES)


def test_every_reserved_range_has_its_reason_and_source_and_none_is_listed_twice() -> None:
    assert all(reserved.reason and reserved.source for reserved in RESERVED)
    for one, other in combinations(RESERVED, 2):
        assert type(one.network) is not type(other.network) or not one.network.overlaps(other.network)  # type: ignore[arg-type]
    assert IPv6Network("fd8f:6d53:b97a:1::/96") in [reserved.network for reserved in RESERVED]


@pytest.mark.parametrize("reserved", [r for r in V4 if r.ban is Ban.ALWAYS], ids=lambda r: str(r.network))
@pytest.mark.parametrize("field", ["vpc", "pods", "services"])
@pytest.mark.parametrize("legacy", [True, False])
def test_what_never_works_is_always_refused(reserved: object, field: str, legacy: bool) -> None:
    inside = str(next(reserved.network.subnets(new_prefix=24)))  # type: ignore[attr-defined]
    named = "vpc_cidr" if field == "vpc" else field
    with pytest.raises(ValueError) as caught:
        check(**{field: inside}, legacy=legacy)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"{named}: {inside} overlaps {reserved}: choose {named} outside {reserved.network}"  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize(
    "text", ["10.242.0.0/16", "10.243.128.0/17", "10.64.0.0/11", "10.254.0.0/16", "192.168.123.0/24"]
)
@pytest.mark.parametrize("field", ["vpc", "pods", "services"])
def test_what_older_landscapes_reserve_is_refused_unless_it_is_switched_off(text: str, field: str) -> None:
    with pytest.raises(ValueError, match=r"or set legacy_ranges to false if the landscape allows it"):
        check(**{field: text})  # type: ignore[arg-type]
    check(**{field: text}, legacy=False)  # type: ignore[arg-type]


def test_the_seed_range_ends_right_before_the_default_pods() -> None:
    check(pods="10.96.0.0/13")
    with pytest.raises(ValueError, match=r"10.64.0.0/11"):
        check(pods="10.95.0.0/16")


def test_all_problems_come_in_one_error_and_name_both_ranges() -> None:
    with pytest.raises(ValueError) as caught:
        check(vpc="10.0.0.0/16", pods="10.0.0.0/8", services="240.0.0.0/16")
    problems = str(caught.value).split("; ")
    assert problems[0] == "pods: 10.0.0.0/8 overlaps vpc_cidr 10.0.0.0/16: change one of the two"
    assert {problem.split(" overlaps ")[1].split(" (")[0] for problem in problems[1:]} == {
        "10.242.0.0/16", "10.243.0.0/16", "10.64.0.0/11", "10.254.0.0/16", "240.0.0.0/8",
    }  # fmt: skip
    assert problems[-1].startswith("services: 240.0.0.0/16 overlaps 240.0.0.0/8 (Gardener maps")


def test_every_range_of_the_vpc_counts() -> None:
    ranges = (net("10.0.0.0/16"), net("10.97.0.0/16"))
    with pytest.raises(ValueError, match=r"pods: 10.96.0.0/13 overlaps vpc_cidr 10.97.0.0/16"):
        check_ranges(vpc=ranges, pods=DEFAULT_PODS, services=DEFAULT_SERVICES)


def test_the_docker_range_is_only_advised_against() -> None:
    ranges = {"vpc": (net("172.17.0.0/16"),), "pods": DEFAULT_PODS, "services": DEFAULT_SERVICES}
    check_ranges(**ranges)  # type: ignore[arg-type]
    (advice,) = discouraged(**ranges)  # type: ignore[arg-type]
    assert advice.startswith("vpc_cidr: 172.17.0.0/16 overlaps 172.17.0.0/16 (Docker's bridge")


V4_NETWORKS = st.builds(lambda a, p: IPv4Network((a, p), strict=False), st.integers(0, 2**32 - 1), st.integers(4, 30))


@given(V4_NETWORKS, V4_NETWORKS, V4_NETWORKS, st.booleans())
def test_ranges_pass_exactly_when_nothing_overlaps(
    vpc: IPv4Network, pods: IPv4Network, services: IPv4Network, legacy: bool
) -> None:
    bans = {Ban.ALWAYS, Ban.LEGACY} if legacy else {Ban.ALWAYS}
    ranges = [vpc, pods, services]
    clear = not any(a.overlaps(b) for a, b in combinations(ranges, 2)) and not any(
        r.overlaps(reserved.network) for r in ranges for reserved in V4 if reserved.ban in bans
    )
    if clear:
        check_ranges(vpc=(vpc,), pods=pods, services=services, legacy=legacy)
    else:
        with pytest.raises(ValueError):
            check_ranges(vpc=(vpc,), pods=pods, services=services, legacy=legacy)
