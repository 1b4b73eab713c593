"""Shoots on Alibaba Cloud, as the garden wants them."""

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

REGION = "eu-central-1"
NETWORK = Network(id="vpc-gw8k2j4h6g8f0d2s4a6q8", account="1234567890123456")


def order(block: str = "10.0.0.0/22", zones: tuple[str, ...] = ("a", "b")) -> ShootOrder:
    names = tuple(f"{REGION}{zone}" for zone in zones)
    spec = ClusterSpec.model_validate(
        {"name": "alpha", "provider": "alicloud", "region": REGION, "vpc": "shared", "zones": names}
    )
    plan = ShootPlan(
        shoot=ShootKey(namespace="garden-trellis", name=shoot_name(spec.tenant, spec.name)),
        cloud_profile="alicloud",
        zones=names,
        machine_type="ecs.g7.large",
        machine_image="gardenlinux",
        machine_image_version="1877.14.0",
        kubernetes_version="1.35.4",
        volume_type="cloud_essd",
    )
    layout = cut(spec.provider, IPv4Network(block), names)
    return ShootOrder(spec=spec, plan=plan, network=NETWORK, layout=layout)


def test_a_shoot_on_alicloud_has_a_nat_gateway_and_a_route_table_of_its_own() -> None:
    spec = shoot_manifest(order())["spec"]
    assert spec["provider"]["infrastructureConfig"] == {
        "apiVersion": "alicloud.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "networks": {
            "vpc": {"id": NETWORK.id, "gardenerManagedNATGateway": True, "useCustomRouteTable": True},
            "zones": [
                {"name": "eu-central-1a", "workers": "10.0.0.0/24"},
                {"name": "eu-central-1b", "workers": "10.0.1.0/24"},
            ],
        },
    }
    assert spec["provider"]["controlPlaneConfig"] == {
        "apiVersion": "alicloud.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "ControlPlaneConfig",
    }
    assert spec["networking"]["nodes"] == "10.0.0.0/23"
    assert spec["provider"]["workers"][0]["zones"] == ["eu-central-1a", "eu-central-1b"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pods": "10.0.0.0/24"}, "workers 10.0.0.0/24 of zone eu-central-1a overlap pods 10.0.0.0/24"),
        ({"pods": "100.96.0.0/11"}, "pods 100.96.0.0/11 overlap 100.64.0.0/10"),
        ({"services": "10.0.1.0/24"}, "workers 10.0.1.0/24 of zone eu-central-1b overlap services 10.0.1.0/24"),
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


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        ((), "no zone is given"),
        (({"name": "us-east-1a", "workers": "10.0.0.0/24"},), "us-east-1a is not in region eu-central-1"),
        (({"name": "eu-central-1a", "workers": "10.0.2.0/24"},), "not inside nodes 10.0.0.0/23"),
        (({"name": "eu-central-1a", "workers": "10.0.0.0/24"},), "zone eu-central-1b has no workers' range"),
        (
            (
                {"name": "eu-central-1a", "workers": "10.0.0.0/24"},
                {"name": "eu-central-1b", "workers": "10.0.0.128/25"},
            ),
            "of zone eu-central-1b overlap",
        ),
    ],
)
def test_zones_that_gardener_would_refuse_are_refused(zones: tuple[dict[str, str], ...], said: str) -> None:
    fine = order()
    layout = type(fine.layout).model_validate(fine.layout.model_dump() | {"zones": zones})
    with pytest.raises(TrellisError, match=said) as caught:
        shoot_manifest(fine.model_copy(update={"layout": layout}))
    assert caught.value.failure.code is Code.INVALID


@given(st.integers(0, 63), st.integers(0, 63), st.integers(1, 3))
def test_a_shoot_is_at_the_same_place_only_with_the_same_block(one: int, two: int, zones: int) -> None:
    first, second = (order(f"10.0.{index * 4}.0/22", tuple("abc"[:zones])) for index in (one, two))
    assert same_place(shoot_manifest(first), second) is (one == two)


def test_a_network_of_another_provider_is_no_vpc() -> None:
    bad: Any = order().model_copy(update={"network": Network(id="trellis-net")})
    with pytest.raises(ValueError, match="id"):
        shoot_manifest(bad)
