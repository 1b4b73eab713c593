"""The sandbox's Azure takes its time, survives its process, keeps peerings in order and knows its callers."""

from __future__ import annotations

import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from azure.core.exceptions import ClientAuthenticationError, ResourceExistsError

from sandbox.clouds import Store
from tests.sandbox.azure_server import VERSION, Azure, Server, refusal

HOUR = 3600


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("azure") / "state", operation_seconds=0)
    yield server
    server.stop()


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    """The one server, with its settings as they were."""
    with running.having():
        yield running


@pytest.fixture
def azure(server: Server) -> Azure:
    """A subscription of its own with a group `g`."""
    azure = server.azure(server.principal(str(uuid.uuid4())))
    azure.group("g")
    return azure


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Server]:
    """A server that may be ended."""
    server = Server(tmp_path / "state", operation_seconds=0)
    yield server
    server.stop()


def slow(server: Server, *verbs: str) -> None:
    """These operations last for an hour; `pass_time` ends them."""
    assert server.put(operation_seconds_by_verb=dict.fromkeys(verbs, HOUR)).status_code == 200


def pass_time(server: Server) -> None:
    now = server.http.get("/sandbox/settings").json()["clock_offset_seconds"]
    assert server.put(clock_offset_seconds=now + HOUR + 1).status_code == 200


def call(server: Server, azure: Azure, method: str, path: str, **more: Any) -> httpx.Response:
    token = azure.credential.get_token(f"{server.url}/.default").token
    headers = {"Authorization": f"Bearer {token}"}
    return server.http.request(method, path, params=VERSION, headers=headers, **more)


def net(azure: Azure) -> str:
    return f"/subscriptions/{azure.subscription}/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/net"


BODY = {"location": "westeurope", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}


def test_a_write_is_accepted_and_runs_until_its_time_has_come(server: Server, azure: Azure) -> None:
    slow(server, "virtualNetworks.put")
    begun = call(server, azure, "PUT", net(azure), json=BODY)
    assert begun.status_code == 201
    assert begun.json()["properties"]["provisioningState"] == "Updating"
    assert int(begun.headers["retry-after"]) in range(HOUR - 60, HOUR + 1)
    status = begun.headers["azure-asyncoperation"]
    assert status.startswith(f"{server.url}/subscriptions/{azure.subscription}/providers/Microsoft.Network/locations/")
    path = status.removeprefix(server.url).partition("?")[0]
    assert call(server, azure, "GET", path).json() == {"status": "InProgress"}
    busy = refusal(azure.subnet, "g", "net", "s", "10.0.0.0/24")
    assert busy[:2] == (409, "AnotherOperationInProgress")
    assert path in busy[2]
    assert refusal(azure.network.virtual_networks.begin_delete, "g", "net")[:2] == busy[:2]
    pass_time(server)
    assert call(server, azure, "GET", path).json() == {"status": "Succeeded"}
    assert azure.network.virtual_networks.get("g", "net").provisioning_state == "Succeeded"


def test_subnets_of_one_network_are_written_one_at_a_time(server: Server, azure: Azure) -> None:
    azure.vnet("g", "net")
    slow(server, "subnets.put")
    azure.subnet("g", "net", "a", "10.0.0.0/24", wait=False)
    assert refusal(azure.subnet, "g", "net", "b", "10.0.1.0/24")[:2] == (409, "AnotherOperationInProgress")
    pass_time(server)
    azure.subnet("g", "net", "b", "10.0.1.0/24", wait=False)


def test_what_is_not_ready_yet_cannot_be_referred_to(server: Server, azure: Azure) -> None:
    azure.vnet("g", "net")
    slow(server, "routeTables.put")
    place: Any = {"location": "westeurope"}
    azure.network.route_tables.begin_create_or_update("g", "rt", place, polling=False)
    table = azure.network.route_tables.get("g", "rt").id
    refused = refusal(azure.subnet, "g", "net", "s", "10.0.0.0/24", route_table=table)
    assert refused[:2] == (429, "RetryableError")
    pass_time(server)
    azure.subnet("g", "net", "s", "10.0.0.0/24", route_table=table)


