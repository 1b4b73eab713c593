"""Azure's rules, as azure-mgmt-network and azure-mgmt-resource see them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.azure_server import LOCATION, SUBSCRIPTION, VERSION, Azure, Server, refusal

GROUPS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("azure") / "state", operation_seconds=0)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def azure(server: Server) -> Azure:
    return server.azure()


@pytest.fixture
def group(azure: Azure) -> str:
    """A resource group."""
    name = f"g-{uuid.uuid4().hex[:10]}"
    azure.group(name)
    return name


def id_of(group: str, kind: str, name: str) -> str:
    return f"{GROUPS}/{group}/providers/Microsoft.Network/{kind}/{name}"


# --- resource groups ---


def test_a_group_is_made_at_once_and_shows_what_was_asked_for(azure: Azure, group: str) -> None:
    made = azure.group(group, tags={"a": "b"})
    assert (made.id, made.location, made.tags) == (f"{GROUPS}/{group}", LOCATION, {"a": "b"})
    assert made.properties.provisioning_state == "Succeeded"
    assert azure.groups.check_existence(group)
    assert not azure.groups.check_existence("nix")


def test_a_group_does_not_move(azure: Azure, group: str) -> None:
    status, code, message = refusal(azure.group, group, "northeurope")
    assert (status, code) == (409, "InvalidResourceGroupLocation")
    assert message == (
        "Invalid resource group location 'northeurope'. The Resource group already exists in location 'westeurope'."
    )


def test_a_group_that_is_not_there_is_named(azure: Azure) -> None:
    expected = (404, "ResourceGroupNotFound", "Resource group 'nix' could not be found.")
    assert refusal(azure.groups.get, "nix") == expected
    assert refusal(azure.network.virtual_networks.get, "nix", "v") == expected
    assert refusal(azure.vnet, "nix", "v1") == expected


def test_groups_and_resources_are_found_by_their_tags(azure: Azure, group: str) -> None:
    azure.group(group, tags={"Whose": "it's mine"})
    azure.vnet(group, "net", tags={"Whose": "yours"})
    mine = "tagName eq 'whose' and tagValue eq 'it''s mine'"
    assert [each.name for each in azure.groups.list(filter=mine)] == [group]
    assert [each.name for each in azure.resources.list_by_resource_group(group, filter=mine)] == []
    networks = "resourceType eq 'Microsoft.Network/virtualNetworks'"
    (seen,) = azure.resources.list_by_resource_group(group, filter=networks, expand="provisioningState")
    assert (seen.name, seen.location, seen.tags, seen.provisioning_state) == (
        "net", LOCATION, {"Whose": "yours"}, "Succeeded",
    )  # fmt: skip
    assert refusal(lambda: list(azure.groups.list(filter="size gt 3")))[:2] == (400, "InvalidFilterInQueryString")


def test_a_deleted_group_takes_everything_with_it(azure: Azure, group: str) -> None:
    network = azure.vnet(group, "net")
    subnet = azure.subnet(group, "net", "s", "10.0.0.0/24")
    azure.interface(group, "nic", subnet.id)
    azure.groups.begin_delete(group).result()
    assert not azure.groups.check_existence(group)
    azure.group(group)
    assert refusal(azure.network.virtual_networks.get, group, network.name)[0] == 404


def test_a_group_with_something_that_others_use_is_not_deleted(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    subnet = azure.subnet(group, "net", "s", "10.0.0.0/24")
    azure.group(f"{group}-other")
    azure.interface(f"{group}-other", "nic", subnet.id)
    status, code, message = refusal(lambda: azure.groups.begin_delete(group).result())
    assert (status, code) == (409, "ResourceGroupDeletionBlocked")
    assert "'Microsoft.Network/virtualNetworks/net' could not be deleted" in message
    assert azure.groups.get(group).properties.provisioning_state == "Succeeded"
    azure.groups.begin_delete(f"{group}-other").result()
    azure.groups.begin_delete(group).result()


@pytest.mark.parametrize("name", ["a" * 91, "ends.", "with space", "a*"])
def test_names_of_groups_have_rules(azure: Azure, name: str) -> None:
    assert refusal(azure.group, name)[:2] == (400, "InvalidResourceGroup")


def test_names_of_tags_have_no_slash(azure: Azure, group: str) -> None:
    assert refusal(azure.group, group, tags={"trellis.dev/vpc": "x"})[:2] == (400, "InvalidTagNameCharacters")
    assert refusal(azure.vnet, group, "net", tags={str(n): "" for n in range(51)})[:2] == (400, "InvalidTags")


# --- virtual networks and subnets ---


@pytest.mark.parametrize("name", ["a", "a" * 65, "-a", "a-", "ä1", "a b"])
def test_names_of_networks_have_rules(azure: Azure, group: str, name: str) -> None:
    assert refusal(azure.vnet, group, name)[:2] == (400, "InvalidResourceName")


def test_a_network_keeps_its_subnets_when_a_put_does_not_name_them(azure: Azure, group: str) -> None:
    azure.vnet(group, "net", "10.0.0.0/16", tags={"a": "b"})
    azure.subnet(group, "net", "s", "10.0.0.0/24")
    wider = azure.vnet(group, "net", "10.0.0.0/16", "10.1.0.0/16")
    assert [each.name for each in wider.subnets] == ["s"]
    assert not wider.tags
    emptied = azure.vnet(group, "net", "10.0.0.0/16", subnets=[])
    assert emptied.subnets == []


def test_a_network_that_would_lose_the_range_of_a_subnet_stays(azure: Azure, group: str) -> None:
    azure.vnet(group, "net", "10.0.0.0/16", "10.1.0.0/16")
    azure.subnet(group, "net", "s", "10.1.0.0/24")
    refused = refusal(azure.vnet, group, "net", "10.0.0.0/16")
    assert refused == (400, "NetcfgInvalidSubnet", "Subnet 's' is not valid in virtual network 'net'.")
    seen = azure.network.virtual_networks.get(group, "net")
    assert seen.properties.address_space.address_prefixes == ["10.0.0.0/16", "10.1.0.0/16"]
    assert seen.properties.provisioning_state == "Succeeded"


@pytest.mark.parametrize(
    ("cidrs", "code"),
    [
        (["10.0.0.1/16"], "InvalidCIDRNotation"),
        (["10.0.0.0/33"], "InvalidCIDRNotation"),
        (["10.0.0.0"], "InvalidAddressPrefixFormat"),
        (["10.0.0.0/30"], "NetcfgInvalidIPAddressPrefix"),
        (["169.254.0.0/17"], "NetcfgInvalidIPAddressPrefix"),
        (["10.0.0.0/16", "10.0.1.0/24"], "NetcfgInvalidVirtualNetworkSite"),
    ],
)
def test_ranges_of_networks_have_rules(azure: Azure, group: str, cidrs: list[str], code: str) -> None:
    assert refusal(azure.vnet, group, "net", *cidrs)[:2] == (400, code)
    assert refusal(azure.network.virtual_networks.get, group, "net")[0] == 404


def test_subnets_are_inside_the_network_and_apart(azure: Azure, group: str) -> None:
    azure.vnet(group, "net", "10.0.0.0/16")
    azure.subnet(group, "net", "a", "10.0.0.0/24")
    assert refusal(azure.subnet, group, "net", "b", "10.0.0.128/25") == (
        400,
        "NetcfgSubnetRangesOverlap",
        (
            "Subnet 'b' is not valid because its IP address range overlaps with that of an existing subnet in virtual "
            "network 'net'."
        ),
    )
    assert refusal(azure.subnet, group, "net", "b", "10.1.0.0/24")[:2] == (400, "NetcfgSubnetRangeOutsideVnet")
    assert refusal(azure.subnet, group, "nix", "b", "10.1.0.0/24")[:2] == (404, "ParentResourceNotFound")
    assert refusal(azure.network.subnets.get, group, "net", "b")[:2] == (404, "NotFound")
    assert refusal(azure.network.subnets.get, group, "nix", "b")[:2] == (404, "ResourceNotFound")
    azure.subnet(group, "net", "a", "10.0.0.0/23")


def test_a_subnet_with_something_in_it_stays(azure: Azure, group: str) -> None:
    azure.vnet(group, "net", "10.0.0.0/16")
    subnet = azure.subnet(group, "net", "s", "10.0.0.0/29")
    first = azure.interface(group, "nic", subnet.id).ip_configurations[0]
    assert first.private_ip_address == "10.0.0.4"
    refused = refusal(lambda: azure.network.subnets.begin_delete(group, "net", "s").result())
    assert refused[:2] == (400, "InUseSubnetCannotBeDeleted")
    assert refused[2].startswith(f"Subnet s is in use by {first.id} and cannot be deleted.")
    assert refusal(lambda: azure.network.virtual_networks.begin_delete(group, "net").result())[:2] == refused[:2]
    assert refusal(azure.subnet, group, "net", "s", "10.0.0.0/28")[1] == "InUsePrefixCannotBeDeleted"
    for number in range(2):
        azure.interface(group, f"nic{number}", subnet.id)
    assert refusal(azure.interface, group, "nic9", subnet.id)[:2] == (400, "SubnetIsFull")
    for name in ("nic", "nic0", "nic1"):
        azure.network.network_interfaces.begin_delete(group, name).result()
    azure.network.subnets.begin_delete(group, "net", "s").result()
    azure.network.virtual_networks.begin_delete(group, "net").result()


def test_an_address_is_free_or_taken(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    subnet = azure.subnet(group, "net", "s", "10.0.0.0/24")
    azure.interface(group, "nic", subnet.id, privateIPAddress="10.0.0.9", privateIPAllocationMethod="Static")
    check = azure.network.virtual_networks.check_ip_address_availability
    assert check(group, "net", ip_address="10.0.0.8").available
    taken = check(group, "net", ip_address="10.0.0.9")
    assert not taken.available
    assert taken.available_ip_addresses == [f"10.0.0.{number}" for number in range(4, 9)]
    (usage,) = azure.network.virtual_networks.list_usage(group, "net")
    assert (usage.current_value, usage.limit) == (1, 251)
    busy = {"privateIPAddress": "10.0.0.9", "privateIPAllocationMethod": "Static"}
    assert refusal(azure.interface, group, "nic2", subnet.id, **busy)[:2] == (400, "PrivateIPAddressInUse")


def test_a_deletion_of_what_is_not_there_succeeds(azure: Azure, group: str) -> None:
    azure.network.virtual_networks.begin_delete(group, "nix").result()
    azure.network.subnets.begin_delete(group, "nix", "nix").result()


def test_a_resource_does_not_move(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    assert refusal(azure.vnet, group, "net", location="northeurope")[:2] == (409, "InvalidResourceLocation")
    assert refusal(azure.vnet, group, "other", location="mars")[:2] == (400, "LocationNotAvailableForResourceType")


def test_a_write_may_insist_on_what_was_read(azure: Azure, group: str) -> None:
    before = azure.vnet(group, "net")
    azure.subnet(group, "net", "s", "10.0.0.0/24")
    put = azure.network.virtual_networks.begin_create_or_update
    assert refusal(put, group, "net", before, headers={"If-Match": before.etag})[:2] == (412, "PreconditionFailed")
    now = azure.network.virtual_networks.get(group, "net")
    assert put(group, "net", now, headers={"If-Match": now.etag}).result().subnets[0].name == "s"
    assert refusal(put, group, "net", now, headers={"If-None-Match": "*"})[:2] == (412, "PreconditionFailed")


def test_ids_are_found_whatever_their_case(azure: Azure, group: str) -> None:
    made = azure.vnet(group, "Net")
    assert azure.network.virtual_networks.get(group.upper(), "nET").id == made.id
    azure.subnet(group, "NET", "s", "10.0.0.0/24")
    assert [each.name for each in azure.network.virtual_networks.get(group, "Net").subnets] == ["s"]


# --- what subnets refer to ---


def shoot(azure: Azure, group: str) -> dict[str, Any]:
    """A security group, a route table and a NAT gateway with its address, as Gardener makes them."""
    network, place = azure.network, {"location": LOCATION}
    standard: Any = {**place, "sku": {"name": "Standard"}}
    address = network.public_ip_addresses.begin_create_or_update(
        group, "ip", {**standard, "properties": {"publicIPAllocationMethod": "Static"}}
    ).result()
    gateway = network.nat_gateways.begin_create_or_update(
        group, "nat", {**standard, "properties": {"publicIpAddresses": [{"id": address.id}]}}
    ).result()
    rules: Any = place
    return {
        "nat_gateway": gateway.id,
        "network_security_group": network.network_security_groups.begin_create_or_update(group, "nsg", rules)
        .result()
        .id,
        "route_table": network.route_tables.begin_create_or_update(group, "rt", rules).result().id,
    }


def test_what_is_used_by_a_subnet_stays(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    parts = shoot(azure, group)
    subnet = azure.subnet(group, "net", "s", "10.0.0.0/24", **parts)
    network = azure.network
    assert network.nat_gateways.get(group, "nat").subnets[0].id == subnet.id
    assert network.route_tables.get(group, "rt").subnets[0].id == subnet.id
    assert network.public_ip_addresses.get(group, "ip").nat_gateway.id == parts["nat_gateway"]
    for client, name, code in (
        (network.nat_gateways, "nat", "InUseNatGatewayCannotBeDeleted"),
        (network.network_security_groups, "nsg", "InUseNetworkSecurityGroupCannotBeDeleted"),
        (network.route_tables, "rt", "InUseRouteTableCannotBeDeleted"),
        (network.public_ip_addresses, "ip", "PublicIPAddressCannotBeDeleted"),
    ):
        assert refusal(client.begin_delete, group, name)[:2] == (400, code)
    network.subnets.begin_delete(group, "net", "s").result()
    for client, name in (
        (network.nat_gateways, "nat"),
        (network.network_security_groups, "nsg"),
        (network.route_tables, "rt"),
        (network.public_ip_addresses, "ip"),
    ):
        client.begin_delete(group, name).result()
    assert [each.name for each in azure.resources.list_by_resource_group(group)] == ["net"]


def test_a_reference_leads_to_something_in_the_same_region(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    missing = id_of(group, "routeTables", "nix")
    refused = refusal(azure.subnet, group, "net", "s", "10.0.0.0/24", route_table=missing)
    assert refused[:2] == (400, "InvalidResourceReference")
    assert missing in refused[2]
    far: Any = {"location": "northeurope"}
    table = azure.network.route_tables.begin_create_or_update(group, "far", far).result()
    assert refusal(azure.subnet, group, "net", "s", "10.0.0.0/24", route_table=table.id)[:2] == refused[:2]


def test_a_nat_gateway_serves_one_network(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    azure.vnet(group, "other", "10.1.0.0/16")
    gateway = shoot(azure, group)["nat_gateway"]
    azure.subnet(group, "net", "a", "10.0.0.0/24", nat_gateway=gateway)
    azure.subnet(group, "net", "b", "10.0.1.0/24", nat_gateway=gateway)
    refused = refusal(azure.subnet, group, "other", "a", "10.1.0.0/24", nat_gateway=gateway)
    assert refused[1] == "NatGatewayCannotBeUsedBySubnetsBelongingToDifferentVirtualNetworks"


def test_a_security_group_has_default_rules_and_own_ones_with_priorities(azure: Azure, group: str) -> None:
    place: Any = {"location": LOCATION}
    made = azure.network.network_security_groups.begin_create_or_update(group, "nsg", place).result()
    assert [(each.name, each.priority) for each in made.default_security_rules[:3]] == [
        ("AllowVnetInBound", 65000), ("AllowAzureLoadBalancerInBound", 65001), ("DenyAllInBound", 65500),
    ]  # fmt: skip
    rule: Any = {"properties": {"protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 100}}
    put = azure.network.security_rules.begin_create_or_update
    put(group, "nsg", "web", rule).result()
    assert refusal(put, group, "nsg", "more", rule)[:2] == (400, "SecurityRuleConflict")
    assert [each.name for each in azure.network.security_rules.list(group, "nsg")] == ["web"]
    azure.network.network_security_groups.begin_create_or_update(group, "nsg", place).result()
    assert list(azure.network.security_rules.list(group, "nsg")) == []


def test_a_route_table_takes_each_prefix_once(azure: Azure, group: str) -> None:
    place: Any = {"location": LOCATION}
    azure.network.route_tables.begin_create_or_update(group, "rt", place).result()
    hop = {"nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.4"}
    put = azure.network.routes.begin_create_or_update
    put(group, "rt", "a", {"properties": {"addressPrefix": "10.96.0.0/24", **hop}}).result()
    same: Any = {"properties": {"addressPrefix": "10.96.0.0/24", **hop}}
    assert refusal(put, group, "rt", "b", same)[:2] == (400, "RouteConflict")
    assert [each.name for each in azure.network.route_tables.get(group, "rt").routes] == ["a"]


# --- quotas, requests ---


def test_quotas_hold_per_region_and_are_told(server: Server, azure: Azure, group: str) -> None:
    usage = next(each for each in azure.network.usages.list("swedencentral") if each.name.value == "VirtualNetworks")
    assert (usage.current_value, usage.limit) == (0, 1000)
    with server.having(quotas={"VirtualNetworks": 1, "SubnetsPerVirtualNetwork": 1}):
        azure.vnet(group, "one", location="swedencentral")
        assert refusal(azure.vnet, group, "two", location="swedencentral") == (
            400,
            "VnetCountLimitReached",
            "Cannot create more than 1 virtual networks for this subscription in this region.",
        )
        azure.vnet(group, "one", location="swedencentral")
        azure.subnet(group, "one", "a", "10.0.0.0/24")
        assert refusal(azure.subnet, group, "one", "b", "10.0.1.0/24")[1] == "SubnetCountLimitReached"


def test_long_lists_come_in_pages(azure: Azure, group: str) -> None:
    azure.vnet(group, "net")
    names = [f"s{number:03}" for number in range(130)]
    for index, name in enumerate(names):
        azure.subnet(group, "net", name, f"10.0.{index}.0/24")
    pages = [len(list(page)) for page in azure.network.subnets.list(group, "net").by_page()]
    assert pages == [100, 30]
    assert [each.name for each in azure.network.subnets.list(group, "net")] == names


def test_calls_without_version_token_or_known_fields_are_refused(server: Server, azure: Azure, group: str) -> None:
    path = f"{GROUPS}/{group}/providers/Microsoft.Network/virtualNetworks/net"
    token = azure.credential.get_token(f"{server.url}/.default").token
    headers = {"Authorization": f"Bearer {token}"}
    bare = server.http.get(path, params=VERSION)
    assert (bare.status_code, bare.json()["error"]["code"]) == (401, "AuthenticationFailed")
    assert bare.headers["www-authenticate"].startswith("Bearer authorization_uri=")
    wrong = server.http.get(path, params=VERSION, headers={"Authorization": "Bearer nonsense"})
    assert wrong.json()["error"]["code"] == "InvalidAuthenticationToken"
    old = server.http.get(path, headers=headers)
    assert (old.status_code, old.json()["error"]["code"]) == (400, "MissingApiVersionParameter")
    body = {"location": LOCATION, "properties": {"address_space": {"address_prefixes": ["10.0.0.0/16"]}}}
    snake = server.http.put(path, params=VERSION, headers=headers, json=body)
    assert (snake.status_code, snake.json()["error"]["code"]) == (400, "InvalidRequestFormat")
    assert "address_space" in snake.json()["error"]["details"][0]["message"]
    lost = server.http.get(f"{GROUPS}/{group}/providers/Microsoft.Nothing/things", params=VERSION, headers=headers)
    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "InvalidResourceType")
    assert lost.headers["x-ms-request-id"]
