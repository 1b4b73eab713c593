"""What all calls to the sandbox's Alibaba Cloud have in common: signatures, permissions, tokens, pages, tags."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from alibabacloud_vpc20160428 import models
from alibabacloud_vpc20160428.client import Client as VpcClient

from tests.sandbox.alicloud.server import ECS, PEER, REGION, STS, VPC, ZONE, Config, Sdk, Server


@pytest.mark.parametrize("config", [{}, {"signature_algorithm": "v2"}], ids=["ACS3-HMAC-SHA256", "HMAC-SHA1"])
def test_a_signed_call_is_answered_whatever_it_says(server: Server, config: dict[str, Any]) -> None:
    sdk = server.sdk(**config)
    said = "a b+c/d?e=f&g~h*ü'\"%20"
    vpc = sdk.vpc(Description=said, Tag__1__Key="k", Tag__1__Value=said)
    (found,) = sdk.vpcs(VpcId=vpc)
    assert found["Description"] == said
    assert found["Tags"]["Tag"] == [{"Key": "k", "Value": said}]


@pytest.mark.parametrize("config", [{}, {"signature_algorithm": "v2"}], ids=["ACS3-HMAC-SHA256", "HMAC-SHA1"])
def test_a_call_that_somebody_else_signed_is_refused(server: Server, config: dict[str, Any]) -> None:
    key = server.key()
    wrong, unknown = key | {"accessKeySecret": "no"}, key | {"accessKeyID": "LTAInobody"}
    assert server.sdk(wrong, **config).refused("DescribeVpcs") == (400, "SignatureDoesNotMatch")
    assert server.sdk(unknown, **config).refused("DescribeVpcs") == (404, "InvalidAccessKeyId.NotFound")


def test_the_vendors_vpc_sdk_reads_the_answers(server: Server) -> None:
    key = server.key()
    config = Config(
        access_key_id=key["accessKeyID"],
        access_key_secret=key["accessKeySecret"],
        endpoint=server.url.removeprefix("http://"),
        protocol="HTTP",
    )
    client = VpcClient(config)
    tag = models.CreateVpcRequestTag(key="k", value="v")
    made = client.create_vpc(models.CreateVpcRequest(region_id=REGION, cidr_block="10.0.0.0/16", tag=[tag]))
    request = models.DescribeVpcsRequest(region_id=REGION, vpc_id=made.body.vpc_id)
    (vpc,) = client.describe_vpcs(request).body.vpcs.vpc
    assert (vpc.cidr_block, vpc.owner_id, vpc.is_default) == ("10.0.0.0/16", int(key["accountID"]), False)
    assert [(each.key, each.value) for each in vpc.tags.tag] == [("k", "v")]


def test_calls_without_a_signature_are_let_in_only_where_the_settings_say_so(server: Server) -> None:
    query = {"Action": "DescribeVpcs", "Version": VPC, "RegionId": REGION}
    assert httpx.get(server.url, params=query, trust_env=False).status_code == 200
    assert httpx.post(server.url, data=query, trust_env=False).status_code == 200
    with server.having(anonymous=False):
        answer = httpx.get(server.url, params=query, trust_env=False)
        assert (answer.status_code, answer.json()["Code"]) == (400, "MissingSignature")


def test_a_call_that_was_signed_long_ago_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    past = (datetime.now(UTC) - timedelta(minutes=20)).strftime("%Y-%m-%dT%H:%M:%SZ")
    monkeypatch.setattr("alibabacloud_tea_openapi.utils.Utils.get_timestamp", lambda: past)
    assert server.sdk().refused("DescribeVpcs") == (400, "InvalidTimeStamp.Expired")


def test_nobody_does_what_the_policy_does_not_allow(server: Server) -> None:
    sdk = server.sdk(server.key(permissions=["vpc:Describe*", "ecs:DescribeSecurityGroups"]))
    assert sdk.vpcs() is not None
    assert sdk("DescribeSecurityGroups", ECS)["SecurityGroups"] is not None
    assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16") == (403, "Forbidden.RAM")
    assert sdk.refused("DescribeInstances", ECS) == (403, "Forbidden.RAM")
    assert sdk.refused("ListVpcPeerConnections", PEER) == (403, "Forbidden.RAM")
    assert sdk("GetCallerIdentity", STS)["AccountId"] == sdk.account


def test_accounts_do_not_see_each_other(server: Server) -> None:
    mine, theirs = server.sdk(), server.sdk(server.key(account="9999999999999999"))
    vpc = mine.vpc()
    assert theirs.vpcs(VpcId=vpc) == []
    assert theirs.refused("DeleteVpc", VpcId=vpc) == (404, "InvalidVpcId.NotFound")


def test_regions_do_not_see_each_other(server: Server) -> None:
    vpc = server.sdk().vpc()
    assert server.sdk(region="cn-shanghai").vpcs(VpcId=vpc) == []
    assert server.sdk(region="mars-north-1").refused("DescribeVpcs") == (404, "InvalidRegionId.NotFound")


def test_a_key_can_be_given(server: Server) -> None:
    key = {"accessKeyID": "LTAI5tGiven", "accessKeySecret": "a secret of its own"}
    for permissions in ([], ["*"]):
        assert server.key(**key, permissions=permissions)["accessKeySecret"] == key["accessKeySecret"]
    assert server.sdk(key)("DescribeVpcs")["TotalCount"] >= 0


def test_a_key_that_cannot_be_is_refused_with_what_is_wrong(server: Server) -> None:
    answer = httpx.post(f"{server.url}/sandbox/keys", json={"account": "me"}, trust_env=False)
    assert answer.status_code == 400
    assert "account" in answer.json()["error"]


@pytest.mark.parametrize(
    ("action", "version", "code"),
    [("NoSuchAction", VPC, "InvalidAction.NotFound"), ("CreateVpc", "1999-01-01", "InvalidVersion")],
)
def test_unknown_actions_and_versions_are_told_apart(sdk: Sdk, action: str, version: str, code: str) -> None:
    assert sdk.refused(action, version)[1] == code


def test_a_path_that_is_none_is_worded_as_alibaba_words_errors(server: Server) -> None:
    answer = httpx.get(f"{server.url}/nowhere", trust_env=False)
    assert (answer.status_code, answer.json()["Code"]) == (404, "InvalidAction.NotFound")


def test_a_parameter_that_is_missing_is_named(sdk: Sdk) -> None:
    assert sdk.refused("DescribeVpcAttribute") == (400, "MissingVpcId")
    assert sdk.refused("CreateVSwitch", ZoneId=ZONE) == (400, "MissingCidrBlock")


def test_the_same_token_gives_the_same_vpc(sdk: Sdk) -> None:
    one = sdk("CreateVpc", CidrBlock="10.0.0.0/16", ClientToken="token-1")
    assert sdk("CreateVpc", CidrBlock="10.0.0.0/16", ClientToken="token-1") == one
    assert sdk("CreateVpc", CidrBlock="10.0.0.0/16", ClientToken="token-2")["VpcId"] != one["VpcId"]
    refused = sdk.refused("CreateVpc", CidrBlock="10.1.0.0/16", ClientToken="token-1")
    assert refused == (400, "IdempotentParameterMismatch")
    assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16", ClientToken="t" * 65)[1] == "InvalidClientToken.Malformed"


def test_a_token_of_a_call_that_was_refused_is_still_good(server: Server, sdk: Sdk) -> None:
    with server.having(quotas={f"vpc_quota_instances_num_{REGION}": 0}):
        assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16", ClientToken="token-3")[1] == "QuotaExceeded.Vpc"
    assert sdk("CreateVpc", CidrBlock="10.0.0.0/16", ClientToken="token-3")["VpcId"]


def test_a_dry_run_changes_nothing(sdk: Sdk) -> None:
    before = sdk("DescribeVpcs")["TotalCount"]
    assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16", DryRun="true") == (400, "DryRunOperation")
    assert sdk.refused("CreateVpc", CidrBlock="1.2.3.4", DryRun="true") == (400, "InvalidParameter")
    assert sdk("DescribeVpcs")["TotalCount"] == before


def test_lists_come_in_pages(sdk: Sdk) -> None:
    made = {sdk("CreateVpc", CidrBlock="10.0.0.0/16", VpcName="paged")["VpcId"] for _ in range(12)}
    first, second = (sdk("DescribeVpcs", VpcName="paged", PageNumber=number, PageSize=10) for number in (1, 2))
    assert (first["TotalCount"], first["PageSize"], second["PageNumber"]) == (12, 10, 2)
    assert {vpc["VpcId"] for page in (first, second) for vpc in page["Vpcs"]["Vpc"]} == made
    assert sdk.refused("DescribeVpcs", PageSize=51) == (400, "InvalidParameter")


def test_lists_with_a_token_come_in_pages_too(sdk: Sdk) -> None:
    vpc = sdk.vpc()
    made = {sdk.group(vpc) for _ in range(5)}
    found, token = [], {}
    while True:
        answer = sdk("DescribeSecurityGroups", ECS, VpcId=vpc, MaxResults=2, **token)
        found.append([group["SecurityGroupId"] for group in answer["SecurityGroups"]["SecurityGroup"]])
        if not answer.get("NextToken"):
            break
        token = {"NextToken": answer["NextToken"]}
    assert [len(page) for page in found] == [2, 2, 1]
    assert {group for page in found for group in page} == made
    refused = sdk.refused("DescribeSecurityGroups", ECS, MaxResults=2, NextToken="nonsense")
    assert refused == (400, "InvalidParameter.NextToken")


def test_tags_select(sdk: Sdk) -> None:
    vpc = sdk.vpc(Tag__1__Key="color", Tag__1__Value="red", Tag__2__Key="size", Tag__2__Value="9")
    for tags, finds in (
        ({"Tag__1__Key": "color"}, True),
        ({"Tag__1__Key": "color", "Tag__1__Value": "red", "Tag__2__Key": "size"}, True),
        ({"Tag__1__Key": "color", "Tag__1__Value": "blue"}, False),
        ({"Tag__1__Key": "shape"}, False),
    ):
        assert (vpc in [each["VpcId"] for each in sdk.vpcs(**tags)]) is finds


def test_tags_come_and_go(sdk: Sdk) -> None:
    vpc = sdk.vpc()
    one = {"ResourceType": "VPC", "ResourceId__1": vpc}
    sdk("TagResources", **one, Tag__1__Key="a", Tag__1__Value="1", Tag__2__Key="b", Tag__2__Value="2")
    found = sdk.list("ListTagResources", "TagResources", "TagResource", ResourceType="VPC", Tag__1__Key="a")
    assert {(each["ResourceId"], each["TagKey"]) for each in found} == {(vpc, "a"), (vpc, "b")}
    sdk("UnTagResources", **one, TagKey__1="a")
    assert sdk.vpcs(VpcId=vpc)[0]["Tags"]["Tag"] == [{"Key": "b", "Value": "2"}]
    sdk("UnTagResources", **one, All="true")
    assert sdk.list("ListTagResources", "TagResources", "TagResource", **one) == []
    refused = sdk.refused("TagResources", ResourceType="VPC", ResourceId__1="vpc-none", Tag__1__Key="a")
    assert refused == (404, "InvalidResourceId.NotFound")
    assert sdk.refused("TagResources", ResourceType="CAT", ResourceId__1=vpc, Tag__1__Key="a")[1] == (
        "InvalidResourceType.NotFound"
    )


@pytest.mark.parametrize("key", ["aliyun-x", "acs:x", "http://x", "k" * 129])
def test_tags_that_cannot_be_are_refused(sdk: Sdk, key: str) -> None:
    assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16", Tag__1__Key=key) == (400, "InvalidTagKey.Malformed")


def test_more_than_twenty_tags_are_refused(sdk: Sdk) -> None:
    tags = {f"Tag__{number}__Key": f"k{number}" for number in range(1, 22)}
    assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16", **tags) == (400, "SizeLimitExceeded.Tag")


def test_a_new_vpc_is_not_visible_at_once_if_the_settings_say_so(server: Server, sdk: Sdk) -> None:
    with server.having(hidden_reads={"Vpc": 2}):
        vpc = sdk("CreateVpc", CidrBlock="10.0.0.0/16")["VpcId"]
        assert sdk.vpcs(VpcId=vpc) == []
        assert sdk.refused("DescribeVpcAttribute", VpcId=vpc) == (404, "InvalidVpcId.NotFound")
        assert sdk("DescribeVpcAttribute", VpcId=vpc)["VpcId"] == vpc


def test_zones_are_those_of_the_region(server: Server) -> None:
    def zones(region: str) -> list[str]:
        return [each["ZoneId"] for each in server.sdk(region=region)("DescribeZones")["Zones"]["Zone"]]

    assert zones(REGION) == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
    assert "cn-shanghai-b" in zones("cn-shanghai")
    nat_zones = server.sdk()("ListEnhanhcedNatGatewayAvailableZones")["Zones"]
    assert [each["ZoneId"] for each in nat_zones] == zones(REGION)