def test_a_deletion_answers_with_both_headers_and_ends_in_nothing(server: Server, azure: Azure) -> None:
    azure.vnet("g", "net")
    slow(server, "virtualNetworks.delete")
    begun = call(server, azure, "DELETE", net(azure))
    assert begun.status_code == 202
    result = begun.headers["location"].removeprefix(server.url).partition("?")[0]
    assert call(server, azure, "GET", result).status_code == 202
    assert call(server, azure, "GET", net(azure)).json()["properties"]["provisioningState"] == "Deleting"
    pass_time(server)
    assert call(server, azure, "GET", result).status_code == 200
    assert call(server, azure, "GET", net(azure)).status_code == 404
    assert call(server, azure, "DELETE", net(azure)).status_code == 204


def test_what_is_being_put_into_a_subnet_counts_at_once(server: Server, azure: Azure) -> None:
    azure.vnet("g", "net")
    subnet = azure.subnet("g", "net", "s", "10.0.0.0/24")
    slow(server, "networkInterfaces.put", "subnets.delete")
    azure.interface("g", "nic", subnet.id, wait=False)
    assert refusal(azure.network.subnets.begin_delete, "g", "net", "s")[1] == "InUseSubnetCannotBeDeleted"
    pass_time(server)
    azure.network.network_interfaces.begin_delete("g", "nic").result()
    azure.network.subnets.begin_delete("g", "net", "s", polling=False)
    assert refusal(azure.interface, "g", "nic", subnet.id)[:2] == (429, "RetryableError")


def test_a_group_on_its_way_out_takes_nothing_in(server: Server, azure: Azure) -> None:
    slow(server, "resourceGroups.delete")
    azure.groups.begin_delete("g", polling=False)
    assert azure.groups.get("g").properties.provisioning_state == "Deleting"
    assert refusal(azure.vnet, "g", "net")[:2] == (409, "ResourceGroupBeingDeleted")
    assert refusal(azure.group, "g")[:2] == (409, "ResourceGroupBeingDeleted")
    pass_time(server)
    assert not azure.groups.check_existence("g")


def test_what_was_accepted_survives_a_kill(mortal: Server) -> None:
    secret = mortal.principal()
    azure = mortal.azure(secret)
    azure.group("g")
    azure.vnet("g", "net")
    slow(mortal, "subnets.put")
    azure.subnet("g", "net", "s", "10.0.0.0/24", wait=False)
    authority = mortal.certificate.authority.read_bytes()
    mortal.kill()
    mortal.start()
    again = mortal.azure(secret)
    assert mortal.certificate.authority.read_bytes() == authority
    assert again.network.subnets.get("g", "net", "s").provisioning_state == "Updating"
    pass_time(mortal)
    assert again.network.subnets.get("g", "net", "s").provisioning_state == "Succeeded"


def test_a_new_network_is_not_seen_by_the_first_reads(server: Server, azure: Azure) -> None:
    assert server.put(hidden_reads={"virtualNetworks": 2}).status_code == 200
    azure.vnet("g", "net", wait=False)
    for _ in range(2):
        assert refusal(azure.network.virtual_networks.get, "g", "net")[:2] == (404, "ResourceNotFound")
    assert azure.network.virtual_networks.get("g", "net").name == "net"


# --- peerings ---


def state(azure: Azure, network: Any, name: str = "p") -> tuple[str, str]:
    seen = azure.network.virtual_network_peerings.get(network.id.split("/")[4], network.name, name)
    return str(seen.peering_state.value), str(seen.peering_sync_level.value)


