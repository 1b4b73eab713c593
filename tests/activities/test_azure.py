"""Azure: the contract, and what only Azure has."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest

from activities.clouds.azure import AzureCloud, Patience
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import FaultKind, Faults
from tests.activities.cloud_contract import CloudContract, Rig, insist
from tests.activities.proxied import proxied
from tests.sandbox.azure_server import LOCATION, Azure, Server

REGION = LOCATION


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The cloud itself, without faults, and closed to those without credentials."""
    server = Server(tmp_path_factory.mktemp("azure") / "state", operation_seconds=0.01, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def secret(azure: Server) -> dict[str, str]:
    return azure.principal()


@pytest.fixture(scope="session")
def witness(azure: Server, secret: dict[str, str]) -> Azure:
    """Azure as somebody else would use it."""
    return azure.azure(secret)


@pytest.fixture(scope="session")
def _proxied(azure: Server) -> Iterator[tuple[str, Faults]]:
    with proxied("azure", azure.url, azure.certificate) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], azure: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", endpoint)
    monkeypatch.setenv("AZURE_RESOURCE_MANAGER_ENDPOINT", endpoint)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(azure.certificate.authority))
    faults.clear()
    yield faults
    faults.clear()


class AzureRig(Rig):
    """Azure in a test."""

    api = "azure"
    making = "*.put"
    removing = "*.delete"
    create = "virtualNetworks.put"
    elsewhere = "northeurope"

    def __init__(self, faults: Faults, witness: Azure, secret: dict[str, str]) -> None:
        self.witness, self.secret = witness, secret
        super().__init__(faults)

    def connect(self, region: str | None = None, **more: Any) -> AzureCloud:
        patience = Patience(settle=0.5, operation=5, poll=0.02)
        secret = more.get("secret", self.secret)
        return AzureCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self, *cidrs: str, vpc: str = "", tenant: str = "t") -> NetworkOrder:
        return NetworkOrder(
            tenant=tenant,
            vpc=vpc or uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.AZURE,
            region=REGION,
            credentials="azure",
            cidrs=tuple(map(IPv4Network, cidrs or ("10.0.0.0/16",))),
        )

    def make(self, *cidrs: str) -> NetworkRecord:
        order = self.order(*cidrs)
        network = self.cloud.ensure(NetworkRecord(order=order, network=None)).network
        return NetworkRecord(order=order, network=network)

    def networks(self, order: NetworkOrder) -> list[str]:
        wanted = {
            "trellis-installation": self.installation,
            "trellis-vpc": order.vpc,
            "trellis-incarnation": order.incarnation,
        }
        found = self.witness.network.virtual_networks.list_all()
        return [str(each.id) for each in found if wanted.items() <= (each.tags or {}).items()]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        group, vnet = names(network)
        subnet = self.witness.subnet(group, vnet, "other", "10.0.8.0/24")
        return subnet.id, lambda: self.witness.network.subnets.begin_delete(group, vnet, "other").result()

    def delete_by_hand(self, network: Network) -> None:
        self.witness.network.virtual_networks.begin_delete(*names(network)).result()


@pytest.fixture
def rig(faults: Faults, witness: Azure, secret: dict[str, str]) -> AzureRig:
    return AzureRig(faults, witness, secret)


def names(network: Network) -> tuple[str, str]:
    """The resource group's and the network's."""
    parts = network.id.split("/")
    return parts[4], parts[8]


class TestContract(CloudContract):
    """Azure does what every provider does."""


def _network(record: NetworkRecord) -> Network:
    assert record.network is not None
    return record.network


def _seen(rig: AzureRig, record: NetworkRecord) -> Any:
    return rig.witness.network.virtual_networks.get(*names(_network(record)))


def _unrecorded(record: NetworkRecord) -> NetworkRecord:
    return NetworkRecord(order=record.order, network=None)


def test_a_new_network_has_its_ranges_and_both_resources_their_tags(rig: AzureRig) -> None:
    record = rig.make("10.0.0.0/16", "10.1.0.0/16")
    network, seen = _network(record), _seen(rig, record)
    assert network.account == rig.secret["subscriptionID"]
    assert seen.location == REGION
    assert seen.properties.address_space.address_prefixes == ["10.0.0.0/16", "10.1.0.0/16"]
    group = rig.witness.groups.get(names(network)[0])
    assert group.id == network.parts["resource-group"]
    assert group.tags == seen.tags == {
        "trellis-installation": rig.installation,
        "trellis-tenant": "t",
        "trellis-vpc": record.order.vpc,
        "trellis-incarnation": "1",
    }  # fmt: skip


