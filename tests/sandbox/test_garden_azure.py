"""What shoots on Azure become in the cloud, with its SDK as the witness."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.azure_server import LOCATION, Azure, Server
from tests.sandbox.garden.garden_server import MERGE, NAMESPACE, Garden, eventually
from tests.sandbox.garden.test_garden_insides import PODS, SERVICES, pod, running, service
from tests.sandbox.garden_azure import Shoot, manifest

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/azure"
SUBSCRIPTION = "22222222-2222-4222-8222-222222222222"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("azure") / "state", operation_seconds=0.01, anonymous=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Garden]:
    garden = garden_of(tmp_path_factory.mktemp("garden"), server)
    yield garden
    assert garden.stop() == 0


def garden_of(directory: Path, server: Server) -> Garden:
    options = ["--azure-endpoint", server.url, "--azure-authority", str(server.certificate.authority)]
    return Garden(directory, "http://127.0.0.1:1", *options)


@pytest.fixture(scope="module")
def azure(server: Server) -> Azure:
    return server.azure(server.principal(SUBSCRIPTION))


@pytest.fixture
def group(azure: Azure) -> str:
    """A resource group with a network `net`."""
    return made(azure)


def made(azure: Azure, cidr: str = "10.0.0.0/16") -> str:
    name = f"g-{uuid.uuid4().hex[:10]}"
    azure.group(name)
    azure.vnet(name, "net", cidr)
    return name


def tid(name: str) -> str:
    return f"shoot--trellis--{name}"


def subnets(azure: Azure, group: str) -> list[str]:
    return [each.name for each in azure.network.subnets.list(group, "net")]


def inside(azure: Azure, name: str) -> dict[str, list[str]]:
    """What is in the resource group of a shoot: types to names, without the random ends of machines'."""
    if not azure.groups.check_existence(tid(name)):
        return {}
    found: dict[str, list[str]] = {}
    for each in azure.resources.list_by_resource_group(tid(name)):
        kind = str(each.type).rpartition("/")[2]
        text = str(each.name).rsplit("-", 3)[0] if kind == "networkInterfaces" else str(each.name)
        found.setdefault(kind, []).append(text)
    return found


def of_shoot(name: str) -> dict[str, list[str]]:
    return {
        "natGateways": [f"{tid(name)}-nat-gateway"],
        "networkInterfaces": [f"{tid(name)}-worker-z1"],
        "networkSecurityGroups": [f"{tid(name)}-workers"],
        "publicIPAddresses": [f"{tid(name)}-nat-gateway-ip"],
        "routeTables": ["worker_route_table"],
    }


def errors(shoot: Shoot) -> tuple[set[str], str]:
    found = shoot["status"]["lastErrors"]
    return {code for each in found for code in each.get("codes", [])}, found[0]["description"]


def failing(garden: Garden, name: str) -> Shoot:
    """The shoot as soon as it has an error."""
    return dict(eventually(lambda: garden.shoot(name).get("status", {}).get("lastErrors") and garden.shoot(name)))


def annotate(garden: Garden, name: str, operation: str) -> None:
    garden.patch(name, {"metadata": {"annotations": {"gardener.cloud/operation": operation}}})


def test_a_shoot_gets_a_group_of_its_own_and_a_subnet_in_the_network(garden: Garden, azure: Azure, group: str) -> None:
    shoot = garden.made(manifest("shape", group))
    assert inside(azure, "shape") == of_shoot("shape")
    subnet = azure.network.subnets.get(group, "net", f"{tid('shape')}-nodes").properties
    assert subnet.address_prefix == "10.0.0.0/23"
    for reference in (subnet.nat_gateway, subnet.route_table, subnet.network_security_group):
        assert f"/resourceGroups/{tid('shape')}/" in reference.id
    rules = azure.network.network_security_groups.get(tid("shape"), f"{tid('shape')}-workers").properties
    assert not rules.security_rules
    address = azure.network.public_ip_addresses.get(tid("shape"), f"{tid('shape')}-nat-gateway-ip")
    assert shoot["status"]["networking"]["egressCIDRs"] == [f"{address.properties.ip_address}/32"]
    garden.removed("shape")
    assert inside(azure, "shape") == {}
    assert subnets(azure, group) == []
    assert azure.network.virtual_networks.get(group, "net").name == "net"


