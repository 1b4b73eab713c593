"""What a shoot on GCP may not be, and how the garden says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from sandbox.garden.admission import ShootAdmission
from sandbox.garden.kinds import GARDEN, shoots
from sandbox.garden.providers.gcp import Gcp
from sandbox.garden.providers.gcp.codes import codes_of
from sandbox.garden.start import furnish
from sandbox.kube import Admission, Denied, Store
from tests.sandbox.garden_gcp import Shoot, manifest
from tests.sandbox.gcp_server import REGION, ZONE


@pytest.fixture(scope="module")
def admit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Shoot]]:
    store = Store(tmp_path_factory.mktemp("rules") / "garden.db")
    furnish(store)
    hook = ShootAdmission(store, {"gcp": Gcp("http://127.0.0.1:1")})
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
    place: Any = shoot["spec"] if way[0] == "networking" else shoot["spec"]["provider"]
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return shoot


NETWORKS = "infrastructureConfig.networks"
LONG = "a" * 64


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{NETWORKS}.workers", None, "workers: Required value: must specify the network range for the worker"),
        (f"{NETWORKS}.workers", "10.0.0.1/23", "must be valid canonical CIDR"),
        (f"{NETWORKS}.workers", "10.9.0.0/23", 'must be a subset of "networking.nodes"'),
        (f"{NETWORKS}.internal", "10.0.0.0/24", 'internal: Invalid value: "10.0.0.0/24": must not overlap'),
        (f"{NETWORKS}.internal", "10.96.0.0/24", 'must not overlap with "networking.pods"'),
        (f"{NETWORKS}.internal", "10.104.0.0/24", 'must not overlap with "networking.services"'),
        (f"{NETWORKS}.vpc.name", "", "vpc name must not be empty when vpc key is provided"),
        (f"{NETWORKS}.vpc.name", "Big", "does not match expected regex"),
        (f"{NETWORKS}.vpc.name", LONG, "must not be more than 63 characters, got 64"),
        (f"{NETWORKS}.vpc.cloudRouter", None, "cloud router must be defined when reusing a VPC"),
        (f"{NETWORKS}.vpc.cloudRouter.name", "", "cloud router name must be specified when reusing a VPC"),
        (f"{NETWORKS}.vpc.id", "x", 'strict decoding error: unknown field "networks.vpc.id"'),
        (f"{NETWORKS}.mtu", 1500, "mtu cannot be configured when using an existing VPC"),
        (f"{NETWORKS}.cloudNAT.natIPNames", [], "nat IP names cannot be empty"),
        (f"{NETWORKS}.cloudNAT.maxPortsPerVM", 64, "only configurable if dynamic port allocation is enabled"),
        (
            f"{NETWORKS}.cloudNAT",
            {"enableDynamicPortAllocation": True, "minPortsPerVM": 100},
            "minPortsPerVM must be a power of two",
        ),
        (
            f"{NETWORKS}.cloudNAT",
            {"enableDynamicPortAllocation": True, "minPortsPerVM": 128, "maxPortsPerVM": 64},
            "minPortsPerVM may not be greater than maxPortsPerVM",
        ),
        (
            f"{NETWORKS}.cloudNAT",
            {"enableDynamicPortAllocation": True, "endpointIndependentMapping": {"enabled": True}},
            "may not be enabled at the same time",
        ),
        (f"{NETWORKS}.flowLogs", {}, "at least one VPC flow log parameter must be specified"),
        (f"{NETWORKS}.flowLogs.flowSampling", 2.0, "must be between 0 and 1"),
        ("controlPlaneConfig.zone", "", "must provide the name of a zone in this region"),
        ("controlPlaneConfig.zone", "europe-west3-x", 'Unsupported value: "europe-west3-x"'),
        ("controlPlaneConfig.zone", "europe-west3-b", "must be part of at least one worker zone"),
        ("workers.0.volume", None, "volume: Required value: must not be nil"),
        ("workers.0.zones", [], "at least one zone must be configured"),
        ("networking.nodes", None, "a nodes CIDR must be provided for GCP shoots"),
    ],
)
def test_a_shoot_is_refused_for(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    fine = manifest("fine", "n1")
    admit(fine)
    with pytest.raises(Denied) as caught:
        admit(put(fine, path, value))
    assert said in caught.value.message


@pytest.mark.parametrize("field", ["infrastructureConfig", "controlPlaneConfig"])
def test_both_configurations_must_be_there(admit: Callable[..., Shoot], field: str) -> None:
    shoot = manifest("bare", "n1")
    del shoot["spec"]["provider"][field]
    with pytest.raises(Denied, match=f"{field} must be set for GCP shoots"):
        admit(shoot)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{NETWORKS}.vpc.name", "n2", "field is immutable"),
        (f"{NETWORKS}.vpc.cloudRouter.name", "n2", "field is immutable"),
        (f"{NETWORKS}.vpc", None, "field is immutable"),
        (f"{NETWORKS}.internal", "10.0.3.0/24", "field is immutable"),
        (f"{NETWORKS}.workers", "10.0.0.0/24", "worker CIDR blocks can only be expanded"),
        ("controlPlaneConfig.zone", "europe-west3-b", "field is immutable"),
        ("workers.0.zones", [f"{REGION}-b", ZONE], "field is immutable"),
    ],
)
def test_what_is_once_set_stays(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    old = admit(manifest("fixed", "n1"))
    with pytest.raises(Denied) as caught:
        admit(put(old, path, value), old)
    assert said in caught.value.message


def test_an_internal_range_may_come_later(admit: Callable[..., Shoot]) -> None:
    old = admit(put(manifest("later", "n1"), f"{NETWORKS}.internal", None))
    assert admit(put(old, f"{NETWORKS}.internal", "10.0.2.0/23"), old)


def test_without_a_word_there_is_no_overlay(admit: Callable[..., Shoot]) -> None:
    left_open = admit(put(manifest("open", "n1"), "networking.providerConfig", None))
    assert left_open["spec"]["networking"]["providerConfig"] == {
        "overlay": {"enabled": False},
        "snatToUpstreamDNS": {"enabled": False},
    }
    wanted = admit(manifest("open", "n1"))
    assert wanted["spec"]["networking"]["providerConfig"] == {"overlay": {"enabled": True}}
    again = admit(put(wanted, "networking.providerConfig", None), wanted)
    assert again["spec"]["networking"]["providerConfig"] == {"overlay": {"enabled": True}}


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("failed to locate user-managed VPC [Name=x]", {"ERR_CONFIGURATION_PROBLEM"}),
        ("googleapi: Error 403: Required 'x' permission for 'y', forbidden", {"ERR_INFRA_UNAUTHORIZED"}),
        ("operation failed with error(s): Quota 'NETWORKS' exceeded.  Limit: 5.0", {"ERR_INFRA_QUOTA_EXCEEDED"}),
        ("The subnetwork resource 'x' is already being used by 'y'", {"ERR_INFRA_DEPENDENCIES"}),
        ("googleapi: Error 404: The resource 'x' was not found, notFound", {"ERR_CONFIGURATION_PROBLEM"}),
        ("The resource 'x' is not ready", set()),
    ],
)
def test_errors_of_gcp_have_gardeners_codes(message: str, codes: set[str]) -> None:
    assert set(codes_of(message)) == codes
