"""What EC2 demands of VPCs, subnets and gateways and moto does not, seen by boto3."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.aws.server import (
    QUICK,
    SLOW,
    Server,
    by,
    make_gateway,
    make_group,
    make_nat,
    make_options,
    make_subnet,
    make_vpc,
    nat_state,
    peer,
    peering_status,
    refusal,
    tags,
)


class TestVpcs:
    def test_a_new_vpc_is_pending_before_it_is_available(self, server: Server, ec2: Any) -> None:
        with server.having(delays=SLOW):
            vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
            assert vpc["State"] == "pending"
            assert ec2.describe_vpcs(VpcIds=[vpc["VpcId"]])["Vpcs"][0]["State"] == "pending"
        with server.having(delays=QUICK):
            vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
            assert vpc["State"] == "pending"
            assert ec2.describe_vpcs(VpcIds=[vpc["VpcId"]])["Vpcs"][0]["State"] == "available"

    def test_the_waiter_of_boto3_sees_the_vpc_become_available(self, server: Server, ec2: Any) -> None:
        with server.having(delays={"vpc_pending": 0.2}):
            vpc = make_vpc(ec2)
            ec2.get_waiter("vpc_available").wait(VpcIds=[vpc], WaiterConfig={"Delay": 0.1})

    @pytest.mark.parametrize("cidr", ["10.0.0.5/24", "10.0.1.0/16"])
    def test_host_bits_are_refused(self, ec2: Any, vpc: str, cidr: str) -> None:
        assert refusal(ec2.create_vpc, CidrBlock=cidr) == "InvalidParameterValue"
        assert refusal(ec2.create_subnet, VpcId=vpc, CidrBlock=cidr) == "InvalidParameterValue"

    def test_host_bits_are_cleared_where_the_settings_say_so(self, server: Server, ec2: Any) -> None:
        with server.having(host_bits="canonical"):
            assert ec2.create_vpc(CidrBlock="100.68.0.18/18")["Vpc"]["CidrBlock"] == "100.68.0.0/18"

    @pytest.mark.parametrize("cidr", ["10.0.0.0/8", "10.0.0.0/29"])
    def test_a_vpc_is_between_16_and_28(self, ec2: Any, cidr: str) -> None:
        assert refusal(ec2.create_vpc, CidrBlock=cidr) == "InvalidVpc.Range"

    def test_an_empty_vpc_goes_and_is_not_found_afterwards(self, ec2: Any, vpc: str) -> None:
        ec2.delete_vpc(VpcId=vpc)
        assert refusal(ec2.describe_vpcs, VpcIds=[vpc]) == "InvalidVpcID.NotFound"
        assert refusal(ec2.delete_vpc, VpcId=vpc) == "InvalidVpcID.NotFound"

    def test_a_vpc_with_an_internet_gateway_stays(self, ec2: Any, vpc: str) -> None:
        gateway = make_gateway(ec2, vpc)
        assert refusal(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
        ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        ec2.delete_vpc(VpcId=vpc)

    def test_a_vpc_with_a_security_group_stays(self, ec2: Any, vpc: str) -> None:
        group = make_group(ec2, vpc)
        assert refusal(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
        ec2.delete_security_group(GroupId=group)
        ec2.delete_vpc(VpcId=vpc)

    def test_a_vpc_with_a_subnet_or_a_route_table_stays(self, ec2: Any, vpc: str) -> None:
        subnet = make_subnet(ec2, vpc)
        assert refusal(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
        ec2.delete_subnet(SubnetId=subnet)
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        assert refusal(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
        ec2.delete_route_table(RouteTableId=table)
        ec2.delete_vpc(VpcId=vpc)

    def test_a_vpc_with_an_own_network_acl_stays(self, ec2: Any, vpc: str) -> None:
        acl = ec2.create_network_acl(VpcId=vpc)["NetworkAcl"]["NetworkAclId"]
        assert refusal(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"
        ec2.delete_network_acl(NetworkAclId=acl)
        ec2.delete_vpc(VpcId=vpc)
        assert ec2.describe_network_acls(Filters=by(vpc_id=vpc))["NetworkAcls"] == []

    def test_a_vpc_goes_with_its_peering(self, ec2: Any, vpc: str) -> None:
        other = make_vpc(ec2, "10.9.0.0/16")
        pcx = peer(ec2, vpc, other)
        ec2.delete_vpc(VpcId=vpc)
        assert peering_status(ec2, pcx) == "deleted"

    def test_dhcp_options_outlive_the_vpcs_that_share_them(self, ec2: Any, vpc: str) -> None:
        other = make_vpc(ec2, "10.9.0.0/16")
        options = make_options(ec2)
        for one in (vpc, other):
            ec2.associate_dhcp_options(VpcId=one, DhcpOptionsId=options)
        ec2.delete_vpc(VpcId=other)
        assert refusal(ec2.delete_dhcp_options, DhcpOptionsId=options) == "DependencyViolation"
        ec2.associate_dhcp_options(VpcId=vpc, DhcpOptionsId="default")
        ec2.delete_dhcp_options(DhcpOptionsId=options)

    def test_dns_attributes_are_set_one_at_a_time(self, ec2: Any, vpc: str) -> None:
        on, off = {"Value": True}, {"Value": False}
        modify = ec2.modify_vpc_attribute
        both = {"EnableDnsSupport": on, "EnableDnsHostnames": on}
        assert refusal(modify, VpcId=vpc, **both) == "InvalidParameterCombination"
        modify(VpcId=vpc, EnableDnsSupport=off)
        assert refusal(modify, VpcId=vpc, EnableDnsHostnames=on) == "InvalidParameterValue"
        modify(VpcId=vpc, EnableDnsSupport=on)
        modify(VpcId=vpc, EnableDnsHostnames=on)
        shown = ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")
        assert shown["EnableDnsHostnames"] == on


class TestSecondaryRanges:
    @pytest.mark.parametrize(
        ("primary", "second", "code"),
        [
            ("10.0.0.0/16", "10.0.128.0/20", "CidrConflict"),
            ("10.0.0.0/20", "10.0.128.0/20", "InvalidVpc.Range"),
            ("10.1.0.0/16", "10.0.0.0/16", "InvalidVpc.Range"),
            ("10.0.0.0/16", "192.168.0.0/16", "InvalidVpc.Range"),
            ("10.0.0.0/16", "172.16.0.0/16", "InvalidVpc.Range"),
            ("172.16.0.0/16", "172.31.0.0/16", "InvalidVpc.Range"),
            ("192.168.0.0/16", "10.0.0.0/16", "InvalidVpc.Range"),
            ("10.0.0.0/16", "198.19.0.0/16", "InvalidVpc.Range"),
            ("10.0.0.0/16", "169.254.0.0/16", "InvalidVpc.Range"),
            ("100.64.0.0/16", "10.0.0.0/16", "InvalidVpc.Range"),
            ("10.0.0.0/16", "100.64.0.0/10", "InvalidVpc.Range"),
            ("10.0.0.0/16", "10.5.0.7/16", "InvalidParameterValue"),
            ("10.0.0.0/16", "ten", "InvalidParameterValue"),
        ],
    )
    def test_what_is_restricted_is_refused(self, ec2: Any, primary: str, second: str, code: str) -> None:
        vpc = make_vpc(ec2, primary)
        assert refusal(ec2.associate_vpc_cidr_block, VpcId=vpc, CidrBlock=second) == code

    @pytest.mark.parametrize(
        ("primary", "second"),
        [
            ("10.0.0.0/16", "10.1.0.0/16"),
            ("10.5.0.0/16", "10.0.0.0/16"),
            ("10.0.0.0/16", "100.64.0.0/16"),
            ("10.0.0.0/16", "52.10.0.0/16"),
            ("192.168.0.0/24", "192.168.1.0/24"),
        ],
    )
    def test_what_is_permitted_takes_subnets(self, ec2: Any, primary: str, second: str) -> None:
        vpc = make_vpc(ec2, primary)
        association = ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock=second)["CidrBlockAssociation"]["AssociationId"]
        subnet = make_subnet(ec2, vpc, second)
        assert refusal(ec2.disassociate_vpc_cidr_block, AssociationId=association) == "DependencyViolation"
        ec2.delete_subnet(SubnetId=subnet)
        ec2.disassociate_vpc_cidr_block(AssociationId=association)

    def test_a_sixth_range_is_too_much(self, ec2: Any, vpc: str) -> None:
        for number in range(1, 5):
            ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock=f"10.{number}.0.0/16")
        assert refusal(ec2.associate_vpc_cidr_block, VpcId=vpc, CidrBlock="10.5.0.0/16") == "CidrLimitExceeded"

    def test_a_range_of_a_peered_vpc_is_refused(self, ec2: Any, vpc: str) -> None:
        peer(ec2, vpc, make_vpc(ec2, "10.9.0.0/16"))
        assert refusal(ec2.associate_vpc_cidr_block, VpcId=vpc, CidrBlock="10.9.0.0/20") == "CidrConflict"

    def test_a_range_that_a_route_leads_to_is_refused(self, ec2: Any, vpc: str) -> None:
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        gateway = make_gateway(ec2, vpc)
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="10.8.0.0/24", GatewayId=gateway)
        assert refusal(ec2.associate_vpc_cidr_block, VpcId=vpc, CidrBlock="10.8.0.0/16") == "CidrConflict"


class TestSubnets:
    def test_overlaps_and_ranges_outside_are_refused(self, ec2: Any, vpc: str) -> None:
        make_subnet(ec2, vpc)
        assert refusal(ec2.create_subnet, VpcId=vpc, CidrBlock="10.0.0.128/25") == "InvalidSubnet.Conflict"
        assert refusal(ec2.create_subnet, VpcId=vpc, CidrBlock="10.1.0.0/24") == "InvalidSubnet.Range"

    def test_a_subnet_is_no_smaller_than_28(self, ec2: Any, vpc: str) -> None:
        assert refusal(ec2.create_subnet, VpcId=vpc, CidrBlock="10.0.0.0/29") == "InvalidSubnet.Range"
        make_subnet(ec2, vpc, "10.0.0.0/28")

    def test_a_subnet_has_one_route_table(self, ec2: Any, vpc: str) -> None:
        subnet = make_subnet(ec2, vpc)
        one, other = (ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"] for _ in range(2))
        first = ec2.associate_route_table(RouteTableId=one, SubnetId=subnet)["AssociationId"]
        assert ec2.associate_route_table(RouteTableId=one, SubnetId=subnet)["AssociationId"] == first
        code = refusal(ec2.associate_route_table, RouteTableId=other, SubnetId=subnet)
        assert code == "Resource.AlreadyAssociated"
        foreign = make_subnet(ec2, make_vpc(ec2))
        code = refusal(ec2.associate_route_table, RouteTableId=other, SubnetId=foreign)
        assert code == "InvalidParameterValue"

    def test_a_subnet_with_a_network_interface_stays(self, ec2: Any, vpc: str) -> None:
        subnet = make_subnet(ec2, vpc)
        eni = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
        assert refusal(ec2.delete_subnet, SubnetId=subnet) == "DependencyViolation"
        ec2.delete_network_interface(NetworkInterfaceId=eni)
        ec2.delete_subnet(SubnetId=subnet)

    def test_a_subnet_stays_until_its_nat_gateway_is_deleted(self, server: Server, ec2: Any, public: str) -> None:
        nat, _ = make_nat(ec2, public)
        assert refusal(ec2.delete_subnet, SubnetId=public) == "DependencyViolation"
        with server.having(delays=SLOW):
            ec2.delete_nat_gateway(NatGatewayId=nat)
            assert nat_state(ec2, nat) == "deleting"
            assert refusal(ec2.delete_subnet, SubnetId=public) == "DependencyViolation"

    def test_a_deleted_subnet_no_longer_holds_its_route_table(self, ec2: Any, vpc: str) -> None:
        subnet = make_subnet(ec2, vpc)
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
        assert refusal(ec2.delete_route_table, RouteTableId=table) == "DependencyViolation"
        ec2.delete_subnet(SubnetId=subnet)
        ec2.delete_route_table(RouteTableId=table)


class TestInternetGateways:
    def test_a_vpc_takes_one_gateway(self, ec2: Any, vpc: str) -> None:
        make_gateway(ec2, vpc)
        second = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        assert refusal(ec2.attach_internet_gateway, InternetGatewayId=second, VpcId=vpc) == "InvalidParameterValue"

    def test_a_gateway_goes_to_one_vpc(self, ec2: Any, vpc: str) -> None:
        gateway = make_gateway(ec2, vpc)
        other = make_vpc(ec2)
        code = refusal(ec2.attach_internet_gateway, InternetGatewayId=gateway, VpcId=other)
        assert code == "Resource.AlreadyAssociated"
        assert refusal(ec2.delete_internet_gateway, InternetGatewayId=gateway) == "DependencyViolation"

    def test_a_gateway_stays_while_addresses_are_mapped(self, ec2: Any, vpc: str) -> None:
        gateway = make_gateway(ec2, vpc)
        nat, _ = make_nat(ec2, make_subnet(ec2, vpc))
        detach = {"InternetGatewayId": gateway, "VpcId": vpc}
        assert refusal(ec2.detach_internet_gateway, **detach) == "DependencyViolation"
        ec2.delete_nat_gateway(NatGatewayId=nat)
        ec2.detach_internet_gateway(**detach)
        assert refusal(ec2.detach_internet_gateway, **detach) == "Gateway.NotAttached"

    def test_a_gateway_stays_while_an_interface_has_an_address(self, ec2: Any, vpc: str) -> None:
        gateway = make_gateway(ec2, vpc)
        eni = ec2.create_network_interface(SubnetId=make_subnet(ec2, vpc))["NetworkInterface"]["NetworkInterfaceId"]
        allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
        association = ec2.associate_address(AllocationId=allocation, NetworkInterfaceId=eni)["AssociationId"]
        detach = {"InternetGatewayId": gateway, "VpcId": vpc}
        assert refusal(ec2.detach_internet_gateway, **detach) == "DependencyViolation"
        assert refusal(ec2.release_address, AllocationId=allocation) == "InvalidIPAddress.InUse"
        ec2.disassociate_address(AssociationId=association)
        ec2.release_address(AllocationId=allocation)
        ec2.detach_internet_gateway(**detach)


class TestNatGateways:
    def test_a_nat_gateway_is_pending_before_it_is_available(self, server: Server, ec2: Any, public: str) -> None:
        with server.having(delays=SLOW):
            nat, _ = make_nat(ec2, public)
            assert nat_state(ec2, nat) == "pending"
        nat, _ = make_nat(ec2, public)
        assert nat_state(ec2, nat) == "available"

    def test_the_waiters_of_boto3_see_both_ends(self, server: Server, ec2: Any, public: str) -> None:
        with server.having(delays={"nat_gateway_pending": 0.2, "nat_gateway_deleting": 0.2}):
            nat, _ = make_nat(ec2, public)
            quick = {"WaiterConfig": {"Delay": 0.1}}
            ec2.get_waiter("nat_gateway_available").wait(NatGatewayIds=[nat], **quick)
            ec2.delete_nat_gateway(NatGatewayId=nat)
            ec2.get_waiter("nat_gateway_deleted").wait(NatGatewayIds=[nat], **quick)

    def test_a_deleted_nat_gateway_stays_listed_for_a_while(self, server: Server, ec2: Any, public: str) -> None:
        nat, allocation = make_nat(ec2, public)
        ec2.delete_nat_gateway(NatGatewayId=nat)
        assert nat_state(ec2, nat) == "deleted"
        ec2.release_address(AllocationId=allocation)
        with server.having(delays={"nat_gateway_listed": 0}):
            nat, _ = make_nat(ec2, public)
            ec2.delete_nat_gateway(NatGatewayId=nat)
            assert refusal(ec2.describe_nat_gateways, NatGatewayIds=[nat]) == "NatGatewayNotFound"

    def test_the_address_is_in_use_until_the_nat_gateway_is_deleted(
        self, server: Server, ec2: Any, public: str
    ) -> None:
        nat, allocation = make_nat(ec2, public)
        assert refusal(ec2.release_address, AllocationId=allocation) == "InvalidIPAddress.InUse"
        association = ec2.describe_addresses(AllocationIds=[allocation])["Addresses"][0]["AssociationId"]
        assert refusal(ec2.disassociate_address, AssociationId=association) == "AuthFailure"
        ec2.delete_nat_gateway(NatGatewayId=nat)
        ec2.release_address(AllocationId=allocation)

    def test_its_interface_lies_in_its_subnet_and_is_not_the_users(self, ec2: Any, public: str) -> None:
        nat, _ = make_nat(ec2, public)
        address = ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["NatGatewayAddresses"][0]
        assert address["PrivateIp"].startswith("10.0.0.")
        eni = address["NetworkInterfaceId"]
        shown = ec2.describe_network_interfaces(NetworkInterfaceIds=[eni])["NetworkInterfaces"][0]
        assert (shown["PrivateIpAddress"], shown["RequesterManaged"]) == (address["PrivateIp"], True)
        assert refusal(ec2.delete_network_interface, NetworkInterfaceId=eni) == "InvalidNetworkInterface.InUse"

    def test_without_an_internet_gateway_it_fails(self, ec2: Any, vpc: str) -> None:
        nat, allocation = make_nat(ec2, make_subnet(ec2, vpc))
        shown = ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]
        assert (shown["State"], shown["FailureCode"]) == ("failed", "Gateway.NotAttached")
        ec2.release_address(AllocationId=allocation)

    def test_with_an_address_in_use_it_fails(self, ec2: Any, public: str) -> None:
        _, allocation = make_nat(ec2, public)
        nat = ec2.create_nat_gateway(SubnetId=public, AllocationId=allocation)["NatGateway"]["NatGatewayId"]
        shown = ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]
        assert (shown["State"], shown["FailureCode"]) == ("failed", "Resource.AlreadyAssociated")

    def test_what_it_needs_must_exist(self, ec2: Any, public: str) -> None:
        unknown = "eipalloc-0123456789abcdef0"
        make = ec2.create_nat_gateway
        assert refusal(make, SubnetId=public, AllocationId=unknown) == "InvalidAllocationID.NotFound"
        assert refusal(make, SubnetId=public) == "MissingParameter"
        assert refusal(make, SubnetId="subnet-0123456789abcdef0") == "InvalidSubnetID.NotFound"
        assert refusal(ec2.delete_nat_gateway, NatGatewayId="nat-0123456789abcdef0") == "NatGatewayNotFound"

    def test_filters_look_at_tags(self, ec2: Any, public: str) -> None:
        allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
        make_nat(ec2, public)
        nat = ec2.create_nat_gateway(
            SubnetId=public, AllocationId=allocation, TagSpecifications=tags("natgateway", owner="me")
        )["NatGateway"]["NatGatewayId"]
        found = ec2.describe_nat_gateways(Filters=[*by(subnet_id=public), {"Name": "tag:owner", "Values": ["m*"]}])
        assert [one["NatGatewayId"] for one in found["NatGateways"]] == [nat]

    def test_the_same_client_token_is_the_same_nat_gateway(self, ec2: Any, public: str) -> None:
        allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
        order = {"SubnetId": public, "AllocationId": allocation, "ClientToken": f"once-{allocation}"}
        first, second = (ec2.create_nat_gateway(**order)["NatGateway"]["NatGatewayId"] for _ in range(2))
        assert first == second
        assert len(ec2.describe_nat_gateways(Filters=by(subnet_id=public))["NatGateways"]) == 1
        other = order | {"ConnectivityType": "private"}
        assert refusal(ec2.create_nat_gateway, **other) == "IdempotentParameterMismatch"