def test_a_peering_is_connected_when_both_sides_are_there(azure: Azure) -> None:
    one, other = azure.vnet("g", "one", "10.0.0.0/16"), azure.vnet("g", "other", "10.1.0.0/16")
    made = azure.peer(one, other)
    assert state(azure, one) == ("Initiated", "RemoteNotInSync")
    assert made.properties.remote_virtual_network_address_space.address_prefixes == ["10.1.0.0/16"]
    azure.peer(other, one)
    assert state(azure, one) == state(azure, other) == ("Connected", "FullyInSync")
    azure.network.virtual_network_peerings.begin_delete("g", "other", "p").result()
    assert state(azure, one)[0] == "Disconnected"
    refused = refusal(azure.peer, other, one)
    assert refused[:2] == (400, "RemotePeeringIsDisconnected")
    azure.network.virtual_network_peerings.begin_delete("g", "one", "p").result()
    azure.peer(other, one)
    azure.peer(one, other)
    assert state(azure, one) == ("Connected", "FullyInSync")


def test_a_network_that_goes_leaves_its_peers_disconnected(azure: Azure) -> None:
    one, other = azure.vnet("g", "one", "10.0.0.0/16"), azure.vnet("g", "other", "10.1.0.0/16")
    azure.peer(one, other)
    azure.peer(other, one)
    azure.network.virtual_networks.begin_delete("g", "other").result()
    assert state(azure, one)[0] == "Disconnected"


def test_a_wider_network_is_synchronised_on_request(azure: Azure) -> None:
    one, other = azure.vnet("g", "one", "10.0.0.0/16"), azure.vnet("g", "other", "10.1.0.0/16")
    azure.peer(one, other)
    azure.peer(other, one)
    azure.vnet("g", "one", "10.0.0.0/16", "10.2.0.0/16")
    assert state(azure, other) == ("Connected", "LocalNotInSync")
    assert state(azure, one) == ("Connected", "RemoteNotInSync")
    synced = azure.peer(other, one, sync_remote_address_space="true")
    space = synced.properties.remote_virtual_network_address_space
    assert space.address_prefixes == ["10.0.0.0/16", "10.2.0.0/16"]
    assert state(azure, one) == state(azure, other) == ("Connected", "FullyInSync")


def test_networks_whose_ranges_overlap_are_not_peered(azure: Azure) -> None:
    one, twin = azure.vnet("g", "one", "10.0.0.0/16"), azure.vnet("g", "twin", "10.0.0.0/16")
    hub = azure.vnet("g", "hub", "10.9.0.0/16")
    assert refusal(azure.peer, one, twin)[:2] == (400, "VnetAddressSpacesOverlap")
    azure.peer(one, hub, "to-hub")
    azure.peer(hub, one, "to-one")
    refused = refusal(azure.peer, twin, hub)
    assert refused[:2] == (400, "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet")
    assert "Overlapping address prefixes: 10.0.0.0/16, 10.0.0.0/16." in refused[2]
    grown = refusal(azure.vnet, "g", "one", "10.0.0.0/16", "10.9.0.0/24")
    assert grown[:2] == (400, "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet")
    assert refusal(azure.peer, one, hub, "again")[:2] == (400, "AnotherPeeringAlreadyReferencesRemoteVnet")


# --- who may what ---


def test_a_principal_may_what_its_role_says_in_its_subscription(server: Server, azure: Azure) -> None:
    azure.vnet("g", "net")
    reader = server.azure(server.principal(azure.subscription, actions=["*/read"]))
    assert reader.network.virtual_networks.get("g", "net").name == "net"
    status, code, message = refusal(reader.group, "h")
    assert (status, code) == (403, "AuthorizationFailed")
    assert "perform action 'Microsoft.Resources/subscriptions/resourceGroups/write' over scope" in message
    stranger = server.azure(server.principal("99999999-2222-3333-4444-555555555555"))
    stranger.network._config.subscription_id = azure.subscription
    assert refusal(stranger.network.virtual_networks.get, "g", "net")[:2] == (403, "AuthorizationFailed")


