"""What shoots become in the cloud, with boto3 as the witness."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.aws.server import REGION, by, make_group, make_subnet
from tests.sandbox.garden.garden_server import EMPTY, SHOOTS, Cloud, Garden, eventually, inside_vpc, manifest


def attached(vpc: str) -> list[dict[str, Any]]:
    return [{"Name": "attachment.vpc-id", "Values": [vpc]}]


FORCE = {"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}}


def errors(shoot: dict[str, Any]) -> tuple[set[str], str]:
    found = shoot["status"]["lastErrors"]
    return {code for each in found for code in each.get("codes", [])}, found[0]["description"]


def test_a_shoot_gets_its_subnets_gateway_routes_group_and_machine(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    shoot = garden.made(manifest("shape", vpc))
    tid = "shoot--trellis--shape"
    assert shoot["status"]["technicalID"] == tid
    names = cloud.names(vpc)
    assert tid in names["route tables"]
    assert {f"{tid}-eip-natgw-z0"} <= set(names["addresses"])
    assert inside_vpc(names) == {
        "subnets": [f"{tid}-nodes-z0", f"{tid}-private-utility-z0", f"{tid}-public-utility-z0"],
        "route tables": [tid, f"{tid}-private-{REGION}a"],
        "NAT gateways": [f"{tid}-natgw-z0"],
        "security groups": [f"{tid}-nodes"],
        "instances": [f"{tid}-worker"],
    }
    own = by(tag_key=f"kubernetes.io/cluster/{tid}")
    tables = {len(each["Associations"]): each for each in cloud.ec2.describe_route_tables(Filters=own)["RouteTables"]}
    assert any(route.get("NatGatewayId") for route in tables[2]["Routes"]), "workers and internal go out by NAT"
    assert any(route.get("GatewayId", "").startswith("igw-") for route in tables[1]["Routes"])
    networking = shoot["status"]["networking"]
    assert networking["nodes"] == ["10.0.0.0/23"]
    assert networking["egressCIDRs"][0].endswith("/32")
    garden.removed("shape")


def test_a_shoot_takes_away_only_its_own(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    make_subnet(cloud.ec2, vpc, "10.0.252.0/24")
    make_group(cloud.ec2, vpc, "foreign")
    before = cloud.names(vpc)
    garden.made(manifest("stays", vpc, "10.0.0.0/22"))
    alone = cloud.names(vpc)
    garden.made(manifest("goes", vpc, "10.0.4.0/22"))
    garden.removed("goes")
    assert cloud.names(vpc) == alone
    garden.removed("stays")
    assert cloud.names(vpc) == before
    gateways = cloud.ec2.describe_internet_gateways(Filters=attached(vpc))["InternetGateways"]
    assert len(gateways) == 1


def test_without_the_confirmation_nothing_is_deleted(garden: Garden, cloud: Cloud) -> None:
    garden.made(manifest("kept", cloud.vpc()))
    refused = garden.api("DELETE", f"{SHOOTS}/kept")
    assert refused.status_code == 403
    assert refused.json()["message"] == (
        'shoots.core.gardener.cloud "kept" is forbidden: '
        'must have a "confirmation.gardener.cloud/deletion" annotation to delete'
    )
    assert "deletionTimestamp" not in garden.shoot("kept")["metadata"]
    garden.removed("kept")


def test_a_taken_range_fails_with_both_of_gardeners_codes_and_is_not_tried_again(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    subnet = make_subnet(cloud.ec2, vpc, "10.0.0.0/24")
    garden.create(manifest("late", vpc))
    failed = garden.settled("late")
    assert failed["status"]["lastOperation"]["type"] == "Create"
    assert failed["status"]["lastOperation"]["state"] == "Failed"
    assert failed["metadata"]["labels"]["shoot.gardener.cloud/status"] == "unhealthy"
    codes, text = errors(failed)
    assert codes == {"ERR_INFRA_DEPENDENCIES", "ERR_CONFIGURATION_PROBLEM"}
    assert "InvalidSubnet.Conflict" in text
    cloud.ec2.delete_subnet(SubnetId=subnet)
    retry = {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}}
    asked = garden.patch("late", retry).json()
    assert asked["metadata"]["generation"] == failed["metadata"]["generation"] + 1
    assert "gardener.cloud/operation" not in asked["metadata"].get("annotations", {})
    healed = garden.settled("late")
    assert healed["status"]["lastOperation"]["state"] == "Succeeded"
    assert "lastErrors" not in healed["status"]
    garden.removed("late")


@pytest.mark.parametrize(
    ("name", "flaw", "message"),
    [
        ("nodns", "hostnames", "VPC attribute enableDnsHostnames must be set to true"),
        ("nogate", "gateway", "no attached internet gateway found (required when Gardener manages public subnets)"),
        ("nodomain", "domain", "invalid domain-name specified in DHCP options used by VPC: example.org"),
        ("noservers", "servers", "missing DhcpConfiguration 'domain-name-servers'='AmazonProvidedDNS'"),
        ("noroom", "range", 'subnet CIDR "10.0.0.0/23" is not contained in any of the VPC\'s associated CIDR blocks'),
        ("novpc", "vpc", 'networks.vpc.id: Not found: "vpc-0123456789abcdef0"'),
    ],
)
def test_a_vpc_that_will_not_do_is_refused_by_the_seed(
    garden: Garden, cloud: Cloud, name: str, flaw: str, message: str
) -> None:
    vpc = cloud.vpc("10.9.0.0/16" if flaw == "range" else "10.0.0.0/16")
    match flaw:
        case "hostnames":
            cloud.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": False})
        case "gateway":
            gateway = cloud.ec2.describe_internet_gateways(Filters=attached(vpc))["InternetGateways"][0]
            cloud.ec2.detach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=vpc)
        case "domain":
            cloud.give_options(vpc, domain="example.org")
        case "servers":
            cloud.give_options(vpc, domain=f"{REGION}.compute.internal", servers="10.0.0.2")
    garden.create(manifest(name, "vpc-0123456789abcdef0" if flaw == "vpc" else vpc))
    shoot = garden.settled(name)
    codes, text = errors(shoot)
    assert message in text
    # What the flow finds by itself has no code of its own, and is tried again.
    assert codes == (set() if flaw == "servers" else {"ERR_CONFIGURATION_PROBLEM"})
    assert shoot["status"]["lastOperation"]["state"] == ("Error" if flaw == "servers" else "Failed")
    assert inside_vpc(cloud.names(vpc)) == EMPTY
    garden.removed(name)


def test_what_others_put_into_the_subnets_stops_the_deletion_until_it_is_gone(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    garden.made(manifest("blocked", vpc))
    subnet = cloud.ec2.describe_subnets(Filters=by(vpc_id=vpc, cidr_block="10.0.0.0/23"))["Subnets"][0]["SubnetId"]
    interface = cloud.ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    garden.delete("blocked")
    shoot = eventually(lambda: garden.shoot("blocked")["status"].get("lastErrors") and garden.shoot("blocked"))
    assert shoot["status"]["lastOperation"]["type"] == "Delete"
    assert shoot["status"]["lastOperation"]["state"] == "Failed"
    codes, text = errors(shoot)
    assert codes == {"ERR_INFRA_DEPENDENCIES"}
    assert "DependencyViolation" in text
    cloud.ec2.delete_network_interface(NetworkInterfaceId=interface)
    garden.patch("blocked", {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})
    eventually(lambda: garden.is_gone("blocked"))
    assert inside_vpc(cloud.names(vpc)) == EMPTY


def test_force_deletion_needs_an_error_and_leaves_the_cloud_as_it_is(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    garden.made(manifest("forced", vpc))
    early = garden.patch("forced", FORCE)
    assert early.status_code == 422
    assert "cannot be set when Shoot deletionTimestamp is nil" in early.json()["message"]
    failure = {"name_pattern": "forced", "operation": "delete", "codes": ["ERR_INFRA_UNAUTHORIZED"], "times": 9}
    with garden.having(fail=[failure]):
        garden.delete("forced")
        eventually(lambda: garden.shoot("forced")["status"].get("lastErrors"))
        before = cloud.names(vpc)
        assert garden.patch("forced", FORCE).status_code == 200
        eventually(lambda: garden.is_gone("forced"))
    assert cloud.names(vpc) == before
    assert len(before["subnets"]) == 3


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("ERR_INFRA_RATE_LIMITS_EXCEEDED", "Failed"),
        ("ERR_INFRA_QUOTA_EXCEEDED", "Failed"),
        ("ERR_INFRA_RESOURCES_DEPLETED", "Error"),
        ("ERR_RETRYABLE_INFRA_DEPENDENCIES", "Error"),
    ],
)
def test_only_what_gardener_retries_comes_back_by_itself(garden: Garden, cloud: Cloud, code: str, state: str) -> None:
    name = f"x{code[-6:].lower().replace('_', '')}"
    failure = {"name_pattern": name, "codes": [code], "message": "told to", "times": 1}
    with garden.having(fail=[failure], retry_seconds=0.5):
        garden.create(manifest(name, cloud.vpc()))
        shoot = garden.settled(name)
        assert shoot["status"]["lastOperation"]["state"] == state
        assert errors(shoot)[0] == {code}
        if state == "Failed":
            garden.patch(name, {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})
        eventually(lambda: garden.shoot(name)["status"]["lastOperation"]["state"] == "Succeeded")
    garden.removed(name)


def test_reconcile_takes_back_foreign_rules_and_keeps_foreign_routes(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    garden.made(manifest("mended", vpc))
    tid = "shoot--trellis--mended"
    group = cloud.ec2.describe_security_groups(Filters=by(group_name=f"{tid}-nodes"))["SecurityGroups"][0]
    foreign = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}]
    cloud.ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=foreign)
    own = [each for each in group["IpPermissions"] if each["IpProtocol"] == "udp"]
    cloud.ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=own)
    table = cloud.ec2.describe_route_tables(Filters=[{"Name": "tag:Name", "Values": [tid]}])["RouteTables"][0]
    gateway = next(route["GatewayId"] for route in table["Routes"] if route.get("GatewayId", "").startswith("igw-"))
    cloud.ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="192.0.2.0/24", GatewayId=gateway)
    garden.patch("mended", {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    shoot = garden.settled("mended")
    assert shoot["status"]["lastOperation"]["type"] == "Reconcile"
    after = cloud.ec2.describe_security_groups(GroupIds=[group["GroupId"]])["SecurityGroups"][0]
    assert _ports(after) == _ports(group)
    routes = cloud.ec2.describe_route_tables(RouteTableIds=[table["RouteTableId"]])["RouteTables"][0]["Routes"]
    assert "192.0.2.0/24" in {route["DestinationCidrBlock"] for route in routes}
    garden.removed("mended")


def _ports(group: dict[str, Any]) -> list[tuple[str, int | None]]:
    return sorted((each["IpProtocol"], each.get("FromPort")) for each in group["IpPermissions"])


def test_a_security_group_of_the_owner_is_used_and_left(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    group = make_group(cloud.ec2, vpc, "owner")
    garden.made(manifest("byo", vpc, networks={"nodesSecurityGroupID": group}))
    interfaces = cloud.ec2.describe_network_interfaces(Filters=by(group_id=group))["NetworkInterfaces"]
    assert [each["Attachment"]["InstanceId"] for each in interfaces if each.get("Attachment")]
    garden.removed("byo")
    assert cloud.names(vpc)["security groups"] == [group]


def test_a_shoot_without_a_vpc_gets_one_and_takes_it_along(garden: Garden, cloud: Cloud) -> None:
    own = manifest("ownvpc", "")
    own["spec"]["provider"]["infrastructureConfig"]["networks"]["vpc"] = {"cidr": "10.0.0.0/16"}
    garden.made(own)
    named = [{"Name": "tag:Name", "Values": ["shoot--trellis--ownvpc"]}]
    assert len(cloud.ec2.describe_vpcs(Filters=named)["Vpcs"]) == 1
    garden.removed("ownvpc")
    assert cloud.ec2.describe_vpcs(Filters=named)["Vpcs"] == []


def test_a_shoot_deleted_in_the_midst_of_its_creation_goes_without_trace(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    with garden.having(shoot_seconds=30.0):
        garden.create(manifest("hasty", vpc))
        eventually(lambda: garden.shoot("hasty").get("status", {}).get("lastOperation", {}).get("progress", 0) >= 65)
        assert cloud.names(vpc)["subnets"]
        garden.removed("hasty")
    assert inside_vpc(cloud.names(vpc)) == EMPTY


def test_zones_may_be_added_and_pools_may_grow(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    wanted = manifest("grows", vpc, "10.0.0.0/20")
    wanted["spec"]["networking"]["nodes"] = "10.0.0.0/19"
    garden.made(wanted)
    networks = wanted["spec"]["provider"]["infrastructureConfig"]["networks"]
    more = {"name": f"{REGION}b", "workers": "10.0.16.0/23", "public": "10.0.18.0/24", "internal": "10.0.19.0/24"}
    zones = [*networks["zones"], more]
    worker = wanted["spec"]["provider"]["workers"][0] | {"zones": [f"{REGION}a", f"{REGION}b"], "minimum": 3}
    spec = {"provider": {"infrastructureConfig": {"networks": {"zones": zones}}, "workers": [worker]}}
    assert garden.patch("grows", {"spec": spec}).status_code == 200
    assert garden.settled("grows")["status"]["lastOperation"]["type"] == "Reconcile"
    names = cloud.names(vpc)
    assert [len(names[kind]) for kind in ("subnets", "NAT gateways", "instances")] == [6, 2, 3]
    garden.removed("grows")
    assert inside_vpc(cloud.names(vpc)) == EMPTY


def test_after_a_crash_every_operation_is_finished(tmp_path: Path, cloud: Cloud) -> None:
    garden = Garden(tmp_path / "garden", cloud.server.url, "--shoot-seconds", "1")
    vpc = cloud.vpc()
    for index in range(4):
        garden.create(manifest(f"crash{index}", vpc, f"10.0.{4 * index}.0/22"))
    eventually(lambda: len(cloud.names(vpc)["subnets"]) >= 4)
    garden.kill()
    garden.start()
    for index in range(4):
        assert garden.settled(f"crash{index}")["status"]["lastOperation"]["state"] == "Succeeded"
    names = cloud.names(vpc)
    assert [len(names[kind]) for kind in ("subnets", "NAT gateways", "instances", "security groups")] == [12, 4, 4, 4]
    for index in range(4):
        garden.delete(f"crash{index}")
    eventually(lambda: len(cloud.names(vpc)["subnets"]) < 12)
    garden.kill()
    garden.start()
    eventually(lambda: all(garden.is_gone(f"crash{index}") for index in range(4)))
    assert inside_vpc(cloud.names(vpc)) == EMPTY
    assert garden.stop() == 0


def test_settings_that_cannot_be_are_refused(garden: Garden) -> None:
    refused = garden.api("PUT", "/sandbox/settings", {"shoot_secs": 1})
    assert refused.status_code == 422
    assert "shoot_secs" in json.dumps(refused.json())
