"""Alibaba Cloud: the contract, and what only Alibaba Cloud has."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest
import requests
from alibabacloud_tea_openapi.exceptions import ClientException, ServerException, ThrottlingException
from darabonba.exceptions import RetryError, UnretryableException
from darabonba.policy.retry import RetryPolicyContext

from activities.clouds.alicloud import AlicloudCloud, Patience
from activities.clouds.alicloud._errors import attempting
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import FaultKind, Faults
from tests.activities.cloud_contract import CloudContract, Rig, insist
from tests.activities.proxied import proxied
from tests.sandbox.alicloud.server import ECS, PEER, REGION, Sdk, Server

QUOTAS = {f"vpc_quota_instances_num_{REGION}": 5000}


@pytest.fixture(scope="session")
def alicloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud itself, without faults, and closed to those without credentials."""
    state = tmp_path_factory.mktemp("alicloud") / "state"
    server = Server(state, operation_seconds=0.02, quotas=QUOTAS, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def key(alicloud: Server) -> dict[str, str]:
    return alicloud.key()


@pytest.fixture(scope="session")
def _proxied(alicloud: Server) -> Iterator[tuple[str, Faults]]:
    with proxied("alicloud", alicloud.url) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    for product in ("VPC", "VPCPEER", "ECS", "STS"):
        monkeypatch.setenv(f"ALIBABA_CLOUD_ENDPOINT_{product}", endpoint)
    faults.clear()
    yield faults
    faults.clear()


class AlicloudRig(Rig):
    """Alibaba Cloud, and its SDK as somebody else would use it."""

    api = "alicloud"
    making = "[CA]*"
    # What a removal asks and does, and `owned` does not.
    removing = "De*[!s]"
    create = "CreateVpc"

    def __init__(self, faults: Faults, server: Server, key: dict[str, str]) -> None:
        self.server, self.key = server, key
        super().__init__(faults)
        self.sdk: Sdk = server.sdk(key)

    def connect(self, region: str | None = None, **more: Any) -> AlicloudCloud:
        patience = Patience(settle=1, poll=0.01)
        secret = more.get("key", self.key)
        return AlicloudCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self, *cidrs: str) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.ALICLOUD,
            region=REGION,
            credentials="alicloud",
            cidrs=tuple(map(IPv4Network, cidrs or ("10.0.0.0/16", "10.1.0.0/16"))),
        )

    def networks(self, order: NetworkOrder) -> list[str]:
        tags = {"installation": self.installation, "vpc": order.vpc, "incarnation": order.incarnation}
        filters = {}
        for number, (name, value) in enumerate(tags.items(), 1):
            filters |= {f"Tag.{number}.Key": f"trellis.dev/{name}", f"Tag.{number}.Value": value}
        return [vpc["VpcId"] for vpc in self.sdk.vpcs(**filters)]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        vswitch = self.sdk.vswitch(network.id, "10.0.8.0/24")

        def take_away() -> None:
            self.sdk("DeleteVSwitch", VSwitchId=vswitch)
            self.sdk.until("DescribeVSwitches", "VSwitches", "VSwitch", None, VSwitchId=vswitch)

        return vswitch, take_away

    def delete_by_hand(self, network: Network) -> None:
        self.sdk("DeleteVpc", VpcId=network.id)
        self.sdk.until("DescribeVpcs", "Vpcs", "Vpc", None, VpcId=network.id)

    def make(self, *cidrs: str) -> NetworkRecord:
        order = self.order(*cidrs)
        return NetworkRecord(order=order, network=self.cloud.ensure(NetworkRecord(order=order, network=None)).network)


@pytest.fixture
def rig(faults: Faults, alicloud: Server, key: dict[str, str]) -> AlicloudRig:
    return AlicloudRig(faults, alicloud, key)


class TestContract(CloudContract):
    """Alibaba Cloud does what every provider does."""


def _network(record: NetworkRecord) -> Network:
    assert record.network is not None
    return record.network


def _vpc(rig: AlicloudRig, network: Network) -> Any:
    return rig.sdk.vpcs(VpcId=network.id)[0]


