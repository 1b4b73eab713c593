"""What shoots on OpenStack become in the cloud, with its SDK as the witness."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.garden.garden_server import Garden, eventually
from tests.sandbox.garden.test_garden_insides import PODS, SERVICES, pod, running, service
from tests.sandbox.garden_openstack import Shoot, manifest
from tests.sandbox.openstack_server import MARKS, POOL, Server, openstack_server  # noqa: F401 - a fixture

pytestmark = MARKS
NO_OVERLAY = {"providerConfig": {"overlay": {"enabled": False}}}


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory, openstack_server: Server) -> Iterator[Garden]:  # noqa: F811
    state = tmp_path_factory.mktemp("garden")
    garden = Garden(state, "http://127.0.0.1:1", "--openstack-auth-url", openstack_server.auth_url)
    yield garden
    assert garden.stop() == 0


@pytest.fixture(scope="module")
def client(openstack_server: Server) -> Any:  # noqa: F811
    return openstack_server.connect().network


class Place:
    """A network and its router, as a VPC would be."""

    def __init__(self, client: Any) -> None:
        self.client = client
        pool = next(client.networks(name=POOL))
        self.network = client.create_network(name="vpc").id
        self.router = client.create_router(name="vpc", external_gateway_info={"network_id": pool.id}).id

    def shoot(self, name: str, block: str = "10.0.0.0/22", **changes: Any) -> Shoot:
        return manifest(name, self.network, self.router, block, **changes)

    def inside(self) -> dict[str, list[str]]:
        """What is in the network and on the router, by kind: names, without the random ends of machines'."""
        ports = list(self.client.ports(network_id=self.network))
        subnets = {each.id: each.name for each in self.client.subnets(network_id=self.network)}
        return {
            "subnets": sorted(subnets.values()),
            "interfaces": sorted(subnets[p.fixed_ips[0]["subnet_id"]] for p in ports if p.device_id == self.router),
            "machines": sorted(p.name[:-12] for p in ports if p.device_owner.startswith("compute:")),
            "routes": sorted(each["destination"] for each in self.client.get_router(self.router).routes),
        }

    def groups(self) -> list[str]:
        return sorted(each.name for each in self.client.security_groups() if each.name.startswith("shoot--"))

    def remove(self) -> None:
        self.client.delete_router(self.router)
        self.client.delete_network(self.network)


@pytest.fixture
def place(client: Any) -> Iterator[Place]:
    place = Place(client)
    yield place
    place.remove()  # refused if a shoot left anything


EMPTY: dict[str, list[str]] = {"subnets": [], "interfaces": [], "machines": [], "routes": []}


def of_shoot(name: str, *routes: str) -> dict[str, list[str]]:
    tid = f"shoot--trellis--{name}"
    return {"subnets": [tid], "interfaces": [tid], "machines": [f"{tid}-worker-z1"], "routes": [*routes]}


def failing(garden: Garden, name: str) -> tuple[set[str], str]:
    """Codes and text of a shoot's first error."""
    shoot = eventually(lambda: garden.shoot(name).get("status", {}).get("lastErrors") and garden.shoot(name))
    found = shoot["status"]["lastErrors"]
    return {code for each in found for code in each.get("codes", [])}, found[0]["description"]


class Cluster:
    """A shoot with a probe in it."""

    def __init__(self, garden: Garden, name: str, place: Place, block: str) -> None:
        garden.made(place.shoot(name, block))
        self.garden, self.name, self.api = garden, name, garden.inside(name)
        self.api.make(PODS, pod(f"on-{name}"))
        self.port = self.api.make(SERVICES, service())["spec"]["ports"][0]["nodePort"]
        self.address = str(running(self.api, f"on-{name}")["status"]["hostIP"])

    def reaches(self, other: Cluster) -> bool:
        query = {"host": other.address, "port": str(other.port), "request": "hostname", "protocol": "http", "tries": 1}
        answer = self.api("GET", f"{PODS}/on-{self.name}:8080/proxy/dial", params=query).json()
        assert answer.get("responses", [f"on-{other.name}"]) == [f"on-{other.name}"]
        return "responses" in answer

    def remove(self) -> None:
        self.api.close()
        self.garden.removed(self.name)


