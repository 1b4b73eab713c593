"""The providers by name, and their clients: one per provider, region and credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Protocol

from activities.clouds import Cloud
from activities.gardener.client import Garden
from domain.errors import Code, TrellisError
from domain.specs import Provider

__all__ = ["PROVIDERS", "Clouds"]


class Adapter(Protocol):
    """How a provider's client is made; `secret` is the data of the Secret behind the garden's CredentialsBinding."""

    def __call__(self, region: str, secret: Mapping[str, str], *, installation: str) -> Cloud:
        """Make a client; raises `TrellisError` where the secret is not the provider's."""
        ...


# One line per provider. By name: an SDK takes seconds to load, and most processes need one of them at the most.
PROVIDERS: Mapping[Provider, str] = {
    Provider.AWS: "activities.clouds.aws:AwsCloud",
    Provider.ALICLOUD: "activities.clouds.alicloud:AlicloudCloud",
    Provider.AZURE: "activities.clouds.azure:AzureCloud",
    Provider.GCP: "activities.clouds.gcp:GcpCloud",
    Provider.OPENSTACK: "activities.clouds.openstack:OpenStackCloud",
}


class Clouds:
    """Gives out clients. The Secret is read every time, so that a rotated one counts from the next step on."""

    def __init__(self, garden: Garden, installation: str) -> None:
        self._garden = garden
        self._installation = installation
        self._made: dict[tuple[Provider, str, str], tuple[dict[str, str], Cloud]] = {}

    async def __call__(self, provider: Provider, region: str, credentials: str) -> Cloud:
        """The client for a provider's region with the credentials of that name.

        Raises:
            TrellisError: `invalid` for a provider without an adapter, or credentials that are not the provider's;
                what the garden answers where it does not give them.
        """
        adapter = PROVIDERS.get(provider)
        if adapter is None:
            known = ", ".join(sorted(PROVIDERS))
            raise TrellisError(
                Code.INVALID, f"provider {provider}: Trellis does not build there", f"choose one of: {known}"
            )
        secret = await self._garden.credentials(credentials)
        key = (provider, region, credentials)
        known_secret, cloud = self._made.get(key, (None, None))
        if cloud is None or known_secret != secret:
            cloud = await asyncio.to_thread(_make, adapter, region, secret, self._installation)
            self._made[key] = (secret, cloud)
        return cloud


def _make(name: str, region: str, secret: Mapping[str, str], installation: str) -> Cloud:
    adapter: Adapter = resolve_name(name)
    return adapter(region, secret, installation=installation)