@pytest.mark.parametrize(
    ("key", "code"), [("clientSecret", "AADSTS7000215"), ("clientID", "AADSTS700016"), ("tenantID", "AADSTS700016")]
)
def test_a_token_is_for_those_who_are_known(server: Server, key: str, code: str) -> None:
    assert server.put(anonymous=False).status_code == 200
    secret = server.principal() | {key: "66666666-2222-3333-4444-555555555555"}
    with pytest.raises(ClientAuthenticationError, match=code):
        server.azure(secret).groups.get("g")


def test_a_caller_sees_its_tenant_and_its_subscription(server: Server, azure: Azure) -> None:
    (own,) = call(server, azure, "GET", "/subscriptions").json()["value"]
    (tenant,) = call(server, azure, "GET", "/tenants").json()["value"]
    assert (own["subscriptionId"], own["state"], own["tenantId"]) == (azure.subscription, "Enabled", tenant["tenantId"])
    bare = server.http.get("/subscriptions", params=VERSION)
    assert bare.status_code == 401


def test_everybody_gets_a_token_while_that_is_allowed(server: Server, azure: Azure) -> None:
    anyone = dict.fromkeys(("clientID", "clientSecret", "tenantID"), "66666666-2222-3333-4444-555555555555")
    assert server.azure({**anyone, "subscriptionID": azure.subscription}).groups.get("g").name == "g"


def test_a_token_that_has_ended_is_not_taken(mortal: Server) -> None:
    azure = mortal.azure()
    token = azure.credential.get_token(f"{mortal.url}/.default").token
    mortal.kill()
    store = Store(mortal.state_dir / "state.sqlite")
    key = (store.get("signing-keys", "") or {})["key"]
    store.close()
    mortal.start()
    claims = jwt.decode(token, key, algorithms=["HS256"], options={"verify_aud": False})
    for ends, code in ((claims["iat"], "ExpiredAuthenticationToken"), (claims["exp"], "ResourceGroupNotFound")):
        mine = jwt.encode(claims | {"exp": ends}, key, algorithm="HS256")
        answer = mortal.http.get(net(azure), params=VERSION, headers={"Authorization": f"Bearer {mine}"})
        assert answer.json()["error"]["code"] == code


def test_instance_discovery_and_the_clouds_endpoints_lead_back_here(server: Server) -> None:
    found = server.http.get("/common/discovery/instance", params={"api-version": "1.1"}).json()
    assert found["tenant_discovery_endpoint"].startswith(server.url)
    (cloud,) = server.http.get("/metadata/endpoints", params={"api-version": "2019-05-01"}).json()
    assert server.http.get("/metadata/endpoints", params={"api-version": "2022-09-01"}).json() == cloud
    assert (cloud["resourceManager"], cloud["authentication"]["loginEndpoint"]) == (server.url, server.url)
    old = server.http.get("/metadata/endpoints", params={"api-version": "2015-01-01"}).json()
    assert old["authentication"]["audiences"] == [server.url]


def test_only_its_owner_reads_the_servers_key(server: Server) -> None:
    assert stat.S_IMODE(server.certificate.key.stat().st_mode) == 0o600


def test_a_client_that_does_not_know_the_certificate_does_not_talk(server: Server, azure: Azure) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{server.url}/metadata/endpoints", trust_env=False)
    del azure


def test_settings_that_cannot_be_are_refused_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"operation_seconds": -1}')
    command = [sys.executable, "-m", "sandbox.azure", "--state-dir", str(tmp_path / "s"), "--settings", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert "operation_seconds" in ended.stderr


def test_a_crowd_at_one_network_leaves_every_subnet_it_was_told_of(azure: Azure) -> None:
    azure.vnet("g", "net")

    def join(number: int) -> None:
        while True:
            try:
                azure.subnet("g", "net", f"s{number:02}", f"10.0.{number}.0/24")
            except ResourceExistsError:  # 409: another one is being written
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(join, range(24)))
    seen = azure.network.virtual_networks.get("g", "net").subnets
    assert [each.name for each in seen] == [f"s{number:02}" for number in range(24)]