def test_a_shoot_gets_a_subnet_on_the_router_a_security_group_and_a_machine(
    garden: Garden, client: Any, place: Place
) -> None:
    shoot = garden.made(place.shoot("shape"))
    assert place.inside() == of_shoot("shape")
    (address,) = client.get_router(place.router).external_gateway_info["external_fixed_ips"]
    assert shoot["status"]["networking"]["egressCIDRs"] == [f"{address['ip_address']}/32"]
    (subnet,) = client.subnets(network_id=place.network)
    assert (subnet.cidr, subnet.dns_nameservers) == ("10.0.0.0/23", ["10.247.0.10"])
    (group,) = client.security_groups(name="shoot--trellis--shape")
    rules = {(r["direction"], r["ethertype"], r["protocol"], r["port_range_min"]) for r in group.security_group_rules}
    assert rules == {
        ("egress", "IPv4", None, None),
        ("egress", "IPv6", None, None),
        ("ingress", "IPv4", None, None),
        ("ingress", "IPv4", "tcp", 30000),
        ("ingress", "IPv4", "udp", 30000),
    }
    (machine,) = [port for port in client.ports(network_id=place.network) if port.device_owner.startswith("compute:")]
    assert machine.security_group_ids == [group.id]
    extra = client.create_security_group_rule(security_group_id=group.id, direction="ingress", protocol="icmp")
    garden.patch("shape", {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    garden.settled("shape")
    after = client.get_security_group(group.id).security_group_rules
    assert extra.id in {rule["id"] for rule in after}, "what others add is kept"
    assert len(after) == len(rules) + 1
    garden.removed("shape")
    assert place.inside() == EMPTY
    assert place.groups() == []


def test_a_neighbour_on_the_same_router_is_untouched_by_a_deletion(garden: Garden, place: Place) -> None:
    for index, name in enumerate(("one1", "one10")):
        pods = {"pods": f"10.{96 + index}.0.0/16", **NO_OVERLAY}
        garden.made(place.shoot(name, f"10.0.{4 * index}.0/22", networking=pods))
    assert place.inside()["routes"] == ["10.96.0.0/24", "10.97.0.0/24"]
    garden.removed("one1")
    assert place.inside() == of_shoot("one10", "10.97.0.0/24")
    assert place.groups() == ["shoot--trellis--one10"]
    garden.removed("one10")
    assert place.inside() == EMPTY


def test_what_others_put_into_a_shoots_subnet_stops_its_deletion(garden: Garden, client: Any, place: Place) -> None:
    garden.made(place.shoot("blocked"))
    foreign = client.create_port(network_id=place.network, name="theirs")
    garden.delete("blocked")
    _, text = failing(garden, "blocked")
    assert "One or more ports have an IP allocation from this subnet" in text
    client.delete_port(foreign)
    garden.patch("blocked", {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})
    eventually(lambda: garden.is_gone("blocked"))
    assert place.inside() == EMPTY


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"networks": {"router": {"id": str(uuid.uuid4())}}}, "ERR_CONFIGURATION_PROBLEM", "missing expected router"),
        ({"networks": {"id": str(uuid.uuid4())}}, "ERR_INFRA_DEPENDENCIES", "was not found"),
        (
            {"infrastructure": {"floatingPoolName": "FloatingIP-external-none"}},
            "ERR_CONFIGURATION_PROBLEM",
            'floatingPoolName: Not found: "FloatingIP-external-none"',
        ),
    ],
)
def test_network_router_and_pool_must_be_there(
    garden: Garden, place: Place, changes: dict[str, Any], code: str, said: str
) -> None:
    garden.create(place.shoot("lost", **changes))
    codes, text = failing(garden, "lost")
    assert codes == {code}
    assert said in text
    garden.removed("lost")
    assert place.inside() == EMPTY


def test_a_range_that_is_taken_is_told_by_the_cloud(garden: Garden, place: Place) -> None:
    garden.made(place.shoot("first"))
    garden.create(place.shoot("second"))
    assert "overlaps with another subnet" in failing(garden, "second")[1]
    for name in ("second", "first"):
        garden.removed(name)
    assert place.inside() == EMPTY


def test_shoots_on_one_router_reach_each_others_node_ports_and_no_more(
    garden: Garden, client: Any, place: Place
) -> None:
    one, two = Cluster(garden, "near1", place, "10.0.0.0/22"), Cluster(garden, "near2", place, "10.0.4.0/22")
    assert one.reaches(two)
    assert two.reaches(one)
    (group,) = client.security_groups(name="shoot--trellis--near2")
    (rule,) = [r for r in group.security_group_rules if (r["protocol"], r["direction"]) == ("tcp", "ingress")]
    client.delete_security_group_rule(rule["id"])
    assert not one.reaches(two), "nothing lets it in"
    assert two.reaches(one)
    client.create_security_group_rule(
        security_group_id=group.id, direction="ingress", protocol="tcp", remote_ip_prefix="10.0.0.0/16"
    )
    assert one.reaches(two)
    client.update_router(place.router, admin_state_up=False)
    assert not one.reaches(two), "nobody routes"
    client.update_router(place.router, admin_state_up=True)
    one.remove()
    two.remove()


def test_shoots_on_routers_of_their_own_do_not_reach_each_other(garden: Garden, client: Any, place: Place) -> None:
    other = Place(client)
    client.delete_network(other.network)
    other.network = place.network
    one, two = Cluster(garden, "far1", place, "10.0.0.0/22"), Cluster(garden, "far2", other, "10.0.4.0/22")
    assert not one.reaches(two)
    assert not two.reaches(one)
    one.remove()
    two.remove()
    client.delete_router(other.router)