def test_a_neighbour_in_the_same_network_is_untouched_by_a_deletion(garden: Garden, azure: Azure, group: str) -> None:
    for index, name in enumerate(("one1", "two2")):
        garden.made(manifest(name, group, f"10.0.{4 * index}.0/22"))
    garden.removed("one1")
    assert subnets(azure, group) == [f"{tid('two2')}-nodes"]
    assert inside(azure, "two2") == of_shoot("two2")
    garden.removed("two2")
    assert subnets(azure, group) == []


def test_a_name_that_begins_like_another_takes_its_subnet_along(garden: Garden, azure: Azure, group: str) -> None:
    garden.made(manifest("pre", group))
    # The longer name's machines would stop it: as long as they are there, both are stuck.
    garden.made(manifest("pre1", group, "10.0.4.0/22"))
    garden.delete("pre")
    codes, text = errors(failing(garden, "pre"))
    assert codes == {"ERR_INFRA_DEPENDENCIES"}
    assert f"Subnet {tid('pre1')}-nodes is in use" in text
    assert subnets(azure, group) == [f"{tid('pre1')}-nodes"]
    for interface in list(azure.network.network_interfaces.list(tid("pre1"))):
        azure.network.network_interfaces.begin_delete(tid("pre1"), str(interface.name)).result()
    annotate(garden, "pre", "retry")
    eventually(lambda: garden.is_gone("pre"))
    assert subnets(azure, group) == [], "the neighbour has lost its subnet"
    garden.removed("pre1")


def test_rules_and_routes_of_others_survive_and_references_are_set_again(
    garden: Garden, azure: Azure, group: str
) -> None:
    garden.made(manifest("kept", group))
    own, name = tid("kept"), f"{tid('kept')}-nodes"
    rule: Any = {"properties": {"protocol": "Tcp", "access": "Deny", "direction": "Inbound", "priority": 100}}
    azure.network.security_rules.begin_create_or_update(own, f"{own}-workers", "theirs", rule).result()
    route: Any = {"properties": {"addressPrefix": "172.16.0.0/12", "nextHopType": "None"}}
    azure.network.routes.begin_create_or_update(own, "worker_route_table", "theirs", route).result()
    azure.subnet(group, "net", name, "10.0.0.0/23")
    annotate(garden, "kept", "reconcile")
    eventually(lambda: azure.network.subnets.get(group, "net", name).properties.nat_gateway)
    garden.settled("kept")
    assert [each.name for each in azure.network.security_rules.list(own, f"{own}-workers")] == ["theirs"]
    assert "theirs" in [each.name for each in azure.network.routes.list(own, "worker_route_table")]
    garden.removed("kept")


def test_every_node_has_a_route_to_its_pods_in_the_shoots_own_table(garden: Garden, azure: Azure, group: str) -> None:
    garden.made(manifest("routed", group, worker={"minimum": 3, "zones": ["1", "2"]}))
    routes = list(azure.network.routes.list(tid("routed"), "worker_route_table"))
    api = garden.inside("routed")
    nodes = api.get("/api/v1/nodes")["items"]
    api.close()
    assert {each["metadata"]["name"]: each["spec"]["podCIDR"] for each in nodes} == {
        route.name: route.properties.address_prefix for route in routes
    }
    zones = sorted(each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in nodes)
    assert zones == [f"{LOCATION}-1", f"{LOCATION}-1", f"{LOCATION}-2"]
    garden.removed("routed")


def test_what_others_put_into_a_shoots_subnet_stops_its_deletion(garden: Garden, azure: Azure, group: str) -> None:
    garden.made(manifest("blocked", group))
    subnet = azure.network.subnets.get(group, "net", f"{tid('blocked')}-nodes")
    foreign = azure.interface(group, "theirs", str(subnet.id))
    garden.delete("blocked")
    shoot = failing(garden, "blocked")
    assert (shoot["status"]["lastOperation"]["type"], shoot["status"]["lastOperation"]["state"]) == ("Delete", "Failed")
    codes, text = errors(shoot)
    assert codes == {"ERR_INFRA_DEPENDENCIES"}
    assert foreign.id in text
    azure.network.network_interfaces.begin_delete(group, "theirs").result()
    annotate(garden, "blocked", "retry")
    eventually(lambda: garden.is_gone("blocked"))
    assert subnets(azure, group) == []


