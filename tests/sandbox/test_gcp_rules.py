"""Compute Engine's rules, as google-cloud-compute sees them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from google.cloud import compute_v1

from tests.sandbox.gcp_server import PROJECT, REGION, ZONE, Compute, Server, nat, refusal


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("gcp") / "state", operation_seconds=0, quotas={"NETWORKS": 500})
    yield server
    server.stop()


@pytest.fixture(scope="module")
def compute(server: Server) -> Compute:
    return server.compute()


@pytest.fixture
def net(compute: Compute) -> str:
    """A custom mode network."""
    return made(compute)


def made(compute: Compute, *, auto: bool = False) -> str:
    name = f"n{uuid.uuid4().hex[:10]}"
    compute.network(name, auto=auto)
    return name


def names(page: Any) -> list[str]:
    return [each.name for each in page]


def test_a_network_shows_what_was_asked_for_and_gets_a_default_route(compute: Compute, net: str) -> None:
    seen = compute.networks.get(project=PROJECT, network=net)
    assert seen.self_link == f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/global/networks/{net}"
    assert (seen.mtu, seen.auto_create_subnetworks, seen.routing_config.routing_mode) == (1460, False, "REGIONAL")
    (route,) = [each for each in compute.routes.list(project=PROJECT) if each.network == seen.self_link]
    assert (route.dest_range, route.next_hop_gateway.rpartition("/")[2]) == ("0.0.0.0/0", "default-internet-gateway")


def test_the_sdk_awaits_operations_with_an_operations_client_of_the_same_options(compute: Compute) -> None:
    compute.networks.transport._extended_operations_services["global_operations"] = compute.operations["global"]
    name = f"n{uuid.uuid4().hex[:10]}"
    network = compute_v1.Network(name=name, auto_create_subnetworks=False)
    assert compute.networks.insert(project=PROJECT, network_resource=network).result(timeout=20) is None
    assert compute.networks.delete(project=PROJECT, network=name).result(timeout=20) is None
    assert refusal(compute.networks.get, project=PROJECT, network=name)[0] == 404


@pytest.mark.parametrize("name", ["Größe 1", "a--b-", "1abc", "a" * 64, "a_b", "-a"])
def test_names_follow_rfc_1035(compute: Compute, name: str) -> None:
    status, reason, message = refusal(compute.network, name, wait=False)
    assert (status, reason) == (400, "invalid")
    assert message == (
        f"Invalid value for field 'resource.name': '{name}'. "
        "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"
    )


def test_a_name_may_have_63_characters_and_two_may_differ_at_the_end(compute: Compute) -> None:
    for last in "ab":
        compute.network("n" * 62 + last)
    assert {"n" * 62 + "a", "n" * 62 + "b"} <= set(names(compute.networks.list(project=PROJECT)))


def test_a_taken_name_is_a_conflict_and_an_unknown_one_not_found(compute: Compute, net: str) -> None:
    path = f"projects/{PROJECT}/global/networks/{net}"
    assert refusal(compute.network, net) == (409, "alreadyExists", f"The resource '{path}' already exists")
    missing = refusal(compute.networks.get, project=PROJECT, network="nix")
    assert missing == (404, "notFound", f"The resource 'projects/{PROJECT}/global/networks/nix' was not found")
    assert refusal(compute.subnetwork, "nix", "a", "10.0.0.0/24") == missing
    assert refusal(compute.routers.list, project=PROJECT, region="moon-1") == (
        400,
        "invalid",
        "Invalid value for field 'region': 'moon-1'. Unknown region.",
    )


def test_errors_have_the_vendors_shape_on_the_wire(server: Server) -> None:
    answer = server.http.get("/global/networks/nix")
    message = f"The resource 'projects/{PROJECT}/global/networks/nix' was not found"
    error = {"message": message, "domain": "global", "reason": "notFound"}
    assert (answer.status_code, answer.json()) == (404, {"error": {"code": 404, "message": message, "errors": [error]}})
    unknown = server.http.post("/global/networks", json={"name": "a", "colour": "red"}).json()["error"]
    assert unknown["message"] == (
        "Invalid JSON payload received. Unknown name \"colour\" at 'resource.colour': Cannot find field."
    )
    assert server.http.post("/global/networks", content=b"{").json()["error"]["errors"][0]["reason"] == "parseError"


@pytest.mark.parametrize(
    ("cidr", "why"),
    [
        ("10.0.0.5/24", "Must be a CIDR address range"),
        ("10.0.0.0", "Must be a CIDR address range"),
        ("10.0.0.0/30", "between 4 and 29"),
        ("169.254.0.0/24", "prohibited"),
        ("10.1.0.0/22", "Invalid IPCidrRange: 10.1.0.0/22 conflicts with existing subnetwork 'a' in region"),
        ("10.2.0.0/16", "conflicts with existing subnetwork 'a'"),
    ],
)
def test_a_range_of_a_subnetwork_must_be_free_and_canonical(compute: Compute, net: str, cidr: str, why: str) -> None:
    secondary = [compute_v1.SubnetworkSecondaryRange(range_name="pods", ip_cidr_range="10.2.0.0/20")]
    compute.done(compute.subnetwork(net, "a", "10.1.2.0/24", region="us-east1", secondary_ip_ranges=secondary))
    try:
        status, reason, message = refusal(compute.subnetwork, net, "b", cidr)
        assert (status, reason) == (400, "invalid")
        assert message.startswith("Invalid value for field 'resource.ipCidrRange'")
        assert why in message
    finally:
        compute.done(compute.subnetworks.delete_unary(project=PROJECT, region="us-east1", subnetwork="a"))


def test_an_auto_mode_network_has_a_subnetwork_in_each_region_and_keeps_its_range(compute: Compute) -> None:
    net = made(compute, auto=True)
    regions = names(compute.regions.list(project=PROJECT))
    mine = compute_v1.AggregatedListSubnetworksRequest(project=PROJECT, filter=f'name = "{net}"')
    scopes = {scope: each for scope, each in compute.subnetworks.aggregated_list(mine) if each.subnetworks}
    assert sorted(scopes) == sorted(f"regions/{region}" for region in regions)
    assert "cannot overlap with 10.128.0.0/9" in refusal(compute.subnetwork, net, "x", "10.200.0.0/16")[2]
    delete = compute.subnetworks.delete_unary
    assert refusal(delete, project=PROJECT, region=REGION, subnetwork=net)[1] == "invalidUsage"
    compute.done(compute.networks.delete_unary(project=PROJECT, network=net))
    assert not [each for _, each in compute.subnetworks.aggregated_list(mine) if each.subnetworks]


def test_a_subnetwork_grows_but_never_shrinks_nor_over_its_neighbour(compute: Compute, net: str) -> None:
    one, other = f"{net}-a", f"{net}-b"
    compute.done(compute.subnetwork(net, one, "10.0.0.0/24"))
    compute.done(compute.subnetwork(net, other, "10.0.2.0/24"))

    def expand(cidr: str) -> Any:
        body = compute_v1.SubnetworksExpandIpCidrRangeRequest(ip_cidr_range=cidr)
        return compute.subnetworks.expand_ip_cidr_range_unary(
            project=PROJECT, region=REGION, subnetwork=one, subnetworks_expand_ip_cidr_range_request_resource=body
        )

    compute.done(expand("10.0.0.0/23"))
    assert compute.subnetworks.get(project=PROJECT, region=REGION, subnetwork=one).ip_cidr_range == "10.0.0.0/23"
    assert "Must be larger than" in refusal(expand, "10.0.0.0/24")[2]
    assert "conflicts with existing subnetwork" in refusal(expand, "10.0.0.0/22")[2]


def test_a_patch_of_a_subnetwork_needs_its_present_fingerprint(compute: Compute, net: str) -> None:
    name = f"{net}-a"
    compute.done(compute.subnetwork(net, name, "10.0.0.0/24"))
    first = compute.subnetworks.get(project=PROJECT, region=REGION, subnetwork=name)

    def patch(fingerprint: str, pods: str) -> Any:
        ranges = [compute_v1.SubnetworkSecondaryRange(range_name="pods", ip_cidr_range=pods)]
        body = compute_v1.Subnetwork(fingerprint=fingerprint, secondary_ip_ranges=ranges)
        return compute.subnetworks.patch_unary(
            project=PROJECT, region=REGION, subnetwork=name, subnetwork_resource=body
        )

    compute.done(patch(first.fingerprint, "10.1.0.0/20"))
    assert refusal(patch, first.fingerprint, "10.2.0.0/20")[:2] == (412, "conditionNotMet")
    now = compute.subnetworks.get(project=PROJECT, region=REGION, subnetwork=name)
    assert "overlaps with 10.0.0.0/24" in refusal(patch, now.fingerprint, "10.0.0.128/25")[2]


def test_a_network_with_something_inside_stays_and_says_what(compute: Compute, net: str) -> None:
    path = f"projects/{PROJECT}/global/networks/{net}"

    def reason() -> str:
        operation = compute.networks.delete_unary(project=PROJECT, network=net)
        status, code, message = compute.failure(operation)
        assert (status, code) == (400, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE")
        assert message.startswith(f"The network resource '{path}' is already being used by '")
        return message.split("'")[3]

    subnetwork, router, firewall, route = (f"{net}-{part}" for part in ("sub", "router", "firewall", "route"))
    compute.done(compute.subnetwork(net, subnetwork, "10.0.0.0/24"))
    compute.done(compute.router(net, router))
    compute.done(compute.firewall(net, firewall))
    compute.done(compute.route(net, route, "192.168.0.0/16"))
    assert reason() == f"projects/{PROJECT}/regions/{REGION}/subnetworks/{subnetwork}"
    compute.done(compute.subnetworks.delete_unary(project=PROJECT, region=REGION, subnetwork=subnetwork))
    assert reason() == f"projects/{PROJECT}/global/firewalls/{firewall}"
    compute.done(compute.firewalls.delete_unary(project=PROJECT, firewall=firewall))
    assert reason() == f"projects/{PROJECT}/regions/{REGION}/routers/{router}"
    compute.done(compute.routers.delete_unary(project=PROJECT, region=REGION, router=router))
    assert reason() == f"projects/{PROJECT}/global/routes/{route}"
    compute.done(compute.routes.delete_unary(project=PROJECT, route=route))
    compute.done(compute.networks.delete_unary(project=PROJECT, network=net))
    assert not [each for each in compute.routes.list(project=PROJECT) if each.network.endswith(f"/{net}")]


def test_a_subnetwork_in_use_stays(compute: Compute, net: str) -> None:
    subnetwork, router, instance = f"{net}-s", f"{net}-r", f"{net}-i"
    path = f"projects/{PROJECT}/regions/{REGION}/subnetworks/{subnetwork}"
    compute.done(compute.subnetwork(net, subnetwork, "10.0.0.0/24"))
    compute.done(compute.router(net, router))
    compute.done(compute.add_nat(router, [nat("nat", subnetwork)]))
    compute.done(compute.instance(instance, subnetwork))

    def delete() -> Any:
        return compute.subnetworks.delete_unary(project=PROJECT, region=REGION, subnetwork=subnetwork)

    used = f"The subnetwork resource '{path}' is already being used by "
    by_instance = f"'projects/{PROJECT}/zones/{ZONE}/instances/{instance}'"
    assert refusal(delete) == (400, "resourceInUseByAnotherResource", used + by_instance)
    compute.done(compute.instances.delete_unary(project=PROJECT, zone=ZONE, instance=instance))
    assert refusal(delete)[2] == used + f"'projects/{PROJECT}/regions/{REGION}/routers/{router}'"
    # The SDK leaves an empty list out of a PATCH, so that the last gateway goes by PUT only.
    compute.done(compute.add_nat(router, []))
    assert names(compute.routers.get(project=PROJECT, region=REGION, router=router).nats) == ["nat"]
    whole = compute_v1.Router(name=router, network=f"global/networks/{net}")
    compute.done(compute.routers.update_unary(project=PROJECT, region=REGION, router=router, router_resource=whole))
    assert not compute.routers.get(project=PROJECT, region=REGION, router=router).nats
    compute.done(delete())


def test_two_writers_of_a_routers_nat_gateways_undo_each_other(compute: Compute, net: str) -> None:
    router = f"{net}-r"
    compute.done(compute.router(net, router))
    for number in (1, 2):
        compute.done(compute.subnetwork(net, f"{net}-{number}", f"10.0.{number}.0/24"))
    compute.done(compute.add_nat(router, [nat("nat-1", f"{net}-1")]))
    compute.done(compute.add_nat(router, [nat("nat-2", f"{net}-2")]))
    assert names(compute.routers.get(project=PROJECT, region=REGION, router=router).nats) == ["nat-2"]
    status = compute.routers.get_router_status(project=PROJECT, region=REGION, router=router).result
    assert names(status.nat_status) == ["nat-2"]


def test_a_range_has_one_nat_gateway_in_its_region(compute: Compute, net: str) -> None:
    for number in (1, 2):
        compute.done(compute.router(net, f"{net}-r{number}"))
    compute.done(compute.subnetwork(net, f"{net}-s", "10.0.1.0/24"))
    compute.done(compute.add_nat(f"{net}-r1", [nat("nat-1", f"{net}-s")]))
    message = refusal(compute.add_nat, f"{net}-r2", [nat("nat-2", f"{net}-s")])[2]
    assert "are served by NAT gateway 'nat-1' already" in message
    compute.done(compute.subnetwork(net, f"{net}-t", "10.0.2.0/24"))
    twins = [nat("nat", f"{net}-s"), nat("nat", f"{net}-t")]
    assert "must be unique" in refusal(compute.add_nat, f"{net}-r1", twins)[2]


def test_five_routers_in_a_network_and_region_and_no_more(compute: Compute, net: str) -> None:
    for number in range(5):
        compute.done(compute.router(net, f"{net}-r{number}"))
    status, code, message = compute.failure(compute.router(net, f"{net}-r5"))
    assert (status, code) == (403, "QUOTA_EXCEEDED")
    assert message == f"Quota 'ROUTERS_PER_REGION_PER_NETWORK' exceeded.  Limit: 5.0 in region {REGION}."
    compute.done(compute.router(net, f"{net}-r5", region="us-east1"))
    for number in range(5):
        compute.done(compute.routers.delete_unary(project=PROJECT, region=REGION, router=f"{net}-r{number}"))


def test_a_full_project_or_network_is_told_by_the_operation(server: Server, compute: Compute, net: str) -> None:
    with server.having(quotas={"NETWORKS": 0, "STATIC_ROUTES_PER_NETWORK": 2, "STATIC_ADDRESSES": 0}):
        failure = compute.failure(compute.network("one-too-many", wait=False))
        assert failure == (403, "QUOTA_EXCEEDED", "Quota 'NETWORKS' exceeded.  Limit: 0.0 globally.")
        quotas = {each.metric: each.limit for each in compute.projects.get(project=PROJECT).quotas}
        assert quotas["NETWORKS"] == 0.0
        compute.done(compute.route(net, f"{net}-1", "192.168.1.0/24"))
        assert "STATIC_ROUTES_PER_NETWORK" in compute.failure(compute.route(net, f"{net}-2", "192.168.2.0/24"))[2]
        address = compute_v1.Address(name=f"{net}-a")
        insert = compute.addresses.insert_unary
        assert refusal(insert, project=PROJECT, region=REGION, address_resource=address) == (
            403,
            "quotaExceeded",
            f"Quota 'STATIC_ADDRESSES' exceeded.  Limit: 0.0 in region {REGION}.",
        )
    assert refusal(compute.networks.get, project=PROJECT, network="one-too-many")[0] == 404


def test_a_route_may_not_lie_within_a_subnetwork_and_follows_its_instance(compute: Compute, net: str) -> None:
    compute.done(compute.subnetwork(net, f"{net}-s", "10.0.0.0/24"))
    compute.done(compute.instance(f"{net}-i", f"{net}-s"))
    assert "lies within" in refusal(compute.route, net, f"{net}-x", "10.0.0.128/25")[2]
    hop = f"projects/{PROJECT}/zones/{ZONE}/instances/{net}-i"
    compute.done(compute.route(net, f"{net}-pods", "100.96.0.0/24", next_hop_instance=hop))
    assert not compute.routes.get(project=PROJECT, route=f"{net}-pods").warnings
    compute.done(compute.instances.delete_unary(project=PROJECT, zone=ZONE, instance=f"{net}-i"))
    (warning,) = compute.routes.get(project=PROJECT, route=f"{net}-pods").warnings
    assert warning.code == "NEXT_HOP_INSTANCE_NOT_FOUND"


def test_a_request_id_makes_an_insertion_repeatable(compute: Compute) -> None:
    name, request_id = f"n{uuid.uuid4().hex[:10]}", str(uuid.uuid4())
    network = compute_v1.Network(name=name, auto_create_subnetworks=False)
    request = compute_v1.InsertNetworkRequest(project=PROJECT, network_resource=network, request_id=request_id)
    first, again = compute.networks.insert_unary(request), compute.networks.insert_unary(request)
    assert first.name == again.name
    assert compute.done(again).client_operation_id == request_id
    zero = compute_v1.InsertNetworkRequest(project=PROJECT, network_resource=network, request_id=str(uuid.UUID(int=0)))
    assert refusal(compute.networks.insert_unary, zero)[1] == "invalid"


def test_pages_hold_as_many_as_asked_for(compute: Compute, net: str) -> None:
    for number in range(5):
        compute.done(compute.subnetwork(net, f"{net}-{number}", f"10.0.{number}.0/24"))
    mine = f'name = "{net}-*"'
    request = compute_v1.ListSubnetworksRequest(project=PROJECT, region=REGION, filter=mine, max_results=2)
    pages = [names(page.items) for page in compute.subnetworks.list(request).pages]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [name for page in pages for name in page] == [f"{net}-{number}" for number in range(5)]
    wrong = compute_v1.ListSubnetworksRequest(project=PROJECT, region=REGION, max_results=501)
    assert refusal(compute.subnetworks.list, wrong)[1] == "invalid"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = {net}-1", "1"),
        ('name="{net}-1" OR name="{net}-2"', "12"),
        ("(name eq {net}-.) (ipCidrRange eq '10\\\\.0\\\\.2.*')", "2"),
        ('network eq ".*({net}).*"', "123"),
        ("name eq {net}", ""),
        ("name ne {net}-1 AND network:{net}", "23"),
        ("description:* network:{net}", "1"),
        ("NOT description:* AND network:{net}", "23"),
        ('-name = "{net}-1" network:{net}', "23"),
        ("network:{net} (name = {net}-1 OR name = {net}-2) (privateIpGoogleAccess = false)", "12"),
    ],
)
def test_filters(compute: Compute, filtered: str, text: str, expected: str) -> None:
    wanted = text.format(net=filtered).replace("\\\\", "\\")
    request = compute_v1.ListSubnetworksRequest(project=PROJECT, region=REGION, filter=wanted)
    found = [each.name.removeprefix(f"{filtered}-") for each in compute.subnetworks.list(request)]
    assert "".join(found) == expected


@pytest.fixture(scope="module")
def filtered(compute: Compute) -> str:
    net = made(compute)
    for number in (1, 2, 3):
        more = {"description": "mine"} if number == 1 else {}
        compute.done(compute.subnetwork(net, f"{net}-{number}", f"10.0.{number}.0/24", **more))
    return net


@pytest.mark.parametrize("text", ["name =", "(name = a", "name a b", "name eq '('", "= a"])
def test_what_is_no_filter_is_refused(compute: Compute, text: str) -> None:
    request = compute_v1.ListNetworksRequest(project=PROJECT, filter=text)
    status, reason, message = refusal(compute.networks.list, request)
    assert (status, reason) == (400, "invalid")
    assert message == f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."


def test_what_is_simply_there(compute: Compute) -> None:
    assert REGION in names(compute.regions.list(project=PROJECT))
    assert ZONE in names(compute.zones.list(project=PROJECT))
    kinds = names(compute.machine_types.list(project=PROJECT, zone=ZONE))
    assert "n2-standard-2" in kinds
    assert "t2a-standard-2" not in kinds  # Arm is not everywhere
    assert refusal(compute.instances.list, project=PROJECT, zone="europe-west3-x")[2].endswith("Unknown zone.")
    assert refusal(compute.machine_types.get, project=PROJECT, zone=ZONE, machine_type="abacus")[0] == 404


def test_labels_need_their_present_fingerprint(compute: Compute, net: str) -> None:
    name = f"{net}-a"
    address = compute_v1.Address(name=name, labels={"owner": "me"})
    compute.done(compute.addresses.insert_unary(project=PROJECT, region=REGION, address_resource=address))
    seen = compute.addresses.get(project=PROJECT, region=REGION, address=name)
    assert seen.status == "RESERVED"
    own = compute_v1.ListAddressesRequest(project=PROJECT, region=REGION, filter=f"labels.owner=me name={name}")
    assert names(compute.addresses.list(own)) == [name]

    def label(fingerprint: str) -> Any:
        body = compute_v1.RegionSetLabelsRequest(label_fingerprint=fingerprint, labels={"owner": "you"})
        return compute.addresses.set_labels_unary(
            project=PROJECT, region=REGION, resource=name, region_set_labels_request_resource=body
        )

    compute.done(label(seen.label_fingerprint))
    assert refusal(label, seen.label_fingerprint)[:2] == (412, "conditionNotMet")


def test_firewall_rules_allow_or_deny_and_have_defaults(compute: Compute, net: str) -> None:
    compute.done(compute.firewall(net, f"{net}-f"))
    seen = compute.firewalls.get(project=PROJECT, firewall=f"{net}-f")
    assert (seen.priority, seen.direction, list(seen.source_ranges)) == (1000, "INGRESS", ["0.0.0.0/0"])
    patch = compute_v1.Firewall(source_ranges=["10.0.0.0/8"])
    compute.done(compute.firewalls.patch_unary(project=PROJECT, firewall=f"{net}-f", firewall_resource=patch))
    assert list(compute.firewalls.get(project=PROJECT, firewall=f"{net}-f").source_ranges) == ["10.0.0.0/8"]
    empty = compute_v1.Firewall(name=f"{net}-g", network=f"global/networks/{net}")
    assert refusal(compute.firewalls.insert_unary, project=PROJECT, firewall_resource=empty)[1] == "required"
