"""The main job, as a user does it and as an outsider sees it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from ipaddress import IPv4Network
from typing import Any

import pytest
from temporalio.client import Client

from sandbox.supervisor import Sandbox
from tests.e2e.conftest import Shell, ours, subnets

CLUSTER_FIELDS = {
    "name", "tenant", "provider", "region", "vpc", "phase", "shoot", "block", "nodes", "infra", "zones", "workflow_id",
    "failure",
}  # fmt: skip
VPC_FIELDS = {
    "name",
    "tenant",
    "provider",
    "region",
    "cidrs",
    "phase",
    "network",
    "members",
    "free",
    "adopted",
    "failure",
}


def test_clusters_share_a_vpc_and_the_last_one_out_removes_it(trellis: Shell, ec2: Any) -> None:
    alpha = trellis.create("alpha", "--vpc", "shared").json
    beta = trellis.create("beta", "--vpc", "shared").json
    solo = trellis.create("solo").json
    assert set(alpha) >= CLUSTER_FIELDS
    assert (alpha["phase"], alpha["block"], alpha["nodes"], alpha["infra"]) == (
        "ready", "10.0.0.0/22", "10.0.0.0/23", "10.0.2.0/23",
    )  # fmt: skip
    assert beta["block"] == "10.0.4.0/22"
    assert solo["vpc"] not in {"shared", "solo"}

    vpc = trellis("vpc", "show", "shared", "--output", "json").json
    assert set(vpc) >= VPC_FIELDS
    assert [member["cluster"] for member in vpc["members"]] == ["alpha", "beta"]
    assert vpc["free"]["blocks"] == 62
    assert len(ours(ec2, trellis.tenant)) == 2
    inside = subnets(ec2, vpc["network"]["id"])
    assert len(inside) == 6
    for cluster in (alpha, beta):
        block = IPv4Network(cluster["block"])
        assert sum(IPv4Network(subnet["CidrBlock"]).subnet_of(block) for subnet in inside) == 3

    assert "alpha" in trellis("vpc", "map", "shared").out
    assert "beta holds 10.0.4.0/22" in " ".join(trellis("vpc", "explain", "shared").out.split())
    listed = trellis("cluster", "list", "--output", "json").json
    assert [cluster["name"] for cluster in listed] == ["alpha", "beta", "solo"]

    before = subnets(ec2, vpc["network"]["id"])
    trellis.delete("alpha")
    assert [s for s in before if IPv4Network(s["CidrBlock"]).subnet_of(IPv4Network(beta["block"]))] == subnets(
        ec2, vpc["network"]["id"]
    ), "the neighbour's subnets are untouched"
    trellis.delete("beta")
    assert trellis("vpc", "show", "shared", status=1).err.startswith("error: not-found")
    assert [v["VpcId"] for v in ours(ec2, trellis.tenant)] == [
        trellis("vpc", "show", solo["vpc"], "--output", "json").json["network"]["id"]
    ]
    trellis.delete("solo")
    assert not ours(ec2, trellis.tenant)
    for listing in (ec2.describe_dhcp_options()["DhcpOptions"], ec2.describe_security_groups()["SecurityGroups"]):
        assert not [
            thing for thing in listing if {"Key": "trellis.dev/tenant", "Value": trellis.tenant} in thing["Tags"]
        ]


def test_the_network_has_what_gardener_needs(trellis: Shell, ec2: Any) -> None:
    trellis.create("alpha", "--vpc", "shared", "--zones", "eu-central-1a,eu-central-1b,eu-central-1c")
    (vpc,) = ours(ec2, trellis.tenant)
    for attribute in ("enableDnsSupport", "enableDnsHostnames"):
        answer = ec2.describe_vpc_attribute(VpcId=vpc["VpcId"], Attribute=attribute)
        assert answer[attribute[0].upper() + attribute[1:]]["Value"]
    (options,) = ec2.describe_dhcp_options(DhcpOptionsIds=[vpc["DhcpOptionsId"]])["DhcpOptions"]
    values = {c["Key"]: [v["Value"] for v in c["Values"]] for c in options["DhcpConfigurations"]}
    assert values["domain-name"] == ["eu-central-1.compute.internal"]
    assert values["domain-name-servers"] == ["AmazonProvidedDNS"]
    assert not [tag for tag in vpc["Tags"] if tag["Key"].startswith("kubernetes.io/")]
    cluster = trellis("cluster", "show", "alpha", "--output", "json").json
    workers = [IPv4Network(zone["workers"]) for zone in cluster["zones"]]
    assert sorted(network.prefixlen for network in workers) == [24, 25, 25], "the whole half is used"
    trellis.delete("alpha")


def test_the_same_request_twice_is_one_cluster_and_another_one_is_refused(trellis: Shell, ec2: Any) -> None:
    first = trellis.create("alpha", "--vpc", "shared").json
    assert trellis.create("alpha", "--vpc", "shared").json == first
    refused = trellis.create("alpha", "--vpc", "shared", "--nodes-max", "5", status=1)
    assert refused.err.startswith("error: cluster-exists")
    assert len(ours(ec2, trellis.tenant)) == 1
    trellis.delete("alpha")
    again = trellis.create("alpha", "--vpc", "shared", "--nodes-max", "5").json
    assert again["phase"] == "ready"
    trellis.delete("alpha")


def test_without_wait_the_request_is_durable_at_once(trellis: Shell) -> None:
    ran = trellis("cluster", "create", "alpha", "--provider", "aws", "--region", "eu-central-1", "--output", "json")
    assert ran.json["phase"] == "joining"
    assert trellis.create("alpha").json["phase"] == "ready"
    trellis.delete("alpha")


async def test_a_terminated_workflow_is_cleaned_up_by_name(trellis: Shell, ec2: Any) -> None:
    view = (await asyncio.to_thread(trellis.create, "alpha", "--vpc", "shared")).json
    client = await Client.connect(trellis.sandbox.world.temporal.address)
    await client.get_workflow_handle(view["workflow_id"]).terminate("by mistake")
    shown = await asyncio.to_thread(trellis, "cluster", "show", "alpha")
    assert "trellis cluster delete alpha" in shown.out
    await asyncio.to_thread(trellis.delete, "alpha")
    assert not ours(ec2, trellis.tenant)


def test_another_tenants_vpc_is_as_good_as_not_there(trellis: Shell, ec2: Any) -> None:
    other = Shell(trellis.sandbox, tenant=trellis.tenant + "x")
    trellis.create("alpha", "--vpc", "shared")
    assert other("vpc", "show", "shared", status=1).err.startswith("error: not-found")
    assert other("cluster", "show", "alpha", status=1).err.startswith("error: not-found")
    assert other("cluster", "list", "--output", "json").json == []
    mine = other.create("alpha", "--vpc", "shared").json
    assert mine["block"] == "10.0.0.0/22", "a VPC of its own, whatever the other tenant calls its VPC"
    assert ours(ec2, other.tenant) != ours(ec2, trellis.tenant)
    for shell in (trellis, other):
        shell.delete("alpha")


def test_deleting_what_never_was_succeeds(trellis: Shell) -> None:
    trellis.delete("nobody")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_sees_the_shoot_and_may_not_delete_it_unasked(trellis: Shell) -> None:
    view = trellis.create("alpha").json
    shoot = view["shoot"]

    def kubectl(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "-n", shoot["namespace"], *arguments],
            env=trellis.sandbox.environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    got = json.loads(kubectl("get", "shoot", shoot["name"], "-o", "json").stdout)
    assert got["metadata"]["labels"]["trellis.dev/cluster"] == "alpha"
    assert got["spec"]["networking"]["nodes"] == view["nodes"]
    assert "Succeeded" in kubectl("describe", "shoot", shoot["name"]).stdout
    refused = kubectl("delete", "shoot", shoot["name"], "--wait=false")
    assert refused.returncode != 0
    assert "confirmation.gardener.cloud/deletion" in refused.stderr
    trellis.delete("alpha")
    assert "NotFound" in kubectl("get", "shoot", shoot["name"]).stderr


def test_doctor_finds_everything_in_order(trellis: Shell) -> None:
    assert trellis("doctor").status == 0


def test_a_sandbox_that_restarts_finds_the_same_state(trellis: Shell, sandbox: Sandbox, ec2: Any) -> None:
    view = trellis.create("alpha", "--vpc", "shared").json
    (before,) = ours(ec2, trellis.tenant)
    for part in ("aws", "garden", "temporal", "worker"):
        sandbox.kill(part)
    sandbox.wait_ready()
    assert ours(ec2, trellis.tenant) == [before]
    assert trellis("cluster", "show", "alpha", "--output", "json").json == view
    trellis.delete("alpha")
    assert not ours(ec2, trellis.tenant)
