"""Bad requests are refused before anything starts: the error names the field, the value and the fix."""

from ipaddress import IPv4Network
from typing import Any

import pytest
from pydantic import ValidationError

from domain.specs import ClusterSpec, OnFailure, VpcSpec


def spec(**fields: Any) -> ClusterSpec:
    return ClusterSpec(**({"name": "alpha", "provider": "aws", "region": "eu-central-1"} | fields))


def refusal(**fields: Any) -> str:
    """Field and message of everything that is wrong, as a caller can show it."""
    with pytest.raises(ValidationError) as caught:
        spec(**fields)
    return "\n".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in caught.value.errors())


def test_the_least_that_a_user_says_is_enough() -> None:
    cluster = spec()
    assert cluster.vpc_spec() == VpcSpec(
        name="own--alpha",
        provider="aws",
        region="eu-central-1",
        credentials="aws",
        cidrs=("10.0.0.0/16",),
        cluster_prefix=22,
    )
    assert cluster.on_failure is OnFailure.COMPENSATE
    assert ClusterSpec.model_validate_json(cluster.model_dump_json()) == cluster


@pytest.mark.parametrize("field", ["vpc_cidr", "block", "pods", "services"])
@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("10.0.65.0/22", "'10.0.65.0/22' has host bits set: a /22 here is 10.0.64.0/22 or 10.0.68.0/22"),
        ("10.0.0.0", "'10.0.0.0' has no prefix length: write 10.0.0.0/16"),
        ("fd00::/48", "fd00::/48 is IPv6 where IPv4 is wanted"),
        ("ten", "'ten' is not a CIDR: write it like 10.0.0.0/16"),
        (10, "10 is not a CIDR: write it as text like 10.0.0.0/16"),
    ],
)
def test_a_bad_cidr_is_refused_in_every_field(field: str, value: object, fix: str) -> None:
    message = refusal(**{field: value})
    assert message.startswith(f"{field}: ")
    assert fix in message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vpc_cidr": "10.0.0.0/8"}, "vpc_cidr: 10.0.0.0/8 is not between /16 and /28 as aws demands: use a"),
        ({"vpc_cidr": "10.0.0.0/29"}, "vpc_cidr: 10.0.0.0/29 is not between /16 and /28 as aws demands: use a"),
        ({"provider": "alicloud", "vpc_cidr": "10.0.0.0/25"}, "10.0.0.0/25 is not between /8 and /24"),
        ({"cluster_prefix": 27}, "cluster_prefix: /27 is too small a block for aws"),
        ({"cluster_prefix": 26, "zones": ("a", "b", "c")}, "cluster_prefix: /26 is too small a block for aws: in 3 z"),
        ({"cluster_prefix": 15}, "cluster_prefix: /15 is larger than the VPC's range 10.0.0.0/16: use /16 to /26"),
        ({"cluster_prefix": 0}, "cluster_prefix: /0 is larger than the VPC's range 10.0.0.0/16"),
        ({"vpc_cidr": "10.0.0.0/24"}, "cluster_prefix: /22 is larger than the VPC's range 10.0.0.0/24: use /24 to /26"),
        ({"vpc_cidr": "10.96.0.0/16"}, "pods: 10.96.0.0/13 overlaps vpc_cidr 10.96.0.0/16: change one of the two"),
        ({"vpc_cidr": "10.104.0.0/16"}, "services: 10.104.0.0/13 overlaps vpc_cidr 10.104.0.0/16: change"),
        ({"services": "10.100.0.0/16"}, "services: 10.100.0.0/16 overlaps pods 10.96.0.0/13: change one of the two"),
        ({"vpc_cidr": "10.243.0.0/16"}, "vpc_cidr: 10.243.0.0/16 overlaps 10.243.0.0/16 (a seed"),
        ({"pods": "240.0.0.0/12"}, "(Gardener maps the kube-apiserver there): choose pods outside 240.0.0.0/8"),
        ({"vpc_cidr": "10.0.0.0/16", "block": "10.1.0.0/22"}, "block: 10.1.0.0/22 is outside the VPC's range"),
        ({"block": "10.1.0.0/22"}, "block: 10.1.0.0/22 is outside the VPC's range 10.0.0.0/16"),
        ({"vpc_cidr": "10.0.0.0/20", "block": "10.0.0.0/18"}, "block: 10.0.0.0/18 is larger than the VPC's range"),
        ({"block": "10.0.0.0/28"}, "block: 10.0.0.0/28 is too small a block for aws"),
        ({"vpc": "shared", "block": "10.0.0.0/12"}, "block: 10.0.0.0/12 is too large a block for aws: use /16 to /26"),
        ({"zones": ("a", "b", "a")}, "zones: a, b, a names a zone twice"),
        ({"nodes_min": 4}, "nodes_min 4 is more than nodes_max 3"),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused_with_the_fix(fields: dict[str, Any], message: str) -> None:
    assert message in refusal(**fields)


@pytest.mark.parametrize("field", ["name", "vpc", "tenant"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "a name must not be empty"),
        ("x" * 300, "a name has at most 40 characters; this one has 300"),
        ("Größe 1", "'Größe 1' is not a name: use lower-case letters, digits and single hyphens"),
        ("a--b", "'a--b' is not a name"),
        ("a-", "'a-' is not a name"),
        ("-a", "'-a' is not a name"),
        ("1abc", "'1abc' is not a name"),
        ("a_b", "'a_b' is not a name"),
        ("a/b", "'a/b' is not a name"),
        ("a\n", "'a\\n' is not a name"),
        ("own--alpha", "'own--alpha' is not a name"),
    ],
)
def test_a_bad_name_is_refused_in_every_field(field: str, name: str, message: str) -> None:
    assert refusal(**{field: name}).startswith(f"{field}: Value error, {message}")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"provider": "oracle"}, "provider"),
        ({"region": ""}, "region"),
        ({"region": "r" * 300}, "region"),
        ({"zones": ("",)}, "zones.0"),
        ({"zones": tuple("abcdefghi")}, "zones"),
        ({"nodes_max": 0}, "nodes_max"),
        ({"credentials": ""}, "credentials"),
        ({"colour": "green"}, "colour"),
    ],
)
def test_what_no_provider_knows_is_refused(fields: dict[str, Any], field: str) -> None:
    assert refusal(**fields).startswith(f"{field}: ")


def test_the_range_of_a_vpc_that_exists_is_not_guessed() -> None:
    assert spec(vpc="shared", block="10.200.0.0/22").block == IPv4Network("10.200.0.0/22")


def test_ranges_of_older_landscapes_can_be_allowed() -> None:
    assert spec(vpc_cidr="10.243.0.0/16", legacy_ranges=False).vpc_spec().cidrs == (IPv4Network("10.243.0.0/16"),)


def test_a_vpc_of_several_ranges_is_checked_as_a_whole() -> None:
    def vpc(*cidrs: str) -> VpcSpec:
        return VpcSpec(name="shared", provider="aws", region="eu-central-1", credentials="aws", cidrs=cidrs)

    assert len(vpc("10.0.0.0/16", "100.64.0.0/16").cidrs) == 2
    with pytest.raises(ValidationError, match=r"10.0.0.0/16 and 10.0.8.0/22 of one VPC overlap"):
        vpc("10.0.0.0/16", "10.0.8.0/22")
    with pytest.raises(ValidationError, match=r"/22 is larger than the VPC's range 10.1.0.0/24"):
        vpc("10.0.0.0/16", "10.1.0.0/24")
    with pytest.raises(ValidationError, match=r"aws adds no 192.168.0.0/16"):
        vpc("10.0.0.0/16", "192.168.0.0/16")
