"""Security groups and instances, through the vendor's SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sandbox.alicloud.server import ECS, Sdk


def test_rules_come_and_go(sdk: Sdk, vpc: str) -> None:
    group = sdk.group(vpc, SecurityGroupName="nodes", Tag__1__Key="k", Tag__1__Value="v")
    one = {"IpProtocol": "tcp", "PortRange": "30000/32767", "SourceCidrIp": "0.0.0.0/0"}
    for _ in range(2):
        sdk("AuthorizeSecurityGroup", ECS, SecurityGroupId=group, **one)
    many = {"Permissions__1__IpProtocol": "ALL", "Permissions__1__SourceCidrIp": "10.96.0.0/13"}
    sdk("AuthorizeSecurityGroup", ECS, SecurityGroupId=group, **many)
    sdk("AuthorizeSecurityGroupEgress", ECS, SecurityGroupId=group, IpProtocol="ALL", DestCidrIp="0.0.0.0/0")

    def rules(direction: str) -> Any:
        found = sdk("DescribeSecurityGroupAttribute", ECS, SecurityGroupId=group, Direction=direction)
        return found["Permissions"]["Permission"]

    assert [(rule["IpProtocol"], rule["PortRange"], rule["SourceCidrIp"]) for rule in rules("ingress")] == [
        ("TCP", "30000/32767", "0.0.0.0/0"),
        ("ALL", "-1/-1", "10.96.0.0/13"),
    ]
    assert len(rules("egress")) == 1
    sdk(
        "RevokeSecurityGroup",
        ECS,
        SecurityGroupId=group,
        SecurityGroupRuleId__1=rules("ingress")[1]["SecurityGroupRuleId"],
    )
    sdk("RevokeSecurityGroup", ECS, SecurityGroupId=group, **one)
    assert rules("ingress") == []
    (listed,) = sdk.list("DescribeSecurityGroups", "SecurityGroups", "SecurityGroup", ECS, SecurityGroupName="nodes")
    assert (listed["SecurityGroupId"], listed["RuleCount"]) == (group, 1)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"IpProtocol": "TELEPATHY", "SourceCidrIp": "0.0.0.0/0"}, "InvalidIpProtocol.Malformed"),
        ({"IpProtocol": "TCP", "PortRange": "9/1", "SourceCidrIp": "0.0.0.0/0"}, "InvalidParam.PortRange"),
        ({"IpProtocol": "TCP", "PortRange": "1", "SourceCidrIp": "0.0.0.0/0"}, "InvalidParam.PortRange"),
        ({"IpProtocol": "ALL"}, "InvalidSourceCidrIp.Malformed"),
        ({"IpProtocol": "ALL", "SourceGroupId": "sg-none"}, "InvalidSecurityGroupId.NotFound"),
    ],
)
def test_rules_that_cannot_be_are_refused(sdk: Sdk, vpc: str, rule: dict[str, str], code: str) -> None:
    group = sdk.group(vpc)
    assert sdk.refused("AuthorizeSecurityGroup", ECS, SecurityGroupId=group, **rule)[1] == code


def test_a_group_stays_while_it_is_used(sdk: Sdk, vpc: str, vswitch: str) -> None:
    one, two = sdk.group(vpc), sdk.group(vpc)
    sdk("AuthorizeSecurityGroup", ECS, SecurityGroupId=two, IpProtocol="ALL", SourceGroupId=one)
    assert sdk.refused("DeleteSecurityGroup", ECS, SecurityGroupId=one) == (403, "DependencyViolation")
    instance = sdk.instance(vswitch, two)["InstanceId"]
    assert sdk.refused("DeleteSecurityGroup", ECS, SecurityGroupId=two) == (403, "DependencyViolation")
    assert sdk.refused("DeleteInstance", ECS, InstanceId=instance) == (403, "IncorrectInstanceStatus")
    sdk("DeleteInstances", ECS, InstanceId__1=instance, Force="true")
    sdk.instance_is(instance, None)
    for group in (two, one):
        sdk("DeleteSecurityGroup", ECS, SecurityGroupId=group)
    assert sdk.refused("DeleteSecurityGroup", ECS, SecurityGroupId=one) == (404, "InvalidSecurityGroupId.NotFound")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"InstanceType": "m5.large"}, "InvalidInstanceType.ValueNotSupported"),
        ({"ImageId": "ami-1"}, "InvalidImageId.NotFound"),
        ({"VSwitchId": "vsw-none"}, "InvalidVSwitchId.NotFound"),
        ({"ZoneId": "eu-central-1b"}, "InvalidParameter.Mismatch"),
    ],
)
def test_an_instance_that_cannot_be_is_refused(
    sdk: Sdk, vpc: str, vswitch: str, changes: dict[str, str], code: str
) -> None:
    fine = {"InstanceType": "ecs.g7.large", "ImageId": "m-1", "VSwitchId": vswitch, "SecurityGroupId": sdk.group(vpc)}
    assert sdk.refused("RunInstances", ECS, **(fine | changes))[1] == code


def test_an_instance_and_its_group_are_in_one_vpc(sdk: Sdk, vswitch: str) -> None:
    wanted = {"InstanceType": "ecs.g7.large", "ImageId": "m-1", "VSwitchId": vswitch}
    refused = sdk.refused("RunInstances", ECS, **wanted, SecurityGroupId=sdk.group(sdk.vpc()))
    assert refused == (400, "InvalidParameter.Mismatch")


def test_instances_are_found_by_what_they_are_in(sdk: Sdk, vpc: str, vswitch: str) -> None:
    group = sdk.group(vpc)
    instance = sdk.instance(vswitch, group, InstanceName="n", Tag__1__Key="k", Tag__1__Value="v")["InstanceId"]
    for wanted in (
        {"VpcId": vpc},
        {"VSwitchId": vswitch},
        {"SecurityGroupId": group},
        {"VpcId": vpc, "Tag__1__Key": "k"},
    ):
        (found,) = sdk.list("DescribeInstances", "Instances", "Instance", ECS, **wanted)
        assert (found["InstanceId"], found["Tags"]["Tag"]) == (instance, [{"TagKey": "k", "TagValue": "v"}])
    assert sdk.list("DescribeInstances", "Instances", "Instance", ECS, InstanceIds=json.dumps(["i-none"])) == []
    refused = sdk.refused("DescribeInstances", ECS, InstanceIds="i-1,i-2")
    assert refused == (400, "InvalidParameter.InstanceIds")
