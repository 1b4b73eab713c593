"""Shoots on GCP, as the garden wants them."""

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from activities.gardener.gcp import _CloudNat
from activities.gardener.manifest import same_place, shoot_manifest
from domain.errors import Code, TrellisError
from domain.layout import cut
from domain.names import shoot_name
from domain.networks import Network
from domain.routers import CLUSTERS_PER_ROUTER, ROUTERS_MAX, router_for, routers_for
from domain.shoots import ShootKey, ShootOrder, ShootPlan
from domain.specs import ClusterSpec
from sandbox.garden import rules
from sandbox.garden.providers.gcp import rules as gcp_rules
from sandbox.garden.start import cloud_profiles

PROFILE = next(profile for profile in cloud_profiles() if profile["metadata"]["name"] == "gcp")
NETWORK = Network(id="trellis-shared-1", parts={"router-0": "trellis-shared-1-r0", "router-1": "trellis-shared-1-r1"})


def order(block: str = "10.0.0.0/22", slot: int = 0, zones: tuple[str, ...] = ("a",), **spec: Any) -> ShootOrder:
    names = tuple(f"europe-west3-{zone}" for zone in zones)
    parsed = ClusterSpec.model_validate(
        {"name": "alpha", "provider": "gcp", "region": "europe-west3", "vpc": "shared", "zones": names, **spec}
    )
    plan = ShootPlan(
        shoot=ShootKey(namespace="garden-trellis", name=shoot_name(parsed.tenant, parsed.name)),
        cloud_profile="gcp",
        zones=names,
        machine_type="n2-standard-2",
        machine_image="gardenlinux",
        machine_image_version="1877.14.0",
        kubernetes_version="1.35.4",
        volume_type="pd-balanced",
    )
    layout = cut(parsed.provider, IPv4Network(block), names)
    return ShootOrder(spec=parsed, plan=plan, network=NETWORK, layout=layout, slot=slot)


def test_a_shoot_on_gcp_names_its_network_router_and_two_subnets() -> None:
    spec = shoot_manifest(order(slot=63))["spec"]
    assert spec["provider"]["infrastructureConfig"] == {
        "apiVersion": "gcp.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "networks": {
            "vpc": {"name": "trellis-shared-1", "cloudRouter": {"name": "trellis-shared-1-r1"}},
            "workers": "10.0.0.0/23",
            "internal": "10.0.2.0/23",
            "cloudNAT": {"enableDynamicPortAllocation": True, "minPortsPerVM": 256, "maxPortsPerVM": 32768},
        },
    }
    assert spec["provider"]["controlPlaneConfig"] == {
        "apiVersion": "gcp.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "ControlPlaneConfig",
        "zone": "europe-west3-a",
    }
    assert spec["networking"]["nodes"] == "10.0.0.0/23"
    assert spec["networking"]["providerConfig"]["overlay"] == {"enabled": True}, "pod ranges may be equal"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pods": "10.0.2.0/24"}, "internal 10.0.2.0/23 overlaps pods 10.0.2.0/24"),
        ({"services": "10.0.3.0/24"}, "internal 10.0.2.0/23 overlaps services 10.0.3.0/24"),
    ],
)
def test_ranges_that_gardener_would_refuse_are_refused_before_it_is_asked(changes: dict[str, str], said: str) -> None:
    # The specification has checks of its own, before there is a block; this is about what comes out in the end.
    fine = order()
    ranges = {key: IPv4Network(value) for key, value in changes.items()}
    bad = fine.model_copy(update={"spec": fine.spec.model_copy(update=ranges)})
    with pytest.raises(TrellisError, match=said) as caught:
        shoot_manifest(bad)
    assert caught.value.failure.code is Code.INVALID


def test_a_zone_of_another_region_is_refused() -> None:
    fine = order()
    bad = fine.model_copy(update={"plan": fine.plan.model_copy(update={"zones": ("us-central1-a",)})})
    with pytest.raises(TrellisError, match="us-central1-a is not in region europe-west3"):
        shoot_manifest(bad)


def test_a_network_without_a_router_is_a_defect() -> None:
    with pytest.raises(TrellisError, match="no cloud router") as caught:
        shoot_manifest(order().model_copy(update={"network": Network(id="n")}))
    assert caught.value.failure.code is Code.INTERNAL


@pytest.mark.parametrize(
    "ports",
    [
        {"minPortsPerVM": 100},
        {"maxPortsPerVM": 1000},
        {"minPortsPerVM": 512, "maxPortsPerVM": 256},
        {"enableDynamicPortAllocation": False, "maxPortsPerVM": 256},
    ],
)
def test_ports_that_gardener_would_refuse_are_refused(ports: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _CloudNat.model_validate(ports)


def test_the_same_block_behind_another_router_is_another_place() -> None:
    shoot = shoot_manifest(order())
    assert same_place(shoot, order(slot=CLUSTERS_PER_ROUTER - 1))
    assert not same_place(shoot, order(slot=CLUSTERS_PER_ROUTER))


@given(
    index=st.integers(0, 63),
    zones=st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True),
    slot=st.integers(0, 300),
)
def test_gardener_accepts_the_shoot_of_every_block_and_every_choice_of_zones(
    index: int, zones: list[str], slot: int
) -> None:
    wanted = order(f"10.0.{4 * index}.0/22", slot, tuple(zones))
    shoot = shoot_manifest(wanted)
    assert rules.shoot_problems(shoot) == []
    gcp_rules.fill_in(shoot, None)
    assert gcp_rules.problems(shoot, None, PROFILE) == []
    assert same_place(shoot, wanted)
    assert shoot["spec"]["networking"]["providerConfig"]["overlay"] == {"enabled": True}


@given(st.integers(0, ROUTERS_MAX * CLUSTERS_PER_ROUTER))
def test_no_router_has_more_clusters_than_it_takes(clusters: int) -> None:
    routers = routers_for(clusters)
    taken = [router_for(slot, routers) for slot in range(clusters)]
    assert all(taken.count(router) <= CLUSTERS_PER_ROUTER for router in range(routers))
    assert max(taken, default=0) < routers <= ROUTERS_MAX


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_every_slot_has_a_router_however_many_there_are(clusters: int, slot: int) -> None:
    assert router_for(slot, routers_for(clusters)) < ROUTERS_MAX
