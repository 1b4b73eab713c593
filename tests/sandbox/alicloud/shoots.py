"""Shoots on Alibaba Cloud, and what they become in the cloud."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from tests.sandbox.alicloud.server import ECS, REGION, ZONE, Sdk
from tests.sandbox.garden.garden_server import NAMESPACE, Garden, eventually

Shoot = dict[str, Any]
API_VERSION = "alicloud.provider.extensions.gardener.cloud/v1alpha1"
ALONE = {"gardenerManagedNATGateway": True, "useCustomRouteTable": True}


def manifest(name: str, vpc: str | None, block: str = "10.0.0.0/22", **changes: Any) -> Shoot:
    """A shoot in one zone, its nodes in the lower half of its block."""
    nodes = str(next(IPv4Network(block).subnets()))
    zones = [{"name": ZONE, "workers": nodes}]
    networks = {"vpc": {"id": vpc, **ALONE}, "zones": zones, **changes.pop("networks", {})}
    networking = {
        "type": "calico",
        "nodes": nodes,
        "pods": "10.96.0.0/13",
        "services": "10.104.0.0/13",
        **changes.pop("networking", {}),
    }
    worker = {
        "name": "worker",
        "minimum": 1,
        "maximum": 3,
        "zones": [ZONE],
        "volume": {"type": "cloud_essd", "size": "50Gi"},
        "machine": {"type": "ecs.g7.large", "image": {"name": "gardenlinux", "version": "1877.14.0"}},
        **changes.pop("worker", {}),
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "alicloud"},
            "credentialsBindingName": "alicloud",
            "region": REGION,
            "kubernetes": {"version": "1.35.4"},
            "networking": networking,
            "provider": {
                "type": "alicloud",
                "infrastructureConfig": {
                    "apiVersion": API_VERSION,
                    "kind": "InfrastructureConfig",
                    "networks": networks,
                },
                "controlPlaneConfig": {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig"},
                "workers": [worker],
            },
        },
    }


def inside(sdk: Sdk, vpc: str) -> dict[str, list[str]]:
    """What is in a VPC, by kind and name; the machines by the beginnings of theirs."""
    tables = sdk.list("DescribeRouteTableList", "RouterTableList", "RouterTableListType", VpcId=vpc, PageSize=50)
    groups = sdk.list("DescribeSecurityGroups", "SecurityGroups", "SecurityGroup", ECS, VpcId=vpc, PageSize=50)
    machines = sdk.list("DescribeInstances", "Instances", "Instance", ECS, VpcId=vpc, PageSize=50)
    return {
        "vswitches": sorted(
            each["VSwitchName"] for each in sdk.list("DescribeVSwitches", "VSwitches", "VSwitch", VpcId=vpc)
        ),
        "nats": sorted(
            each["Name"] for each in sdk.list("DescribeNatGateways", "NatGateways", "NatGateway", VpcId=vpc)
        ),
        "tables": sorted(each["RouteTableName"] for each in tables if each["RouteTableType"] == "Custom"),
        "groups": sorted(each["SecurityGroupName"] for each in groups),
        "machines": sorted(each["InstanceName"].rpartition("-")[0] for each in machines),
    }


EMPTY: dict[str, list[str]] = {kind: [] for kind in ("vswitches", "nats", "tables", "groups", "machines")}


def of_shoot(name: str) -> dict[str, list[str]]:
    tid = f"shoot--trellis--{name}"
    return {
        "vswitches": [f"{tid}-{ZONE}-vsw"],
        "nats": [f"{tid}-natgw"],
        "tables": [f"{tid}-rt"],
        "groups": [f"{tid}-sg"],
        "machines": [f"{tid}-worker-{ZONE}"],
    }


def together(*names: str) -> dict[str, list[str]]:
    return {kind: sorted(each for name in names for each in of_shoot(name)[kind]) for kind in EMPTY}


def addresses(sdk: Sdk, name: str) -> list[Any]:
    wanted = {"Tag__1__Key": f"kubernetes.io/cluster/shoot--trellis--{name}"}
    return list(sdk.list("DescribeEipAddresses", "EipAddresses", "EipAddress", **wanted))


def errors(shoot: Shoot) -> tuple[set[str], str]:
    found = shoot["status"]["lastErrors"]
    return {code for each in found for code in each.get("codes", [])}, found[0]["description"]


def failing(garden: Garden, name: str) -> Shoot:
    """The shoot as soon as it has an error."""
    return dict(eventually(lambda: garden.shoot(name).get("status", {}).get("lastErrors") and garden.shoot(name)))