def test_long_names_fit_and_stay_apart(rig: AzureRig) -> None:
    long = "a" * 40
    orders = [rig.order(vpc=f"own--{long[:-1]}{last}", tenant=long) for last in "bc"]
    made = [rig.cloud.ensure(NetworkRecord(order=order, network=None)).network for order in orders]
    for network in made:
        group, vnet = names(network)
        assert len(vnet) <= 64
        assert len(group) <= 90
    assert made[0].id != made[1].id


def test_a_range_that_is_missing_is_added_and_subnets_stay_as_they_are(rig: AzureRig) -> None:
    record = rig.make("10.0.0.0/16")
    group, vnet = names(_network(record))
    table = {"location": REGION}
    routes = rig.witness.network.route_tables.begin_create_or_update(group, "rt", table).result()  # type: ignore[call-overload]
    rig.witness.subnet(group, vnet, "other", "10.0.8.0/24", route_table=routes.id)
    wider = record.order.model_copy(update={"cidrs": (IPv4Network("10.0.0.0/16"), IPv4Network("10.1.0.0/16"))})
    seen = rig.cloud.ensure(NetworkRecord(order=wider, network=record.network))
    assert seen.ranges == (IPv4Network("10.0.8.0/24"),)
    after = _seen(rig, record)
    assert after.properties.address_space.address_prefixes == ["10.0.0.0/16", "10.1.0.0/16"]
    (subnet,) = after.properties.subnets
    assert subnet.properties.route_table.id == routes.id


def test_a_subnet_that_came_in_between_is_not_written_over(rig: AzureRig) -> None:
    record = rig.make("10.0.0.0/16")
    wider = record.order.model_copy(update={"cidrs": (IPv4Network("10.0.0.0/16"), IPv4Network("10.1.0.0/16"))})
    stale = rig.cloud._subscription.network(rig.cloud._subscription.place(record))
    rig.add_foreign(_network(record))
    assert stale is not None
    networks = rig.cloud._subscription.networks
    with pytest.raises(TrellisError) as caught, rig.cloud._subscription.changing("write"):
        networks.begin_create_or_update(*names(_network(record)), stale, headers={"If-Match": str(stale.etag)}).result()
    assert caught.value.failure.code is Code.BUSY
    assert rig.cloud.ensure(NetworkRecord(order=wider, network=record.network)).ranges == (IPv4Network("10.0.8.0/24"),)


def test_a_group_of_the_same_name_without_our_tags_is_left_alone(rig: AzureRig) -> None:
    order = rig.order()
    record = NetworkRecord(order=order, network=None)
    name = rig.cloud._subscription.place(record).group
    rig.witness.group(name)
    with pytest.raises(TrellisError, match=name) as caught:
        rig.cloud.ensure(record)
    assert caught.value.failure.code is Code.CONFLICT
    rig.cloud.remove(record)
    assert rig.witness.groups.check_existence(name)


@pytest.mark.parametrize("what", ["network", "group"])
def test_a_network_whose_tags_were_taken_away_is_left_alone(rig: AzureRig, what: str) -> None:
    record = rig.make()
    group, vnet = names(_network(record))
    if what == "network":
        rig.witness.network.virtual_networks.update_tags(group, vnet, {"tags": {}})  # type: ignore[typeddict-item]
    else:
        rig.witness.group(group, tags={})
    for step in (rig.cloud.remove, rig.cloud.ensure):
        with pytest.raises(TrellisError, match="trellis-vpc") as caught:
            step(record)
        assert caught.value.failure.code is Code.CONFLICT
    assert _seen(rig, record).name == vnet


def test_a_group_that_is_ours_and_in_another_region_is_a_conflict(rig: AzureRig) -> None:
    order = rig.order()
    record = NetworkRecord(order=order, network=None)
    place = rig.cloud._subscription.place(record)
    rig.witness.group(place.group, "northeurope", tags=rig.cloud._subscription.tags(order))
    with pytest.raises(TrellisError, match="northeurope") as caught:
        rig.cloud.ensure(record)
    assert caught.value.failure.code is Code.CONFLICT


def test_a_network_of_another_subscription_is_not_taken_for_deleted(rig: AzureRig) -> None:
    record = rig.make()
    elsewhere = _network(record).model_copy(update={"account": "99999999-2222-3333-4444-555555555555"})
    for step in (rig.cloud.remove, rig.cloud.ensure, rig.cloud.blockers):
        with pytest.raises(TrellisError, match="99999999") as caught:
            step(NetworkRecord(order=record.order, network=elsewhere))
        assert caught.value.failure.code is Code.CONFLICT
    assert rig.networks(record.order) == [_network(record).id]