def test_a_new_vpc_is_what_was_ordered(rig: AlicloudRig) -> None:
    record = rig.make("10.0.0.0/16", "10.1.0.0/16", "172.16.0.0/16")
    network, vpc = _network(record), _vpc(rig, _network(record))
    assert network.account == rig.sdk.account
    assert network.parts == {}
    assert vpc["CidrBlock"] == "10.0.0.0/16"
    assert vpc["SecondaryCidrBlocks"]["SecondaryCidrBlock"] == ["10.1.0.0/16", "172.16.0.0/16"]
    assert vpc["VpcName"] == f"trellis/t/{record.order.vpc}"
    keys = {tag["Key"] for tag in vpc["Tags"]["Tag"]}
    assert keys == {f"trellis.dev/{name}" for name in ("installation", "tenant", "vpc", "incarnation")}


def test_a_range_that_somebody_took_away_comes_back(rig: AlicloudRig) -> None:
    record = rig.make()
    rig.sdk("UnassociateVpcCidrBlock", VpcId=_network(record).id, SecondaryCidrBlock="10.1.0.0/16")
    assert rig.cloud.ensure(record).network == _network(record)
    assert _vpc(rig, _network(record))["SecondaryCidrBlocks"]["SecondaryCidrBlock"] == ["10.1.0.0/16"]


def test_looking_at_a_vpc_that_is_as_it_should_be_costs_two_calls(rig: AlicloudRig) -> None:
    record = rig.make()
    rig.break_next(FaultKind.FORBIDDEN, "*", after=2)
    rig.cloud.ensure(record)
    assert rig.faults.pending()


def test_vswitches_that_are_inside_already_are_reported(rig: AlicloudRig) -> None:
    record = rig.make()
    for cidr in ("10.0.4.0/24", "10.1.0.0/24", "10.0.0.0/24"):
        rig.sdk.vswitch(_network(record).id, cidr)
    wanted = tuple(map(IPv4Network, ("10.0.0.0/24", "10.0.4.0/24", "10.1.0.0/24")))
    assert rig.cloud.ensure(record).ranges == wanted


def test_long_lists_are_read_to_the_end(rig: AlicloudRig, alicloud: Server) -> None:
    record = rig.make()
    with alicloud.having(operation_seconds=0):
        for index in range(60):
            rig.sdk("CreateVSwitch", VpcId=_network(record).id, CidrBlock=f"10.0.{index}.0/24", ZoneId="eu-central-1a")
        for index in range(60):
            rig.sdk("CreateSecurityGroup", ECS, VpcId=_network(record).id, SecurityGroupName=f"g{index}")
    assert len(rig.cloud.ensure(record).ranges) == 60
    kinds = [blocker.kind for blocker in rig.cloud.blockers(record)]
    assert (kinds.count("vswitch"), kinds.count("security-group")) == (60, 60)


def test_a_vpc_that_is_not_visible_at_once_is_waited_for(rig: AlicloudRig) -> None:
    # The look-up before the create passes.
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeVpcs", after=1, times=3)
    record = rig.make()
    assert rig.networks(record.order) == [_network(record).id]


def test_a_vpc_that_never_becomes_visible_is_lost_at_the_deadline(rig: AlicloudRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeVpcs", times=100_000)
    with pytest.raises(TrellisError, match="not found for 1 s") as caught:
        rig.make()
    assert caught.value.failure.code is Code.LOST


def test_a_vpc_that_other_calls_do_not_know_yet_is_tried_again(rig: AlicloudRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "AssociateVpcCidrBlock")
    record = NetworkRecord(order=rig.order(), network=None)
    with pytest.raises(TrellisError) as caught:
        rig.cloud.ensure(record)
    assert caught.value.failure.code is Code.EVENTUAL
    assert rig.networks(record.order) == [insist(lambda: rig.cloud.ensure(record)).network.id]


def test_a_lost_create_that_no_list_shows_is_found_by_its_token(rig: AlicloudRig) -> None:
    record = NetworkRecord(order=rig.order(), network=None)
    rig.break_next(FaultKind.LOST_RESPONSE, "CreateVpc")
    with pytest.raises(TrellisError) as caught:
        rig.cloud.ensure(record)
    assert caught.value.failure.code is Code.LOST_RESPONSE
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "DescribeVpcs")
    again = rig.cloud.ensure(record).network
    assert rig.networks(record.order) == [again.id]


def test_two_vpcs_of_one_incarnation_are_left_for_a_person_to_decide(rig: AlicloudRig) -> None:
    record = rig.make()
    tags = {}
    for number, tag in enumerate(_vpc(rig, _network(record))["Tags"]["Tag"], 1):
        tags |= {f"Tag.{number}.Key": tag["Key"], f"Tag.{number}.Value": tag["Value"]}
    other = rig.sdk.vpc(**tags)
    with pytest.raises(TrellisError, match=other) as caught:
        rig.cloud.ensure(NetworkRecord(order=record.order, network=None))
    assert caught.value.failure.code is Code.CONFLICT


