"""OpenStack: the contract, and what only OpenStack has."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network
from typing import Any

import pytest
from keystoneauth1.session import Session

from activities.clouds.openstack import OpenStackCloud, Patience
from activities.clouds.openstack._errors import attempting
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.specs import Provider
from sandbox.faults import Fault, FaultKind, Faults
from tests.activities.cloud_contract import CloudContract, Rig
from tests.sandbox.openstack_server import (  # noqa: F401 - fixtures
    MARKS,
    POOL,
    REGION,
    Server,
    openstack_faults,
    openstack_server,
)

pytestmark = MARKS


class OpenStackRig(Rig):
    """OpenStack, and its SDK as somebody else would use it."""

    api = "openstack"
    making = "[!gd]*"
    removing = "delete_*"
    create = "create_network"
    elsewhere = "eu-nl-1"

    def __init__(self, faults: Faults, server: Server) -> None:
        self.server = server
        super().__init__(faults)
        self.network: Any = server.connect().network

    def connect(self, region: str | None = None, **more: str) -> OpenStackCloud:
        patience = Patience(settle=0.3, look=0.2, poll=0.02)
        secret = self.server.secret() | more
        return OpenStackCloud(region or REGION, secret, installation=self.installation, patience=patience)

    def order(self) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.OPENSTACK,
            region=REGION,
            credentials="openstack",
            cidrs=(IPv4Network("10.0.0.0/16"),),
        )

    def made(self, network: Network) -> set[str]:
        return {network.id, network.parts["router"]}

    def networks(self, order: NetworkOrder) -> list[str]:
        mark = f"trellis.dev/{self.installation}/t/{order.vpc}/{order.incarnation}"
        return [each.id for each in self.network.networks(description=mark)]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        subnet = self.network.create_subnet(network_id=network.id, cidr="10.0.8.0/24", ip_version=4)
        return subnet.id, lambda: self.network.delete_subnet(subnet)

    def delete_by_hand(self, network: Network) -> None:
        self.network.delete_router(network.parts["router"])
        self.network.delete_network(network.id)

    def make(self) -> NetworkRecord:
        order = self.order()
        return NetworkRecord(order=order, network=self.cloud.ensure(NetworkRecord(order=order, network=None)).network)


@pytest.fixture
def rig(openstack_faults: Faults, openstack_server: Server) -> OpenStackRig:  # noqa: F811
    return OpenStackRig(openstack_faults, openstack_server)


class TestContract(CloudContract):
    """OpenStack does what every provider does."""


def _network(record: NetworkRecord) -> Network:
    assert record.network is not None
    return record.network


def _refused(step: Callable[[], Any], code: Code, *texts: str) -> str:
    with pytest.raises(TrellisError) as caught:
        step()
    failure = caught.value.failure
    assert failure.code is code, failure
    assert failure.hint
    for text in texts:
        assert text in str(failure)
    return str(failure)


def test_a_new_network_is_what_gardener_asks_for(rig: OpenStackRig) -> None:
    record = rig.make()
    network = _network(record)
    router = rig.network.get_router(network.parts["router"])
    assert len(router.external_gateway_info["external_fixed_ips"]) == 1
    assert rig.network.get_network(router.external_gateway_info["network_id"]).name == POOL
    assert network.parts["floating-pool"] == POOL
    assert network.account == router.project_id
    for thing in (router, rig.network.get_network(network.id)):
        assert thing.name == f"trellis-t-{record.order.vpc}"
        assert thing.description == f"trellis.dev/{rig.installation}/t/{record.order.vpc}/1"
        assert {"trellis", f"trellis-vpc={record.order.vpc}"} <= set(thing.tags)


def test_what_was_changed_by_hand_is_mended_and_foreign_tags_stay(rig: OpenStackRig) -> None:
    record = rig.make()
    router = rig.network.get_router(_network(record).parts["router"])
    rig.network.update_router(router, external_gateway_info={})
    rig.network.set_tags(router, ["theirs"])
    assert rig.cloud.ensure(record).network == record.network
    router = rig.network.get_router(router.id)
    assert router.external_gateway_info
    assert {"theirs", "trellis"} <= set(router.tags)


def test_the_ranges_are_those_of_all_subnets_that_share_the_router(rig: OpenStackRig) -> None:
    record = rig.make()
    network = _network(record)
    other = rig.network.create_network(name="other")
    places = ((network.id, "10.0.0.0/23"), (network.id, "10.0.4.0/23"), (other.id, "172.16.0.0/24"))
    subnets = [rig.network.create_subnet(network_id=where, cidr=cidr, ip_version=4) for where, cidr in places]
    six = rig.network.create_subnet(network_id=network.id, cidr="fd00::/64", ip_version=6)
    rig.network.add_interface_to_router(network.parts["router"], subnet=subnets[2].id)
    assert [str(each) for each in rig.cloud.ensure(record).ranges] == ["10.0.0.0/23", "10.0.4.0/23", "172.16.0.0/24"]
    text = _refused(lambda: rig.cloud.remove(record), Code.BLOCKED, *(subnet.id for subnet in subnets[:2]), six.id)
    assert "router-interface" in text
    rig.network.remove_interface_from_router(network.parts["router"], subnet=subnets[2].id)
    for subnet in (*subnets, six):
        rig.network.delete_subnet(subnet)
    rig.cloud.remove(record)
    rig.network.delete_network(other)


def test_everything_that_a_shoot_leaves_is_named_and_left_alone(rig: OpenStackRig) -> None:
    record = rig.make()
    network, shoot = _network(record), "shoot--trellis--t234567890"
    subnet = rig.network.create_subnet(network_id=network.id, name=shoot, cidr="10.0.0.0/23", ip_version=4)
    router = network.parts["router"]
    rig.network.add_interface_to_router(router, subnet=subnet.id)
    node = rig.network.create_port(network_id=network.id, name=f"{shoot}-worker-z1-x", device_owner="compute:eu-de-1a")
    balancer = rig.network.create_port(network_id=network.id, name="octavia-lb-1", device_owner="Octavia")
    parent = rig.network.create_port(network_id=network.id, name="theirs")
    trunk = rig.network.create_trunk(port_id=parent.id)
    leased = rig.network.create_port(network_id=network.id, device_owner="network:dhcp")
    pool = next(rig.network.networks(name=POOL))
    floating = rig.network.create_ip(floating_network_id=pool.id, port_id=node.id)
    found = {blocker.id: blocker for blocker in rig.cloud.blockers(record)}
    interface = next(blocker for blocker in found.values() if blocker.kind == "router-interface")
    assert (found[subnet.id].kind, found[subnet.id].owner) == ("subnet", shoot)
    assert (found[node.id].kind, found[node.id].owner) == ("port", shoot)
    assert found[balancer.id].name == "octavia-lb-1"
    assert found[parent.id].kind == "trunk-port"
    assert trunk.id in found[parent.id].name
    assert router in interface.name
    assert found[floating.id].name == floating.floating_ip_address
    assert leased.id not in found, "Neutron removes it by itself"
    _refused(lambda: rig.cloud.remove(record), Code.BLOCKED, trunk.id, "octavia-lb-1", shoot)
    assert rig.network.get_trunk(trunk.id).port_id == parent.id
    rig.network.delete_ip(floating)
    rig.network.delete_trunk(trunk)
    for port in (node, balancer, parent):
        rig.server.connect("admin").network.delete_port(port)  # a machine's port goes with its machine
    rig.network.remove_interface_from_router(router, subnet=subnet.id)
    rig.network.delete_subnet(subnet)
    assert rig.cloud.blockers(record) == ()
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_a_subnet_that_comes_in_at_the_last_moment_is_not_deleted_with_the_network(rig: OpenStackRig) -> None:
    record = rig.make()
    network = _network(record)
    rig.faults.add(Fault(api="openstack", operation="delete_network", kind=FaultKind.SLOW, seconds=5))
    with ThreadPoolExecutor(1) as pool:
        removal = pool.submit(rig.cloud.remove, record)
        while list(rig.network.routers(id=network.parts["router"])):
            time.sleep(0.01)
        subnet = rig.network.create_subnet(network_id=network.id, cidr="10.0.0.0/23", ip_version=4)
    failure = getattr(removal.exception(), "failure", None)
    assert failure is not None
    assert failure.transient, "the next look tells"
    _refused(lambda: rig.cloud.remove(record), Code.BLOCKED, subnet.id)
    rig.network.delete_subnet(subnet)
    rig.cloud.remove(record)
    assert rig.left() == ()


def test_attempts_at_the_same_moment_end_with_one_network(rig: OpenStackRig) -> None:
    order = rig.order()
    clouds = [rig.connect() for _ in range(4)]
    with ThreadPoolExecutor(len(clouds)) as pool:
        attempts = [pool.submit(cloud.ensure, NetworkRecord(order=order, network=None)) for cloud in clouds]
    # A slower one may have seen its own removed by a faster one, which makes it look again.
    assert all(attempt.exception() is None or attempt.exception().failure.transient for attempt in attempts)  # type: ignore[union-attr]
    seen = rig.cloud.ensure(NetworkRecord(order=order, network=None))
    assert rig.networks(order) == [seen.network.id]
    assert {each.id for each in rig.left()} == rig.made(seen.network)


def test_of_two_networks_the_older_is_kept_and_the_other_goes_unless_it_is_used(rig: OpenStackRig) -> None:
    record = rig.make()
    network = _network(record)
    made = {"name": "x", "description": f"trellis.dev/{rig.installation}/t/{record.order.vpc}/1"}
    spare, used = rig.network.create_network(**made), rig.network.create_network(**made)
    port = rig.network.create_port(network_id=used.id)
    assert rig.cloud.ensure(NetworkRecord(order=record.order, network=None)).network == network
    assert set(rig.networks(record.order)) == {network.id, used.id}
    assert spare.id not in rig.networks(record.order)
    rig.cloud.remove(record)
    assert rig.networks(record.order) == [used.id], "what is not on record is not touched"
    rig.network.delete_port(port)
    rig.cloud.remove(NetworkRecord(order=record.order, network=None))
    assert rig.left() == ()


def test_a_network_that_does_not_say_that_it_is_ours_is_left_alone(rig: OpenStackRig) -> None:
    record = rig.make()
    network = _network(record)
    rig.network.update_network(network.id, description="mine now")
    for step in (rig.cloud.ensure, rig.cloud.remove, rig.cloud.blockers):
        _refused(lambda step=step: step(record), Code.CONFLICT, network.id)  # type: ignore[misc]
    assert rig.network.get_network(network.id)
    assert rig.network.get_router(network.parts["router"])


def test_another_projects_credentials_touch_nothing(rig: OpenStackRig) -> None:
    record = rig.make()
    other = rig.connect(tenantName="other", username="other")
    assert other.owned() == ()
    for step in (other.ensure, other.remove, other.blockers):
        _refused(lambda step=step: step(record), Code.CONFLICT, _network(record).account)  # type: ignore[misc]
    assert rig.networks(record.order)


@pytest.mark.parametrize("by", ["id", "name"])
def test_an_application_credential_logs_in(rig: OpenStackRig, by: str) -> None:
    connection = rig.server.connect()
    user = connection.session.get_user_id()
    credential = connection.identity.create_application_credential(user, name=uuid.uuid4().hex)
    secret = {"password": "", "username": "", "applicationCredentialSecret": credential.secret}
    if by == "id":
        secret["applicationCredentialID"] = credential.id
    else:
        secret |= {"applicationCredentialName": credential.name, "username": "trellis"}
    assert rig.connect(**secret).owned() == ()
    connection.identity.delete_application_credential(user, credential)
    _refused(rig.connect(**secret).owned, Code.FORBIDDEN)


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ({"domainName": ""}, "domainName"),
        ({"password": ""}, "password or applicationCredentialSecret is missing"),
        ({"username": ""}, "password needs username"),
        ({"applicationCredentialSecret": "hush"}, "not both"),
        ({"password": "", "applicationCredentialSecret": "hush"}, "needs applicationCredentialID"),
    ],
)
def test_a_secret_that_is_not_complete_is_named_without_its_values(
    rig: OpenStackRig, secret: dict[str, str], said: str
) -> None:
    text = _refused(lambda: rig.connect(**secret), Code.FORBIDDEN, said)
    assert "hush" not in text
    assert "sandbox" not in text


def test_a_wrong_password_is_said_and_not_repeated(rig: OpenStackRig) -> None:
    text = _refused(rig.connect(password="open-sesame").owned, Code.FORBIDDEN, "credentials")
    assert "open-sesame" not in text


def test_keystone_is_where_the_secret_or_else_the_environment_says(
    rig: OpenStackRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OS_AUTH_URL", raising=False)
    _refused(lambda: rig.connect(authURL=""), Code.INVALID, "OS_AUTH_URL")
    monkeypatch.setenv("OS_AUTH_URL", rig.server.auth_url)
    assert rig.connect(authURL="").owned() == ()
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/v3")
    assert rig.connect().owned() == (), "the Secret comes first"


def test_a_region_that_the_catalog_does_not_have_is_refused(rig: OpenStackRig) -> None:
    _refused(rig.connect("eu-nl-1").owned, Code.INVALID, "eu-nl-1")


def test_neutrons_own_quota_is_reported_as_such_and_the_half_is_removed(rig: OpenStackRig) -> None:
    admin = rig.server.connect("admin").network
    project = rig.server.connect().session.get_project_id()
    order = rig.order()
    admin.update_quota(project, routers=len(list(rig.network.routers(project_id=project))))
    try:
        _refused(lambda: rig.cloud.ensure(NetworkRecord(order=order, network=None)), Code.QUOTA, "OverQuota", "router")
    finally:
        admin.delete_quota(project)
    assert len(rig.networks(order)) == 1
    rig.cloud.remove(NetworkRecord(order=order, network=None))
    assert rig.left() == ()


@pytest.fixture
def second_pool(rig: OpenStackRig) -> Iterator[Any]:
    admin = rig.server.connect("admin").network
    name = f"FloatingIP-external-{uuid.uuid4().hex[:4]}"
    pool = admin.create_network(
        name=name, is_router_external=True, provider_network_type="flat", provider_physical_network=name
    )
    admin.create_subnet(network_id=pool.id, cidr="203.0.113.0/24", ip_version=4, is_dhcp_enabled=False)
    yield pool
    admin.delete_network(pool)


def test_which_of_several_floating_pools_is_a_setting_else_the_operators_default(
    rig: OpenStackRig, second_pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = rig.server.connect("admin").network
    _refused(rig.make, Code.INVALID, POOL, second_pool.name, "TRELLIS_OPENSTACK_FLOATING_POOL")
    monkeypatch.setenv("TRELLIS_OPENSTACK_FLOATING_POOL", "*-sandbox")
    first = rig.make()
    assert _network(first).parts["floating-pool"] == POOL
    monkeypatch.setenv("TRELLIS_OPENSTACK_FLOATING_POOL", second_pool.name)
    second = rig.make()
    assert _network(second).parts["floating-pool"] == second_pool.name
    assert rig.cloud.ensure(first).network == first.network, "what is made stays"
    monkeypatch.setenv("TRELLIS_OPENSTACK_FLOATING_POOL", "nothing-*")
    _refused(rig.make, Code.INVALID, "nothing-*")
    monkeypatch.delenv("TRELLIS_OPENSTACK_FLOATING_POOL")
    admin.update_network(second_pool, is_default=True)
    third = rig.make()
    assert _network(third).parts["floating-pool"] == second_pool.name
    for record in (first, second, third):
        rig.cloud.remove(record)


def test_a_cloud_that_is_away_is_unavailable_and_one_that_says_nothing_has_lost_the_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        session = Session(timeout=0.05)
        for effect, code in ((True, Code.LOST_RESPONSE), (False, Code.UNAVAILABLE)):
            with pytest.raises(TrellisError) as caught, attempting("try", region=REGION, effect=effect):
                session.post(f"http://127.0.0.1:{port}/", authenticated=False)
            assert caught.value.failure.code is code
    for effect in (True, False):
        with pytest.raises(TrellisError) as caught, attempting("try", region=REGION, effect=effect):
            session.post(f"http://127.0.0.1:{port}/", authenticated=False)
        assert caught.value.failure.code is Code.UNAVAILABLE