def test_a_network_must_be_there(garden: Garden, azure: Azure, group: str) -> None:
    garden.create(manifest("lost", group, networks={"vnet": {"name": "nowhere", "resourceGroup": group}}))
    assert "user vnet not found" in errors(failing(garden, "lost"))[1]
    garden.removed("lost")
    assert inside(azure, "lost") == {}


def test_a_range_that_is_taken_or_outside_is_told_by_the_cloud(garden: Garden, azure: Azure, group: str) -> None:
    garden.made(manifest("first", group))
    for name, block, code in (
        ("second", "10.0.0.0/22", "NetcfgSubnetRangesOverlap"),
        ("third", "10.9.0.0/22", "NetcfgSubnetRangeOutsideVnet"),
    ):
        garden.create(manifest(name, group, block))
        codes, text = errors(failing(garden, name))
        assert code in text
        assert ("ERR_INFRA_DEPENDENCIES" in codes) is (name == "second")
        garden.removed(name)
    assert subnets(azure, group) == [f"{tid('first')}-nodes"]
    garden.removed("first")


def test_a_crowd_in_one_network_waits_for_each_other(garden: Garden, server: Server, azure: Azure, group: str) -> None:
    names = [f"crowd{number}" for number in range(6)]
    with server.having(operation_seconds_by_verb={"subnets.put": 0.3}):
        for index, name in enumerate(names):
            garden.create(manifest(name, group, f"10.0.{4 * index}.0/22"))
        for name in names:
            assert garden.settled(name)["status"]["lastOperation"]["state"] == "Succeeded"
    assert subnets(azure, group) == [f"{tid(name)}-nodes" for name in names]
    for name in names:
        garden.delete(name)
    for name in names:
        eventually(lambda name=name: garden.is_gone(name))
    assert subnets(azure, group) == []


def test_a_user_without_the_right_is_named_as_such(garden: Garden, server: Server, group: str) -> None:
    before = garden.api.get(SECRET)
    limited = server.principal(SUBSCRIPTION, actions=["*/read"])
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps(data_of(limited)))
    garden.create(manifest("weak", group))
    codes, text = errors(failing(garden, "weak"))
    assert "ERR_INFRA_UNAUTHORIZED" in codes
    assert "resourceGroups/write" in text
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps({"data": before["data"]}))
    garden.removed("weak")


@pytest.mark.parametrize(
    ("changes", "said"), [({"clientSecret": "wrong"}, "AADSTS7000215"), ({"tenantID": ""}, 'missing "tenantID"')]
)
def test_keys_that_are_none_fail_the_shoot(garden: Garden, group: str, changes: dict[str, str], said: str) -> None:
    before = garden.api.get(SECRET)
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps(data_of(changes)))
    garden.create(manifest("keyless", group))
    assert said in errors(failing(garden, "keyless"))[1]
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps({"data": before["data"]}))
    garden.removed("keyless")


def data_of(keys: dict[str, str]) -> dict[str, Any]:
    return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in keys.items()}}


def test_zones_may_have_subnets_and_gateways_of_their_own(garden: Garden, azure: Azure, group: str) -> None:
    zones = [
        {"name": 1, "cidr": "10.0.0.0/24", "natGateway": {"enabled": True}},
        {"name": 2, "cidr": "10.0.1.0/24"},
    ]
    networks = {"workers": None, "natGateway": None, "zones": zones}
    garden.made(manifest("zonal", group, networks=networks, worker={"minimum": 2, "zones": ["1", "2"]}))
    assert subnets(azure, group) == [f"{tid('zonal')}-nodes-z1", f"{tid('zonal')}-nodes-z2"]
    gateway = azure.network.nat_gateways.get(tid("zonal"), f"{tid('zonal')}-nat-gateway-z1")
    assert gateway.zones == ["1"]
    assert [subnet.id.rpartition("-")[2] for subnet in gateway.properties.subnets] == ["z1"]
    garden.removed("zonal")
    assert subnets(azure, group) == []


def test_a_shoot_without_a_network_gets_one_and_takes_it_along(garden: Garden, azure: Azure) -> None:
    own = manifest("ownvnet", "", networks={"vnet": {"cidr": "10.0.0.0/16"}})
    garden.made(own)
    assert inside(azure, "ownvnet") == of_shoot("ownvnet") | {"virtualNetworks": [tid("ownvnet")]}
    garden.removed("ownvnet")
    assert inside(azure, "ownvnet") == {}


