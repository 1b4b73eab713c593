"""What EC2 demands of routes, groups, peerings, options and tags and moto does not, seen by boto3."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.aws.server import (
    Server,
    ask,
    by,
    everything_from,
    gateway_of,
    make_gateway,
    make_group,
    make_nat,
    make_options,
    make_subnet,
    make_vpc,
    peer,
    peering_status,
    refusal,
    route_states,
    tags,
)


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
