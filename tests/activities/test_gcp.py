"""GCP: the contract, and what only GCP has."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.cloud import compute_v1

from activities.clouds.gcp import GcpCloud, Patience
from activities.clouds.gcp import __doc__ as GCP_DOC  # noqa: N812
from domain.errors import Code, Failure, TrellisError
from domain.networks import Network, NetworkRecord
from sandbox.faults import FaultKind, Faults
from tests.activities.cloud_contract import CloudContract
from tests.activities.gcp_rig import GcpRig
from tests.activities.proxied import proxied
from tests.sandbox.gcp_server import PROJECT, REGION, ZONE, Server

QUOTAS = {"NETWORKS": 5000, "ROUTERS": 5000}


@pytest.fixture(scope="session")
def gcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud itself, without faults, and closed to those without credentials."""
    server = Server(tmp_path_factory.mktemp("gcp") / "state", operation_seconds=0.01, quotas=QUOTAS, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def key(gcp: Server) -> dict[str, Any]:
    return gcp.key()


@pytest.fixture(scope="session")
def _proxied(gcp: Server) -> Iterator[tuple[str, Faults]]:
    with proxied("gcp", gcp.url) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", f"{endpoint}/compute/v1/")
    faults.clear()
    yield faults
    faults.clear()


@pytest.fixture
def rig(faults: Faults, gcp: Server, key: dict[str, Any]) -> GcpRig:
    return GcpRig(faults, gcp, key)


class TestContract(CloudContract):
    """GCP does what every provider does."""


def made(rig: GcpRig, **changes: Any) -> NetworkRecord:
    order = rig.order().model_copy(update=changes)
    return NetworkRecord(order=order, network=rig.cloud.ensure(NetworkRecord(order=order, network=None)).network)


def _network(record: NetworkRecord) -> Network:
    assert record.network is not None
    return record.network


def _refusal(step: Callable[[NetworkRecord], Any], record: NetworkRecord) -> Failure:
    with pytest.raises(TrellisError) as caught:
        step(record)
    return caught.value.failure


# --- making -----------------------------------------------------------------------------------------------------------


def test_a_new_network_is_what_gardener_asks_for(rig: GcpRig) -> None:
    record = made(rig)
    network = rig.compute.networks.get(project=PROJECT, network=_network(record).id)
    assert not network.auto_create_subnetworks
    assert network.routing_config.routing_mode == "REGIONAL"
    assert _network(record).account == PROJECT
    routers = [
        rig.compute.routers.get(project=PROJECT, region=REGION, router=each) for each in _network(record).parts.values()
    ]
    assert {each.network for each in routers} == {network.self_link}
    assert {each.description for each in routers} == {network.description}
    assert json.loads(network.description) == {
        "trellis.dev/installation": rig.installation,
        "trellis.dev/tenant": "t",
        "trellis.dev/vpc": record.order.vpc,
        "trellis.dev/incarnation": "1",
        "trellis.dev/region": REGION,
    }


@pytest.mark.parametrize(("clusters", "routers"), [(1, 1), (50, 1), (51, 2), (64, 2), (250, 5), (10_000, 5)])
def test_there_are_as_many_routers_as_the_clusters_need(rig: GcpRig, clusters: int, routers: int) -> None:
    record = made(rig, clusters=clusters)
    assert list(_network(record).parts) == [f"router-{index}" for index in range(routers)]


def test_a_network_that_grows_gets_more_routers_and_loses_none(rig: GcpRig) -> None:
    record = made(rig, clusters=10)
    wider = record.model_copy(update={"order": record.order.model_copy(update={"clusters": 120})})
    grown = rig.cloud.ensure(wider).network
    assert list(grown.parts) == ["router-0", "router-1", "router-2"]
    assert rig.cloud.ensure(record).network == grown
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_nat_gateways_on_a_router_stay_when_a_network_is_looked_at_again(rig: GcpRig) -> None:
    record = made(rig)
    name = rig.shoot_in(_network(record))
    assert rig.cloud.ensure(record).network == record.network
    router = rig.compute.routers.get(project=PROJECT, region=REGION, router=_network(record).parts["router-0"])
    assert [nat.name for nat in router.nats] == [f"{name}-cloud-nat"]


def test_a_router_deleted_by_hand_is_made_again(rig: GcpRig) -> None:
    record = made(rig)
    router = _network(record).parts["router-1"]
    rig.compute.done(rig.compute.routers.delete_unary(project=PROJECT, region=REGION, router=router))
    assert rig.cloud.ensure(record).network == record.network
    assert rig.compute.routers.get(project=PROJECT, region=REGION, router=router).name == router


def test_nothing_changes_and_four_calls_are_made_where_nothing_is_to_be_done(rig: GcpRig) -> None:
    record = made(rig)
    rig.faults.forget_operations()
    rig.cloud.ensure(record)
    assert {each["operation"]: each["times"] for each in rig.faults.operations()} == {
        "networks.get": 1,
        "routers.list": 1,
        "subnetworks.aggregatedList": 1,
        "globalAddresses.list": 1,
    }


def test_all_ranges_that_are_taken_are_reported(rig: GcpRig) -> None:
    record = made(rig)
    name = _network(record).id
    pods = compute_v1.SubnetworkSecondaryRange(range_name="pods", ip_cidr_range="10.7.0.0/20")
    here, there = (f"s-{uuid.uuid4().hex[:8]}" for _ in range(2))
    rig.compute.done(rig.compute.subnetwork(name, here, "10.0.4.0/24", secondary_ip_ranges=[pods]))
    rig.compute.done(rig.compute.subnetwork(name, there, "10.0.0.0/24", region="us-central1"))
    rig.reserve(name, "10.0.64.0", 20)
    other = made(rig)
    rig.compute.done(rig.compute.subnetwork(_network(other).id, f"{here}x", "10.99.0.0/24"))
    ranges = [str(each) for each in rig.cloud.ensure(record).ranges]
    assert ranges == ["10.0.0.0/24", "10.0.4.0/24", "10.0.64.0/20", "10.7.0.0/20"]


def test_a_network_that_is_not_visible_at_once_is_waited_for(rig: GcpRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "networks.get", after=1, times=3)
    assert rig.networks(made(rig).order)


def test_a_network_that_never_becomes_visible_is_lost_at_the_deadline(rig: GcpRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "networks.get", times=100_000)
    failure = _refusal(rig.cloud.ensure, NetworkRecord(order=rig.order(), network=None))
    assert failure.code is Code.LOST
    assert "not found for 1 s" in failure.message


def test_a_network_that_other_calls_do_not_know_yet_is_tried_again(rig: GcpRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "routers.insert")
    record = NetworkRecord(order=rig.order(), network=None)
    assert _refusal(rig.cloud.ensure, record).code is Code.EVENTUAL
    assert rig.networks(record.order) == [rig.cloud.ensure(record).network.id]


def test_answers_lost_twice_are_adopted_by_the_next_attempt(rig: GcpRig) -> None:
    record = NetworkRecord(order=rig.order(), network=None)
    rig.break_next(FaultKind.LOST_RESPONSE, "networks.insert", times=2)
    assert _refusal(rig.cloud.ensure, record).code is Code.LOST_RESPONSE
    assert rig.networks(record.order) == [rig.cloud.ensure(record).network.id]


@pytest.mark.parametrize("kind", [FaultKind.LOST_RESPONSE, FaultKind.ERROR_BEFORE, FaultKind.THROTTLE])
def test_whoever_waits_for_an_operation_waits_on_after_a_failed_look(rig: GcpRig, kind: FaultKind) -> None:
    rig.break_next(kind, "globalOperations.wait")
    rig.break_next(kind, "regionOperations.wait")
    assert rig.networks(made(rig).order)
    assert not rig.faults.pending()


def test_an_operation_that_does_not_end_is_left_to_the_next_attempt(rig: GcpRig) -> None:
    record = NetworkRecord(order=rig.order(), network=None)
    impatient = rig.connect(patience=Patience(settle=1, operation=0, retry=1, poll=0.02))
    with rig.server.having(operation_seconds_by_verb={"networks.insert": 1.0}):
        assert _refusal(impatient.ensure, record).code is Code.BUSY
        # The network can be seen, and nothing can be put into it yet.
        failure = _refusal(rig.cloud.ensure, record)
        assert failure.code is Code.BUSY
        assert "resourceNotReady" in failure.message
        assert _refusal(rig.cloud.remove, record).code is Code.BUSY
    with rig.server.having(clock_offset_seconds=2):
        assert rig.networks(record.order) == [rig.cloud.ensure(record).network.id]


@pytest.mark.parametrize("quota", ["NETWORKS", "ROUTERS_PER_REGION_PER_NETWORK"])
def test_a_quota_is_named_with_where_to_raise_it_and_tells_itself_by_the_operation(rig: GcpRig, quota: str) -> None:
    record = NetworkRecord(order=rig.order(), network=None)
    with rig.server.having(quotas={**QUOTAS, quota: 0}):
        failure = _refusal(rig.cloud.ensure, record)
    assert failure.code is Code.QUOTA
    assert f"Quota '{quota}' exceeded" in failure.message
    assert f"quotas?project={PROJECT}" in failure.hint
    rig.cloud.ensure(record)
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_a_foreign_network_of_the_same_name_is_left_alone(rig: GcpRig) -> None:
    record = made(rig)
    rig.cloud.remove(record)
    rig.compute.network(_network(record).id)
    unrecorded = record.model_copy(update={"network": None})
    for step, told in ((rig.cloud.ensure, unrecorded), (rig.cloud.ensure, record), (rig.cloud.remove, record)):
        failure = _refusal(step, told)
        assert failure.code is Code.CONFLICT
        assert _network(record).id in failure.message
    rig.cloud.remove(unrecorded)
    assert rig.compute.networks.get(project=PROJECT, network=_network(record).id)


def test_a_foreign_router_of_the_same_name_is_a_conflict_and_a_blocker(rig: GcpRig) -> None:
    record = made(rig)
    router = _network(record).parts["router-0"]
    rig.compute.done(rig.compute.routers.delete_unary(project=PROJECT, region=REGION, router=router))
    rig.compute.done(rig.compute.router(_network(record).id, router))
    assert _refusal(rig.cloud.ensure, record).code is Code.CONFLICT
    failure = _refusal(rig.cloud.remove, record)
    assert failure.code is Code.BLOCKED
    assert f"router {router}" in failure.message


def test_a_network_of_another_project_is_not_taken_for_deleted(rig: GcpRig) -> None:
    record = made(rig)
    elsewhere = record.model_copy(update={"network": Network(id="nowhere", account="other-project")})
    for step in (rig.cloud.remove, rig.cloud.ensure, rig.cloud.blockers):
        failure = _refusal(step, elsewhere)
        assert failure.code is Code.CONFLICT
        assert "other-project" in failure.message


def test_what_is_made_for_another_region_or_installation_is_not_ours(rig: GcpRig) -> None:
    made(rig)
    assert rig.connect("us-central1").owned() == ()
    assert GcpRig(rig.faults, rig.server, rig.key).left() == ()


def test_several_threads_share_a_client(rig: GcpRig) -> None:
    with ThreadPoolExecutor(8) as pool:
        records = list(pool.map(lambda _: made(rig), range(16)))
        assert len({_network(record).id for record in records}) == 16
        list(pool.map(rig.cloud.remove, records))
    assert rig.left() == ()


# --- removing ---------------------------------------------------------------------------------------------------------


def test_everything_inside_is_named_with_its_kind_and_owner(rig: GcpRig) -> None:
    record = made(rig)
    network, compute = _network(record), rig.compute
    tid = rig.shoot_in(network)
    machine = compute_v1.Instance(
        name=f"{tid}-worker-z1-1",
        machine_type=f"zones/{ZONE}/machineTypes/n2-standard-2",
        network_interfaces=[compute_v1.NetworkInterface(subnetwork=f"regions/{REGION}/subnetworks/{tid}-nodes")],
        tags=compute_v1.Tags(items=["kubernetes-io-role-node", tid]),
    )
    compute.done(compute.instances.insert_unary(project=PROJECT, zone=ZONE, instance_resource=machine))
    compute.done(compute.firewall(network.id, f"{tid}-allow-health-checks"))
    ours = f"k8s-fw-{uuid.uuid4().hex[:8]}"
    rule = compute_v1.Firewall(
        name=ours,
        network=f"global/networks/{network.id}",
        allowed=[compute_v1.Allowed(I_p_protocol="tcp")],
        target_tags=[tid],
    )
    compute.done(compute.firewalls.insert_unary(project=PROJECT, firewall_resource=rule))
    route = f"{tid}-{uuid.uuid4()}"
    compute.done(compute.route(network.id, route, "192.168.0.0/24"))
    router = f"r-{uuid.uuid4().hex[:8]}"
    compute.done(compute.router(network.id, router))
    address = rig.reserve(network.id, "10.0.64.0", 20)
    peer, peering = made(rig), f"p-{uuid.uuid4().hex[:8]}"
    rig.peer(network, peering, _network(peer))

    failure = _refusal(rig.cloud.remove, record)
    assert failure.code is Code.BLOCKED
    assert f"subnetwork {tid}-nodes ({REGION}) of {tid}" in failure.message
    found = {(each.kind, each.id, each.owner) for each in rig.cloud.blockers(record)}
    assert found == {
        ("subnetwork", f"{tid}-nodes", tid),
        ("instance", f"{tid}-worker-z1-1", tid),
        ("nat-gateway", f"{tid}-cloud-nat", tid),
        ("router", router, ""),
        ("firewall", f"{tid}-allow-health-checks", tid),
        ("firewall", ours, tid),
        ("route", route, tid),
        ("address", address, ""),
        ("peering", peering, ""),
    }


@pytest.mark.parametrize("hidden", [1, 3])
def test_what_the_inventory_does_not_see_is_named_by_the_cloud(rig: GcpRig, hidden: int) -> None:
    record = made(rig)
    subnet, take_away = rig.add_foreign(_network(record))
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "subnetworks.aggregatedList", times=hidden)
    failure = _refusal(rig.cloud.remove, record)
    assert failure.code is Code.BLOCKED
    assert subnet in failure.message
    take_away()
    rig.faults.clear()
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_many_blockers_are_counted(rig: GcpRig) -> None:
    record = made(rig)
    for number in range(12):
        rig.compute.done(rig.compute.firewall(_network(record).id, f"f{number}-{uuid.uuid4().hex[:8]}"))
    assert "and 2 more" in _refusal(rig.cloud.remove, record).message