def test_a_vpc_without_our_tags_is_left_alone(rig: AlicloudRig) -> None:
    record = rig.make()
    key = "trellis.dev/incarnation"
    vpc_id = _network(record).id
    rig.sdk("UnTagResources", ResourceType="VPC", ResourceId__1=vpc_id, TagKey__1=key)
    for step in (rig.cloud.ensure, rig.cloud.remove, rig.cloud.blockers):
        with pytest.raises(TrellisError, match=key) as caught:
            step(record)
        assert caught.value.failure.code is Code.CONFLICT
    assert rig.sdk.vpcs(VpcId=vpc_id)


def test_a_vpc_with_another_first_range_is_a_conflict(rig: AlicloudRig) -> None:
    record = rig.make("10.0.0.0/16")
    changed = record.order.model_copy(update={"cidrs": (IPv4Network("10.9.0.0/16"),)})
    with pytest.raises(TrellisError, match=r"primary range 10\.0\.0\.0/16") as caught:
        rig.cloud.ensure(NetworkRecord(order=changed, network=record.network))
    assert caught.value.failure.code is Code.CONFLICT


def test_a_range_that_overlaps_is_refused_as_alibaba_says(rig: AlicloudRig) -> None:
    with pytest.raises(TrellisError, match="overlaps with the CIDR blocks of the VPC") as caught:
        rig.make("10.0.0.0/16", "10.0.1.0/24")
    assert caught.value.failure.code is Code.INVALID


def test_more_ranges_than_the_quota_allows_are_a_quota(rig: AlicloudRig) -> None:
    with pytest.raises(TrellisError, match="QuotaExceeded") as caught:
        rig.make(*(f"10.{index}.0.0/16" for index in range(7)))
    assert caught.value.failure.code is Code.QUOTA
    assert "quotas.console" in caught.value.failure.hint


@pytest.mark.parametrize("make", ["nat", "table", "group", "peering"])
def test_whatever_is_inside_is_named_with_its_cluster(rig: AlicloudRig, make: str) -> None:
    record = rig.make()
    vpc, tags = _network(record).id, {"Tag__1__Key": "kubernetes.io/cluster/shoot--p--x", "Tag__1__Value": "1"}
    sdk = rig.sdk
    match make:
        case "nat":
            foreign = sdk.nat(vpc, sdk.vswitch(vpc), Name="n", **tags)["NatGatewayId"]
        case "table":
            foreign = sdk.table(vpc, RouteTableName="n", **tags)
        case "group":
            foreign = sdk("CreateSecurityGroup", ECS, VpcId=vpc, SecurityGroupName="n", **tags)["SecurityGroupId"]
        case _:
            # Seen from the accepter's side.
            there = {"AcceptingRegionId": REGION, "AcceptingVpcId": vpc}
            made = sdk("CreateVpcPeerConnection", PEER, VpcId=sdk.vpc("10.9.0.0/16"), Name="n", **there, **tags)
            foreign = made["InstanceId"]
    named = {blocker.id: blocker for blocker in rig.cloud.blockers(record)}
    assert (named[foreign].name, named[foreign].owner) == ("n", "shoot--p--x")
    with pytest.raises(TrellisError, match=foreign) as caught:
        rig.cloud.remove(record)
    assert caught.value.failure.code is Code.BLOCKED


def test_what_was_removed_a_moment_ago_is_waited_for(rig: AlicloudRig, alicloud: Server) -> None:
    record = rig.make()
    group = rig.sdk("CreateSecurityGroup", ECS, VpcId=_network(record).id)["SecurityGroupId"]
    with alicloud.having(operation_seconds_by_verb={"Settling": 0.3}):
        rig.sdk("DeleteSecurityGroup", ECS, SecurityGroupId=group)
        assert rig.sdk.refused("DeleteVpc", VpcId=_network(record).id) == (400, "DependencyViolation.SecurityGroup")
        rig.cloud.remove(record)
    assert rig.left() == ()


def test_a_dependency_that_does_not_go_away_is_told_in_alibabas_words(rig: AlicloudRig, alicloud: Server) -> None:
    record = rig.make()
    group = rig.sdk("CreateSecurityGroup", ECS, VpcId=_network(record).id)["SecurityGroupId"]
    with alicloud.having(operation_seconds_by_verb={"Settling": 60}):
        rig.sdk("DeleteSecurityGroup", ECS, SecurityGroupId=group)
        with pytest.raises(TrellisError, match=r"DependencyViolation\.SecurityGroup") as caught:
            rig.cloud.remove(record)
    assert caught.value.failure.code is Code.BUSY
    assert caught.value.failure.transient


