"""Which client a step gets."""

from __future__ import annotations

from typing import cast

import pytest

from activities.gardener.client import Garden
from domain.errors import Code, TrellisError
from domain.specs import Provider
from worker.clouds import PROVIDERS, Clouds


class Secrets:
    """The one thing that `Clouds` asks of a garden."""

    def __init__(self) -> None:
        self.data = {"accessKeyID": "a", "secretAccessKey": "b"}

    async def credentials(self, binding: str) -> dict[str, str]:
        return dict(self.data)


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def clouds(secrets: Secrets) -> Clouds:
    return Clouds(cast("Garden", secrets), "test")


async def test_a_client_is_made_once_per_region_and_credentials(clouds: Clouds) -> None:
    first = await clouds(Provider.AWS, "eu-central-1", "aws")
    assert await clouds(Provider.AWS, "eu-central-1", "aws") is first
    assert await clouds(Provider.AWS, "eu-west-1", "aws") is not first
    assert await clouds(Provider.AWS, "eu-central-1", "other") is not first


async def test_rotated_credentials_count_from_the_next_step_on(clouds: Clouds, secrets: Secrets) -> None:
    first = await clouds(Provider.AWS, "eu-central-1", "aws")
    secrets.data["secretAccessKey"] = "new"
    second = await clouds(Provider.AWS, "eu-central-1", "aws")
    assert second is not first
    assert await clouds(Provider.AWS, "eu-central-1", "aws") is second


async def test_a_provider_without_an_adapter_is_refused_by_name(
    clouds: Clouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.clouds.PROVIDERS", {Provider.AWS: PROVIDERS[Provider.AWS]})
    with pytest.raises(TrellisError, match="openstack") as refused:
        await clouds(Provider.OPENSTACK, "r", "c")
    assert (refused.value.failure.code, refused.value.failure.hint) == (Code.INVALID, "choose one of: aws")


async def test_a_secret_of_another_kind_is_refused_without_quoting_it(clouds: Clouds, secrets: Secrets) -> None:
    secrets.data = {"password": "hunter2"}
    with pytest.raises(TrellisError) as refused:
        await clouds(Provider.AWS, "eu-central-1", "aws")
    assert "hunter2" not in str(refused.value)