# --- credentials ------------------------------------------------------------------------------------------------------


def test_the_permissions_that_are_documented_are_enough_and_each_is_needed(rig: GcpRig) -> None:
    documented = permissions()
    strict = rig.connect(key=rig.server.key(account="strict", permissions=documented))
    order = rig.order()
    record = NetworkRecord(order=order, network=strict.ensure(NetworkRecord(order=order, network=None)).network)
    rig.shoot_in(_network(record))
    assert strict.blockers(record)
    assert {each.vpc for each in strict.owned()} == {order.vpc}
    empty = made(rig)
    strict.remove(empty)
    for missing in documented:
        rest = [each for each in documented if each != missing]
        weak = rig.connect(key=rig.server.key(account="weak", permissions=rest))

        def everything(_: NetworkRecord, weak: GcpCloud = weak, record: NetworkRecord = record) -> None:
            weak.blockers(record)
            weak.owned()
            fresh = NetworkRecord(order=rig.order(), network=None)
            weak.remove(NetworkRecord(order=fresh.order, network=weak.ensure(fresh).network))

        failure = _refusal(everything, record)
        assert failure.code is Code.FORBIDDEN
        assert missing in failure.message
        assert "permission" in failure.hint


def permissions() -> list[str]:
    """As the adapter's documentation lists them."""
    text = " ".join((GCP_DOC or "").split("The credentials need these permissions of `compute.`:")[1].split())
    found = []
    for item in re.findall(r"`([^`]+)`", text):
        match = re.fullmatch(r"(?:\{(?P<many>[^}]+)\}|(?P<one>\w+))\.(?:\{(?P<verbs>[^}]+)\}|(?P<verb>\w+))", item)
        assert match, item
        for noun in (match["many"] or match["one"]).split(","):
            found += [f"compute.{noun}.{verb}" for verb in (match["verbs"] or match["verb"]).split(",")]
    return found


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ({}, "JSON"),
        ({"serviceaccount.json": "no JSON: -----BEGIN"}, "JSON"),
        ({"serviceaccount.json": "{}"}, "client_email, private_key, private_key_id, project_id, token_uri, type"),
        ({"type": "external_account"}, "type"),
        ({"project_id": "Not A Project"}, "project_id"),
        ({"private_key": "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"}, "private_key"),
    ],
)
def test_a_secret_that_holds_no_key_is_named_by_what_is_wrong(
    key: dict[str, Any], secret: dict[str, str], said: str
) -> None:
    if secret and "serviceaccount.json" not in secret:
        secret = {"serviceaccount.json": json.dumps(key | secret)}
    with pytest.raises(TrellisError, match=said) as caught:
        GcpCloud(REGION, secret, installation="i")
    assert caught.value.failure.code is Code.FORBIDDEN
    for value in ("BEGIN", "c2VjcmV0", key["private_key_id"], "Not A Project"):
        assert value not in str(caught.value)