def test_a_vpc_that_an_earlier_attempt_is_deleting_is_waited_for(rig: AlicloudRig, alicloud: Server) -> None:
    record = rig.make()
    with alicloud.having(operation_seconds_by_verb={"DeleteVpc": 0.3}):
        rig.sdk("DeleteVpc", VpcId=_network(record).id)
        rig.cloud.remove(record)
    assert rig.sdk.vpcs(VpcId=_network(record).id) == []


def test_a_vpc_of_another_account_is_not_taken_for_deleted(rig: AlicloudRig, alicloud: Server) -> None:
    record = rig.make()
    other = rig.connect(key=alicloud.key(account="9999999999999999"))
    for step in (other.ensure, other.remove, other.blockers):
        with pytest.raises(TrellisError, match="9999999999999999") as caught:
            step(record)
        assert caught.value.failure.code is Code.CONFLICT
    assert rig.networks(record.order) == [_network(record).id]


def test_the_documented_actions_are_enough_and_needed(rig: AlicloudRig, alicloud: Server) -> None:
    needed = [
        *("vpc:AssociateVpcCidrBlock", "vpc:CreateVpc", "vpc:DeleteVpc", "vpc:DescribeVpcs", "vpc:DescribeNatGateways"),
        *("vpc:DescribeRouteTableList", "vpc:DescribeVSwitches", "vpc:DescribeVpcAttribute"),
        *("vpc:ListVpcPeerConnections", "ecs:DescribeSecurityGroups"),
    ]

    def live(permissions: list[str]) -> None:
        cloud = rig.connect(key=alicloud.key(permissions=permissions))
        order = rig.order()
        record = NetworkRecord(order=order, network=cloud.ensure(NetworkRecord(order=order, network=None)).network)
        cloud.remove(record)

    live(needed)
    for one in needed:
        with pytest.raises(TrellisError) as caught:
            live([each for each in needed if each != one])
        assert caught.value.failure.code is Code.FORBIDDEN
        assert "permission" in caught.value.failure.hint


@pytest.mark.parametrize("secret", [{}, {"accessKeyID": "LTAI5tSomething"}, {"accessKeyID": "", "accessKeySecret": ""}])
def test_a_secret_without_a_key_is_refused(secret: dict[str, str]) -> None:
    with pytest.raises(TrellisError, match="accessKeySecret") as caught:
        AlicloudCloud(REGION, secret, installation="i")
    assert caught.value.failure.code is Code.FORBIDDEN


@pytest.mark.parametrize("region", ["", "Frankfurt", "eu-central-1.evil.example/", "eu_central"])
def test_a_region_that_cannot_be_is_refused(rig: AlicloudRig, region: str) -> None:
    with pytest.raises(TrellisError, match="no region") as caught:
        AlicloudCloud(region, rig.key, installation="i")
    assert caught.value.failure.code is Code.INVALID


def test_an_unknown_region_is_no_place_where_something_is_gone(rig: AlicloudRig) -> None:
    record = rig.make()
    order = record.order.model_copy(update={"region": "xx-nowhere-1"})
    with pytest.raises(TrellisError, match="xx-nowhere-1") as caught:
        rig.connect("xx-nowhere-1").remove(NetworkRecord(order=order, network=record.network))
    assert caught.value.failure.code is Code.INVALID


@pytest.mark.parametrize("wrong", ["accessKeyID", "accessKeySecret"])
def test_a_wrong_key_is_forbidden_and_not_repeated(rig: AlicloudRig, wrong: str) -> None:
    secret = rig.key | {wrong: "LTAI5tqwertzuiop12345"}
    with pytest.raises(TrellisError) as caught:
        rig.connect(key=secret).owned()
    assert caught.value.failure.code is Code.FORBIDDEN
    assert not any(value in str(caught.value) for value in secret.values())


