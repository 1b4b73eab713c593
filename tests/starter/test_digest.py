"""When two requests are the same."""

from __future__ import annotations

from domain.specs import ClusterSpec
from starter.client import digest_of

BASE = {"name": "alpha", "provider": "aws", "region": "eu-central-1"}


def spec(**more: object) -> ClusterSpec:
    return ClusterSpec.model_validate({**BASE, **more})


def test_what_is_written_out_and_what_is_left_to_default_are_the_same() -> None:
    assert digest_of(spec()) == digest_of(spec(pods="10.96.0.0/13", nodes_min=1, tenant="default"))


def test_every_parameter_counts() -> None:
    others = [
        {"vpc": "shared"}, {"region": "eu-west-1"}, {"vpc_cidr": "10.1.0.0/16"}, {"cluster_prefix": 21},
        {"zones": ("a",)},
        {"block": "10.0.4.0/22"}, {"nodes_max": 4}, {"credentials": "other"}, {"on_failure": "hold"}, {"tenant": "t"},
        {"machine_type": "m5.large"}, {"kubernetes_version": "1.34"}, {"pods": "10.128.0.0/13"},
    ]  # fmt: skip
    digests = {digest_of(spec()), *(digest_of(spec(**other)) for other in others)}
    assert len(digests) == len(others) + 1


def test_the_order_of_zones_counts() -> None:
    assert digest_of(spec(zones=("a", "b"))) != digest_of(spec(zones=("b", "a")))
