"""Shoots on OpenStack, as the garden wants them."""

from ipaddress import IPv4Network
from typing import Any

import pytest

from activities.gardener.manifest import same_place, shoot_manifest
from activities.gardener.profile import CloudProfile
from domain.errors import Code, TrellisError
from domain.layout import cut
from domain.names import shoot_name
from domain.networks import Network
from domain.shoots import ShootKey, ShootOrder
from domain.specs import ClusterSpec
from sandbox.garden.start import cloud_profiles

PROFILE = next(profile for profile in cloud_profiles() if profile["metadata"]["name"] == "openstack")
NETWORK_ID, ROUTER_ID = "0b4f7c9e-6f2d-4f0e-9a8e-5d0c3e1b7a11", "7d1f2c3b-0a9e-4c55-8f6d-2b1a0c9e8d77"
NETWORK = Network(id=NETWORK_ID, parts={"router": ROUTER_ID, "floating-pool": "FloatingIP-external-sandbox"})


def order(block: str = "10.0.0.0/22", profile: Any = PROFILE, network: Network = NETWORK, **wishes: Any) -> ShootOrder:
    spec = ClusterSpec.model_validate(
        {"name": "alpha", "provider": "openstack", "region": "eu-de-1", "vpc": "shared", **wishes}
    )
    shoot = ShootKey(namespace="garden-trellis", name=shoot_name(spec.tenant, spec.name))
    plan = CloudProfile.of(profile).plan(spec, shoot, "openstack")
    layout = cut(spec.provider, IPv4Network(block), plan.zones)
    return ShootOrder(spec=spec, plan=plan, network=network, layout=layout)


def with_load_balancers(*providers: dict[str, str]) -> Any:
    config = {"constraints": {"loadBalancerProviders": list(providers)}}
    return PROFILE | {"spec": PROFILE["spec"] | {"providerConfig": config}}


def test_a_shoot_on_openstack_names_the_network_and_the_router_of_all() -> None:
    spec = shoot_manifest(order(zones=("eu-de-1a", "eu-de-1b")))["spec"]
    assert spec["provider"]["infrastructureConfig"] == {
        "apiVersion": "openstack.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "floatingPoolName": "FloatingIP-external-sandbox",
        "networks": {"id": NETWORK_ID, "router": {"id": ROUTER_ID}, "workers": "10.0.0.0/23"},
    }
    assert spec["provider"]["controlPlaneConfig"] == {
        "apiVersion": "openstack.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "ControlPlaneConfig",
        "loadBalancerProvider": "f5",
    }
    assert spec["networking"]["nodes"] == "10.0.0.0/23"
    assert spec["networking"]["providerConfig"]["overlay"] == {"enabled": True}, "30 routes are all that a router has"
    assert "volume" not in spec["provider"]["workers"][0], "the flavor brings its disk"


@pytest.mark.parametrize(
    ("providers", "chosen"),
    [
        ([{"name": "amphora"}, {"name": "f5"}], "amphora"),
        ([{"name": "amphora"}, {"name": "f5", "region": "eu-de-1"}], "f5"),
        ([{"name": "f5", "region": "eu-nl-1"}, {"name": "octavia"}], "octavia"),
    ],
)
def test_the_load_balancer_provider_is_the_regions_own_before_that_of_all(
    providers: list[dict[str, str]], chosen: str
) -> None:
    config = shoot_manifest(order(profile=with_load_balancers(*providers)))["spec"]["provider"]["controlPlaneConfig"]
    assert config["loadBalancerProvider"] == chosen


def test_a_region_without_load_balancers_is_refused() -> None:
    with pytest.raises(TrellisError, match="no load balancer provider for eu-de-1") as caught:
        shoot_manifest(order(profile=with_load_balancers({"name": "f5", "region": "eu-nl-1"})))
    assert caught.value.failure.code is Code.INVALID


@pytest.mark.parametrize("name", ["pods", "services"])
def test_ranges_that_gardener_would_refuse_are_refused_before_it_is_asked(name: str) -> None:
    # The specification has checks of its own, before there is a block; this is about what comes out in the end.
    fine = order()
    bad = fine.model_copy(update={"spec": fine.spec.model_copy(update={name: IPv4Network("10.0.1.0/24")})})
    with pytest.raises(TrellisError, match=f"nodes 10.0.0.0/23 overlap {name} 10.0.1.0/24") as caught:
        shoot_manifest(bad)
    assert caught.value.failure.code is Code.INVALID


@pytest.mark.parametrize("part", ["router", "floating-pool"])
def test_a_network_without_its_parts_is_a_defect(part: str) -> None:
    parts = {key: value for key, value in NETWORK.parts.items() if key != part}
    with pytest.raises(TrellisError, match=f"no {part} on record") as caught:
        shoot_manifest(order(network=Network(id=NETWORK_ID, parts=parts)))
    assert caught.value.failure.code is Code.INTERNAL


@pytest.mark.parametrize("pool", ["", "a[1]", "{pool}", "one\ntwo", "x" * 256])
def test_pool_names_follow_gardeners_rule(pool: str) -> None:
    network = NETWORK.model_copy(update={"parts": NETWORK.parts | {"floating-pool": pool}})
    with pytest.raises(TrellisError, match="floatingPoolName") as caught:
        shoot_manifest(order(network=network))
    assert caught.value.failure.code is Code.INVALID


def test_what_gardener_adds_does_not_make_a_shoot_another_one() -> None:
    wanted = order()
    shoot = shoot_manifest(wanted)
    shoot["spec"]["provider"]["infrastructureConfig"]["networks"]["shareNetwork"] = {"enabled": False}
    assert same_place(shoot, wanted)
    assert not same_place(shoot, order("10.0.4.0/22"))
