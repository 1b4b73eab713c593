"""The sandbox's Compute Engine takes its time, survives its process, keeps peerings in order and knows its callers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.auth.transport.requests import Request
from google.cloud import compute_v1
from google.oauth2 import service_account

from tests.sandbox.gcp_server import PROJECT, REGION, Compute, Server, nat, refusal

HOUR = 3600


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "state", operation_seconds=0)
    yield server
    if server.process.poll() is None:
        server.stop()


@pytest.fixture
def compute(server: Server) -> Compute:
    return server.compute()


def slow(server: Server, *verbs: str) -> None:
    """These operations last for an hour; `pass_time` ends them."""
    assert server.put(operation_seconds_by_verb=dict.fromkeys(verbs, HOUR)).status_code == 200


def pass_time(server: Server) -> None:
    now = httpx.get(f"{server.url}/sandbox/settings", trust_env=False).json()["clock_offset_seconds"]
    assert server.put(clock_offset_seconds=now + HOUR + 1).status_code == 200


def test_an_operation_runs_until_its_time_has_come(server: Server, compute: Compute) -> None:
    slow(server, "networks.insert")
    begun = compute.network("net", wait=False)
    assert (begun.status, begun.progress) == (compute_v1.Operation.Status.PENDING, 0)
    status, reason, message = refusal(compute.subnetwork, "net", "a", "10.0.0.0/24")
    assert (status, reason) == (400, "resourceNotReady")
    assert message == f"The resource 'projects/{PROJECT}/global/networks/net' is not ready"
    assert refusal(compute.networks.delete_unary, project=PROJECT, network="net")[1] == "resourceNotReady"
    assert refusal(compute.network, "net", wait=False)[1] == "alreadyExists"
    assert server.put(clock_offset_seconds=HOUR / 2).status_code == 200
    running = compute.operations["global"].get(project=PROJECT, operation=begun.name)
    assert (running.status, running.progress) == (compute_v1.Operation.Status.RUNNING, 50)
    pass_time(server)
    compute.done(begun)
    assert compute.networks.get(project=PROJECT, network="net").name == "net"


def test_waiting_ends_with_the_operation(server: Server, compute: Compute) -> None:
    server.put(operation_seconds=0.5)
    began = time.monotonic()
    compute.network("net")
    assert time.monotonic() - began > 0.4


def test_operations_are_listed_and_forgotten_on_request(compute: Compute) -> None:
    compute.network("net")
    compute.done(compute.subnetwork("net", "a", "10.0.0.0/24"))
    (operation,) = compute.operations["global"].list(project=PROJECT)
    assert (operation.operation_type, operation.target_link.rpartition("/")[2]) == ("insert", "net")
    scopes = dict(compute.operations["global"].aggregated_list(project=PROJECT))
    assert len(scopes["global"].operations) == len(scopes[f"regions/{REGION}"].operations) == 1
    compute.operations["global"].delete(project=PROJECT, operation=operation.name)
    assert refusal(compute.operations["global"].get, project=PROJECT, operation=operation.name)[0] == 404


def test_everything_survives_a_kill_also_what_is_half_done(server: Server, compute: Compute) -> None:
    compute.network("whole")
    slow(server, "networks.insert", "networks.delete")
    half, going = compute.network("half", wait=False), compute.networks.delete_unary(project=PROJECT, network="whole")
    before = server.http.get("/global/networks").json()
    server.kill()
    server.start()
    again = server.compute()
    assert server.http.get("/global/networks").json() == before
    operation = again.operations["global"].get(project=PROJECT, operation=half.name)
    assert operation.status != compute_v1.Operation.Status.DONE
    assert refusal(again.subnetwork, "half", "a", "10.0.0.0/24")[1] == "resourceNotReady"
    pass_time(server)
    again.done(half)
    again.done(going)
    assert [each.name for each in again.networks.list(project=PROJECT)] == ["half"]


def test_one_directory_has_one_server(server: Server) -> None:
    command = [sys.executable, "-m", "sandbox.gcp", "--state-dir", str(server.state_dir)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "is another sandbox using it?" in second.stderr
    assert "Traceback" not in second.stderr


def test_it_listens_on_loopback_ends_politely_and_says_where_it_is(server: Server) -> None:
    port_file = server.state_dir / "gcp.port"
    assert server.url == f"http://127.0.0.1:{port_file.read_text().strip()}"
    server.stop()
    assert server.process.returncode == 0
    assert not port_file.exists()


@pytest.mark.parametrize(
    ("patch", "why"),
    [({"colour": "red"}, "colour"), ({"operation_seconds": -1}, "operation_seconds"), ([1], "JSON object")],
)
def test_settings_that_cannot_be_change_nothing(server: Server, patch: Any, why: str) -> None:
    before = httpx.get(f"{server.url}/sandbox/settings", trust_env=False).json()
    answer = httpx.put(f"{server.url}/sandbox/settings", json=patch, trust_env=False)
    assert answer.status_code == 400
    assert why in answer.json()["error"]
    assert httpx.get(f"{server.url}/sandbox/settings", trust_env=False).json() == before


def test_a_new_network_can_be_hidden_for_some_reads(server: Server, compute: Compute) -> None:
    server.put(hidden_reads={"networks": 3})
    compute.network("net")
    assert refusal(compute.networks.get, project=PROJECT, network="net")[0] == 404
    assert not list(compute.networks.list(project=PROJECT))
    assert refusal(compute.networks.get, project=PROJECT, network="net")[0] == 404
    assert compute.networks.get(project=PROJECT, network="net").name == "net"


def test_a_busy_router_refuses_a_second_writer(server: Server, compute: Compute) -> None:
    compute.network("net")
    compute.done(compute.router("net", "router"))
    compute.done(compute.subnetwork("net", "a", "10.0.0.0/24"))
    slow(server, "routers.patch")
    operation = compute.add_nat("router", [nat("a", "a")])
    assert refusal(compute.add_nat, "router", [nat("b", "a")])[1] == "resourceNotReady"
    pass_time(server)
    compute.done(operation)


def test_a_peering_is_active_when_both_sides_are_there(compute: Compute) -> None:
    for name in ("a", "b"):
        compute.network(name)
    compute.done(compute.peer("a", "b"))
    assert (compute.states("a"), compute.states("b")) == ({"a-b": "INACTIVE"}, {})
    compute.done(compute.peer("b", "a"))
    assert (compute.states("a"), compute.states("b")) == ({"a-b": "ACTIVE"}, {"b-a": "ACTIVE"})
    side = compute.networks.get(project=PROJECT, network="a").peerings[0]
    assert side.state_details.endswith("]: Connected.")
    assert "has a peering of this name already" in refusal(compute.peer, "a", "b")[2]
    twin = compute_v1.NetworksAddPeeringRequest(
        network_peering=compute_v1.NetworkPeering(name="twin", network="global/networks/b", exchange_subnet_routes=True)
    )
    add = compute.networks.add_peering_unary
    refused = refusal(add, project=PROJECT, network="a", networks_add_peering_request_resource=twin)
    assert refused[2] == "There is already a peering a-b with the same network. Select another network."
    compute.done(compute.unpeer("b", "a"))
    assert (compute.states("a"), compute.states("b")) == ({"a-b": "INACTIVE"}, {})
    compute.done(compute.peer("b", "a"))
    assert compute.states("a") == {"a-b": "ACTIVE"}


def test_a_peered_network_stays_until_its_own_side_is_gone(compute: Compute) -> None:
    for name in ("a", "b"):
        compute.network(name)
    compute.done(compute.peer("a", "b"))
    failure = compute.failure(compute.networks.delete_unary(project=PROJECT, network="a"))
    assert failure[1] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    assert failure[2].endswith(f"is already being used by 'projects/{PROJECT}/global/networks/b'")
    compute.done(compute.networks.delete_unary(project=PROJECT, network="b"))
    compute.done(compute.unpeer("a", "b"))
    compute.done(compute.networks.delete_unary(project=PROJECT, network="a"))


def test_one_peering_or_route_operation_at_a_time_on_a_network(server: Server, compute: Compute) -> None:
    for name in ("hub", "a", "b", "c"):
        compute.network(name)
    slow(server, "networks.addPeering")
    operation = compute.peer("hub", "a")
    busy = "There is a peering operation in progress on the local or peer network. Try again later."
    for local, peer in (("hub", "b"), ("b", "hub"), ("a", "hub"), ("a", "b")):
        assert refusal(compute.peer, local, peer) == (400, "badRequest", busy)
    assert refusal(compute.route, "hub", "r", "192.168.0.0/16")[2] == busy
    assert refusal(compute.networks.delete_unary, project=PROJECT, network="a")[1] == "resourceNotReady"
    free = compute.peer("b", "c")
    pass_time(server)
    compute.done(operation)
    compute.done(free)
    slow(server, "routes.insert")
    operation = compute.route("hub", "r", "192.168.0.0/16")
    route = "There is a route operation in progress on the local or peer network. Try again later."
    assert refusal(compute.peer, "b", "hub") == (400, "badRequest", route)
    compute.route("hub", "s", "192.168.0.0/17")  # routes do not mind each other
    pass_time(server)
    compute.done(operation)


def test_a_hub_with_four_spokes_peered_at_once_comes_out_whole(server: Server, compute: Compute) -> None:
    spokes = [f"spoke-{number}" for number in range(4)]
    for name in ("hub", *spokes):
        compute.network(name)
    server.put(operation_seconds=0.05)
    refused = [0]

    def insist(local: str, peer: str) -> None:
        own = server.compute()
        while True:
            try:
                own.done(own.peer(local, peer))
            except Exception as error:
                if "Try again later" not in str(error):
                    raise
                refused[0] += 1
            else:
                return

    with ThreadPoolExecutor(8) as pool:
        pairs = [pair for spoke in spokes for pair in (("hub", spoke), (spoke, "hub"))]
        list(pool.map(lambda pair: insist(*pair), pairs))
    assert compute.states("hub") == {f"hub-{spoke}": "ACTIVE" for spoke in spokes}
    assert refused[0] > 0


def test_networks_whose_ranges_overlap_are_not_connected(compute: Compute) -> None:
    for name, cidr in (("a", "10.0.0.0/16"), ("b", "10.0.4.0/22")):
        compute.network(name)
        compute.done(compute.subnetwork(name, name, cidr))
    compute.done(compute.peer("a", "b"))
    status, _, message = compute.failure(compute.peer("b", "a"))
    assert status == 400
    assert message == (
        "An IP range in the peer network (10.0.0.0/16) overlaps with an IP range in the local network (10.0.4.0/22) "
        f"allocated by resource (projects/{PROJECT}/regions/{REGION}/subnetworks/b)."
    )
    assert (compute.states("a"), compute.states("b")) == ({"a-b": "INACTIVE"}, {})


def test_peers_of_one_network_may_not_overlap_either(compute: Compute) -> None:
    for name, cidr in (("hub", "10.0.0.0/24"), ("a", "10.1.0.0/24"), ("b", "10.2.0.0/24")):
        compute.network(name)
        compute.done(compute.subnetwork(name, name, cidr))
    for local, peer in (("hub", "a"), ("a", "hub"), ("hub", "b")):
        compute.done(compute.peer(local, peer))
    compute.done(compute.subnetwork("b", "b2", "10.1.0.0/22"))
    assert "in an active peer (a) of the peer network" in compute.failure(compute.peer("b", "hub"))[2]
    compute.done(compute.subnetworks.delete_unary(project=PROJECT, region=REGION, subnetwork="b2"))
    compute.done(compute.peer("b", "hub"))
    assert "conflicts with existing subnetwork 'a'" in refusal(compute.subnetwork, "b", "b2", "10.1.0.0/22")[2]
    routes = [each.dest_range for each in compute.routes.list(project=PROJECT) if each.next_hop_peering == "hub-a"]
    assert routes == ["10.1.0.0/24"]


def test_a_network_has_so_many_peerings_and_no_more(server: Server, compute: Compute) -> None:
    for name in ("hub", "a", "b"):
        compute.network(name)
    server.put(quotas={"PEERINGS_PER_NETWORK": 1})
    compute.done(compute.peer("hub", "a"))
    assert compute.failure(compute.peer("hub", "b"))[:2] == (403, "QUOTA_EXCEEDED")


def credentials(key: dict[str, Any]) -> Any:
    return service_account.Credentials.from_service_account_info(key)


def test_a_service_accounts_key_opens_the_door_by_a_signed_token(server: Server) -> None:
    server.put(anonymous=False)
    assert server.http.get("/global/networks").status_code == 401
    compute = server.compute(credentials(server.key()))
    compute.network("net")


def test_the_token_endpoint_gives_a_token_for_an_assertion(server: Server) -> None:
    server.put(anonymous=False)
    key = server.key()
    assert key["token_uri"] == f"{server.url}/token"
    scoped = credentials(key).with_scopes(["https://www.googleapis.com/auth/cloud-platform"])
    scoped.refresh(Request())
    listed = server.http.get("/global/networks", headers={"Authorization": f"Bearer {scoped.token}"})
    assert listed.status_code == 200
    forged = server.http.get("/global/networks", headers={"Authorization": f"Bearer {scoped.token}x"})
    assert forged.status_code == 401


def test_a_key_that_this_world_did_not_make_is_refused(server: Server, tmp_path: Path) -> None:
    other = Server(tmp_path / "other")
    try:
        strange = other.key()
    finally:
        other.stop()
    assert refusal(server.compute(credentials(strange)).networks.list, project=PROJECT)[:2] == (401, "authError")


def test_an_account_may_do_what_its_permissions_say_and_in_its_project(server: Server) -> None:
    reader = server.compute(credentials(server.key(account="reader", permissions=["compute.*.get", "compute.*.list"])))
    assert list(reader.networks.list(project=PROJECT)) == []
    assert refusal(reader.network, "net") == (
        403,
        "forbidden",
        f"Required 'compute.networks.create' permission for 'projects/{PROJECT}/global/networks'",
    )
    assert refusal(reader.networks.list, project="another")[:2] == (403, "forbidden")


def test_sixty_four_subnetworks_at_once(server: Server, compute: Compute) -> None:
    compute.network("net")
    server.put(operation_seconds=0.1)

    def make(number: int) -> None:
        own = server.compute()
        own.done(own.subnetwork("net", f"s{number}", f"10.0.{number * 4}.0/22"))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(make, range(64)))
    assert len(list(compute.subnetworks.list(project=PROJECT, region=REGION))) == 64