@pytest.mark.parametrize("region", ["", "nowhere", "europe-west3-a", "../../x"])
def test_there_can_be_no_such_region(key: dict[str, Any], region: str) -> None:
    with pytest.raises(TrellisError) as caught:
        GcpCloud(region, {"serviceaccount.json": json.dumps(key)}, installation="i")
    assert caught.value.failure.code is Code.INVALID


def test_a_region_that_there_is_not_is_told_by_the_cloud(rig: GcpRig) -> None:
    order = rig.order().model_copy(update={"region": "mars-north1"})
    failure = _refusal(rig.connect("mars-north1").ensure, NetworkRecord(order=order, network=None))
    assert failure.code is Code.INVALID
    assert "mars-north1" in failure.message


def test_a_key_that_was_withdrawn_is_refused_and_not_shown(rig: GcpRig) -> None:
    withdrawn = rig.key | {"private_key_id": "0" * 40}
    failure = _refusal(rig.connect(key=withdrawn).ensure, NetworkRecord(order=rig.order(), network=None))
    assert failure.code is Code.FORBIDDEN
    assert "does not accept the credentials" in failure.message
    assert "eyJ" not in str(failure)


def test_nobody_at_the_address_is_tried_again(key: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", "http://127.0.0.1:1/compute/v1/")
    patience = Patience(retry=0.1)
    cloud = GcpCloud(REGION, {"serviceaccount.json": json.dumps(key)}, installation="i", patience=patience)
    with pytest.raises(TrellisError, match="cannot be reached") as caught:
        cloud.owned()
    assert caught.value.failure.code is Code.UNAVAILABLE