def test_a_group_that_holds_something_foreign_is_not_deleted(rig: AzureRig) -> None:
    record = rig.make()
    group = names(_network(record))[0]
    table: Any = {"location": REGION}
    foreign = rig.witness.network.route_tables.begin_create_or_update(group, "theirs", table).result()
    for given in (record, _unrecorded(record)):
        with pytest.raises(TrellisError, match=str(foreign.id)) as caught:
            rig.cloud.remove(given)
        assert caught.value.failure.code is Code.BLOCKED
    assert rig.networks(record.order) == [_network(record).id]
    rig.witness.network.route_tables.begin_delete(group, "theirs").result()
    rig.cloud.remove(record)
    assert rig.left() == ()
    assert not rig.witness.groups.check_existence(group)


def test_a_foreign_peering_blocks(rig: AzureRig) -> None:
    record, other = rig.make("10.0.0.0/16"), rig.make("10.1.0.0/16")
    peering = rig.witness.peer(_seen(rig, record), _seen(rig, other))
    (blocker,) = rig.cloud.blockers(record)
    assert (blocker.kind, blocker.id, blocker.owner) == ("peering", peering.id, _network(other).id)
    with pytest.raises(TrellisError, match=peering.id):
        rig.cloud.remove(record)
    rig.witness.network.virtual_network_peerings.begin_delete(*names(_network(record)), "p").result()
    rig.cloud.remove(record)


def test_the_shoot_that_a_subnet_belongs_to_is_named(rig: AzureRig) -> None:
    record = rig.make()
    rig.witness.subnet(*names(_network(record)), "shoot--p--abc-nodes", "10.0.8.0/24")
    with pytest.raises(TrellisError) as caught:
        rig.cloud.remove(record)
    assert "(shoot--p--abc-nodes) of shoot--p--abc" in caught.value.failure.message


def test_what_appears_during_a_removal_is_named_and_stays(rig: AzureRig) -> None:
    record = rig.make()
    group = names(_network(record))[0]
    table: Any = {"location": REGION}
    foreign = rig.witness.network.route_tables.begin_create_or_update(group, "theirs", table).result()
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "resources.list")
    with pytest.raises(TrellisError, match=str(foreign.id)) as caught:
        rig.cloud.remove(record)
    assert caught.value.failure.code is Code.BLOCKED
    # The network was ours and nothing was in it; what is not ours is still there.
    assert rig.networks(record.order) == []
    assert rig.witness.network.route_tables.get(group, "theirs").id == foreign.id


def test_what_is_on_its_way_out_is_waited_for(rig: AzureRig, azure: Server) -> None:
    record = rig.make()
    rig.add_foreign(_network(record))
    with azure.having(operation_seconds_by_verb={"subnets.delete": 0.5}):
        leaving = rig.witness.network.subnets.begin_delete(*names(_network(record)), "other")
        with pytest.raises(TrellisError, match="on its way out") as caught:
            rig.cloud.remove(record)
        assert caught.value.failure.code is Code.BUSY
        assert rig.cloud.blockers(record) == ()
    leaving.result()
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_an_operation_that_hangs_is_told_as_busy_and_found_done_later(rig: AzureRig, azure: Server) -> None:
    order = rig.order()
    record = NetworkRecord(order=order, network=None)
    rig.cloud._subscription.patience = Patience(settle=0.5, operation=0.1, poll=0.02)
    with azure.having(operation_seconds_by_verb={"virtualNetworks.put": 1}):
        with pytest.raises(TrellisError, match="not done") as caught:
            rig.cloud.ensure(record)
        assert caught.value.failure.code is Code.BUSY
    rig.cloud._subscription.patience = Patience(settle=0.5, operation=5, poll=0.02)
    assert [rig.cloud.ensure(record).network.id] == rig.networks(order)


def test_a_network_that_is_not_visible_at_once_is_tried_again(rig: AzureRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "virtualNetworks.get", after=1, times=2)
    order = rig.order()
    seen = insist(lambda: rig.cloud.ensure(NetworkRecord(order=order, network=None)))
    assert rig.networks(order) == [seen.network.id]


def test_a_new_group_that_the_network_does_not_see_yet_is_tried_again(rig: AzureRig) -> None:
    rig.break_next(FaultKind.NOT_YET_VISIBLE, "virtualNetworks.put")
    order = rig.order()
    record = NetworkRecord(order=order, network=None)
    with pytest.raises(TrellisError) as caught:
        rig.cloud.ensure(record)
    assert caught.value.failure.code is Code.EVENTUAL
    assert rig.networks(order) == []
    assert rig.networks(order) != [rig.cloud.ensure(record).network.id]


def test_nothing_to_do_takes_two_calls(rig: AzureRig, monkeypatch: pytest.MonkeyPatch) -> None:
    record = rig.make()
    calls: list[str] = []
    for client, name in ((rig.cloud._subscription.groups, "get"), (rig.cloud._subscription.networks, "get")):
        original = getattr(client, name)

        def counted(*given: Any, original: Any = original, **more: Any) -> Any:
            calls.append(original.__qualname__)
            return original(*given, **more)

        monkeypatch.setattr(client, name, counted)
    rig.break_next(FaultKind.FORBIDDEN, "*.put", times=100)
    rig.cloud.ensure(record)
    assert len(calls) == 2


