"""VPCs, vSwitches, route tables and NAT gateways, through the vendor's SDK."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.alicloud.server import ECS, QUOTAS, ZONE, Sdk, Server


def delete_vswitch(sdk: Sdk, vswitch: str) -> None:
    sdk("DeleteVSwitch", VSwitchId=vswitch)
    sdk.until("DescribeVSwitches", "VSwitches", "VSwitch", None, VSwitchId=vswitch)


# --- VPCs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cidr", ["10.0.0.0/7", "10.0.0.0/29", "10.0.0.1/16", "100.64.0.0/16", "224.0.0.0/8", "127.0.0.0/16", "nonsense"]
)
def test_a_range_that_no_vpc_can_have_is_refused(sdk: Sdk, cidr: str) -> None:
    assert sdk.refused("CreateVpc", CidrBlock=cidr) == (400, "InvalidParameter")


def test_a_vpc_brings_its_system_route_table_which_goes_with_it(sdk: Sdk) -> None:
    made = sdk("CreateVpc", CidrBlock="10.0.0.0/16")
    vpc, table = made["VpcId"], made["RouteTableId"]
    sdk.until("DescribeVpcs", "Vpcs", "Vpc", "Available", VpcId=vpc)
    assert sdk.system_table(vpc) == table
    assert sdk.refused("DeleteRouteTable", RouteTableId=table) == (400, "OperationDenied")
    sdk("DeleteVpc", VpcId=vpc)
    sdk.table_is(table, None)
    assert sdk.refused("DeleteVpc", VpcId=vpc) == (404, "InvalidVpcId.NotFound")


def test_ten_vpcs_are_the_default(server: Server, sdk: Sdk) -> None:
    sdk = server.sdk(region="us-west-1")
    for _ in range(10):
        sdk("CreateVpc", CidrBlock="10.0.0.0/16")
    assert sdk.refused("CreateVpc", CidrBlock="10.0.0.0/16") == (400, "QuotaExceeded.Vpc")


def test_a_vpc_gets_further_ranges_one_after_the_other(sdk: Sdk, server: Server, vpc: str) -> None:
    with server.having(operation_seconds_by_verb={"AssociateVpcCidrBlock": 3600}):
        sdk("AssociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.1.0.0/16")
    refused = sdk.refused("AssociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.2.0.0/16")
    assert refused == (400, "IncorrectStatus.Vpc")


def test_further_ranges_are_five_and_apart(sdk: Sdk, vpc: str) -> None:
    for index in range(1, 6):
        sdk("AssociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock=f"10.{index}.0.0/16")
        sdk.until("DescribeVpcs", "Vpcs", "Vpc", "Available", VpcId=vpc)
    refused = sdk.refused("AssociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.9.0.0/16")
    assert refused == (400, "QuotaExceeded.SecondaryCidrNum")
    sdk("UnassociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.5.0.0/16")
    sdk.until("DescribeVpcs", "Vpcs", "Vpc", "Available", VpcId=vpc)
    for taken in ("10.0.4.0/24", "10.0.0.0/8", "10.3.0.0/24"):
        refused = sdk.refused("AssociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock=taken)
        assert refused == (400, "InvalidParameter")
    assert sdk.refused("UnassociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.5.0.0/16")[1] == (
        "OperationFailed.CidrNotExist"
    )
    sdk.vswitch(vpc, "10.4.0.0/24")
    assert sdk.refused("UnassociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.4.0.0/16")[1] == (
        "OperationFailed.CidrInUse"
    )


def test_name_and_description_can_be_changed(sdk: Sdk, vpc: str) -> None:
    sdk("ModifyVpcAttribute", VpcId=vpc, VpcName="new", Description="why")
    found = sdk("DescribeVpcAttribute", VpcId=vpc)
    assert (found["VpcName"], found["Description"]) == ("new", "why")
    assert sdk.refused("ModifyVpcAttribute", VpcId=vpc, VpcName="http://x")[1] == "InvalidVpcName.Malformed"


def test_what_is_inside_is_counted(sdk: Sdk, vpc: str, nat: Any) -> None:
    sdk.group(vpc)
    found = sdk("DescribeVpcAttribute", VpcId=vpc)["CloudResources"]["CloudResourceSetType"]
    assert {each["ResourceType"]: each["ResourceCount"] for each in found} == {
        "VRouter": 1,
        "VSwitch": 1,
        "RouteTable": 1,
        "NatGateway": 1,
        "SecurityGroup": 1,
    }
    (listed,) = sdk.vpcs(VpcId=vpc)
    assert listed["NatGatewayIds"]["NatGatewayIds"] == [nat["NatGatewayId"]]


@pytest.mark.parametrize("inside", ["VSwitch", "SecurityGroup", "RouteTable", "RouteEntry", "VpcPeer"])
def test_a_vpc_with_something_inside_stays(sdk: Sdk, vpc: str, inside: str) -> None:
    match inside:
        case "VSwitch":
            sdk.vswitch(vpc)
        case "SecurityGroup":
            sdk.group(vpc)
        case "RouteTable":
            sdk.table(vpc)
        case "RouteEntry":
            sdk.peered(vpc, sdk.vpc("10.9.0.0/16"), route=True)
        case _:
            sdk.peered(sdk.vpc("10.9.0.0/16"), vpc)
    assert sdk.refused("DeleteVpc", VpcId=vpc) == (400, f"DependencyViolation.{inside}")


def test_what_was_removed_a_moment_ago_still_counts(sdk: Sdk, server: Server, vpc: str, vswitch: str) -> None:
    with server.having(operation_seconds_by_verb={"Settling": 3600}):
        delete_vswitch(sdk, vswitch)
    assert sdk.refused("DeleteVpc", VpcId=vpc) == (400, "DependencyViolation.VSwitch")


# --- vSwitches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cidr", "code"),
    [
        ("10.0.0.0/15", "InvalidCirdrBlock.MaskLength"),
        ("10.0.0.0/30", "InvalidCirdrBlock.MaskLength"),
        ("10.0.0.1/24", "InvalidCidrBlock.Malformed"),
        ("10.1.0.0/24", "InvalidParameter"),
        ("10.0.0.128/25", "InvalidCidrBlock.Overlapped"),
        ("10.0.0.0/16", "InvalidCidrBlock.Overlapped"),
    ],
)
def test_a_range_that_no_vswitch_can_have_is_refused(sdk: Sdk, vpc: str, vswitch: str, cidr: str, code: str) -> None:
    assert vswitch
    assert sdk.refused("CreateVSwitch", VpcId=vpc, CidrBlock=cidr, ZoneId=ZONE) == (400, code)


def test_a_vswitch_is_in_a_zone_of_its_region(sdk: Sdk, vpc: str) -> None:
    refused = sdk.refused("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.0.0/24", ZoneId="us-east-1a")
    assert refused == (404, "InvalidZoneId.NotFound")


def test_vswitches_of_one_vpc_are_made_one_after_the_other(sdk: Sdk, server: Server, vpc: str) -> None:
    with server.having(operation_seconds_by_verb={"CreateVSwitch": 3600}):
        sdk("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.0.0/24", ZoneId=ZONE)
    refused = sdk.refused("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.1.0/24", ZoneId=ZONE)
    assert refused == (400, "TaskConflict")


def test_the_quota_of_vswitches_counts_in_one_vpc(sdk: Sdk, server: Server, vpc: str, vswitch: str) -> None:
    assert vswitch
    with server.having(quotas=QUOTAS | {"vpc_quota_vswitches_num": 1}):
        refused = sdk.refused("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.1.0/24", ZoneId=ZONE)
        assert refused == (400, "QuotaExceeded.VSwitch")


def test_four_addresses_of_a_vswitch_are_reserved(sdk: Sdk, vpc: str) -> None:
    vswitch, group = sdk.vswitch(vpc, "10.0.0.0/29"), sdk.group(vpc)
    assert sdk("DescribeVSwitchAttributes", VSwitchId=vswitch)["AvailableIpAddressCount"] == 4
    addresses = [sdk.instance(vswitch, group)["VpcAttributes"]["PrivateIpAddress"]["IpAddress"][0] for _ in range(4)]
    assert addresses == ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
    assert sdk("DescribeVSwitchAttributes", VSwitchId=vswitch)["AvailableIpAddressCount"] == 0
    wanted = {"ImageId": "m-1", "InstanceType": "ecs.g7.large", "VSwitchId": vswitch, "SecurityGroupId": group}
    assert sdk.refused("RunInstances", ECS, **wanted) == (403, "InvalidVSwitchId.IpNotEnough")


def test_a_vswitch_with_a_nat_gateway_or_an_instance_stays(sdk: Sdk, vpc: str, nat: Any) -> None:
    vswitch = nat["NatGatewayPrivateInfo"]["VswitchId"]
    assert sdk.refused("DeleteVSwitch", VSwitchId=vswitch) == (400, "DependencyViolation.EnhancedNatgw")
    other = sdk.vswitch(vpc, "10.0.1.0/24")
    instance = sdk.instance(other, sdk.group(vpc))["InstanceId"]
    assert sdk.refused("DeleteVSwitch", VSwitchId=other) == (400, "DependencyViolation")
    sdk("DeleteInstance", ECS, InstanceId=instance, Force="true")
    sdk.instance_is(instance, None)


# --- route tables --------------------------------------------------------------------------------------------------


def test_nine_custom_route_tables_are_the_default(sdk: Sdk, vpc: str) -> None:
    for _ in range(9):
        sdk.table(vpc)
    assert sdk.refused("CreateRouteTable", VpcId=vpc) == (400, "QuotaExceeded.RouteTable")


def test_a_vswitch_has_one_custom_table_at_most(sdk: Sdk, vpc: str, vswitch: str) -> None:
    one, two = sdk.table(vpc), sdk.table(vpc)
    sdk("AssociateRouteTable", RouteTableId=one, VSwitchId=vswitch)
    sdk.table_is(one, "Available")
    route_table = sdk("DescribeVSwitchAttributes", VSwitchId=vswitch)["RouteTable"]
    assert route_table == {"RouteTableId": one, "RouteTableType": "Custom"}
    assert sdk.refused("AssociateRouteTable", RouteTableId=two, VSwitchId=vswitch)[0] == 400
    assert sdk.refused("DeleteRouteTable", RouteTableId=one) == (400, "DependencyViolation.VSwitch")
    sdk("UnassociateRouteTable", RouteTableId=one, VSwitchId=vswitch)
    sdk.table_is(one, "Available")
    sdk("DeleteRouteTable", RouteTableId=one)
    sdk.table_is(one, None)
    assert sdk("DescribeVSwitchAttributes", VSwitchId=vswitch)["RouteTable"]["RouteTableType"] == "System"


def test_a_deleted_vswitch_leaves_its_table(sdk: Sdk, vpc: str, vswitch: str) -> None:
    table = sdk.table(vpc)
    sdk("AssociateRouteTable", RouteTableId=table, VSwitchId=vswitch)
    sdk.table_is(table, "Available")
    delete_vswitch(sdk, vswitch)
    assert sdk.table_is(table, "Available")["VSwitchIds"]["VSwitchId"] == []


def test_entries_lead_to_what_is_there(sdk: Sdk, vpc: str, nat: Any) -> None:
    table = sdk.table(vpc)
    hop = {"NextHopType": "NatGateway", "NextHopId": nat["NatGatewayId"]}
    entry = sdk("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **hop)["RouteEntryId"]
    refused = sdk.refused("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **hop)
    assert refused == (400, "InvalidCIDRBlock.Duplicate")
    for cidr in ("10.0.0.0/24", "10.0.0.0/25", "100.64.1.0/24"):
        refused = sdk.refused("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock=cidr, **hop)
        assert refused == (400, "InvalidCidrBlock")
    nowhere = {"NextHopType": "NatGateway", "NextHopId": "ngw-none"}
    refused = sdk.refused("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="1.0.0.0/8", **nowhere)
    assert refused == (404, "InvalidNextHopId.NotFound")
    listed = "DescribeRouteEntryList", "RouteEntrys", "RouteEntry"
    sdk.until(*listed, "Available", RouteTableId=table, RouteEntryId=entry)
    destinations = [each["DestinationCidrBlock"] for each in sdk.entries(table)]
    assert destinations == ["0.0.0.0/0", "10.0.0.0/24", "100.64.0.0/10"]
    assert sdk.refused("DeleteRouteTable", RouteTableId=table) == (400, "DependencyViolation.RouteEntry")
    sdk("DeleteRouteEntry", RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NextHopId=nat["NatGatewayId"])
    sdk.until(*listed, None, RouteTableId=table, RouteEntryType="Custom")
    assert sdk.refused("DeleteRouteEntry", RouteEntryId=entry) == (404, "InvalidRouteEntry.NotFound")


def test_the_quota_of_entries_counts_in_one_table(sdk: Sdk, server: Server, vpc: str, nat: Any) -> None:
    table = sdk.table(vpc)
    hop = {"NextHopType": "NatGateway", "NextHopId": nat["NatGatewayId"]}
    with server.having(quotas=QUOTAS | {"vpc_quota_route_entrys_num": 1}):
        sdk("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="1.0.0.0/8", **hop)
        refused = sdk.refused("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="2.0.0.0/8", **hop)
        assert refused == (400, "QuotaExceeded")


def test_a_vswitch_may_not_swallow_a_route(sdk: Sdk, vpc: str, nat: Any) -> None:
    table = sdk.table(vpc)
    hop = {"NextHopType": "NatGateway", "NextHopId": nat["NatGatewayId"]}
    sdk("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="10.0.9.0/25", **hop)
    refused = sdk.refused("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.9.0/24", ZoneId=ZONE)
    assert refused == (400, "InvalidCidrBlock.Overlapped")


def test_the_routes_to_an_instance_go_with_it(sdk: Sdk, vpc: str, vswitch: str) -> None:
    table = sdk.table(vpc)
    instance = sdk.instance(vswitch, sdk.group(vpc))["InstanceId"]
    hop = {"NextHopType": "Instance", "NextHopId": instance}
    sdk("CreateRouteEntry", RouteTableId=table, DestinationCidrBlock="10.96.0.0/24", **hop)
    sdk("DeleteInstance", ECS, InstanceId=instance, Force="true")
    sdk.instance_is(instance, None)
    assert sdk.entries(table, RouteEntryType="Custom") == []


# --- NAT gateways, addresses, SNAT ---------------------------------------------------------------------------------


def test_the_first_nat_gateway_gets_the_default_route_of_the_system_table(sdk: Sdk, vpc: str, nat: Any) -> None:
    sdk.nat(vpc, sdk.vswitch(vpc, "10.0.1.0/24"))
    table = sdk.system_table(vpc)
    (entry,) = sdk.entries(table, DestinationCidrBlock="0.0.0.0/0")
    assert entry["NextHops"]["NextHop"][0]["NextHopId"] == nat["NatGatewayId"]
    sdk("DeleteNatGateway", NatGatewayId=nat["NatGatewayId"])
    sdk.until("DescribeNatGateways", "NatGateways", "NatGateway", None, NatGatewayId=nat["NatGatewayId"])
    assert sdk.entries(table, DestinationCidrBlock="0.0.0.0/0") == []


def test_five_nat_gateways_of_a_vpc_are_the_default(sdk: Sdk, vpc: str, vswitch: str) -> None:
    for _ in range(5):
        sdk("CreateNatGateway", VpcId=vpc, VSwitchId=vswitch, NatType="Enhanced")
    refused = sdk.refused("CreateNatGateway", VpcId=vpc, VSwitchId=vswitch, NatType="Enhanced")
    assert refused == (400, "QuotaExceeded.NatGateway")


def test_a_nat_gateway_is_enhanced_and_in_a_vswitch_of_its_vpc(sdk: Sdk, vpc: str, vswitch: str) -> None:
    refused = sdk.refused("CreateNatGateway", VpcId=vpc, VSwitchId=vswitch, NatType="Normal")
    assert refused == (400, "InvalidParameter.NatType")
    refused = sdk.refused("CreateNatGateway", VpcId=sdk.vpc(), VSwitchId=vswitch, NatType="Enhanced")
    assert refused == (404, "InvalidVSwitchId.NotFound")


def test_snat_needs_an_address_of_the_gateway(sdk: Sdk, nat: Any) -> None:
    (table,) = nat["SnatTableIds"]["SnatTableId"]
    vswitch = nat["NatGatewayPrivateInfo"]["VswitchId"]
    refused = sdk.refused("CreateSnatEntry", SnatTableId=table, SourceVSwitchId=vswitch, SnatIp="1.2.3.4")
    assert refused == (404, "InvalidSnatIp.NotFound")
    eip = sdk.eip(nat)
    entry = sdk("CreateSnatEntry", SnatTableId=table, SourceVSwitchId=vswitch, SnatIp=eip["IpAddress"])["SnatEntryId"]
    refused = sdk.refused("CreateSnatEntry", SnatTableId=table, SourceVSwitchId=vswitch, SnatIp=eip["IpAddress"])
    assert refused == (400, "Forbidden.SourceVSwitchId.Duplicated")
    shown = sdk.until("DescribeSnatTableEntries", "SnatTableEntries", "SnatTableEntry", "Available", SnatTableId=table)
    assert (shown["SnatEntryId"], shown["SourceCIDR"]) == (entry, "10.0.0.0/24")
    (gateway,) = sdk.list("DescribeNatGateways", "NatGateways", "NatGateway", NatGatewayId=nat["NatGatewayId"])
    assert gateway["IpLists"]["IpList"][0]["UsingStatus"] == "UsedBySnatTable"
    # In order only: entry, address, gateway.
    assert sdk.refused("UnassociateEipAddress", AllocationId=eip["AllocationId"])[1] == (
        "InvalidIpStatus.HasBeenUsedBySnatTable"
    )
    assert sdk.refused("DeleteNatGateway", NatGatewayId=nat["NatGatewayId"])[1] == "DependencyViolation.SnatEntry"
    sdk("DeleteSnatEntry", SnatTableId=table, SnatEntryId=entry)
    sdk.until("DescribeSnatTableEntries", "SnatTableEntries", "SnatTableEntry", None, SnatTableId=table)
    assert sdk.refused("DeleteNatGateway", NatGatewayId=nat["NatGatewayId"])[1] == "DependencyViolation.EIPS"
    assert sdk.refused("ReleaseEipAddress", AllocationId=eip["AllocationId"]) == (400, "IncorrectEipStatus")
    sdk("UnassociateEipAddress", AllocationId=eip["AllocationId"], InstanceId=nat["NatGatewayId"])
    sdk.eip_is(eip["AllocationId"], "Available")
    sdk("ReleaseEipAddress", AllocationId=eip["AllocationId"])
    sdk.eip_is(eip["AllocationId"], None)


def test_a_forced_deletion_of_a_nat_gateway_sets_its_addresses_free(sdk: Sdk, nat: Any) -> None:
    eip = sdk.eip(nat)
    (table,) = nat["SnatTableIds"]["SnatTableId"]
    vswitch = nat["NatGatewayPrivateInfo"]["VswitchId"]
    sdk("CreateSnatEntry", SnatTableId=table, SourceVSwitchId=vswitch, SnatIp=eip["IpAddress"])
    sdk("DeleteNatGateway", NatGatewayId=nat["NatGatewayId"], Force="true")
    sdk.until("DescribeNatGateways", "NatGateways", "NatGateway", None, NatGatewayId=nat["NatGatewayId"])
    assert sdk.eip_is(eip["AllocationId"], "Available")["InstanceId"] == ""
    assert sdk.refused("DescribeSnatTableEntries", SnatTableId=table) == (404, "InvalidSnatTableId.NotFound")


def test_addresses_are_limited_and_can_be_changed(server: Server, sdk: Sdk) -> None:
    with server.having(quotas={"eip_quota_num": 0}):
        assert sdk.refused("AllocateEipAddress") == (400, "QuotaExceeded.Eip")
    assert sdk.refused("AllocateEipAddress", InternetChargeType="Free") == (400, "InvalidParameter")
    made = sdk("AllocateEipAddress", Bandwidth=100, InternetChargeType="PayByTraffic", Name="n")
    sdk("ModifyEipAddressAttribute", AllocationId=made["AllocationId"], Bandwidth=50)
    found = sdk.eip_is(made["AllocationId"], "Available")
    assert (found["Bandwidth"], found["Name"], found["IpAddress"]) == ("50", "n", made["EipAddress"])
