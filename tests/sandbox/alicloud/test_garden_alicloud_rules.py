"""What a shoot on Alibaba Cloud may not be, and how the garden says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from sandbox.garden.admission import ShootAdmission
from sandbox.garden.kinds import GARDEN, shoots
from sandbox.garden.providers.alicloud import Alicloud
from sandbox.garden.providers.alicloud.codes import codes_of
from sandbox.garden.start import furnish
from sandbox.kube import Admission, Denied, Store
from tests.sandbox.alicloud.server import REGION, ZONE
from tests.sandbox.alicloud.shoots import API_VERSION, Shoot, manifest

NETWORKS = "infrastructureConfig.networks"
ZONES = f"{NETWORKS}.zones"
VPC = f"{NETWORKS}.vpc"


@pytest.fixture(scope="module")
def admit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Shoot]]:
    store = Store(tmp_path_factory.mktemp("rules") / "garden.db")
    furnish(store)
    hook = ShootAdmission(store, {"alicloud": Alicloud("http://127.0.0.1:1")})
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


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("infrastructureConfig", None, "infrastructureConfig must be set for Alicloud shoots"),
        (VPC, {}, "must specify either a vpc id or a cidr"),
        (VPC, {"id": "vpc-1", "cidr": "10.0.0.0/16"}, "must specify either a vpc id or a cidr"),
        (VPC, {"cidr": "10.0.0.1/16"}, "must be valid canonical CIDR"),
        (VPC, {"cidr": "10.9.0.0/16"}, 'must be a subset of "networks.vpc.cidr"'),
        (VPC, {"cidr": "10.0.0.0/8"}, 'must not overlap with "networks.vpc.cidr"'),
        (f"{VPC}.gardenerManagedNATGateway", False, "gardenerManagedNATGateway must be true when useCustomRouteTable"),
        (f"{VPC}.name", "x", "isn't a supported version"),
        (ZONES, [], "must specify at least the network for one zone"),
        (f"{ZONES}.0.workers", "10.0.0.1/23", "must be valid canonical CIDR"),
        (f"{ZONES}.0.workers", "10.9.0.0/23", 'must be a subset of "networking.nodes"'),
        (f"{ZONES}.0.workers", "10.96.0.0/24", 'must not overlap with "networking.pods"'),
        (f"{ZONES}.0.workers", "10.104.0.0/24", 'must not overlap with "networking.services"'),
        (
            ZONES,
            [{"name": ZONE, "workers": "10.0.0.0/24"}, {"name": f"{REGION}b", "workers": "10.0.0.128/25"}],
            'must not overlap with "networks.zones[0].workers"',
        ),
        (f"{ZONES}.0.natGateway", {}, "eip id is not specified"),
        (f"{ZONES}.0.natGateway", {"eipAllocationID": ""}, "eip id cannot be empty string"),
        ("workers.0.volume", None, "volume: Required value: must not be nil"),
        ("workers.0.volume", {}, "volume.type: Required value: must not be empty"),
        ("workers.0.zones", [], "at least one zone must be configured"),
        ("workers.0.zones", [f"{REGION}b"], f"supported values [{ZONE}]"),
        ("networking.pods", "100.96.0.0/11", "must not overlap with 100.64.0.0/10, it is reserved by Alicloud"),
    ],
)
def test_a_shoot_is_refused_for(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    fine = manifest("fine", "vpc-1")
    admit(fine)
    with pytest.raises(Denied) as caught:
        admit(put(fine, path, value))
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{VPC}.id", "vpc-2", "field is immutable"),
        (f"{VPC}.useCustomRouteTable", False, "can only be set at shoot creation time"),
        (f"{ZONES}.0.workers", "10.0.0.0/24", "field is immutable"),
        (f"{ZONES}.0.name", f"{REGION}b", "field is immutable"),
        (ZONES, [], "zones cannot be removed"),
        ("workers.0.zones", [f"{REGION}b", ZONE], "field is immutable"),
        ("networking.nodes", "10.0.0.0/20", "field is immutable"),
    ],
)
def test_what_is_once_set_stays(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    old = admit(manifest("fixed", "vpc-1"))
    with pytest.raises(Denied) as caught:
        admit(put(old, path, value), old)
    assert said in caught.value.message


def test_a_zone_may_come_later(admit: Callable[..., Shoot]) -> None:
    old = admit(manifest("later", "vpc-1", networking={"nodes": "10.0.0.0/16"}))
    zones = [{"name": ZONE, "workers": "10.0.0.0/23"}, {"name": f"{REGION}b", "workers": "10.0.8.0/24"}]
    assert admit(put(old, ZONES, zones), old)


def test_the_old_name_of_the_range_may_become_the_new_one(admit: Callable[..., Shoot]) -> None:
    zone = {"name": ZONE, "worker": "10.0.0.0/23"}
    old = admit(put(manifest("renamed", "vpc-1"), ZONES, [zone]))
    assert admit(put(old, ZONES, [{"name": ZONE, "workers": "10.0.0.0/23"}]), old)


def test_what_is_left_open_is_filled_in(admit: Callable[..., Shoot]) -> None:
    shoot = admit(manifest("open", "vpc-1"))
    assert shoot["spec"]["networking"]["providerConfig"] == {
        "overlay": {"enabled": False},
        "snatToUpstreamDNS": {"enabled": False},
    }
    assert shoot["spec"]["provider"]["controlPlaneConfig"]["csi"] == {"enableADController": True}
    wanted = admit(put(manifest("open", "vpc-1"), "networking.providerConfig", {"overlay": {"enabled": True}}))
    assert wanted["spec"]["networking"]["providerConfig"] == {"overlay": {"enabled": True}}
    again = admit(put(wanted, "networking.providerConfig", None), wanted)
    assert again["spec"]["networking"]["providerConfig"] == {"overlay": {"enabled": True}}


def test_a_control_plane_config_may_say_more_than_is_known(admit: Callable[..., Shoot]) -> None:
    old_fashioned = {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig", "zone": ZONE}
    assert admit(put(manifest("zoned", "vpc-1"), "controlPlaneConfig", old_fashioned))
    with pytest.raises(Denied, match="isn't a supported version"):
        admit(put(manifest("wrong", "vpc-1"), "controlPlaneConfig", {"kind": "ControlPlaneConfig"}))


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("ErrorCode: InvalidAccessKeyId.NotFound", {"ERR_INFRA_UNAUTHENTICATED", "ERR_CONFIGURATION_PROBLEM"}),
        ("ErrorCode: SignatureDoesNotMatch", {"ERR_INFRA_UNAUTHORIZED"}),
        ("ErrorCode: Forbidden.RAM\nMessage: User not authorized to operate", {"ERR_INFRA_UNAUTHORIZED"}),
        ("ErrorCode: QuotaExceeded.Vpc\nMessage: VPC quota exceeded.", {"ERR_INFRA_QUOTA_EXCEEDED"}),
        ("ErrorCode: Throttling.User", {"ERR_INFRA_RATE_LIMITS_EXCEEDED"}),
        ("ErrorCode: DependencyViolation.VSwitch", {"ERR_INFRA_DEPENDENCIES"}),
        ("ErrorCode: InvalidCidrBlock.Overlapped", {"ERR_INFRA_DEPENDENCIES"}),
        ("ErrorCode: Zone.NotOnSale", {"ERR_INFRA_RESOURCES_DEPLETED"}),
        ("ErrorCode: IncorrectVpcStatus", set()),
    ],
)
def test_errors_of_alibaba_have_gardeners_codes(message: str, codes: set[str]) -> None:
    assert set(codes_of(message)) == codes
