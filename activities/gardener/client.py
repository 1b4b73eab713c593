"""The Garden: one project's namespace in Gardener's API."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Self

from activities.gardener.api import Api, Object, suppress_not_found
from activities.gardener.watch import ShootWatch
from domain.errors import Code, TrellisError

__all__ = ["Garden"]

_CORE = "/apis/core.gardener.cloud/v1beta1"
_SECURITY = "/apis/security.gardener.cloud/v1alpha1"
_OPERATION = "gardener.cloud/operation"
_CONFIRM_DELETION = "confirmation.gardener.cloud/deletion"


class Garden:
    """An async client for one project. Every method raises `TrellisError`.

    `forbidden`, `not-found`, `conflict`, `invalid` (with the server's field messages) and `quota` are final,
    `throttled`, `busy` and `unavailable` are not.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        """`namespace` is the project's: `garden-<project>`."""
        self.namespace = namespace
        self._api = api
        self._shoots = f"{_CORE}/namespaces/{namespace}/shoots"
        self._watch = ShootWatch(api, self._shoots)

    @classmethod
    async def connect(cls, kubeconfig: Path, namespace: str) -> Self:
        """Read the kubeconfig; no call is made yet. Close the garden, or use it as a context."""
        return cls(await Api.from_file(kubeconfig), namespace)

    async def close(self) -> None:
        """Stop watching and close the connections."""
        await self._watch.close()
        await self._api.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def cloud_profile(self, name: str) -> Object:
        """The CloudProfile of that name."""
        return await self._api.get(f"{_CORE}/cloudprofiles/{name}")

    async def create_shoot(self, manifest: Object) -> Object:
        """Create a Shoot; `conflict` where the name is taken."""
        return await self._api.post(self._shoots, manifest)

    async def shoot(self, name: str) -> Object | None:
        """The Shoot of that name, or None."""
        return await self._api.find(f"{self._shoots}/{name}")

    async def shoots(self, selector: str) -> list[Object]:
        """The Shoots with these labels."""
        items, _ = await self._api.read_all(self._shoots, {"labelSelector": selector})
        return items

    def follow_shoot(self, name: str) -> AbstractAsyncContextManager[AsyncGenerator[Object | None]]:
        """The Shoot now and after each change, None when it is gone; see `ShootWatch.follow`."""
        return aclosing(self._watch.follow(name))

    async def retry_shoot(self, name: str) -> None:
        """Ask Gardener to try again what it gave up."""
        await self._annotate(name, {_OPERATION: "retry"})

    async def delete_shoot(self, shoot: Object) -> None:
        """Confirm and ask for the deletion of exactly this Shoot; gone already is success."""
        name, uid = shoot["metadata"]["name"], shoot["metadata"]["uid"]
        with suppress_not_found():
            await self._annotate(name, {_CONFIRM_DELETION: "true"})
            await self._api.delete(f"{self._shoots}/{name}", uid)

    async def credentials_bindings(self) -> dict[str, str]:
        """The provider type of every CredentialsBinding of the project, by name."""
        items, _ = await self._api.read_all(f"{_SECURITY}/namespaces/{self.namespace}/credentialsbindings")
        return {each["metadata"]["name"]: (each.get("provider") or {}).get("type", "") for each in items}

    async def credentials(self, binding: str) -> dict[str, str]:
        """What a shoot with this CredentialsBinding logs in to the cloud with: the data of its Secret. Never log it.

        Raises:
            TrellisError: `not-found` if there is no such binding or secret, `invalid` where it is not a Secret.
        """
        found = await self._api.get(f"{_SECURITY}/namespaces/{self.namespace}/credentialsbindings/{binding}")
        ref = found["credentialsRef"]
        if ref.get("kind") != "Secret":
            what = f"CredentialsBinding {binding} refers to a {ref.get('kind')}"
            raise TrellisError(Code.INVALID, what, "let it refer to a Secret: Trellis makes the network with the same")
        secret = await self._api.get(f"/api/v1/namespaces/{ref['namespace']}/secrets/{ref['name']}")
        return {key: base64.b64decode(value).decode() for key, value in (secret.get("data") or {}).items()}

    async def admin_access(self, name: str, seconds: int = 600) -> Api:
        """The API server of a shoot, as its administrator for so many seconds (at least 600). Close it after use."""
        request = {
            "apiVersion": "authentication.gardener.cloud/v1alpha1",
            "kind": "AdminKubeconfigRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = await self._api.post(f"{self._shoots}/{name}/adminkubeconfig", request)
        return Api.from_kubeconfig(base64.b64decode(answer["status"]["kubeconfig"]), f"shoot {name}")

    async def _annotate(self, name: str, annotations: dict[str, str]) -> None:
        await self._api.patch(f"{self._shoots}/{name}", {"metadata": {"annotations": annotations}})
