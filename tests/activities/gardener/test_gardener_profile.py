from typing import Any

import pytest

from activities.gardener.profile import CloudProfile
from domain.errors import Code, TrellisError
from domain.shoots import ShootKey, ShootPlan
from domain.specs import ClusterSpec
from sandbox.garden.start import cloud_profiles

PROFILES = {profile["metadata"]["name"]: profile for profile in cloud_profiles()}
SHOOT = ShootKey(namespace="garden-trellis", name="t234567890")


def plan(profile: dict[str, Any] | None = None, **wishes: Any) -> ShootPlan:
    spec = {"name": "alpha", "provider": "aws", "region": "eu-central-1", **wishes}
    return CloudProfile.of(profile or PROFILES[spec["provider"]]).plan(
        ClusterSpec.model_validate(spec), SHOOT, spec["provider"]
    )


def refused(**wishes: Any) -> TrellisError:
    with pytest.raises(TrellisError) as caught:
        plan(**wishes)
    assert caught.value.failure.code is Code.INVALID
    return caught.value


def test_who_asks_for_nothing_gets_the_first_zone_a_common_machine_and_the_newest_supported_versions() -> None:
    assert plan() == ShootPlan(
        shoot=SHOOT,
        cloud_profile="aws",
        zones=("eu-central-1a",),
        machine_type="m5.large",
        architecture="amd64",
        machine_image="gardenlinux",
        machine_image_version="1877.14.0",
        kubernetes_version="1.35.4",
        volume_type="gp3",
    )


def test_what_was_asked_for_is_kept_in_its_order() -> None:
    planned = plan(zones=("eu-central-1c", "eu-central-1a"), machine_type="m6g.large", kubernetes_version="1.34.7")
    assert planned.zones == ("eu-central-1c", "eu-central-1a")
    assert (planned.machine_type, planned.architecture) == ("m6g.large", "arm64")
    assert planned.kubernetes_version == "1.34.7"


def test_a_minor_version_means_its_newest_patch_and_never_a_longer_number() -> None:
    assert plan(kubernetes_version="1.34").kubernetes_version == "1.34.7"
    assert "'1.3'" in str(refused(kubernetes_version="1.3"))


@pytest.mark.parametrize(
    ("wishes", "named"),
    [
        ({"region": "mars-1"}, ["region 'mars-1'", "eu-central-1", "eu-west-1", "us-east-1"]),
        ({"zones": ("eu-west-1a",)}, ["zone 'eu-west-1a'", "eu-central-1a, eu-central-1b, eu-central-1c"]),
        ({"machine_type": "abacus"}, ["machine_type 'abacus'", "m5.large"]),
        ({"machine_type": "m4.large"}, ["machine_type 'm4.large'", "m5.large"]),
        ({"kubernetes_version": "1.2.3"}, ["kubernetes_version '1.2.3'", "1.35.4 (supported)"]),
        ({"kubernetes_version": "1.32.13"}, ["kubernetes_version '1.32.13'"]),
    ],
    ids=["region", "zone of another region", "machine type", "unusable machine", "version", "expired version"],
)
def test_what_the_landscape_does_not_have_is_refused_with_what_it_has(wishes: dict[str, Any], named: list[str]) -> None:
    text = str(refused(**wishes))
    assert all(each in text for each in named), text


def test_a_machine_that_a_zone_does_not_have_is_offered_in_another_zone_or_refused() -> None:
    assert "m5.large" not in refused(
        region="us-east-1", zones=("us-east-1e",), machine_type="m5.large"
    ).failure.hint.split(", ")
    assert plan(region="us-east-1", machine_type="m5.large").zones == ("us-east-1a",)
    assert plan(region="us-east-1", zones=("us-east-1e",)).machine_type == "t3.medium"


def test_a_preview_is_taken_only_by_who_names_it() -> None:
    assert plan(kubernetes_version="1.36.0").kubernetes_version == "1.36.0"


@pytest.mark.parametrize("provider", sorted(PROFILES))
def test_every_providers_profile_yields_a_plan(provider: str) -> None:
    region = PROFILES[provider]["spec"]["regions"][0]["name"]
    planned = plan(provider=provider, region=region)
    assert planned.zones
    has_disks = bool(PROFILES[provider]["spec"].get("volumeTypes"))
    assert (planned.volume_type is not None) is has_disks
