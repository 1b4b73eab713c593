"""What shoots on Alibaba Cloud become in the cloud, with its SDK as the witness."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.alicloud.server import ECS, QUOTAS, REGION, ZONE, Sdk, Server
from tests.sandbox.alicloud.shoots import EMPTY, addresses, errors, failing, inside, manifest, of_shoot, together
from tests.sandbox.garden.garden_server import MERGE, NAMESPACE, Garden, eventually
from tests.sandbox.garden.test_garden_insides import PODS, SERVICES, pod, running, service

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/alicloud"


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Garden]:
    garden = Garden(tmp_path_factory.mktemp("garden"), "http://127.0.0.1:1", "--alicloud-endpoint", server.url)
    yield garden
    assert garden.stop() == 0


# --- in the cloud ----------------------------------------------------------------------------------------------------


def test_a_shoot_gets_all_that_gardener_makes_and_takes_it_along(garden: Garden, sdk: Sdk, vpc: str) -> None:
    shoot = garden.made(manifest("shape", vpc))
    assert inside(sdk, vpc) == of_shoot("shape")
    (address,) = addresses(sdk, "shape")
    assert (address["Status"], address["Bandwidth"]) == ("InUse", "100")
    assert shoot["status"]["networking"]["egressCIDRs"] == [f"{address['IpAddress']}/32"]
    (table,) = [
        each
        for each in sdk.list("DescribeRouteTableList", "RouterTableList", "RouterTableListType", VpcId=vpc)
        if each["RouteTableType"] == "Custom"
    ]
    hops = {
        entry["DestinationCidrBlock"]: entry["NextHops"]["NextHop"][0]["NextHopType"]
        for entry in sdk.entries(table["RouteTableId"], RouteEntryType="Custom")
    }
    assert hops == {"0.0.0.0/0": "NatGateway", "10.96.0.0/24": "Instance"}
    assert len(table["VSwitchIds"]["VSwitchId"]) == 1
    garden.removed("shape")
    assert inside(sdk, vpc) == EMPTY
    assert addresses(sdk, "shape") == []
    assert sdk.vpcs(VpcId=vpc)


def test_the_nodes_let_in_what_gardener_lets_in(garden: Garden, sdk: Sdk, vpc: str) -> None:
    garden.made(manifest("rules", vpc))
    (group,) = sdk.list("DescribeSecurityGroups", "SecurityGroups", "SecurityGroup", ECS, VpcId=vpc)
    one = {"SecurityGroupId": group["SecurityGroupId"]}

    def rules() -> set[tuple[str, str, str]]:
        found = sdk("DescribeSecurityGroupAttribute", ECS, **one)["Permissions"]["Permission"]
        return {(rule["IpProtocol"], rule["PortRange"], rule["SourceCidrIp"]) for rule in found}

    inside_vpc = {
        (protocol, ports, "10.0.0.0/16") for protocol in ("TCP", "UDP") for ports in ("1/22", "24/513", "515/65535")
    }
    wanted = {("TCP", "30000/32767", "0.0.0.0/0"), ("ALL", "-1/-1", "10.96.0.0/13"), *inside_vpc}
    assert rules() == wanted
    sdk("AuthorizeSecurityGroup", ECS, **one, IpProtocol="ALL", SourceCidrIp="172.16.0.0/12")
    garden.patch("rules", {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    garden.settled("rules")
    eventually(lambda: rules() == wanted)
    garden.removed("rules")


def test_a_neighbour_in_the_same_vpc_is_untouched_by_a_deletion(garden: Garden, sdk: Sdk, vpc: str) -> None:
    for index, name in enumerate(("one1", "one10")):
        garden.made(manifest(name, vpc, f"10.0.{4 * index}.0/22"))
    assert inside(sdk, vpc) == together("one1", "one10")
    garden.removed("one1")
    assert inside(sdk, vpc) == of_shoot("one10")
    assert [each["Status"] for each in addresses(sdk, "one10")] == ["InUse"]
    garden.removed("one10")
    assert inside(sdk, vpc) == EMPTY


def test_shoots_that_come_at_once_all_get_there(garden: Garden, sdk: Sdk, vpc: str) -> None:
    names = [f"crowd{index}" for index in range(5)]
    for index, name in enumerate(names):
        garden.create(manifest(name, vpc, f"10.0.{4 * index}.0/22"))
    for name in names:
        eventually(lambda name=name: garden.settled(name)["status"]["lastOperation"]["state"] == "Succeeded")  # type: ignore[misc]
    assert inside(sdk, vpc) == together(*names)
    for name in names:
        garden.delete(name)
    for name in names:
        eventually(lambda name=name: garden.is_gone(name))  # type: ignore[misc]
    assert inside(sdk, vpc) == EMPTY


def test_a_sixth_nat_gateway_is_one_too_many(garden: Garden, sdk: Sdk, server: Server, vpc: str) -> None:
    with server.having(quotas=QUOTAS | {"natgw_quota_nat_num_per_vpc": 0}):
        garden.create(manifest("full", vpc))
        codes, text = errors(failing(garden, "full"))
    assert "QuotaExceeded.NatGateway" in text
    assert "ERR_INFRA_QUOTA_EXCEEDED" in codes
    garden.removed("full")
    assert inside(sdk, vpc) == EMPTY


def test_a_vpc_that_is_not_there_is_told(garden: Garden) -> None:
    garden.create(manifest("lost", "vpc-none"))
    codes, text = errors(failing(garden, "lost"))
    assert codes == {"ERR_CONFIGURATION_PROBLEM"}
    assert 'networks.vpc.id: Not found: "vpc-none"' in text
    garden.removed("lost")


def test_a_range_that_is_taken_is_told_with_who_has_it(garden: Garden, sdk: Sdk, vpc: str) -> None:
    vswitch = sdk.vswitch(vpc, "10.0.1.0/24")
    garden.create(manifest("second", vpc))
    codes, text = errors(failing(garden, "second"))
    assert codes == {"ERR_CONFIGURATION_PROBLEM"}
    assert f"conflicts with existing vswitch {vswitch} (10.0.1.0/24) in VPC {vpc}" in text
    garden.removed("second")


def test_a_second_shoot_needs_a_route_table_of_its_own(garden: Garden, sdk: Sdk, vpc: str) -> None:
    garden.made(manifest("alone1", vpc))
    shared = {"vpc": {"id": vpc, "gardenerManagedNATGateway": True}}
    garden.create(manifest("alone2", vpc, "10.0.4.0/22", networks=shared))
    assert "useCustomRouteTable must be true" in errors(failing(garden, "alone2"))[1]
    for name in ("alone1", "alone2"):
        garden.removed(name)
    assert inside(sdk, vpc) == EMPTY


def test_a_nat_gateway_of_the_users_serves_the_shoot_and_stays(garden: Garden, sdk: Sdk, vpc: str) -> None:
    garden.create(manifest("shared", vpc, networks={"vpc": {"id": vpc}}))
    assert "no user natgateway found" in errors(failing(garden, "shared"))[1]
    nat = sdk.nat(vpc, sdk.vswitch(vpc, "10.0.8.0/24"), Name="mine")
    garden.patch("shared", {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})
    eventually(lambda: garden.shoot("shared")["status"]["lastOperation"]["state"] == "Succeeded")
    assert inside(sdk, vpc)["nats"] == ["mine"]
    assert inside(sdk, vpc)["tables"] == []
    (table,) = nat["SnatTableIds"]["SnatTableId"]
    assert len(sdk.list("DescribeSnatTableEntries", "SnatTableEntries", "SnatTableEntry", SnatTableId=table)) == 1
    system = sdk.entries(sdk.system_table(vpc), RouteEntryType="Custom")
    assert {entry["DestinationCidrBlock"] for entry in system} == {"0.0.0.0/0", "10.96.0.0/24"}
    garden.removed("shared")
    assert inside(sdk, vpc)["nats"] == ["mine"]
    assert sdk.list("DescribeSnatTableEntries", "SnatTableEntries", "SnatTableEntry", SnatTableId=table) == []


def test_an_address_of_the_users_is_used_and_set_free(garden: Garden, sdk: Sdk, vpc: str) -> None:
    allocation = sdk("AllocateEipAddress")["AllocationId"]
    zone = {"name": ZONE, "workers": "10.0.0.0/23", "natGateway": {"eipAllocationID": allocation}}
    shoot = garden.made(manifest("byoip", vpc, networks={"zones": [zone]}))
    address = sdk.eip_is(allocation, "InUse")["IpAddress"]
    assert shoot["status"]["networking"]["egressCIDRs"] == [f"{address}/32"]
    assert addresses(sdk, "byoip") == []
    garden.removed("byoip")
    assert sdk.eip_is(allocation, "Available")


def test_what_others_put_into_its_vswitch_holds_a_deletion_up(garden: Garden, sdk: Sdk, vpc: str) -> None:
    garden.made(manifest("held", vpc))
    (vswitch,) = sdk.list("DescribeVSwitches", "VSwitches", "VSwitch", VpcId=vpc)
    instance = sdk.instance(vswitch["VSwitchId"], sdk.group(vpc, SecurityGroupName="mine"))["InstanceId"]
    garden.delete("held")
    codes, text = errors(failing(garden, "held"))
    assert "DependencyViolation" in text
    assert codes == {"ERR_INFRA_DEPENDENCIES"}
    sdk("DeleteInstance", ECS, InstanceId=instance, Force="true")
    sdk.instance_is(instance, None)
    garden.patch("held", {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})
    eventually(lambda: garden.is_gone("held"))
    assert inside(sdk, vpc) == EMPTY | {"groups": ["mine"]}


def test_pools_and_zones_may_grow(garden: Garden, sdk: Sdk, vpc: str) -> None:
    wanted = manifest("grows", vpc, networking={"nodes": "10.0.0.0/16"})
    garden.made(wanted)
    provider = wanted["spec"]["provider"]
    zones = [*provider["infrastructureConfig"]["networks"]["zones"], {"name": f"{REGION}b", "workers": "10.0.8.0/24"}]
    worker = provider["workers"][0] | {"minimum": 3, "zones": [ZONE, f"{REGION}b"]}
    change = {"infrastructureConfig": {"networks": {"zones": zones}}, "workers": [worker]}
    assert garden.patch("grows", {"spec": {"provider": change}}).status_code == 200
    garden.settled("grows")
    tid = "shoot--trellis--grows-worker"
    assert inside(sdk, vpc)["machines"] == [f"{tid}-{ZONE}", f"{tid}-{ZONE}", f"{tid}-{REGION}b"]
    assert len(addresses(sdk, "grows")) == 2
    garden.removed("grows")
    assert inside(sdk, vpc) == EMPTY


def test_a_shoot_without_a_vpc_gets_one_and_takes_it_along(garden: Garden, sdk: Sdk) -> None:
    garden.made(manifest("ownvpc", None, networks={"vpc": {"cidr": "10.0.0.0/16"}}))
    (vpc,) = sdk.vpcs(VpcName="shoot--trellis--ownvpc-vpc")
    assert inside(sdk, vpc["VpcId"]) == of_shoot("ownvpc") | {"tables": []}
    garden.removed("ownvpc")
    assert sdk.vpcs(VpcId=vpc["VpcId"]) == []


def test_a_user_without_the_right_is_named_as_such(garden: Garden, server: Server, vpc: str) -> None:
    before = garden.api.get(SECRET)
    limited = server.key(permissions=["*:Describe*", "*:List*"])
    for data, wanted, said in (
        (limited, "ERR_INFRA_UNAUTHORIZED", "Forbidden.RAM"),
        (limited | {"accessKeyID": "LTAInobody"}, "ERR_INFRA_UNAUTHENTICATED", "InvalidAccessKeyId.NotFound"),
        (limited | {"accessKeySecret": "wrong"}, "ERR_INFRA_UNAUTHORIZED", "SignatureDoesNotMatch"),
        ({"accessKeyID": "", "accessKeySecret": ""}, None, 'missing "accessKeyID" field in secret'),
    ):
        encoded = {key: base64.b64encode(data[key].encode()).decode() for key in ("accessKeyID", "accessKeySecret")}
        garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps({"data": encoded}))
        garden.create(manifest("weak", vpc))
        codes, text = errors(failing(garden, "weak"))
        assert said in text
        assert wanted is None or wanted in codes
        garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps({"data": before["data"]}))
        garden.removed("weak")


def test_a_shoot_under_way_survives_a_kill(tmp_path: Path, server: Server, sdk: Sdk, vpc: str) -> None:
    garden = Garden(tmp_path / "garden", "http://127.0.0.1:1", "--alicloud-endpoint", server.url)
    garden.create(manifest("crash", vpc))
    eventually(lambda: inside(sdk, vpc)["vswitches"])
    garden.kill()
    garden.start()
    eventually(lambda: garden.settled("crash")["status"]["lastOperation"]["state"] == "Succeeded")
    assert inside(sdk, vpc) == of_shoot("crash")
    garden.removed("crash")
    assert garden.stop() == 0
    assert inside(sdk, vpc) == EMPTY


# --- who reaches whom ------------------------------------------------------------------------------------------------


class Cluster:
    """A shoot with a probe in it."""

    def __init__(self, garden: Garden, name: str, vpc: str, block: str, **changes: Any) -> None:
        garden.made(manifest(name, vpc, block, **changes))
        self.garden, self.name, self.api = garden, name, garden.inside(name)
        self.api.make(PODS, pod(f"on-{name}"))
        self.port = self.api.make(SERVICES, service())["spec"]["ports"][0]["nodePort"]
        self.address = str(running(self.api, f"on-{name}")["status"]["hostIP"])

    def reaches(self, other: Cluster) -> bool:
        query = {"host": other.address, "port": str(other.port), "request": "hostname", "protocol": "http", "tries": 1}
        answer = self.api("GET", f"{PODS}/on-{self.name}:8080/proxy/dial", params=query).json()
        assert answer.get("responses", [f"on-{other.name}"]) == [f"on-{other.name}"]
        return "responses" in answer

    def group(self, sdk: Sdk) -> dict[str, str]:
        name = f"shoot--trellis--{self.name}-sg"
        (group,) = sdk.list("DescribeSecurityGroups", "SecurityGroups", "SecurityGroup", ECS, SecurityGroupName=name)
        return {"SecurityGroupId": group["SecurityGroupId"]}

    def remove(self) -> None:
        self.api.close()
        self.garden.removed(self.name)


def test_shoots_in_one_vpc_reach_each_other_until_a_rule_drops_it(garden: Garden, sdk: Sdk, vpc: str) -> None:
    one = Cluster(garden, "near1", vpc, "10.0.0.0/22")
    two = Cluster(garden, "near2", vpc, "10.0.4.0/22")
    assert one.reaches(two)
    assert two.reaches(one)
    drop = {"IpProtocol": "TCP", "PortRange": "1/65535", "Policy": "Drop"}
    late = drop | {"SourceCidrIp": "10.0.0.0/23", "Priority": "2"}
    sdk("AuthorizeSecurityGroup", ECS, **two.group(sdk), **late)
    assert one.reaches(two), "the rule of the shoot comes first"
    equal = late | {"Priority": "1"}
    sdk("AuthorizeSecurityGroup", ECS, **two.group(sdk), **equal)
    assert not one.reaches(two), "among equals, what drops comes first"
    assert two.reaches(one)
    leaving = drop | {"DestCidrIp": "10.0.0.0/23", "Priority": "1"}
    sdk("AuthorizeSecurityGroupEgress", ECS, **two.group(sdk), **leaving)
    assert not two.reaches(one)
    sdk("RevokeSecurityGroupEgress", ECS, **two.group(sdk), **leaving)
    sdk("RevokeSecurityGroup", ECS, **two.group(sdk), **equal)
    assert one.reaches(two)
    assert two.reaches(one)
    one.remove()
    two.remove()


def test_vpcs_that_are_peered_reach_each_other_by_routes_on_both_sides(garden: Garden, sdk: Sdk) -> None:
    here, there = sdk.vpc("10.0.0.0/16"), sdk.vpc("10.1.0.0/16")
    one = Cluster(garden, "here1", here, "10.0.0.0/22")
    two = Cluster(garden, "there1", there, "10.1.0.0/22")
    assert not one.reaches(two)
    hop = {"NextHopType": "VpcPeer", "NextHopId": sdk.peered(here, there)}
    assert not one.reaches(two)
    for cluster, vpc, cidr in ((one, here, "10.1.0.0/16"), (two, there, "10.0.0.0/16")):
        assert not one.reaches(two), f"{cluster.name} has no route yet"
        (table,) = [
            each["RouteTableId"]
            for each in sdk.list("DescribeRouteTableList", "RouterTableList", "RouterTableListType", VpcId=vpc)
            if each["RouteTableType"] == "Custom"
        ]
        sdk("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock=cidr, **hop)
    assert one.reaches(two), "node ports are open to the world"
    assert two.reaches(one)
    sdk("DeleteVpcPeerConnection", "2022-01-01", InstanceId=hop["NextHopId"], Force="true")
    sdk.peering_is(hop["NextHopId"], None)
    assert not one.reaches(two)
    one.remove()
    two.remove()