def test_an_endpoint_where_nobody_listens_is_unavailable(rig: AlicloudRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ENDPOINT_VPC", "http://127.0.0.1:9")
    with pytest.raises(TrellisError, match="cannot be reached") as caught:
        rig.connect().ensure(NetworkRecord(order=rig.order(), network=None))
    assert caught.value.failure.code is Code.UNAVAILABLE


def _answer(code: str, status: int = 400, message: str = "Alibaba says so") -> ClientException:
    kind = ServerException if status >= 500 else ClientException
    return kind(status_code=status, code=code, message=message, data={"Code": code, "Message": message})


def _unanswered(cause: Exception) -> Exception:
    error = RetryError(str(cause))
    error.__context__ = cause
    return UnretryableException(RetryPolicyContext(retries_attempted=1, exception=error))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (_answer("Throttling.User"), Code.THROTTLED),
        (_answer("Throttling.Api"), Code.THROTTLED),
        (_answer("Rejected.Throttling"), Code.THROTTLED),
        (_answer("Whatever", 429), Code.THROTTLED),
        (ThrottlingException(status_code=400, code="Any", message="", retry_after=10), Code.THROTTLED),
        (_answer("QuotaExceeded.Vpc"), Code.QUOTA),
        (_answer("QuotaExceeded.SecondaryCidrNum"), Code.QUOTA),
        (_answer("InvalidUserCidr.Quota"), Code.QUOTA),
        (_answer("Forbidden.RAM", 403), Code.FORBIDDEN),
        (_answer("Forbbiden", 403), Code.FORBIDDEN),
        (_answer("InvalidAccessKeyId.NotFound", 404), Code.FORBIDDEN),
        (_answer("InvalidAccessKeyId.Inactive"), Code.FORBIDDEN),
        (_answer("SignatureDoesNotMatch"), Code.FORBIDDEN),
        (_answer("InvalidTimeStamp.Expired"), Code.FORBIDDEN),
        (_answer("InvalidVpcId.NotFound", 404), Code.NOT_FOUND),
        (_answer("Forbidden.VpcNotFound"), Code.NOT_FOUND),
        (_answer("ResourceNotFound.InstanceId", 404), Code.NOT_FOUND),
        (_answer("InvalidRegionId.NotFound", 404), Code.INVALID),
        (_answer("Forbidden.RegionNotFound", 404), Code.INVALID),
        (_answer("InvalidAction.NotFound", 404), Code.INVALID),
        (_answer("DependencyViolation.VSwitch"), Code.BUSY),
        (_answer("DependencyViolation.SecurityGroup"), Code.BUSY),
        (_answer("DependencyViolation"), Code.BUSY),
        (_answer("IncorrectVpcStatus"), Code.BUSY),
        (_answer("IncorrectStatus.Vpc"), Code.BUSY),
        (_answer("OperationFailed.LastTokenProcessing"), Code.BUSY),
        (_answer("OperationConflict"), Code.BUSY),
        (_answer("TaskConflict"), Code.BUSY),
        (_answer("InvalidCidrBlock.Overlapped"), Code.CONFLICT),
        (_answer("ResourceAlreadyExist.VpcPeer"), Code.CONFLICT),
        (_answer("InvalidParameter"), Code.INVALID),
        (_answer("InternalError", 500), Code.UNAVAILABLE),
        (_answer("ServiceUnavailable", 503), Code.UNAVAILABLE),
        (_unanswered(requests.exceptions.ReadTimeout("slow")), Code.LOST_RESPONSE),
        (_unanswered(requests.exceptions.ChunkedEncodingError("broken")), Code.LOST_RESPONSE),
        (_unanswered(requests.exceptions.ConnectTimeout("far")), Code.UNAVAILABLE),
        (_unanswered(ValueError("no JSON")), Code.LOST_RESPONSE),
    ],
)
def test_every_error_of_alibaba_has_its_code_and_says_what_was_tried(error: Exception, code: Code) -> None:
    with pytest.raises(TrellisError, match="make it") as caught, attempting("make it", region=REGION):
        raise error
    assert caught.value.failure.code is code
    assert caught.value.__suppress_context__


def test_a_lost_answer_to_a_question_is_no_lost_effect() -> None:
    with pytest.raises(TrellisError) as caught, attempting("look", region=REGION, effect=False):
        raise _unanswered(requests.exceptions.ReadTimeout("slow"))
    assert caught.value.failure.code is Code.UNAVAILABLE


@pytest.mark.parametrize("code", ["SignatureDoesNotMatch", "Forbidden.RAM", "InvalidParameter"])
def test_no_credential_comes_back_in_a_message(code: str) -> None:
    with pytest.raises(TrellisError) as caught, attempting("make it", region=REGION):
        raise _answer(code, 403, "string to sign is: GET&%2F&AccessKeyId%3DLTAI5tqwertzuiop12345 and more")
    assert "LTAI5t" not in str(caught.value)
