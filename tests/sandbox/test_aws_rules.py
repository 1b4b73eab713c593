"""Every gap between moto and EC2 that the guard closes, seen by boto3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.aws_server import (
    REGION,
    Server,
    by,
    make_gateway,
    make_group,
    make_nat,
    make_subnet,
    make_vpc,
    refusal,
    tags,
)

QUICK = {"vpc_pending": 0, "nat_gateway_pending": 0, "nat_gateway_deleting": 0}
SLOW = {"vpc_pending": 3600, "nat_gateway_pending": 3600, "nat_gateway_deleting": 3600}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(Path(tmp_path_factory.mktemp("aws")) / "state", delays=QUICK)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ec2(server: Server) -> Any:
    return server.client()


@pytest.fixture
def vpc(ec2: Any) -> str:
    return make_vpc(ec2)


@pytest.fixture
def public(ec2: Any, vpc: str) -> str:
    """A subnet in a VPC with an internet gateway."""
    make_gateway(ec2, vpc)
    return make_subnet(ec2, vpc)


def nat_state(ec2: Any, nat: str) -> str:
    return str(ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"])


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


class TestRoutes:
    def test_a_route_to_something_that_is_gone_is_a_blackhole(self, ec2: Any, public: str, vpc: str) -> None:
        nat, _ = make_nat(ec2, public)
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
        assert route_states(ec2, table) == {"10.0.0.0/16": "active", "0.0.0.0/0": "active"}
        ec2.delete_nat_gateway(NatGatewayId=nat)
        assert route_states(ec2, table) == {"10.0.0.0/16": "active", "0.0.0.0/0": "blackhole"}

    def test_the_target_of_a_route_must_exist_in_the_same_vpc(self, ec2: Any, vpc: str) -> None:
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0"}
        foreign = make_gateway(ec2, make_vpc(ec2))
        assert refusal(ec2.create_route, **route, GatewayId=foreign) == "InvalidParameterValue"
        unknown = "igw-0123456789abcdef0"
        assert refusal(ec2.create_route, **route, GatewayId=unknown) == "InvalidGatewayID.NotFound"
        unknown = "nat-0123456789abcdef0"
        assert refusal(ec2.create_route, **route, NatGatewayId=unknown) == "InvalidNatGatewayID.NotFound"
        ec2.create_route(**route, GatewayId=make_gateway(ec2, vpc))
        assert refusal(ec2.create_route, **route, GatewayId=gateway_of(ec2, vpc)) == "RouteAlreadyExists"

    def test_what_lies_in_the_vpc_is_reached_locally(self, ec2: Any, vpc: str) -> None:
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        pcx = peer(ec2, vpc, make_vpc(ec2, "10.9.0.0/16"))
        for destination in ("10.0.0.0/16", "10.0.7.0/24"):
            order = {"RouteTableId": table, "DestinationCidrBlock": destination}
            assert refusal(ec2.create_route, **order, VpcPeeringConnectionId=pcx) == "InvalidParameterValue"
        local = {"RouteTableId": table, "DestinationCidrBlock": "10.0.0.0/16"}
        assert refusal(ec2.delete_route, **local) == "InvalidParameterValue"

    def test_the_main_route_table_stays(self, ec2: Any, vpc: str) -> None:
        main = ec2.describe_route_tables(Filters=by(vpc_id=vpc))["RouteTables"][0]["RouteTableId"]
        assert refusal(ec2.delete_route_table, RouteTableId=main) == "DependencyViolation"


class TestSecurityGroups:
    def test_a_group_that_another_names_stays(self, ec2: Any, vpc: str) -> None:
        one, other = make_group(ec2, vpc, "one"), make_group(ec2, vpc, "other")
        for named, naming in ((one, other), (other, one)):
            ec2.authorize_security_group_ingress(GroupId=naming, IpPermissions=everything_from(named))
        assert refusal(ec2.delete_security_group, GroupId=one) == "DependencyViolation"
        ec2.revoke_security_group_ingress(GroupId=other, IpPermissions=everything_from(one))
        ec2.delete_security_group(GroupId=one)
        ec2.delete_security_group(GroupId=other)

    def test_a_group_that_names_itself_can_go(self, ec2: Any, vpc: str) -> None:
        group = make_group(ec2, vpc)
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=everything_from(group))
        ec2.delete_security_group(GroupId=group)

    def test_a_group_of_an_interface_stays(self, ec2: Any, vpc: str) -> None:
        group = make_group(ec2, vpc)
        eni = ec2.create_network_interface(SubnetId=make_subnet(ec2, vpc), Groups=[group])["NetworkInterface"]
        assert refusal(ec2.delete_security_group, GroupId=group) == "DependencyViolation"
        ec2.delete_network_interface(NetworkInterfaceId=eni["NetworkInterfaceId"])
        ec2.delete_security_group(GroupId=group)

    def test_the_default_group_stays(self, ec2: Any, vpc: str) -> None:
        group = ec2.describe_security_groups(Filters=by(vpc_id=vpc))["SecurityGroups"][0]["GroupId"]
        assert refusal(ec2.delete_security_group, GroupId=group) == "CannotDelete"

    def test_duplicates_and_missing_rules_are_refused(self, ec2: Any, vpc: str) -> None:
        group = make_group(ec2, vpc)
        again = {"GroupName": "nodes", "Description": "nodes", "VpcId": vpc}
        assert refusal(ec2.create_security_group, **again) == "InvalidGroup.Duplicate"
        rule = {"GroupId": group, "IpPermissions": everything_from(group)}
        ec2.authorize_security_group_ingress(**rule)
        assert refusal(ec2.authorize_security_group_ingress, **rule) == "InvalidPermission.Duplicate"
        ec2.revoke_security_group_ingress(**rule)
        assert refusal(ec2.revoke_security_group_ingress, **rule) == "InvalidPermission.NotFound"

    def test_a_rule_needs_ports(self, ec2: Any, vpc: str) -> None:
        order = {"GroupId": make_group(ec2, vpc), "IpPermissions": [{"IpProtocol": "tcp"}]}
        assert refusal(ec2.authorize_security_group_ingress, **order) == "InvalidParameterValue"

    def test_a_call_adds_all_of_its_rules_or_none(self, ec2: Any, vpc: str) -> None:
        group, other = make_group(ec2, vpc), make_group(ec2, vpc, "other")
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=everything_from(group))
        both = [*everything_from(other), *everything_from(group)]
        code = refusal(ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=both)
        assert code == "InvalidPermission.Duplicate"
        rules = ec2.describe_security_group_rules(Filters=by(group_id=group))["SecurityGroupRules"]
        assert [one["ReferencedGroupInfo"]["GroupId"] for one in rules if not one["IsEgress"]] == [group]

    def test_an_interface_takes_only_groups_and_addresses_that_are_there(self, ec2: Any, vpc: str) -> None:
        subnet = make_subnet(ec2, vpc)
        make = ec2.create_network_interface
        unknown = "sg-0123456789abcdef0"
        assert refusal(make, SubnetId=subnet, Groups=[unknown]) == "InvalidSecurityGroupID.NotFound"
        assert refusal(make, SubnetId=subnet, PrivateIpAddress="10.1.0.4") == "InvalidParameterValue"
        foreign = make_group(ec2, make_vpc(ec2))
        assert refusal(make, SubnetId=subnet, Groups=[foreign]) == "InvalidParameter"

    def test_host_bits_in_a_rule_are_refused(self, ec2: Any, vpc: str) -> None:
        order = {"GroupId": make_group(ec2, vpc), "IpProtocol": "tcp", "FromPort": 1, "ToPort": 2}
        assert refusal(ec2.authorize_security_group_ingress, **order, CidrIp="10.0.0.1/24") == "InvalidParameterValue"

    def test_a_group_needs_a_vpc_that_exists(self, ec2: Any) -> None:
        order = {"GroupName": "x", "Description": "x", "VpcId": "vpc-0123456789abcdef0"}
        assert refusal(ec2.create_security_group, **order) == "InvalidVpcID.NotFound"


class TestPeerings:
    @pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.0.64.0/20"])
    def test_a_peering_of_overlapping_ranges_fails(self, ec2: Any, vpc: str, cidr: str) -> None:
        pcx = ask(ec2, vpc, make_vpc(ec2, cidr))
        assert peering_status(ec2, pcx) == "failed"
        code = refusal(ec2.accept_vpc_peering_connection, VpcPeeringConnectionId=pcx)
        assert code == "InvalidStateTransition"

    def test_a_secondary_range_counts(self, ec2: Any, vpc: str) -> None:
        ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock="10.7.0.0/16")
        assert peering_status(ec2, ask(ec2, vpc, make_vpc(ec2, "10.7.0.0/20"))) == "failed"

    def test_a_peering_lives_from_request_to_deletion(self, server: Server, ec2: Any, vpc: str) -> None:
        other = make_vpc(ec2, "10.9.0.0/16")
        pcx = ask(ec2, vpc, other)
        assert peering_status(ec2, pcx) == "pending-acceptance"
        ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        assert peering_status(ec2, pcx) == "active"
        again = {"VpcId": other, "PeerVpcId": vpc}
        assert refusal(ec2.create_vpc_peering_connection, **again) == "VpcPeeringConnectionAlreadyExists"
        ec2.delete_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        assert peering_status(ec2, pcx) == "deleted"
        gone = refusal(ec2.delete_vpc_peering_connection, VpcPeeringConnectionId=pcx)
        assert gone == "InvalidStateTransition"

    def test_a_route_through_a_deleted_peering_is_a_blackhole(self, ec2: Any, vpc: str) -> None:
        pcx = peer(ec2, vpc, make_vpc(ec2, "10.9.0.0/16"))
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="10.9.0.0/16", VpcPeeringConnectionId=pcx)
        ec2.delete_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        assert route_states(ec2, table)["10.9.0.0/16"] == "blackhole"

    def test_filters_narrow_the_list(self, ec2: Any, vpc: str) -> None:
        pcx = ask(ec2, vpc, make_vpc(ec2, "10.9.0.0/16"))
        ask(ec2, make_vpc(ec2, "10.8.0.0/16"), vpc)
        found = ec2.describe_vpc_peering_connections(
            Filters=[{"Name": "requester-vpc-info.vpc-id", "Values": [vpc]}, *by(status_code="pending-acceptance")]
        )["VpcPeeringConnections"]
        assert [one["VpcPeeringConnectionId"] for one in found] == [pcx]

    def test_a_peering_reaches_another_region(self, server: Server, ec2: Any, vpc: str) -> None:
        far = server.client(region="eu-west-1")
        other = make_vpc(far, "10.9.0.0/16")
        order = {"VpcId": vpc, "PeerVpcId": other, "PeerRegion": "eu-west-1"}
        pcx = ec2.create_vpc_peering_connection(**order)["VpcPeeringConnection"]["VpcPeeringConnectionId"]
        far.accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        assert peering_status(ec2, pcx) == peering_status(far, pcx) == "active"


class TestDhcpOptionsAndTags:
    def test_dhcp_options_keep_the_tags_they_were_made_with(self, ec2: Any) -> None:
        options = make_options(ec2, TagSpecifications=tags("dhcp-options", owner="me"))
        shown = ec2.describe_dhcp_options(DhcpOptionsIds=[options])["DhcpOptions"][0]
        assert shown["Tags"] == [{"Key": "owner", "Value": "me"}]

    def test_options_that_a_vpc_has_exchanged_can_go(self, ec2: Any, vpc: str) -> None:
        old, new = make_options(ec2), make_options(ec2)
        ec2.associate_dhcp_options(VpcId=vpc, DhcpOptionsId=old)
        assert refusal(ec2.delete_dhcp_options, DhcpOptionsId=old) == "DependencyViolation"
        ec2.associate_dhcp_options(VpcId=vpc, DhcpOptionsId=new)
        ec2.delete_dhcp_options(DhcpOptionsId=old)

    def test_a_tag_specification_names_the_right_type(self, ec2: Any) -> None:
        order = {"CidrBlock": "10.0.0.0/16", "TagSpecifications": tags("subnet", owner="me")}
        assert refusal(ec2.create_vpc, **order) == "InvalidParameterValue"

    @pytest.mark.parametrize("tag", [("aws:x", "y"), ("k" * 129, "v"), ("k", "v" * 257)])
    def test_tags_that_cannot_be_are_refused(self, ec2: Any, vpc: str, tag: tuple[str, str]) -> None:
        order = {"Resources": [vpc], "Tags": [{"Key": tag[0], "Value": tag[1]}]}
        assert refusal(ec2.create_tags, **order) == "InvalidParameterValue"

    def test_only_what_exists_can_be_tagged(self, ec2: Any) -> None:
        order = {"Resources": ["nat-0123456789abcdef0"], "Tags": [{"Key": "k", "Value": "v"}]}
        assert refusal(ec2.create_tags, **order) == "NatGatewayNotFound"

    def test_tags_go_with_their_resource(self, ec2: Any, vpc: str) -> None:
        ec2.create_tags(Resources=[vpc], Tags=[{"Key": "owner", "Value": "me"}])
        assert len(ec2.describe_tags(Filters=by(resource_id=vpc))["Tags"]) == 1
        ec2.delete_vpc(VpcId=vpc)
        assert ec2.describe_tags(Filters=by(resource_id=vpc))["Tags"] == []


class TestEveryCall:
    @pytest.mark.parametrize(
        "name",
        [
            "describe_vpcs",
            "describe_subnets",
            "describe_internet_gateways",
            "describe_nat_gateways",
            "describe_route_tables",
            "describe_addresses",
            "describe_security_groups",
            "describe_dhcp_options",
            "describe_vpc_peering_connections",
            "describe_network_interfaces",
            "describe_network_acls",
            "describe_availability_zones",
        ],
    )
    def test_a_filter_that_ec2_does_not_know_is_refused(self, ec2: Any, name: str) -> None:
        assert refusal(getattr(ec2, name), Filters=by(colour="red")) == "InvalidParameterValue"

    @pytest.mark.parametrize(
        ("name", "parameter", "unknown", "code"),
        [
            ("describe_vpcs", "VpcIds", "vpc", "InvalidVpcID.NotFound"),
            ("describe_subnets", "SubnetIds", "subnet", "InvalidSubnetID.NotFound"),
            ("describe_internet_gateways", "InternetGatewayIds", "igw", "InvalidInternetGatewayID.NotFound"),
            ("describe_nat_gateways", "NatGatewayIds", "nat", "NatGatewayNotFound"),
            ("describe_route_tables", "RouteTableIds", "rtb", "InvalidRouteTableID.NotFound"),
            ("describe_addresses", "AllocationIds", "eipalloc", "InvalidAllocationID.NotFound"),
            ("describe_security_groups", "GroupIds", "sg", "InvalidGroup.NotFound"),
            ("describe_dhcp_options", "DhcpOptionsIds", "dopt", "InvalidDhcpOptionID.NotFound"),
            ("describe_network_interfaces", "NetworkInterfaceIds", "eni", "InvalidNetworkInterfaceID.NotFound"),
            (
                "describe_vpc_peering_connections",
                "VpcPeeringConnectionIds",
                "pcx",
                "InvalidVpcPeeringConnectionID.NotFound",
            ),
        ],
    )
    def test_an_id_that_does_not_exist_is_named(
        self, ec2: Any, name: str, parameter: str, unknown: str, code: str
    ) -> None:
        call = getattr(ec2, name)
        missing = f"{unknown}-0123456789abcdef0"
        assert refusal(call, **{parameter: [missing]}) == code
        with pytest.raises(ec2.exceptions.ClientError, match=f"'{missing}' does not exist"):
            call(**{parameter: [missing]})

    def test_several_values_of_a_filter_are_alternatives(self, ec2: Any, vpc: str) -> None:
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        used, idle = make_subnet(ec2, vpc), make_subnet(ec2, vpc, "10.0.1.0/24")
        ec2.associate_route_table(RouteTableId=table, SubnetId=used)
        ec2.associate_route_table(RouteTableId=table, SubnetId=make_subnet(ec2, vpc, "10.0.2.0/24"))
        found = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [used, idle]}])
        assert [one["RouteTableId"] for one in found["RouteTables"]] == [table]

    def test_a_dry_run_changes_nothing(self, ec2: Any, vpc: str) -> None:
        before = ec2.describe_vpcs()["Vpcs"]
        assert refusal(ec2.create_vpc, CidrBlock="10.0.0.0/16", DryRun=True) == "DryRunOperation"
        assert refusal(ec2.delete_vpc, VpcId=vpc, DryRun=True) == "DryRunOperation"
        assert ec2.describe_vpcs()["Vpcs"] == before

    def test_what_must_be_given_must_be_given(self, ec2: Any, vpc: str) -> None:
        assert refusal(ec2.create_subnet, VpcId=vpc) == "MissingParameter"
        assert refusal(ec2.associate_vpc_cidr_block, VpcId=vpc) == "MissingParameter"
        assert refusal(ec2.delete_security_group) == "MissingParameter"
        assert refusal(ec2.release_address) == "MissingParameter"
        unknown = [{"Key": "colour", "Values": ["red"]}]
        assert refusal(ec2.create_dhcp_options, DhcpConfigurations=unknown) == "InvalidParameterValue"

    def test_what_is_changed_must_exist(self, ec2: Any, vpc: str) -> None:
        pcx = {"VpcPeeringConnectionId": "pcx-0123456789abcdef0"}
        for call in (
            ec2.accept_vpc_peering_connection,
            ec2.reject_vpc_peering_connection,
            ec2.delete_vpc_peering_connection,
        ):
            assert refusal(call, **pcx) == "InvalidVpcPeeringConnectionID.NotFound"
        association = {"AssociationId": "vpc-cidr-assoc-0123456789abcdef0"}
        code = refusal(ec2.disassociate_vpc_cidr_block, **association)
        assert code == "InvalidVpcCidrBlockAssociationID.NotFound"
        far = {"VpcId": vpc, "PeerVpcId": vpc, "PeerRegion": "eu-nowhere-1"}
        assert refusal(ec2.create_vpc_peering_connection, **far) == "InvalidParameterValue"

    def test_an_unknown_region_is_refused(self, server: Server) -> None:
        assert refusal(server.client(region="eu-nowhere-1").describe_vpcs) == "AuthFailure"

    def test_regions_are_separate(self, server: Server, vpc: str) -> None:
        far = server.client(region="eu-west-1")
        assert refusal(far.describe_vpcs, VpcIds=[vpc]) == "InvalidVpcID.NotFound"

    def test_a_key_of_twelve_digits_is_an_account_of_its_own(self, server: Server, ec2: Any, vpc: str) -> None:
        other = server.client(key="210987654321")
        assert server.client("sts", key="210987654321").get_caller_identity()["Account"] == "210987654321"
        assert refusal(other.describe_vpcs, VpcIds=[vpc]) == "InvalidVpcID.NotFound"
        theirs = make_vpc(other, "10.9.0.0/16")
        order = {"VpcId": vpc, "PeerVpcId": theirs, "PeerOwnerId": "210987654321"}
        pcx = ec2.create_vpc_peering_connection(**order)["VpcPeeringConnection"]["VpcPeeringConnectionId"]
        code = refusal(ec2.accept_vpc_peering_connection, VpcPeeringConnectionId=pcx)
        assert code == "OperationNotPermitted"
        other.accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        assert peering_status(ec2, pcx) == "active"

    def test_sts_tells_the_account(self, server: Server, ec2: Any, vpc: str) -> None:
        account = server.client("sts").get_caller_identity()["Account"]
        assert ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["OwnerId"] == account


class TestLimits:
    """Each limit is set to what is there, so that one more is one too many."""

    def test_vpcs(self, server: Server, ec2: Any, vpc: str) -> None:
        with server.having(limits={"vpcs": len(ec2.describe_vpcs()["Vpcs"])}):
            assert refusal(ec2.create_vpc, CidrBlock="10.0.0.0/16") == "VpcLimitExceeded"
            ec2.delete_vpc(VpcId=vpc)
            make_vpc(ec2)

    def test_internet_gateways(self, server: Server, ec2: Any) -> None:
        present = len(ec2.describe_internet_gateways()["InternetGateways"])
        with server.having(limits={"internet_gateways": present}):
            assert refusal(ec2.create_internet_gateway) == "InternetGatewayLimitExceeded"

    def test_subnets(self, server: Server, ec2: Any, vpc: str) -> None:
        make_subnet(ec2, vpc)
        with server.having(limits={"subnets_per_vpc": 1}):
            assert refusal(ec2.create_subnet, VpcId=vpc, CidrBlock="10.0.1.0/24") == "SubnetLimitExceeded"
            make_subnet(ec2, make_vpc(ec2))

    def test_route_tables(self, server: Server, ec2: Any, vpc: str) -> None:
        with server.having(limits={"route_tables_per_vpc": 1}):
            assert refusal(ec2.create_route_table, VpcId=vpc) == "RouteTableLimitExceeded"

    def test_routes(self, server: Server, ec2: Any, vpc: str) -> None:
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        gateway = make_gateway(ec2, vpc)
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        with server.having(limits={"routes_per_route_table": 1}):
            order = {"RouteTableId": table, "DestinationCidrBlock": "1.0.0.0/8", "GatewayId": gateway}
            assert refusal(ec2.create_route, **order) == "RouteLimitExceeded"

    def test_nat_gateways_count_per_zone_and_while_they_are_being_deleted(
        self, server: Server, ec2: Any, vpc: str
    ) -> None:
        make_gateway(ec2, vpc)
        here, there = make_subnet(ec2, vpc), make_subnet(ec2, vpc, "10.0.1.0/24", REGION + "b")
        nat, allocation = make_nat(ec2, here)
        shown = ec2.describe_nat_gateways()["NatGateways"]
        zones = {one["SubnetId"]: one["AvailabilityZone"] for one in ec2.describe_subnets()["Subnets"]}
        counted = [
            one
            for one in shown
            if zones.get(one["SubnetId"]) == REGION + "a" and one["State"] in ("pending", "available", "deleting")
        ]
        with server.having(limits={"nat_gateways_per_zone": len(counted)}, delays={"nat_gateway_deleting": 3600}):
            order = {"SubnetId": here, "AllocationId": allocation}
            assert refusal(ec2.create_nat_gateway, **order) == "NatGatewayLimitExceeded"
            make_nat(ec2, there)
            ec2.delete_nat_gateway(NatGatewayId=nat)
            assert refusal(ec2.create_nat_gateway, **order) == "NatGatewayLimitExceeded"

    def test_addresses(self, server: Server, ec2: Any) -> None:
        with server.having(limits={"elastic_ips": len(ec2.describe_addresses()["Addresses"])}):
            assert refusal(ec2.allocate_address, Domain="vpc") == "AddressLimitExceeded"

    def test_security_groups(self, server: Server, ec2: Any, vpc: str) -> None:
        present = len(ec2.describe_security_groups()["SecurityGroups"])
        with server.having(limits={"security_groups": present}):
            order = {"GroupName": "x", "Description": "x", "VpcId": vpc}
            assert refusal(ec2.create_security_group, **order) == "SecurityGroupLimitExceeded"

    def test_rules_of_a_security_group(self, server: Server, ec2: Any, vpc: str) -> None:
        group = make_group(ec2, vpc)

        def ranges(count: int) -> list[dict[str, Any]]:
            cidrs = [{"CidrIp": f"10.{number}.0.0/16"} for number in range(count)]
            return [{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "IpRanges": cidrs}]

        with server.having(limits={"rules_per_security_group": 70}):
            order = {"GroupId": group, "IpPermissions": ranges(71)}
            assert refusal(ec2.authorize_security_group_ingress, **order) == "RulesPerSecurityGroupLimitExceeded"
            ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=ranges(70))

    def test_peerings(self, server: Server, ec2: Any, vpc: str) -> None:
        peer(ec2, vpc, make_vpc(ec2, "10.9.0.0/16"))
        pcx = ask(ec2, vpc, make_vpc(ec2, "10.8.0.0/16"))
        with server.having(limits={"peerings_per_vpc": 1}):
            code = refusal(ec2.accept_vpc_peering_connection, VpcPeeringConnectionId=pcx)
            assert code == "ActiveVpcPeeringConnectionPerVpcLimitExceeded"

    def test_service_quotas_shows_the_limit_in_force(self, server: Server) -> None:
        quotas = server.client("service-quotas")
        with server.having(limits={"vpcs": 17, "elastic_ips": 3}):
            vpcs = quotas.get_service_quota(ServiceCode="vpc", QuotaCode="L-F678F1CE")["Quota"]
            assert (vpcs["QuotaName"], vpcs["Value"]) == ("VPCs per Region", 17.0)
            addresses = quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-0263D0A3")["Quota"]
            assert addresses["Value"] == 3.0
            listed = quotas.list_service_quotas(ServiceCode="vpc")["Quotas"]
            assert {one["QuotaCode"]: one["Value"] for one in listed}["L-F678F1CE"] == 17.0
        defaults = quotas.list_aws_default_service_quotas(ServiceCode="vpc")["Quotas"]
        assert {one["QuotaCode"]: one["Value"] for one in defaults}["L-F678F1CE"] == 5.0
        code = refusal(quotas.get_service_quota, ServiceCode="vpc", QuotaCode="L-00000000")
        assert code == "NoSuchResourceException"


class TestSettings:
    def test_what_is_not_named_stays(self, server: Server) -> None:
        before = server.settings()
        with server.having(limits={"vpcs": 3}):
            after = server.settings()
            assert after["limits"] == before["limits"] | {"vpcs": 3}
            assert after["delays"] == before["delays"]

    @pytest.mark.parametrize(
        ("patch", "named"),
        [
            ({"limits": {"vpcs": -1}}, "limits.vpcs"),
            ({"limits": {"vpc": 1}}, "limits.vpc"),
            ({"delays": {"vpc_pending": "soon"}}, "delays.vpc_pending"),
            ({"delay": {}}, "delay"),
            ({"host_bits": "keep"}, "host_bits"),
        ],
    )
    def test_bad_settings_are_refused_by_name(self, server: Server, patch: dict[str, Any], named: str) -> None:
        before = server.settings()
        answer = server.put(**patch)
        assert answer.status_code == 400
        assert named in answer.json()["error"]
        assert server.settings() == before


def ask(ec2: Any, vpc: str, other: str) -> str:
    answer = ec2.create_vpc_peering_connection(VpcId=vpc, PeerVpcId=other)
    return str(answer["VpcPeeringConnection"]["VpcPeeringConnectionId"])


def peer(ec2: Any, vpc: str, other: str) -> str:
    pcx = ask(ec2, vpc, other)
    ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
    return pcx


def peering_status(ec2: Any, pcx: str) -> str:
    shown = ec2.describe_vpc_peering_connections(VpcPeeringConnectionIds=[pcx])["VpcPeeringConnections"][0]
    return str(shown["Status"]["Code"])


def route_states(ec2: Any, table: str) -> dict[str, str]:
    routes = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
    return {route["DestinationCidrBlock"]: route["State"] for route in routes}


def make_options(ec2: Any, **more: Any) -> str:
    configuration = [{"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]}]
    return str(ec2.create_dhcp_options(DhcpConfigurations=configuration, **more)["DhcpOptions"]["DhcpOptionsId"])


def gateway_of(ec2: Any, vpc: str) -> str:
    """The internet gateway that the VPC has."""
    found = ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc]}])
    return str(found["InternetGateways"][0]["InternetGatewayId"])


def everything_from(group: str) -> list[dict[str, Any]]:
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
