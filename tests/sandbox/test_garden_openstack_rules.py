"""What a shoot on OpenStack may not be, and how the garden says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from sandbox.garden.admission import ShootAdmission
from sandbox.garden.kinds import GARDEN, shoots
from sandbox.garden.providers.openstack import OpenStack
from sandbox.garden.providers.openstack.codes import codes_of
from sandbox.garden.start import furnish
from sandbox.kube import Admission, Denied, Store
from tests.sandbox.garden_openstack import Shoot, manifest

NET, ROUTER = "0f7a52d4-3a4e-4c8a-9d61-7f6f4f3f2b1c", "5b1d9a86-91f0-4a53-8a0e-2f8c6a7e4d10"
CONFIG = "infrastructureConfig"
NETWORKS = f"{CONFIG}.networks"


@pytest.fixture(scope="module")
def admit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Shoot]]:
    store = Store(tmp_path_factory.mktemp("rules") / "garden.db")
    furnish(store)
    hook = ShootAdmission(store, {"openstack": OpenStack("http://127.0.0.1:1/v3")})
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
        (f"{NETWORKS}.workers", None, "must specify either the network range for the worker network or a subnetPool"),
        (f"{NETWORKS}.workers", "10.0.0.1/23", "must be valid canonical CIDR"),
        (f"{NETWORKS}.workers", "nonsense", "invalid CIDR address: nonsense"),
        (f"{NETWORKS}.workers", "10.9.0.0/23", 'must be a subset of "networking.nodes"'),
        (f"{NETWORKS}.subnetPool", {"id": "x", "prefixLength": 24}, "subnetPool is mutually exclusive with workers"),
        (f"{NETWORKS}.id", "net", 'networks.id: Invalid value: "net": must be a valid UUID'),
        (f"{NETWORKS}.router", {"id": ""}, "router id must not be empty when router key is provided"),
        (f"{NETWORKS}.router.id", "r1", 'networks.router.id: Invalid value: "r1": must be a valid UUID'),
        (f"{NETWORKS}.ipv6", {"nodeCIDR": "fd00::/64"}, "this garden serves no IPv6"),
        (f"{NETWORKS}.shareNetwork", {"enabled": True}, "this garden serves no shared file systems"),
        (f"{NETWORKS}.vpc", {"id": "x"}, 'unknown field "networks.vpc"'),
        (f"{CONFIG}.floatingPoolName", "", "floatingPoolName: Required value: cannot be empty"),
        (f"{CONFIG}.floatingPoolName", "a[b]", "does not match expected regex"),
        (f"{CONFIG}.floatingPoolName", "elsewhere", 'supported values: "FloatingIP-external-*"'),
        (f"{CONFIG}.floatingPoolSubnetName", "a", "router cannot be set when a floating subnet name is provided"),
        (CONFIG, None, "infrastructureConfig must be set for OpenStack shoots"),
        ("controlPlaneConfig", None, "controlPlaneConfig must be set for OpenStack shoots"),
        ("controlPlaneConfig.loadBalancerProvider", "", "must provide the name of a load balancer provider"),
        ("controlPlaneConfig.loadBalancerProvider", "haproxy", 'supported values: "f5", "octavia", "amphora"'),
        ("workers.0.zones", None, "at least one zone must be configured"),
        ("workers.0.volume", {"type": "ssd"}, "specifying volume type without a custom volume size is not allowed"),
        ("networking.nodes", None, "a nodes CIDR must be provided for Openstack shoots"),
    ],
)
def test_what_gardener_refuses_is_refused(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    with pytest.raises(Denied) as caught:
        admit(put(manifest("wrong", NET, ROUTER), path, value))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{NETWORKS}.workers", "10.0.0.0/24", "networks.workers: Invalid value"),
        (f"{NETWORKS}.id", ROUTER, "networks.id: Invalid value"),
        (f"{NETWORKS}.router.id", NET, "networks.router: Invalid value"),
        (f"{CONFIG}.floatingPoolName", "FloatingIP-external-other", "floatingPoolName: Invalid value"),
        ("workers.0.zones", ["eu-de-1b"], "zones: Invalid value"),
    ],
)
def test_what_must_stay_stays(admit: Callable[..., Shoot], path: str, value: Any, said: str) -> None:
    old = admit(manifest("fixed", NET, ROUTER))
    admit(put(old, "workers.0.zones", ["eu-de-1a", "eu-de-1b"]), old)
    with pytest.raises(Denied) as caught:
        admit(put(old, path, value), old)
    assert said in str(caught.value)


def test_a_shoot_that_says_nothing_gets_no_overlay_but_routes_to_its_pods(admit: Callable[..., Shoot]) -> None:
    asked = admit(manifest("fine", NET, ROUTER))
    assert asked["spec"]["networking"]["providerConfig"]["overlay"] == {"enabled": True}
    silent = admit(manifest("fine", NET, ROUTER, networking={"providerConfig": None}))
    assert silent["spec"]["networking"]["providerConfig"]["overlay"] == {"enabled": False, "createPodRoutes": True}


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        ("missing expected router 0815", {"ERR_CONFIGURATION_PROBLEM"}),
        ("Cidr 10.0.0.0/23 of subnet a overlaps with cidr 10.0.0.0/22 of subnet b", {"ERR_CONFIGURATION_PROBLEM"}),
        ("There are one or more ports still in use on the network", {"ERR_INFRA_DEPENDENCIES"}),
        ("Quota exceeded for resources: ['port'].", {"ERR_INFRA_QUOTA_EXCEEDED"}),
        ("Request Failed: internal server error while processing", {"ERR_RETRYABLE_INFRA_DEPENDENCIES"}),
        ('{"type": "PolicyNotAuthorized"}', {"ERR_INFRA_UNAUTHORIZED"}),
        ("Authentication failed: Could not find Application Credential", {"ERR_INFRA_UNAUTHENTICATED"}),
    ],
)
def test_messages_have_gardeners_codes(message: str, codes: set[str]) -> None:
    assert set(codes_of(message)) == codes
