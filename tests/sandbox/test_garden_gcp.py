"""What shoots on GCP become in the cloud, with its SDK as the witness."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

from tests.sandbox.garden.garden_server import MERGE, NAMESPACE, Garden, eventually
from tests.sandbox.garden.test_garden_insides import PODS, SERVICES, pod, running, service
from tests.sandbox.garden_gcp import Shoot, manifest
from tests.sandbox.gcp_server import PROJECT, REGION, ZONE, Compute, Server

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/gcp"
QUOTAS = {"NETWORKS": 500, "ROUTERS": 500}
NO_OVERLAY = {"providerConfig": {"overlay": {"enabled": False}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("gcp") / "state", operation_seconds=0.01, quotas=QUOTAS)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Garden]:
    garden = Garden(tmp_path_factory.mktemp("garden"), "http://127.0.0.1:1", "--gcp-endpoint", server.url)
    yield garden
    assert garden.stop() == 0


@pytest.fixture(scope="module")
def compute(server: Server) -> Compute:
    return server.compute(AnonymousCredentials())  # type: ignore[no-untyped-call]


@pytest.fixture
def net(compute: Compute) -> str:
    """A network with a router of the same name."""
    return made(compute)


def made(compute: Compute) -> str:
    name = f"n{uuid.uuid4().hex[:10]}"
    compute.network(name)
    compute.done(compute.router(name, name))
    return name


def inside(compute: Compute, network: str) -> dict[str, list[str]]:
    """What is in a network, by kind: names, without the random ends of machines' and routes'."""

    def mine(things: Any) -> list[Any]:
        return [each for each in things if each.network.endswith(f"/{network}")]

    routers = mine(compute.routers.list(project=PROJECT, region=REGION))
    machines = [
        each
        for _, scope in compute.instances.aggregated_list(project=PROJECT)
        for each in scope.instances
        if mine(each.network_interfaces)
    ]
    routes = [each for each in mine(compute.routes.list(project=PROJECT)) if each.next_hop_instance]
    return {
        "subnetworks": sorted(each.name for each in mine(compute.subnetworks.list(project=PROJECT, region=REGION))),
        "nats": sorted(nat.name for router in routers for nat in router.nats),
        "firewalls": sorted(each.name for each in mine(compute.firewalls.list(project=PROJECT))),
        "instances": sorted(each.name[:-12] for each in machines),
        "routes": sorted(each.next_hop_instance.rpartition("/")[2][:-12] for each in routes),
    }


EMPTY: dict[str, list[str]] = {kind: [] for kind in ("subnetworks", "nats", "firewalls", "instances", "routes")}


def of_shoot(name: str, *, routes: bool = False) -> dict[str, list[str]]:
    tid = f"shoot--trellis--{name}"
    return {
        "subnetworks": [f"{tid}-internal", f"{tid}-nodes"],
        "nats": [f"{tid}-cloud-nat"],
        "firewalls": [f"{tid}-allow-health-checks", f"{tid}-allow-internal-access"],
        "instances": [f"{tid}-worker-z1"],
        "routes": [f"{tid}-worker-z1"] if routes else [],
    }


def together(*names: str, **more: bool) -> dict[str, list[str]]:
    shoots = [of_shoot(name, **more) for name in names]
    return {kind: sorted(each for shoot in shoots for each in shoot[kind]) for kind in EMPTY}


def errors(shoot: Shoot) -> tuple[set[str], str]:
    found = shoot["status"]["lastErrors"]
    return {code for each in found for code in each.get("codes", [])}, found[0]["description"]


def retry(garden: Garden, name: str) -> None:
    garden.patch(name, {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})


def failing(garden: Garden, name: str) -> Shoot:
    """The shoot as soon as it has an error."""
    return dict(eventually(lambda: garden.shoot(name).get("status", {}).get("lastErrors") and garden.shoot(name)))


# --- in the cloud ----------------------------------------------------------------------------------------------------


def test_a_shoot_gets_two_subnets_a_nat_gateway_firewall_rules_and_a_machine(
    garden: Garden, compute: Compute, net: str
) -> None:
    shoot = garden.made(manifest("shape", net))
    assert inside(compute, net) == of_shoot("shape")
    assert shoot["status"]["networking"].get("egressCIDRs") in (None, []), "the addresses are Google's choice"
    (nat,) = compute.routers.get(project=PROJECT, region=REGION, router=net).nats
    assert (nat.min_ports_per_vm, nat.nat_ip_allocate_option) == (2048, "AUTO_ONLY")
    assert [each.name.rpartition("/")[2] for each in nat.subnetworks] == ["shoot--trellis--shape-nodes"]
    rule = compute.firewalls.get(project=PROJECT, firewall="shoot--trellis--shape-allow-internal-access")
    assert set(rule.source_ranges) == {"10.96.0.0/13", "10.0.0.0/23", "10.0.2.0/23"}
    assert not rule.target_tags, "it opens every machine of the network"
    garden.removed("shape")
    assert inside(compute, net) == EMPTY
    assert compute.networks.get(project=PROJECT, network=net).name == net


def test_a_neighbour_in_the_same_network_is_untouched_by_a_deletion(garden: Garden, compute: Compute, net: str) -> None:
    for index, name in enumerate(("one1", "two2")):
        pods = {"pods": f"10.{96 + index}.0.0/16", **NO_OVERLAY}
        garden.made(manifest(name, net, f"10.0.{4 * index}.0/22", networking=pods))
    assert inside(compute, net) == together("one1", "two2", routes=True)
    garden.removed("one1")
    assert inside(compute, net) == of_shoot("two2", routes=True)
    garden.removed("two2")
    assert inside(compute, net) == EMPTY


def test_a_name_that_begins_like_another_loses_its_routes(garden: Garden, compute: Compute, net: str) -> None:
    for index, name in enumerate(("pre", "pre1")):
        pods = {"pods": f"10.{96 + index}.0.0/16", **NO_OVERLAY}
        garden.made(manifest(name, net, f"10.0.{4 * index}.0/22", networking=pods))
    garden.removed("pre")
    assert inside(compute, net) == of_shoot("pre1") | {"routes": []}
    garden.patch("pre1", {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    garden.settled("pre1")
    assert inside(compute, net) == of_shoot("pre1", routes=True)
    garden.removed("pre1")


def test_a_route_leads_to_the_pods_of_its_node(garden: Garden, compute: Compute, net: str) -> None:
    wanted = manifest("routed", net, networking=NO_OVERLAY, worker={"minimum": 3})
    garden.made(wanted)
    with_routes = {
        each.next_hop_instance.rpartition("/")[2]: each.dest_range
        for each in compute.routes.list(project=PROJECT)
        if each.network.endswith(net) and each.next_hop_instance
    }
    api = garden.inside("routed")
    nodes = api.get("/api/v1/nodes")["items"]
    api.close()
    assert {each["metadata"]["name"]: each["spec"]["podCIDR"] for each in nodes} == with_routes
    assert len(with_routes) == 3
    garden.removed("routed")
    assert inside(compute, net) == EMPTY


def test_two_shoots_at_once_on_one_router_lose_a_nat_gateway(
    garden: Garden, server: Server, compute: Compute, net: str
) -> None:
    # Both read the router before their subnetworks are there; the second then writes the list without the first.
    with server.having(operation_seconds_by_verb={"subnetworks.insert": 1.0}):
        garden.create(manifest("race1", net))
        eventually(lambda: inside(compute, net)["subnetworks"])
        garden.create(manifest("race2", net, "10.0.4.0/22"))
        for name in ("race1", "race2"):
            assert garden.settled(name)["status"]["lastOperation"]["state"] == "Succeeded"
    assert inside(compute, net)["nats"] == of_shoot("race2")["nats"]
    garden.patch("race1", {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    garden.settled("race1")
    assert inside(compute, net)["nats"] == together("race1", "race2")["nats"]
    for name in ("race1", "race2"):
        garden.removed(name)
    assert inside(compute, net) == EMPTY


def test_what_others_put_into_a_shoots_subnet_stops_its_deletion(garden: Garden, compute: Compute, net: str) -> None:
    garden.made(manifest("blocked", net))
    foreign = f"i{uuid.uuid4().hex[:8]}"
    compute.done(compute.instance(foreign, "shoot--trellis--blocked-nodes"))
    garden.delete("blocked")
    shoot = failing(garden, "blocked")
    assert (shoot["status"]["lastOperation"]["type"], shoot["status"]["lastOperation"]["state"]) == ("Delete", "Failed")
    codes, text = errors(shoot)
    assert codes == {"ERR_INFRA_DEPENDENCIES"}
    assert f"is already being used by 'projects/{PROJECT}/zones/{ZONE}/instances/{foreign}'" in text
    compute.done(compute.instances.delete_unary(project=PROJECT, zone=ZONE, instance=foreign))
    retry(garden, "blocked")
    eventually(lambda: garden.is_gone("blocked"))
    assert inside(compute, net) == EMPTY


@pytest.mark.parametrize(
    ("vpc", "text"),
    [
        ({"name": "nowhere", "cloudRouter": {"name": "nowhere"}}, "failed to locate user-managed VPC [Name=nowhere]"),
        ({"cloudRouter": {"name": "nowhere"}}, "failed to locate user-managed CloudRouter [Name=nowhere]"),
    ],
)
def test_a_network_and_a_router_must_be_there(
    garden: Garden, compute: Compute, net: str, vpc: dict[str, Any], text: str
) -> None:
    garden.create(manifest("lost", net, networks={"vpc": {"name": net, **vpc}}))
    shoot = failing(garden, "lost")
    assert shoot["status"]["lastOperation"]["state"] == "Failed"
    assert errors(shoot)[0] == {"ERR_CONFIGURATION_PROBLEM"}
    assert text in errors(shoot)[1]
    garden.removed("lost")
    assert inside(compute, net) == EMPTY


def test_a_range_that_is_taken_is_told_by_the_cloud(garden: Garden, compute: Compute, net: str) -> None:
    garden.made(manifest("first", net))
    garden.create(manifest("second", net))
    shoot = failing(garden, "second")
    codes, text = errors(shoot)
    assert "conflicts with existing subnetwork 'shoot--trellis--first-nodes'" in text
    assert codes == {"ERR_INFRA_DEPENDENCIES", "ERR_CONFIGURATION_PROBLEM"}
    for name in ("second", "first"):
        garden.removed(name)
    assert inside(compute, net) == EMPTY


def test_a_full_router_fails_the_shoot(garden: Garden, server: Server, net: str) -> None:
    with server.having(quotas={**QUOTAS, "NATS_PER_ROUTER": 0}):
        garden.create(manifest("full", net))
        assert "A router can have at most 0 NAT gateways" in errors(failing(garden, "full"))[1]
    garden.removed("full")


def test_a_user_without_the_right_is_named_as_such(garden: Garden, server: Server, net: str) -> None:
    before = garden.api.get(SECRET)
    limited = server.key(account="limited", permissions=["compute.*.get", "compute.*.list"])
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps(data_of(json.dumps(limited))))
    garden.create(manifest("weak", net))
    codes, text = errors(failing(garden, "weak"))
    assert codes == {"ERR_INFRA_UNAUTHORIZED"}
    assert "Required 'compute.subnetworks.create' permission" in text
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps({"data": before["data"]}))
    garden.removed("weak")


@pytest.mark.parametrize(("content", "said"), [("{}", "Authentication failed"), ("", "missing")])
def test_a_secret_without_a_key_fails_the_shoot(garden: Garden, net: str, content: str, said: str) -> None:
    before = garden.api.get(SECRET)
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps(data_of(content)))
    garden.create(manifest("keyless", net))
    assert said in errors(failing(garden, "keyless"))[1]
    garden.removed("keyless")
    garden.api("PATCH", SECRET, headers=MERGE, content=json.dumps({"data": before["data"]}))


def data_of(key: str) -> dict[str, Any]:
    return {"data": {"serviceaccount.json": base64.b64encode(key.encode()).decode()}}


def test_addresses_of_ones_own_are_used_by_the_nat_gateway(garden: Garden, compute: Compute, net: str) -> None:
    name = f"a{uuid.uuid4().hex[:8]}"
    nat = {"cloudNAT": {"natIPNames": [{"name": name}]}}
    garden.create(manifest("byoip", net, networks=nat))
    codes, text = errors(failing(garden, "byoip"))
    assert codes == {"ERR_CONFIGURATION_PROBLEM"}
    assert f'networks.cloudNAT.natIPNames[0].name: Not found: "{name}"' in text
    body = compute_v1.Address(name=name)
    compute.done(compute.addresses.insert_unary(project=PROJECT, region=REGION, address_resource=body))
    address = compute.addresses.get(project=PROJECT, region=REGION, address=name).address
    retry(garden, "byoip")
    eventually(lambda: garden.shoot("byoip")["status"]["lastOperation"]["state"] == "Succeeded")
    assert garden.shoot("byoip")["status"]["networking"]["egressCIDRs"] == [f"{address}/32"]
    other = made(compute)
    garden.create(manifest("byoip2", other, networks=nat))
    assert f"external IP address is already in use by {net}" in errors(failing(garden, "byoip2"))[1]
    for shoot in ("byoip", "byoip2"):
        garden.removed(shoot)


def test_workers_may_be_expanded_and_pools_may_grow(garden: Garden, compute: Compute, net: str) -> None:
    wanted = manifest("grows", net, "10.0.4.0/22", networking={"nodes": "10.0.4.0/23"})
    garden.made(wanted)
    spec = wanted["spec"]
    networks = spec["provider"]["infrastructureConfig"]["networks"]
    worker = spec["provider"]["workers"][0] | {"minimum": 3, "zones": [ZONE, f"{REGION}-b"]}
    change = {
        "networking": {"nodes": "10.0.0.0/20"},
        "provider": {
            "infrastructureConfig": {"networks": {"workers": "10.0.0.0/21", "internal": networks["internal"]}},
            "workers": [worker],
        },
    }
    refused = garden.patch("grows", {"spec": change})
    assert "must not overlap" in refused.json()["message"]
    change["networking"] = {"nodes": "10.0.4.0/23"}
    change["provider"]["infrastructureConfig"] = {"networks": {"workers": "10.0.4.0/23"}}  # type: ignore[index]
    assert garden.patch("grows", {"spec": change}).status_code == 200
    garden.settled("grows")
    tid = "shoot--trellis--grows-worker"
    assert inside(compute, net)["instances"] == [f"{tid}-z1", f"{tid}-z1", f"{tid}-z2"]
    garden.removed("grows")
    assert inside(compute, net) == EMPTY


def test_a_shoot_without_a_network_gets_one_and_takes_it_along(garden: Garden, compute: Compute) -> None:
    own = manifest("ownvpc", "")
    del own["spec"]["provider"]["infrastructureConfig"]["networks"]["vpc"]
    garden.made(own)
    name = "shoot--trellis--ownvpc"
    assert inside(compute, name) == of_shoot("ownvpc")
    garden.removed("ownvpc")
    assert name not in [each.name for each in compute.networks.list(project=PROJECT)]


def test_the_key_of_the_garden_survives_a_restart(tmp_path: Path, server: Server, compute: Compute, net: str) -> None:
    garden = Garden(tmp_path / "garden", "http://127.0.0.1:1", "--gcp-endpoint", server.url)
    key = garden.api.get(SECRET)["data"]
    assert json.loads(base64.b64decode(key["serviceaccount.json"]))["private_key"]
    garden.create(manifest("crash", net))
    eventually(lambda: inside(compute, net)["subnetworks"])
    garden.kill()
    garden.start()
    assert garden.api.get(SECRET)["data"] == key
    assert garden.settled("crash")["status"]["lastOperation"]["state"] == "Succeeded"
    garden.removed("crash")
    assert garden.stop() == 0
    assert inside(compute, net) == EMPTY


# --- who reaches whom ------------------------------------------------------------------------------------------------


class Cluster:
    """A shoot with a probe in it."""

    def __init__(self, garden: Garden, name: str, network: str, block: str) -> None:
        garden.made(manifest(name, network, block))
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


def test_shoots_in_one_network_are_open_to_each_other_until_a_rule_denies_it(
    garden: Garden, compute: Compute, net: str
) -> None:
    one = Cluster(garden, "near1", net, "10.0.0.0/22")
    two = Cluster(garden, "near2", net, "10.0.4.0/22")
    assert one.reaches(two)
    assert two.reaches(one)

    def rule(direction: str, priority: int, **more: Any) -> str:
        name = f"f{uuid.uuid4().hex[:8]}"
        body = compute_v1.Firewall(
            name=name,
            network=f"global/networks/{net}",
            direction=direction,
            priority=priority,
            denied=[compute_v1.Denied(I_p_protocol="tcp", ports=["30000-32767"])],
            **more,
        )
        compute.done(compute.firewalls.insert_unary(project=PROJECT, firewall_resource=body))
        return name

    late = rule("INGRESS", 1001, source_ranges=["10.0.0.0/23"])
    assert one.reaches(two), "the rule of the shoot comes first"
    equal = rule("INGRESS", 1000, source_ranges=["10.0.0.0/23"], target_tags=["shoot--trellis--near2"])
    assert not one.reaches(two), "among equals, what denies comes first"
    assert two.reaches(one)
    leaving = rule("EGRESS", 900, destination_ranges=["10.0.0.0/23"])
    assert not two.reaches(one)
    for name in (late, equal, leaving):
        compute.done(compute.firewalls.delete_unary(project=PROJECT, firewall=name))
    assert one.reaches(two)
    own = "shoot--trellis--near1-allow-internal-access"
    compute.done(compute.firewalls.delete_unary(project=PROJECT, firewall=own))
    assert not one.reaches(two), "what lets a shoot's nodes in everywhere is its own rule"
    one.remove()
    two.remove()


def test_networks_that_are_peered_reach_each_other_as_far_as_rules_let_them(garden: Garden, compute: Compute) -> None:
    here, there = made(compute), made(compute)
    one = Cluster(garden, "here1", here, "10.0.0.0/22")
    two = Cluster(garden, "there1", there, "10.0.4.0/22")
    assert not one.reaches(two)
    compute.done(compute.peer(here, there))
    assert not one.reaches(two)
    compute.done(compute.peer(there, here))
    assert not one.reaches(two), "no rule of that network lets the other's nodes in"
    body = compute_v1.Firewall(
        name=f"f{uuid.uuid4().hex[:8]}",
        network=f"global/networks/{there}",
        allowed=[compute_v1.Allowed(I_p_protocol="tcp")],
        source_ranges=["10.0.0.0/23"],
    )
    compute.done(compute.firewalls.insert_unary(project=PROJECT, firewall_resource=body))
    assert one.reaches(two)
    assert not two.reaches(one)
    one.remove()
    two.remove()
