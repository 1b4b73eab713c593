"""What EC2 demands of every call, and its limits, seen by boto3."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.sandbox.aws.server import (
    REGION,
    Server,
    ask,
    by,
    make_gateway,
    make_group,
    make_nat,
    make_subnet,
    make_vpc,
    peer,
    peering_status,
    refusal,
)


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

    def test_settings_that_are_no_json_are_refused(self, server: Server) -> None:
        answer = httpx.put(f"{server.url}/sandbox/settings", content=b"vpcs=3")
        assert (answer.status_code, "not JSON" in answer.json()["error"]) == (400, True)
        assert server.put().status_code == 200
        assert httpx.delete(f"{server.url}/sandbox/settings").status_code == 405

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
