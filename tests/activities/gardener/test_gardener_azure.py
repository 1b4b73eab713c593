"""Shoots on Azure, as the garden wants them."""

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.gardener.manifest import same_place, shoot_manifest
from domain.errors import Code, TrellisError
from domain.layout import cut
from domain.names import shoot_name
from domain.networks import Network
from domain.shoots import ShootKey, ShootOrder, ShootPlan
from domain.specs import ClusterSpec
from sandbox.garden import rules
from sandbox.garden.providers.azure import rules as azure_rules
from sandbox.garden.start import cloud_profiles

PROFILE = next(profile for profile in cloud_profiles() if profile["metadata"]["name"] == "azure")
SUBSCRIPTION = "/subscriptions/11111111-2222-3333-4444-555555555555"
GROUP = "trellis-default-shared-0a1b2c3d"
NETWORK = Network(
    id=f"{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/virtualNetworks/{GROUP}",
    parts={"resource-group": f"{SUBSCRIPTION}/resourceGroups/{GROUP}"},
)


def order(block: str = "10.0.0.0/22", zones: tuple[str, ...] = ("1",), **spec: Any) -> ShootOrder:
    parsed = ClusterSpec.model_validate(
        {"name": "alpha", "provider": "azure", "region": "westeurope", "vpc": "shared", "zones": zones, **spec}
    )
    plan = ShootPlan(
        shoot=ShootKey(namespace="garden-trellis", name=shoot_name(parsed.tenant, parsed.name)),
        cloud_profile="azure",
        zones=zones,
        machine_type="Standard_D4s_v5",
        machine_image="gardenlinux",
        machine_image_version="1877.14.0",
        kubernetes_version="1.35.4",
        volume_type="StandardSSD_LRS",
    )
    layout = cut(parsed.provider, IPv4Network(block), zones)
    return ShootOrder(spec=parsed, plan=plan, network=NETWORK, layout=layout)


def test_a_shoot_on_azure_names_its_network_by_name_and_group() -> None:
    spec = shoot_manifest(order(zones=("1", "3")))["spec"]
    assert spec["provider"]["infrastructureConfig"] == {
        "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "networks": {
            "vnet": {"name": GROUP, "resourceGroup": GROUP},
            "workers": "10.0.0.0/23",
            "natGateway": {"enabled": True},
        },
        "zoned": True,
    }
    assert spec["provider"]["controlPlaneConfig"] == {
        "apiVersion": "azure.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "ControlPlaneConfig",
    }
    assert spec["provider"]["workers"][0]["zones"] == ["1", "3"]
    assert spec["networking"]["nodes"] == "10.0.0.0/23"
    assert "providerConfig" not in spec["networking"], "Calico has no overlay on Azure"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pods": "10.0.0.0/24"}, "nodes 10.0.0.0/23 overlap pods 10.0.0.0/24"),
        ({"services": "10.0.1.0/24"}, "nodes 10.0.0.0/23 overlap services 10.0.1.0/24"),
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


@pytest.mark.parametrize(("zones", "said"), [(("westeurope-1",), "westeurope-1 is none of 1, 2, 3"), ((), "no zone")])
def test_zones_that_are_none_are_refused(zones: tuple[str, ...], said: str) -> None:
    fine = order()
    bad = fine.model_copy(update={"plan": fine.plan.model_copy(update={"zones": zones})})
    with pytest.raises(TrellisError, match=said):
        shoot_manifest(bad)


def test_workers_of_a_zone_alone_are_refused() -> None:
    fine = order()
    zone = fine.layout.zones[0].model_copy(update={"workers": IPv4Network("10.0.0.0/24")})
    bad = fine.model_copy(update={"layout": fine.layout.model_copy(update={"zones": (zone,)})})
    with pytest.raises(TrellisError, match="one subnet spans the zones"):
        shoot_manifest(bad)


def test_the_network_may_not_be_in_the_shoots_own_group() -> None:
    fine = order()
    own = f"shoot--trellis--{fine.plan.shoot.name}"
    network = NETWORK.model_copy(
        update={"id": NETWORK.id.replace(f"/resourceGroups/{GROUP}", f"/resourceGroups/{own}")}
    )
    with pytest.raises(TrellisError, match="would be the shoot's own"):
        shoot_manifest(fine.model_copy(update={"network": network}))


def test_a_network_that_is_none_is_a_defect() -> None:
    with pytest.raises(TrellisError, match="vpc-1") as caught:
        shoot_manifest(order().model_copy(update={"network": Network(id="vpc-1")}))
    assert caught.value.failure.code is Code.INTERNAL


@given(
    index=st.integers(0, 63),
    zones=st.lists(st.sampled_from("123"), min_size=1, max_size=3, unique=True),
)
def test_gardener_accepts_the_shoot_of_every_block_and_every_choice_of_zones(index: int, zones: list[str]) -> None:
    shoot = shoot_manifest(order(f"10.0.{4 * index}.0/22", tuple(zones)))
    assert rules.shoot_problems(shoot) == []
    azure_rules.fill_in(shoot, None)
    assert azure_rules.problems(shoot, None, PROFILE) == []


def test_a_shoot_is_known_again_by_its_place() -> None:
    shoot = shoot_manifest(order())
    azure_rules.fill_in(shoot, None)
    assert same_place(shoot, order())
    assert not same_place(shoot, order("10.0.4.0/22"))
    elsewhere = NETWORK.model_copy(update={"id": NETWORK.id.replace(GROUP, "trellis-other")})
    assert not same_place(shoot, order().model_copy(update={"network": elsewhere}))