def test_a_role_with_the_listed_permissions_is_enough(rig: AzureRig, azure: Server) -> None:
    actions = [
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "Microsoft.Resources/subscriptions/resourceGroups/write",
        "Microsoft.Resources/subscriptions/resourceGroups/delete",
        "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
        "Microsoft.Resources/subscriptions/operationresults/read",
        "Microsoft.Network/virtualNetworks/read",
        "Microsoft.Network/virtualNetworks/write",
        "Microsoft.Network/virtualNetworks/delete",
        "Microsoft.Network/locations/operations/read",
    ]
    cloud = rig.connect(secret=azure.principal(actions=actions))
    order = rig.order()
    record = NetworkRecord(order=order, network=cloud.ensure(NetworkRecord(order=order, network=None)).network)
    assert len(cloud.owned()) == 2
    assert cloud.blockers(record) == ()
    cloud.remove(record)
    assert rig.left() == ()


def test_a_missing_permission_is_named(rig: AzureRig, azure: Server) -> None:
    cloud = rig.connect(secret=azure.principal(actions=["*/read"]))
    with pytest.raises(TrellisError, match=r"resourceGroups/write") as caught:
        cloud.ensure(NetworkRecord(order=rig.order(), network=None))
    assert caught.value.failure.code is Code.FORBIDDEN


@pytest.mark.parametrize("key", ["clientID", "clientSecret", "tenantID"])
def test_credentials_that_are_not_accepted_are_forbidden_and_not_repeated(rig: AzureRig, key: str) -> None:
    wrong = "66666666-2222-3333-4444-555555555555"
    secret = rig.secret | {key: wrong}
    with pytest.raises(TrellisError, match="AADSTS") as caught:
        rig.connect(secret=secret).ensure(NetworkRecord(order=rig.order(), network=None))
    assert caught.value.failure.code is Code.FORBIDDEN
    for text in (secret["clientSecret"], rig.secret["clientSecret"]):
        assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "code"), [(FaultKind.THROTTLE, Code.THROTTLED), (FaultKind.ERROR_BEFORE, Code.UNAVAILABLE)]
)
def test_a_token_that_is_not_to_be_had_now_is_no_matter_of_bad_credentials(
    rig: AzureRig, kind: FaultKind, code: Code
) -> None:
    rig.break_next(kind, "token.post", times=10)
    with pytest.raises(TrellisError) as caught:
        rig.connect().owned()
    assert caught.value.failure.code is code


def test_a_secret_without_keys_is_named_by_what_it_lacks() -> None:
    with pytest.raises(TrellisError, match="clientSecret and subscriptionID") as caught:
        AzureCloud(REGION, {"clientID": "some", "tenantID": "other"}, installation="i")
    assert caught.value.failure.code is Code.FORBIDDEN


def test_what_can_be_no_tenant_is_forbidden() -> None:
    secret = dict.fromkeys(("clientID", "clientSecret", "subscriptionID"), "x") | {"tenantID": "a/b"}
    with pytest.raises(TrellisError, match="tenant") as caught:
        AzureCloud(REGION, secret, installation="i")
    assert caught.value.failure.code is Code.FORBIDDEN


def test_an_endpoint_without_tls_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_RESOURCE_MANAGER_ENDPOINT", "http://127.0.0.1:1")
    secret = dict.fromkeys(("clientID", "clientSecret", "subscriptionID", "tenantID"), "x")
    with pytest.raises(TrellisError, match="https://") as caught:
        AzureCloud(REGION, secret, installation="i")
    assert caught.value.failure.code is Code.INVALID


def test_an_unreachable_cloud_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "https://127.0.0.1:1")
    monkeypatch.setenv("AZURE_RESOURCE_MANAGER_ENDPOINT", "https://127.0.0.1:1")
    secret = dict.fromkeys(("clientID", "clientSecret", "subscriptionID", "tenantID"), "x")
    with pytest.raises(TrellisError, match="cannot be reached") as caught:
        AzureCloud(REGION, secret, installation="i").owned()
    assert caught.value.failure.code is Code.UNAVAILABLE


def test_a_quota_is_named_with_where_to_raise_it(rig: AzureRig) -> None:
    rig.break_next(FaultKind.QUOTA, "virtualNetworks.put")
    with pytest.raises(TrellisError, match="VnetCountLimitReached") as caught:
        rig.make()
    assert rig.secret["subscriptionID"] in caught.value.failure.hint
