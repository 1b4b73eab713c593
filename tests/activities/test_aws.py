"""AWS: the contract, and what only AWS has."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from activities.clouds.aws import AwsCloud, Patience
from activities.clouds.aws._errors import attempting
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import FaultKind, Faults
from tests.activities.cloud_contract import CloudContract, Rig, insist

REGION = "eu-central-1"
ACCESS_KEY, SECRET_KEY = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
SECRET = {"accessKeyID": ACCESS_KEY, "secretAccessKey": SECRET_KEY}


class AwsRig(Rig):
    """AWS, and boto3 as somebody else would use it."""

    api = "aws"
    making = "[!D]*"
    removing = "De[!s]*"
    create = "CreateVpc"

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults)
        self.ec2 = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION).client("ec2")

    def connect(self, region: str | None = None) -> AwsCloud:
        patience = Patience(settle=2, look=0.2, poll=0.02)
        return AwsCloud(region or REGION, SECRET, installation=self.installation, patience=patience)

    def order(self, *cidrs: str) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.AWS,
            region=REGION,
            credentials="aws",
            cidrs=tuple(map(IPv4Network, cidrs or ("10.0.0.0/16",))),
        )

    def networks(self, order: NetworkOrder) -> list[str]:
        tags = {"installation": self.installation, "vpc": order.vpc, "incarnation": order.incarnation}
        filters: Any = [{"Name": f"tag:trellis.dev/{key}", "Values": [value]} for key, value in tags.items()]
        return [vpc["VpcId"] for vpc in self.ec2.describe_vpcs(Filters=filters)["Vpcs"]]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        subnet = self.ec2.create_subnet(VpcId=network.id, CidrBlock="10.0.8.0/24")["Subnet"]["SubnetId"]
        return subnet, lambda: self.ec2.delete_subnet(SubnetId=subnet) and None

    def delete_by_hand(self, network: Network) -> None:
        self.ec2.detach_internet_gateway(InternetGatewayId=network.parts["internet-gateway"], VpcId=network.id)
        self.ec2.delete_security_group(GroupId=network.parts["nodes-security-group"])
        self.ec2.delete_vpc(VpcId=network.id)

    def make(self, *cidrs: str) -> NetworkRecord:
        order = self.order(*cidrs)
        network = self.cloud.ensure(NetworkRecord(order=order, network=None)).network
        return NetworkRecord(order=order, network=network)

    def group(self, network: Network, name: str, **tags: str) -> str:
        specification: Any = [
            {"ResourceType": "security-group", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ]
        return self.ec2.create_security_group(
            GroupName=name, Description=name, VpcId=network.id, TagSpecifications=specification if tags else []
        )["GroupId"]

    def allow(self, group: str, other: str) -> None:
        self.ec2.authorize_security_group_ingress(
            GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}]
        )


@pytest.fixture
def rig(faults: Faults) -> AwsRig:
    return AwsRig(faults)


class TestContract(CloudContract):
    """AWS does what every provider does."""


def _network(record: NetworkRecord) -> Network:
    assert record.network is not None
    return record.network


def _attribute(rig: AwsRig, network: Network, name: Any) -> bool:
    answer: Any = rig.ec2.describe_vpc_attribute(VpcId=network.id, Attribute=name)
    return bool(answer[name[0].upper() + name[1:]]["Value"])


def _vpc(rig: AwsRig, network: Network) -> Any:
    return rig.ec2.describe_vpcs(VpcIds=[network.id])["Vpcs"][0]


def _rules(rig: AwsRig, network: Network) -> set[tuple[Any, ...]]:
    group = rig.ec2.describe_security_groups(GroupIds=[network.parts["nodes-security-group"]])["SecurityGroups"][0]
    found = set()
    for way, permissions in (("in", group["IpPermissions"]), ("out", group["IpPermissionsEgress"])):
        for permission in permissions:
            sources = [entry["CidrIp"] for entry in permission["IpRanges"]]
            sources += [entry["GroupId"] for entry in permission["UserIdGroupPairs"]]
            ports = (permission.get("FromPort"), permission.get("ToPort"))
            found |= {(way, permission["IpProtocol"], *ports, source) for source in sources}
    return found


def _wanted_rules(network: Network) -> set[tuple[Any, ...]]:
    return {
        ("in", "-1", None, None, network.parts["nodes-security-group"]),
        ("in", "tcp", 30000, 32767, "0.0.0.0/0"),
        ("in", "udp", 30000, 32767, "0.0.0.0/0"),
        ("out", "-1", None, None, "0.0.0.0/0"),
    }


def test_a_new_vpc_is_what_gardener_asks_for(rig: AwsRig) -> None:
    record = rig.make("10.0.0.0/16", "10.1.0.0/16")
    network, vpc = _network(record), _vpc(rig, _network(record))
    assert network.account == vpc["OwnerId"]
    assert {block["CidrBlock"] for block in vpc["CidrBlockAssociationSet"]} == {"10.0.0.0/16", "10.1.0.0/16"}
    assert _attribute(rig, network, "enableDnsSupport")
    assert _attribute(rig, network, "enableDnsHostnames")
    gateway = rig.ec2.describe_internet_gateways(InternetGatewayIds=[network.parts["internet-gateway"]])
    assert [place["VpcId"] for place in gateway["InternetGateways"][0]["Attachments"]] == [network.id]
    assert vpc["DhcpOptionsId"] == network.parts["dhcp-options"]
    options = rig.ec2.describe_dhcp_options(DhcpOptionsIds=[network.parts["dhcp-options"]])["DhcpOptions"][0]
    configured = {
        entry["Key"]: [value["Value"] for value in entry["Values"]] for entry in options["DhcpConfigurations"]
    }
    assert configured == {
        "domain-name": ["eu-central-1.compute.internal"],
        "domain-name-servers": ["AmazonProvidedDNS"],
    }
    assert _rules(rig, network) == _wanted_rules(network)
    keys = {tag["Key"] for tag in vpc["Tags"]}
    assert not any(key.startswith("kubernetes.io/") for key in keys)
    assert {
        "Name",
        "trellis.dev/installation",
        "trellis.dev/tenant",
        "trellis.dev/vpc",
        "trellis.dev/incarnation",
    } == keys


def test_the_domain_name_of_us_east_1_is_the_old_one(rig: AwsRig) -> None:
    order = rig.order().model_copy(update={"region": "us-east-1"})
    network = rig.connect("us-east-1").ensure(NetworkRecord(order=order, network=None)).network
    ec2 = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name="us-east-1").client("ec2")
    options = ec2.describe_dhcp_options(DhcpOptionsIds=[network.parts["dhcp-options"]])["DhcpOptions"][0]
    configured = {entry["Key"]: entry["Values"][0]["Value"] for entry in options["DhcpConfigurations"]}
    assert configured["domain-name"] == "ec2.internal"


def test_what_drifted_is_mended(rig: AwsRig) -> None:
    record = rig.make()
    network = _network(record)
    rig.ec2.modify_vpc_attribute(VpcId=network.id, EnableDnsHostnames={"Value": False})
    rig.ec2.associate_dhcp_options(VpcId=network.id, DhcpOptionsId="default")
    rig.ec2.detach_internet_gateway(VpcId=network.id, InternetGatewayId=network.parts["internet-gateway"])
    group = network.parts["nodes-security-group"]
    rules: Any = rig.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    rig.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=rules["IpPermissions"])
    rig.ec2.revoke_security_group_egress(GroupId=group, IpPermissions=rules["IpPermissionsEgress"])

    assert rig.cloud.ensure(record).network == network
    assert _attribute(rig, network, "enableDnsHostnames")
    assert _vpc(rig, network)["DhcpOptionsId"] == network.parts["dhcp-options"]
    assert _rules(rig, network) == _wanted_rules(network)
    gateways = rig.ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [network.id]}])
    assert [one["InternetGatewayId"] for one in gateways["InternetGateways"]] == [network.parts["internet-gateway"]]


def test_a_part_deleted_by_hand_is_made_again(rig: AwsRig) -> None:
    record = rig.make()
    rig.ec2.delete_security_group(GroupId=_network(record).parts["nodes-security-group"])
    again = rig.cloud.ensure(record).network
    assert again.id == _network(record).id
    assert _rules(rig, again) == _wanted_rules(again)
    rig.cloud.remove(NetworkRecord(order=record.order, network=again))
    assert rig.left() == ()


def test_rules_that_others_added_stay(rig: AwsRig) -> None:
    record = rig.make()
    group = _network(record).parts["nodes-security-group"]
    rig.ec2.authorize_security_group_ingress(
        GroupId=group,
        IpPermissions=[{"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}],
    )
    rig.cloud.ensure(record)
    assert ("in", "icmp", -1, -1, "10.0.0.0/8") in _rules(rig, _network(record))


def test_looking_at_a_network_that_is_as_it_should_be_costs_seven_calls(rig: AwsRig) -> None:
    record = rig.make()
    calls: list[str] = []
    cloud = rig.connect()
    for client in (cloud._account.read, cloud._account.change):
        client.meta.events.register("before-call.ec2", lambda model, **_: calls.append(model.name))
    cloud.ensure(record)
    assert len(calls) == 7, calls
    assert all(call.startswith("Describe") for call in calls)


def test_subnets_that_are_inside_already_are_reported(rig: AwsRig) -> None:
    record = rig.make()
    for cidr in ("10.0.4.0/24", "10.0.0.0/24"):
        rig.ec2.create_subnet(VpcId=_network(record).id, CidrBlock=cidr)
    assert rig.cloud.ensure(record).ranges == (IPv4Network("10.0.0.0/24"), IPv4Network("10.0.4.0/24"))


def test_a_vpc_that_is_not_visible_at_once_is_waited_for(rig: AwsRig) -> None:
    # The look-up before the create passes.
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeVpcs", after=1, times=3)
    record = rig.make()
    assert rig.networks(record.order) == [_network(record).id]


def test_a_vpc_that_never_becomes_visible_is_lost_at_the_deadline(rig: AwsRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeVpcs", times=100_000)
    with pytest.raises(TrellisError, match="not found for 2 s") as caught:
        rig.make()
    assert caught.value.failure.code is Code.LOST


def test_a_vpc_that_other_calls_do_not_know_yet_is_tried_again(rig: AwsRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "AttachInternetGateway")
    order = rig.order()
    record = NetworkRecord(order=order, network=None)
    with pytest.raises(TrellisError) as caught:
        rig.cloud.ensure(record)
    assert caught.value.failure.code is Code.EVENTUAL
    assert rig.networks(order) == [insist(lambda: rig.cloud.ensure(record)).network.id]


def test_a_lost_create_that_becomes_visible_late_is_adopted(rig: AwsRig) -> None:
    rig.break_next(FaultKind.LOST_RESPONSE, "CreateVpc")
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeVpcs", after=1, times=3)
    record = rig.make()
    assert rig.networks(record.order) == [_network(record).id]


def test_two_vpcs_of_one_incarnation_are_left_for_a_person_to_decide(rig: AwsRig) -> None:
    record = rig.make()
    twin = _copy_of(rig, _network(record))
    with pytest.raises(TrellisError, match=twin) as caught:
        rig.cloud.ensure(NetworkRecord(order=record.order, network=None))
    assert caught.value.failure.code is Code.CONFLICT


def test_only_what_is_on_record_and_tagged_is_removed(rig: AwsRig) -> None:
    record = rig.make()
    twin = _copy_of(rig, _network(record))
    rig.cloud.remove(record)
    assert rig.networks(record.order) == [twin]


def test_a_vpc_whose_tags_were_taken_away_is_left_alone(rig: AwsRig) -> None:
    record = rig.make()
    rig.ec2.delete_tags(Resources=[_network(record).id], Tags=[{"Key": "trellis.dev/vpc"}])
    for step in (rig.cloud.remove, rig.cloud.ensure):
        with pytest.raises(TrellisError, match=r"trellis\.dev/vpc") as caught:
            step(record)
        assert caught.value.failure.code is Code.CONFLICT
    assert _vpc(rig, _network(record))["State"] == "available"


def test_a_vpc_of_another_account_is_not_taken_for_deleted(rig: AwsRig) -> None:
    record = rig.make()
    elsewhere = _network(record).model_copy(update={"id": "vpc-0123456789abcdef0", "account": "999999999999"})
    for step in (rig.cloud.remove, rig.cloud.ensure):
        with pytest.raises(TrellisError, match="999999999999") as caught:
            step(NetworkRecord(order=record.order, network=elsewhere))
        assert caught.value.failure.code is Code.CONFLICT


def test_blockers_are_named_with_kind_name_and_owner(rig: AwsRig) -> None:
    record = rig.make()
    owner = {"kubernetes.io/cluster/shoot--p--abc": "owned"}
    group = rig.group(_network(record), "k8s-elb-a1b2", **owner)
    with pytest.raises(TrellisError) as caught:
        rig.cloud.remove(record)
    assert f"security-group {group} (k8s-elb-a1b2) of shoot--p--abc" in caught.value.failure.message
    rig.ec2.delete_security_group(GroupId=group)
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_foreign_groups_that_refer_to_each_other_and_to_ours_do_not_deadlock(rig: AwsRig) -> None:
    record = rig.make()
    network = _network(record)
    ours = network.parts["nodes-security-group"]
    first, second = rig.group(network, "sg-a"), rig.group(network, "sg-b")
    for group, other in ((first, second), (second, first), (ours, first), (first, ours)):
        rig.allow(group, other)
    with pytest.raises(TrellisError, match=first) as caught:
        rig.cloud.remove(record)
    assert caught.value.failure.code is Code.BLOCKED
    assert second in caught.value.failure.message
    # The owner of the two can remove them: nothing of ours names them any more.
    for group, other in ((first, second), (first, ours), (second, first)):
        rig.ec2.revoke_security_group_ingress(
            GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}]
        )
    for group in (first, second):
        rig.ec2.delete_security_group(GroupId=group)
    rig.cloud.remove(record)
    assert rig.left() == ()


@pytest.mark.parametrize(("hidden", "code"), [(1, Code.BLOCKED), (2, Code.BUSY)])
def test_what_appears_during_a_removal_is_named_as_soon_as_it_is_seen(rig: AwsRig, hidden: int, code: Code) -> None:
    record = rig.make()
    subnet, take_away = rig.add_foreign(_network(record))
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeSubnets", times=hidden)
    with pytest.raises(TrellisError) as caught:
        rig.cloud.remove(record)
    assert caught.value.failure.code is code
    assert (subnet in caught.value.failure.message) is (code is Code.BLOCKED)
    with pytest.raises(TrellisError, match=subnet):
        rig.cloud.remove(record)
    take_away()
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_a_nat_gateway_on_its_way_out_is_no_blocker_of_its_own(rig: AwsRig) -> None:
    record = rig.make()
    subnet, take_away = rig.add_foreign(_network(record))
    address = rig.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = rig.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    rig.ec2.get_waiter("nat_gateway_available").wait(NatGatewayIds=[nat], WaiterConfig={"Delay": 1})
    assert {nat, subnet} <= {blocker.id for blocker in rig.cloud.blockers(record)}
    rig.ec2.delete_nat_gateway(NatGatewayId=nat)
    assert [blocker.id for blocker in rig.cloud.blockers(record)] == [subnet]
    rig.ec2.get_waiter("nat_gateway_deleted").wait(NatGatewayIds=[nat], WaiterConfig={"Delay": 1})
    rig.ec2.release_address(AllocationId=address)
    take_away()
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_a_foreign_peering_blocks(rig: AwsRig) -> None:
    record = rig.make()
    other = rig.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    peering = rig.ec2.create_vpc_peering_connection(VpcId=other, PeerVpcId=_network(record).id)
    peering_id = peering["VpcPeeringConnection"]["VpcPeeringConnectionId"]
    with pytest.raises(TrellisError, match=peering_id):
        rig.cloud.remove(record)
    rig.ec2.delete_vpc_peering_connection(VpcPeeringConnectionId=peering_id)
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_a_foreign_gateway_is_a_conflict_while_making_and_a_blocker_while_removing(rig: AwsRig) -> None:
    record = rig.make()
    network = _network(record)
    rig.ec2.detach_internet_gateway(VpcId=network.id, InternetGatewayId=network.parts["internet-gateway"])
    foreign = rig.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    rig.ec2.attach_internet_gateway(VpcId=network.id, InternetGatewayId=foreign)
    for step, code in ((rig.cloud.ensure, Code.CONFLICT), (rig.cloud.remove, Code.BLOCKED)):
        with pytest.raises(TrellisError, match=foreign) as caught:
            step(record)
        assert caught.value.failure.code is code


def test_dhcp_options_that_another_vpc_uses_are_named_as_blocked(rig: AwsRig) -> None:
    record = rig.make()
    options = _network(record).parts["dhcp-options"]
    other = rig.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    rig.ec2.associate_dhcp_options(VpcId=other, DhcpOptionsId=options)
    with pytest.raises(TrellisError, match=other) as caught:
        rig.cloud.remove(record)
    assert caught.value.failure.code is Code.BLOCKED
    rig.ec2.associate_dhcp_options(VpcId=other, DhcpOptionsId="default")
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_another_primary_range_is_a_conflict(rig: AwsRig) -> None:
    record = rig.make()
    order = record.order.model_copy(update={"cidrs": (IPv4Network("10.5.0.0/16"),)})
    with pytest.raises(TrellisError, match=r"10\.5\.0\.0/16") as caught:
        rig.cloud.ensure(NetworkRecord(order=order, network=None))
    assert caught.value.failure.code is Code.CONFLICT


def test_a_secret_without_keys_is_named_by_what_it_lacks() -> None:
    with pytest.raises(TrellisError, match="secretAccessKey") as caught:
        AwsCloud(REGION, {"accessKeyID": ACCESS_KEY}, installation="i")
    assert caught.value.failure.code is Code.FORBIDDEN
    assert ACCESS_KEY not in str(caught.value)


def _copy_of(rig: AwsRig, network: Network) -> str:
    tags: Any = _vpc(rig, network)["Tags"]
    specification: Any = [{"ResourceType": "vpc", "Tags": tags}]
    return rig.ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=specification)["Vpc"]["VpcId"]


def _answer(code: str, status: int = 400, message: str = "AWS says so") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "CreateVpc",
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (_answer("RequestLimitExceeded", 503), Code.THROTTLED),
        (_answer("Throttling"), Code.THROTTLED),
        (_answer("Whatever", 429), Code.THROTTLED),
        (_answer("VpcLimitExceeded"), Code.QUOTA),
        (_answer("NewThingLimitExceeded"), Code.QUOTA),
        (_answer("UnauthorizedOperation", 403), Code.FORBIDDEN),
        (_answer("AuthFailure", 401), Code.FORBIDDEN),
        (_answer("SignatureDoesNotMatch", 403), Code.FORBIDDEN),
        (_answer("OptInRequired"), Code.FORBIDDEN),
        (_answer("InvalidVpcID.NotFound"), Code.NOT_FOUND),
        (_answer("DependencyViolation"), Code.BUSY),
        (_answer("DependencyViolation.SecurityGroup"), Code.BUSY),
        (_answer("IncorrectState"), Code.BUSY),
        (_answer("InvalidSubnet.Conflict"), Code.CONFLICT),
        (_answer("CidrConflict"), Code.CONFLICT),
        (_answer("InvalidGroup.Duplicate"), Code.EVENTUAL),
        (_answer("InvalidVpc.Range"), Code.INVALID),
        (_answer("InternalError", 500), Code.UNAVAILABLE),
        (_answer("Unavailable", 503), Code.UNAVAILABLE),
        (ReadTimeoutError(endpoint_url="https://ec2"), Code.LOST_RESPONSE),
        (EndpointConnectionError(endpoint_url="https://ec2"), Code.UNAVAILABLE),
        (NoCredentialsError(), Code.FORBIDDEN),
    ],
)
def test_every_error_of_aws_has_its_code_and_says_what_was_tried(error: Exception, code: Code) -> None:
    with pytest.raises(TrellisError, match="make it") as caught, attempting("make it", region=REGION):
        raise error
    assert caught.value.failure.code is code
    assert caught.value.__suppress_context__


def test_a_lost_answer_to_a_question_is_no_lost_effect() -> None:
    with pytest.raises(TrellisError) as caught, attempting("look", region=REGION, effect=False):
        raise ReadTimeoutError(endpoint_url="https://ec2")
    assert caught.value.failure.code is Code.UNAVAILABLE


@pytest.mark.parametrize("code", ["SignatureDoesNotMatch", "UnauthorizedOperation", "InvalidParameterValue"])
def test_no_credential_comes_back_in_a_message(code: str) -> None:
    said = f"the canonical string was {ACCESS_KEY}/20250101 x. Encoded authorization failure message: {SECRET_KEY}"
    with pytest.raises(TrellisError) as caught, attempting("make it", region=REGION):
        raise _answer(code, 403, said)
    assert ACCESS_KEY not in str(caught.value)
    assert SECRET_KEY not in str(caught.value)


def test_a_quota_is_named_with_where_to_raise_it(rig: AwsRig) -> None:
    rig.break_next(FaultKind.QUOTA, "CreateVpc")
    with pytest.raises(TrellisError, match="VPCs per Region") as caught:
        rig.make()
    assert "L-F678F1CE" in caught.value.failure.hint
    assert REGION in caught.value.failure.hint


@pytest.mark.parametrize("recorded", [True, False], ids=["on record", "half made"])
def test_what_is_not_visible_at_first_is_removed_all_the_same(rig: AwsRig, recorded: bool) -> None:
    """EC2 is eventually consistent: one look that finds nothing proves nothing, whichever call it is."""
    struck = 0
    while True:
        made = rig.make()
        rig.break_next(FaultKind.NOT_YET_VISIBLE, "De*", times=2, after=struck)
        insist(lambda made=made: rig.cloud.remove(made if recorded else made.model_copy(update={"network": None})))  # type: ignore[misc]
        pending = rig.faults.pending()
        rig.faults.clear()
        assert rig.left() == (), f"after a blind call number {struck + 1}"
        if pending and pending[0].after:
            break  # there are no more calls than that
        struck += 1
    assert struck > 10


@pytest.mark.parametrize("operation", ["DescribeInternetGateways", "DescribeDhcpOptions", "DescribeSecurityGroups"])
def test_what_is_on_record_is_not_made_anew_because_one_look_misses_it(rig: AwsRig, operation: str) -> None:
    made = rig.make()
    before = set(rig.left())
    rig.break_next(FaultKind.NOT_YET_VISIBLE, operation, times=2)
    assert insist(lambda: rig.cloud.ensure(made)).network == made.network
    assert not rig.faults.pending()
    assert set(rig.left()) == before