def test_the_keys_of_the_garden_survive_a_restart(tmp_path: Path, server: Server, group: str) -> None:
    garden = garden_of(tmp_path / "garden", server)
    keys = garden.api.get(SECRET)["data"]
    assert base64.b64decode(keys["clientSecret"]).decode() != "sandbox"
    garden.kill()
    garden.start()
    assert garden.api.get(SECRET)["data"] == keys
    garden.made(manifest("again", group))
    garden.removed("again")
    assert garden.stop() == 0


# --- who reaches whom ---


class Cluster:
    """A shoot with a probe in it."""

    def __init__(self, garden: Garden, name: str, group: str, block: str) -> None:
        garden.made(manifest(name, group, block))
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


def test_shoots_in_one_network_reach_each_other_until_a_rule_denies_it(
    garden: Garden, azure: Azure, group: str
) -> None:
    one = Cluster(garden, "near1", group, "10.0.0.0/22")
    two = Cluster(garden, "near2", group, "10.0.4.0/22")
    assert one.reaches(two)
    assert two.reaches(one)
    rules, own = azure.network.security_rules, tid("near2")

    def rule(priority: int, access: str, direction: str, **more: str) -> None:
        given = {"protocol": "Tcp", "destinationPortRange": "30000-32767", "sourcePortRange": "*"}
        prefixes = {"sourceAddressPrefix": "*", "destinationAddressPrefix": "*", **more}
        wanted: Any = {
            "properties": {"priority": priority, "access": access, "direction": direction, **given, **prefixes}
        }
        rules.begin_create_or_update(own, f"{own}-workers", f"r{priority}", wanted).result()

    rule(200, "Deny", "Inbound", sourceAddressPrefix="10.0.0.0/23")
    assert not one.reaches(two)
    assert two.reaches(one)
    rule(100, "Allow", "Inbound", sourceAddressPrefix="VirtualNetwork")
    assert one.reaches(two), "the rule with the lower number comes first"
    rule(300, "Deny", "Outbound", destinationAddressPrefix="10.0.0.0/23")
    assert not two.reaches(one)
    one.remove()
    two.remove()


def test_a_route_to_nowhere_is_stronger_than_the_networks_own(garden: Garden, azure: Azure, group: str) -> None:
    one = Cluster(garden, "route1", group, "10.0.0.0/22")
    two = Cluster(garden, "route2", group, "10.0.4.0/22")
    assert one.reaches(two)
    route: Any = {"properties": {"addressPrefix": "10.0.4.0/23", "nextHopType": "None"}}
    azure.network.routes.begin_create_or_update(tid("route1"), "worker_route_table", "nowhere", route).result()
    assert not one.reaches(two)
    assert not two.reaches(one), "its answers do not come back"
    one.remove()
    two.remove()


def test_networks_that_are_peered_reach_each_other_from_both_sides(garden: Garden, azure: Azure) -> None:
    here, there = made(azure), made(azure, "10.1.0.0/16")
    one = Cluster(garden, "peer1", here, "10.0.0.0/22")
    two = Cluster(garden, "peer2", there, "10.1.0.0/22")
    nets = [azure.network.virtual_networks.get(each, "net") for each in (here, there)]
    assert not one.reaches(two)
    azure.peer(*nets)
    assert not one.reaches(two)
    azure.peer(*reversed(nets))
    assert one.reaches(two)
    assert two.reaches(one)
    azure.network.virtual_network_peerings.begin_delete(here, "net", "p").result()
    assert not one.reaches(two)
    one.remove()
    two.remove()


def test_the_same_address_in_another_network_is_somebody_else(garden: Garden, azure: Azure) -> None:
    one = Cluster(garden, "twin1", made(azure), "10.0.0.0/22")
    two = Cluster(garden, "twin2", made(azure), "10.0.0.0/22")
    assert one.address == two.address
    query = {"host": two.address, "port": str(two.port), "request": "hostname", "protocol": "http", "tries": 1}
    answer = one.api("GET", f"{PODS}/on-{one.name}:8080/proxy/dial", params=query).json()
    assert answer.get("responses") != [f"on-{two.name}"]
    one.remove()
    two.remove()
