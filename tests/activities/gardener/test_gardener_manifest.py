from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.gardener.manifest import belongs_to, found, same_place, shoot_manifest
from domain.networks import Network
from domain.shoots import ClusterKey
from sandbox.garden import rules
from sandbox.garden.providers.aws import rules as aws_rules
from sandbox.garden.start import cloud_profiles
from tests.activities.gardener.byhand import order

AWS = next(profile for profile in cloud_profiles() if profile["metadata"]["name"] == "aws")
blocks = st.integers(0, 63).map(lambda index: f"10.0.{index * 4}.0/22")
zone_lists = st.lists(st.sampled_from([f"eu-central-1{zone}" for zone in "abc"]), min_size=1, max_size=3, unique=True)


def test_a_shoot_on_aws_sits_in_the_vpc_with_its_subnets_and_the_shared_security_group() -> None:
    manifest = shoot_manifest(order())
    assert manifest["spec"]["provider"]["infrastructureConfig"] == {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "networks": {
            "vpc": {"id": "vpc-0a1b2c3d4e5f60718"},
            "nodesSecurityGroupID": "sg-0a1b2c3d4e5f60718",
            "zones": [
                {
                    "name": "eu-central-1a",
                    "workers": "10.0.0.0/24",
                    "public": "10.0.2.0/25",
                    "internal": "10.0.2.128/25",
                },
                {
                    "name": "eu-central-1b",
                    "workers": "10.0.1.0/25",
                    "public": "10.0.3.0/26",
                    "internal": "10.0.3.64/26",
                },
                {
                    "name": "eu-central-1c",
                    "workers": "10.0.1.128/25",
                    "public": "10.0.3.128/26",
                    "internal": "10.0.3.192/26",
                },
            ],
        },
    }
    assert manifest["spec"]["networking"] == {
        "type": "calico",
        "nodes": "10.0.0.0/23",
        "pods": "10.96.0.0/13",
        "services": "10.104.0.0/13",
    }


def test_the_users_name_is_a_label_and_never_the_shoots_name() -> None:
    meta = shoot_manifest(order("alpha"))["metadata"]
    assert "alpha" not in meta["name"]
    assert len(meta["name"]) == 10
    assert meta["labels"] == {
        "trellis.dev/tenant": "default",
        "trellis.dev/cluster": "alpha",
        "trellis.dev/vpc": "shared",
    }
    assert meta["annotations"] == {"trellis.dev/block": "10.0.0.0/22"}


def test_what_is_not_there_is_left_out_and_not_sent_empty() -> None:
    plain = order().model_copy(update={"network": Network(id="vpc-1")})
    assert "nodesSecurityGroupID" not in shoot_manifest(plain)["spec"]["provider"]["infrastructureConfig"]["networks"]


@given(block=blocks, zones=zone_lists)
def test_gardener_accepts_the_shoot_of_every_block_and_every_choice_of_zones(block: str, zones: list[str]) -> None:
    shoot = shoot_manifest(order(block=block, zones=tuple(zones)))
    assert rules.shoot_problems(shoot) == []
    aws_rules.fill_in(shoot, None)
    assert aws_rules.problems(shoot, None, AWS) == []


@given(block=blocks, other=blocks)
def test_a_shoot_is_known_again_by_its_place_after_gardener_filled_in_the_rest(block: str, other: str) -> None:
    shoot = shoot_manifest(order(block=block))
    aws_rules.fill_in(shoot, None)
    assert same_place(shoot, order(block=other)) is (block == other)


def test_the_same_block_in_another_vpc_is_another_place() -> None:
    shoot = shoot_manifest(order())
    assert not same_place(shoot, order().model_copy(update={"network": Network(id="vpc-2")}))
    assert not same_place(shoot, order(vpc="other"))


@pytest.mark.parametrize("labels", [None, {}, {"trellis.dev/tenant": "default"}, {"trellis.dev/cluster": "alpha"}])
def test_a_shoot_without_all_our_labels_is_not_ours(labels: dict[str, str] | None) -> None:
    shoot = shoot_manifest(order())
    shoot["metadata"]["labels"] = labels
    assert not belongs_to(shoot, ClusterKey(tenant="default", cluster="alpha"))


def test_a_shoot_tells_what_a_lost_workflow_knew() -> None:
    seen = found(shoot_manifest(order(credentials="aws-other")))
    assert (seen.vpc, seen.region, seen.credentials) == ("shared", "eu-central-1", "aws-other")
    assert seen.block == IPv4Network("10.0.0.0/22")
    assert not seen.deleting
