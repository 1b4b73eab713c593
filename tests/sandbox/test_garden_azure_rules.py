"""What a shoot on Azure may not be, and how the garden says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from sandbox.garden.admission import ShootAdmission
from sandbox.garden.kinds import GARDEN, shoots
from sandbox.garden.providers.azure import Azure
from sandbox.garden.providers.azure.codes import codes_of
from sandbox.garden.start import furnish
from sandbox.kube import Admission, Denied, Store
from tests.sandbox.garden_azure import Shoot, manifest


@pytest.fixture(scope="module")
def admit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Shoot]]:
    store = Store(tmp_path_factory.mktemp("rules") / "garden.db")
    furnish(store)
    hook = ShootAdmission(store, {"azure": Azure("https://127.0.0.1:1")})
    resource = shoots(hook, {})

    def admit(new: Shoot, old: Shoot | None = None) -> Shoot:
        new = deepcopy(new)
        hook(Admission("update" if old else "create", resource, GARDEN, new, deepcopy(old)))
        return new

    yield admit
    store.close()


def put(shoot: Shoot, path: str, value: Any) -> Shoot:
    """Sets a value below `spec.provider` (or below `spec.networking`, if it begins so); None takes one away."""
    shoot = deepcopy(shoot)
    *way, last = path.split(".")
    place: Any = shoot["spec"] if path.startswith("networking.") else shoot["spec"]["provider"]
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return shoot


CONFIG = "infrastructureConfig"
NETWORKS = f"{CONFIG}.networks"
ZONES = [{"name": 1, "cidr": "10.0.0.0/24"}, {"name": 2, "cidr": "10.0.1.0/24"}]


def zonal(zones: list[dict[str, Any]], **networks: Any) -> Shoot:
    """A shoot with a subnet in each zone."""
    return manifest("zonal", "grp", networks={"workers": None, "natGateway": None, "zones": zones, **networks})


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{NETWORKS}.workers", None, "either workers or zones must be specified"),
        (f"{NETWORKS}.workers", "10.0.0.1/23", "must be valid canonical CIDR"),
        (f"{NETWORKS}.workers", "nonsense", "invalid CIDR address: nonsense"),
        (f"{NETWORKS}.workers", "10.9.0.0/23", 'must be a subset of "networking.nodes"'),
        (f"{NETWORKS}.zones", ZONES, "workers and zones cannot be specified in parallel"),
        (f"{NETWORKS}.vnet", {"name": "net"}, "vnet name and resource group need to be specified together"),
        (f"{NETWORKS}.vnet", {"resourceGroup": "grp"}, "vnet name and resource group need to be specified together"),
        (f"{NETWORKS}.vnet", {"name": "", "resourceGroup": "grp"}, "the vnet name must not be empty"),
        (f"{NETWORKS}.vnet", {"name": "net", "resourceGroup": ""}, "the vnet resource group must not be empty"),
        (f"{NETWORKS}.vnet", {"name": "-net", "resourceGroup": "grp"}, "does not match expected regex"),
        (f"{NETWORKS}.vnet", {"name": "n" * 65, "resourceGroup": "grp"}, "must not be more than 64 characters, got 65"),
        (f"{NETWORKS}.vnet.cidr", "10.0.0.0/16", "specifying a cidr for an existing vnet is not possible"),
        (f"{NETWORKS}.vnet.ddosProtectionPlanID", "/x", "cannot assign a ddos protection plan to a vnet not managed"),
        (f"{NETWORKS}.vnet", {"cidr": "10.0.0.0/24"}, 'must be a subset of "spec.provider.infrastructureConfig'),
        (f"{NETWORKS}.natGateway", {"enabled": False, "zone": 1}, "NatGateway is disabled but additional NatGateway"),
        (f"{NETWORKS}.natGateway.idleConnectionTimeoutMinutes", 3, "values must range between 4 and 120"),
        (f"{NETWORKS}.natGateway.sku", "Cheap", 'supported values: "Standard", "StandardV2"'),
        (
            f"{NETWORKS}.natGateway.ipAddresses",
            [{"name": "ip", "resourceGroup": "grp"}],
            "Public IPs can only be selected for zonal NatGateways",
        ),
        (
            f"{NETWORKS}.natGateway",
            {"enabled": True, "zone": 1, "ipAddresses": [{"name": "ip", "resourceGroup": "grp", "zone": 2}]},
            "not in the same zone as the NatGateway (zone 1)",
        ),
        (f"{NETWORKS}.natGateway", {"enabled": True, "sku": "StandardV2", "zone": 1}, "StandardV2 is zone-redundant"),
        (f"{NETWORKS}.serviceEndpoints", ["Nothing"], "does not match expected regex"),
        (f"{CONFIG}.resourceGroup", {"name": "mine"}, "specifying an existing resource group is not supported yet"),
        (f"{CONFIG}.identity", {"name": "a", "resourceGroup": "grp"}, "must not be fewer than 3 characters, got 1"),
        (f"{CONFIG}.zoned", False, "zones must not be specified for non zoned clusters"),
        (f"{CONFIG}.nonsense", 1, 'unknown field "nonsense"'),
        (CONFIG, None, "InfrastructureConfig must be set for Azure shoots"),
        ("controlPlaneConfig.zone", "1", 'unknown field "zone"'),
        ("workers.0.volume", None, "volume: Required value"),
        ("workers.0.zones", None, "at least one zone must be configured for zoned clusters"),
        ("networking.nodes", None, "a nodes CIDR must be provided for Azure shoots"),
        ("networking.providerConfig.overlay", {"enabled": True}, "Calico overlay network is not supported on azure"),
    ],
)
def test_what_gardener_refuses_is_refused(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    with pytest.raises(Denied) as caught:
        admit(put(manifest("wrong", "grp"), path, value))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("zones", "networks", "said"),
    [
        ([ZONES[0], ZONES[0]], {}, "the same zone cannot be specified multiple times"),
        ([ZONES[0], {"name": 2, "cidr": "10.0.0.0/25"}], {}, "must not overlap"),
        ([{"name": 7, "cidr": "10.0.0.0/24"}], {}, 'zones[0].name: Unsupported value: 7: supported values: "1", "2"'),
        ([{"name": 1, "cidr": "10.96.0.0/24"}], {}, 'must not overlap with "networking.pods"'),
        (ZONES, {"natGateway": {"enabled": True}}, "natGateway cannot be specified when workers field is missing"),
        (
            [{**ZONES[0], "natGateway": {"enabled": True, "sku": "StandardV2"}}],
            {},
            "Only Standard SKU can be configured for multi-subnet layout",
        ),
        ([ZONES[1]], {}, 'zone configuration must be specified in "infrastructureConfig.networks.zones"'),
    ],
)
def test_what_gardener_refuses_of_zones_is_refused(
    admit: Callable[..., Shoot], zones: list[dict[str, Any]], networks: dict[str, Any], said: str
) -> None:
    with pytest.raises(Denied) as caught:
        admit(zonal(zones, **networks))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "shoot",
    [
        manifest("fine", "grp"),
        manifest("plain", "grp", networks={"natGateway": None}),
        manifest("own", "grp", networks={"vnet": {"cidr": "10.0.0.0/16"}}),
        manifest("none", "grp", networks={"vnet": {}}, networking={"nodes": "10.0.0.0/23"}),
        put(put(manifest("flat", "grp"), f"{CONFIG}.zoned", False), "workers.0.zones", None),
        manifest("wide", "grp", networks={"natGateway": {"enabled": True, "sku": "StandardV2"}}),
        zonal(ZONES),
    ],
    ids=lambda shoot: shoot["metadata"]["name"],
)
def test_what_is_right_is_taken(admit: Callable[..., Shoot], shoot: Shoot) -> None:
    admit(shoot)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{NETWORKS}.workers", "10.0.0.0/24", "workers: Invalid value"),
        (f"{NETWORKS}.vnet.name", "other", "vnet.name: Invalid value"),
        (f"{NETWORKS}.vnet.resourceGroup", "other", "vnet.resourceGroup: Invalid value"),
        (f"{NETWORKS}.natGateway.sku", "StandardV2", "changing the NAT Gateway SKU is not allowed"),
        ("workers.0.zones", ["2"], "zones: Invalid value"),
    ],
)
def test_what_may_not_change_stays(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    before = admit(manifest("stays", "grp"))
    with pytest.raises(Denied) as caught:
        admit(put(before, path, value), before)
    assert said in str(caught.value)


def test_one_subnet_may_become_one_of_several_and_not_the_other_way(admit: Callable[..., Shoot]) -> None:
    one = admit(manifest("grows", "grp"))
    networks = one["spec"]["provider"]["infrastructureConfig"]["networks"]

    def with_zones(*cidrs: str) -> Shoot:
        zones = [{"name": index + 1, "cidr": cidr} for index, cidr in enumerate(cidrs)]
        return put(one, NETWORKS, {"vnet": networks["vnet"], "zones": zones})

    with pytest.raises(Denied, match="must match that of the previous"):
        admit(with_zones("10.0.0.0/24"), one)
    several = admit(with_zones("10.0.0.0/23"), one)
    with pytest.raises(Denied, match="to using single subnet is not allowed"):
        admit(one, several)


def test_calico_is_left_alone_and_cilium_gets_no_overlay(admit: Callable[..., Shoot]) -> None:
    assert "providerConfig" not in admit(manifest("calico", "grp"))["spec"]["networking"]
    cilium = admit(manifest("cilium", "grp", networking={"type": "cilium"}))
    assert cilium["spec"]["networking"]["providerConfig"]["overlay"] == {"enabled": False}


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("RESPONSE 409: 409 Conflict ERROR CODE: AnotherOperationInProgress", ("ERR_INFRA_DEPENDENCIES",)),
        ("ERROR CODE: InUseSubnetCannotBeDeleted", ("ERR_INFRA_DEPENDENCIES",)),
        ("ERROR CODE: NetcfgInvalidSubnet", ("ERR_CONFIGURATION_PROBLEM",)),
        ("ERROR CODE: RetryableError", ("ERR_RETRYABLE_INFRA_DEPENDENCIES",)),
        ("ERROR CODE: AuthorizationFailed", ("ERR_INFRA_UNAUTHORIZED",)),
        ("ERROR CODE: VnetLimitExceeded", ("ERR_INFRA_QUOTA_EXCEEDED",)),
        ("RequestLimitExceeded", ("ERR_INFRA_RATE_LIMITS_EXCEEDED",)),
        ("ERROR CODE: NetcfgSubnetRangeOutsideVnet", ()),
    ],
)
def test_errors_have_gardeners_codes(message: str, codes: tuple[str, ...]) -> None:
    assert codes_of(message) == codes
