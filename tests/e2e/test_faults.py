"""A world that is not as it should be: missing rules, foreign things, and what must never leak."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
from kubernetes import client as kubernetes
from kubernetes import config
from temporalio.client import Client

from domain.names import shoot_name, vpc_workflow_id
from tests.e2e.conftest import Shell, check_no_secrets, ours, subnets


async def _until_gone(trellis: Shell, vpc: str) -> None:
    client = await Client.connect(trellis.sandbox.world.temporal.address)
    await client.get_workflow_handle(vpc_workflow_id(trellis.tenant, vpc)).result()


def _node_group(ec2: Any, tenant: str) -> dict[str, Any]:
    (group,) = ec2.describe_security_groups(Filters=[{"Name": "tag:trellis.dev/tenant", "Values": [tenant]}])[
        "SecurityGroups"
    ]
    return dict(group)


def test_a_missing_rule_fails_the_newcomer_with_its_cause_and_leaves_the_neighbour_alone(
    trellis: Shell, ec2: Any
) -> None:
    trellis.create("alpha", "--vpc", "shared")
    begun = trellis.begin(
        "cluster", "create", "beta", "--provider", "aws", "--region", "eu-central-1", "--vpc", "shared", "--wait",
        "--on-failure", "hold",
    )  # fmt: skip
    # The network is mended at every join, so the rules go when the newcomer has its block.
    _until_shoot(trellis, "beta")
    group = _node_group(ec2, trellis.tenant)
    ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])
    out, err = begun.communicate(timeout=200)
    assert begun.returncode == 1, out
    assert "error: unreachable" in err
    assert "alpha" in err
    assert "security group" in err
    view = trellis("cluster", "show", "beta", "--output", "json").json
    assert (view["phase"], view["failure"]["code"]) == ("held", "unreachable")

    ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=_again(group))
    trellis("cluster", "retry", "beta", "--why", "the rules are back")
    assert trellis.create("beta", "--vpc", "shared", "--on-failure", "hold").json["phase"] == "ready"
    for name in ("alpha", "beta"):
        trellis.delete(name)
    assert not ours(ec2, trellis.tenant)


def _again(group: dict[str, Any]) -> list[dict[str, Any]]:
    """Rules as they are listed, in the form in which they are asked for."""
    rules = []
    for rule in group["IpPermissions"]:
        rule = dict(rule)
        rule["UserIdGroupPairs"] = [{"GroupId": pair["GroupId"]} for pair in rule.get("UserIdGroupPairs", [])]
        rules.append({key: value for key, value in rule.items() if value not in ([], None)})
    return rules


def _until_shoot(trellis: Shell, cluster: str) -> None:
    """Wait until the garden has a cluster's shoot."""
    garden = trellis.sandbox.world.garden
    api = kubernetes.CustomObjectsApi(config.new_client_from_config(garden.kubeconfig))
    name = shoot_name(trellis.tenant, cluster)
    for _ in range(600):
        shoots = api.list_namespaced_custom_object("core.gardener.cloud", "v1beta1", garden.namespace, "shoots")
        if name in {shoot["metadata"]["name"] for shoot in shoots["items"]}:
            return
        time.sleep(0.05)
    raise AssertionError(f"no shoot of {cluster}")


def test_a_subnet_of_somebody_else_is_stepped_around_and_blocks_the_deletion_until_it_goes(
    trellis: Shell, ec2: Any
) -> None:
    trellis.create("alpha", "--vpc", "shared")
    (vpc,) = ours(ec2, trellis.tenant)
    foreign = ec2.create_subnet(VpcId=vpc["VpcId"], CidrBlock="10.0.4.0/24")["Subnet"]["SubnetId"]
    assert trellis.create("beta", "--vpc", "shared").json["block"] == "10.0.8.0/22"
    assert "10.0.4.0/24" in trellis("vpc", "explain", "shared").out
    trellis.delete("alpha")
    blocked = trellis.delete("beta", status=1)
    assert "error: blocked" in blocked.err
    assert foreign in blocked.err
    view = trellis("vpc", "show", "shared", "--output", "json").json
    assert view["phase"] == "blocked"
    assert foreign in view["failure"]["message"]
    assert [subnet["SubnetId"] for subnet in subnets(ec2, vpc["VpcId"])] == [foreign], "foreign things are not touched"
    ec2.delete_subnet(SubnetId=foreign)
    asyncio.run(_until_gone(trellis, "shared"))
    assert not ours(ec2, trellis.tenant)


def test_a_vpc_deleted_by_hand_is_lost_and_refuses_joins(trellis: Shell, ec2: Any) -> None:
    trellis.create("alpha", "--vpc", "shared")
    (vpc,) = ours(ec2, trellis.tenant)
    group = _node_group(ec2, trellis.tenant)
    trellis("vpc", "retain", "shared")
    trellis.delete("alpha")
    for gateway in ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc["VpcId"]]}])[
        "InternetGateways"
    ]:
        ec2.detach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=vpc["VpcId"])
    ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])
    ec2.delete_security_group(GroupId=group["GroupId"])
    ec2.delete_vpc(VpcId=vpc["VpcId"])
    refused = trellis.create("beta", "--vpc", "shared", status=1)
    assert "error: lost" in refused.err
    assert vpc["VpcId"] in refused.err


def test_a_quota_fails_the_cluster_once_and_nothing_is_left(trellis: Shell, ec2: Any) -> None:
    settings = f"{trellis.sandbox.world.aws.endpoint}/sandbox/settings"
    before = httpx.get(settings).json()["limits"]["vpcs"]
    httpx.put(settings, json={"limits": {"vpcs": 0}}).raise_for_status()
    try:
        refused = trellis.create("alpha", "--vpc", "shared", status=1)
    finally:
        httpx.put(settings, json={"limits": {"vpcs": before}}).raise_for_status()
    assert "error: quota" in refused.err
    assert "hint:" in refused.err
    assert not ours(ec2, trellis.tenant)
    assert trellis("vpc", "list", "--output", "json").json == []


async def test_no_credential_is_in_any_history_log_or_error(trellis: Shell) -> None:
    await asyncio.to_thread(trellis.create, "alpha", "--vpc", "shared")
    await asyncio.to_thread(trellis.create, "beta", "--credentials", "aws-other")
    for name in ("alpha", "beta"):
        await asyncio.to_thread(trellis.delete, name)
    check_no_secrets(trellis.sandbox, "aws", "aws-other")
