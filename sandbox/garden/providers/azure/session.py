"""Connections to Azure, shared by all shoots with the same credentials."""

from __future__ import annotations

import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from azure.core.exceptions import AzureError, HttpResponseError
from azure.identity import ClientSecretCredential
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from sandbox.garden.providers import CloudError
from sandbox.garden.providers.azure.codes import cloud_error, go_text

__all__ = ["Session", "Sessions", "new_principal"]

_KEYS = ("clientID", "clientSecret", "subscriptionID", "tenantID")
_NOT_FOUND = 404
_SECONDS = 150.0
_POLL = 0.05
_START_SECONDS = 30.0
# Two at once at one network, or something that is not ready yet: the same call may go through a moment later.
_PASSING = ("AnotherOperationInProgress", "RetryableError")
# A failed reconcile is repeated by the extension with growing pauses; the shoot counts as failed only when it still
# fails after half a minute (gardener, `pkg/extensions/customresources.go`: the severe threshold).
_SEVERE_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5


class Session:
    """The clients for one subscription. Every method raises CloudError for what the cloud refuses."""

    def __init__(self, endpoint: str | None, authority: Path | None, credentials: Mapping[str, str]) -> None:
        trusted = {"connection_verify": str(authority)} if authority else {}
        private: dict[str, Any] = {"authority": endpoint, "disable_instance_discovery": True} if endpoint else {}
        credential = ClientSecretCredential(
            credentials["tenantID"], credentials["clientID"], credentials["clientSecret"], **private, **trusted
        )
        options: dict[str, Any] = {"polling_interval": _POLL, **trusted}
        if endpoint:
            options |= {"base_url": endpoint, "credential_scopes": [f"{endpoint}/.default"]}
        self.subscription = credentials["subscriptionID"]
        self.network = NetworkManagementClient(credential, self.subscription, **options)
        self.groups: Any = ResourceManagementClient(credential, self.subscription, **options).resource_groups

    def id_of(self, group: str, kind: str, name: str) -> str:
        """The id of a resource of Microsoft.Network."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{group}/providers/Microsoft.Network/{kind}/{name}"

    def found(self, call: Callable[..., Any], *arguments: Any) -> Any | None:
        """What a get call gives; None where there is nothing."""
        return self._called(lambda: call(*arguments), absent=True)

    def listed(self, call: Callable[..., Any], *arguments: Any) -> list[Any]:
        """All pages of a list call; nothing where there is no parent."""
        return list(self._called(lambda: list(call(*arguments)), absent=True) or ())

    def made(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Makes a call that does its work at once."""
        return self._called(lambda: call(*arguments))

    def done(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Makes a call that begins an operation, and awaits its end, which must be a good one."""
        return self._called(lambda: _ended(call(*arguments)))

    def gone(self, call: Callable[..., Any], *arguments: Any) -> None:
        """The same for a deletion: what is not there is deleted."""
        self._called(lambda: _ended(call(*arguments)), absent=True)

    def _called(self, call: Callable[[], Any], *, absent: bool = False) -> Any:
        deadline, pause = time.monotonic() + _SEVERE_SECONDS, _FIRST_PAUSE
        while True:
            try:
                return call()
            except HttpResponseError as error:
                if absent and error.status_code == _NOT_FOUND:
                    return None
                code = error.error.code if error.error else ""
                if code not in _PASSING or time.monotonic() > deadline:
                    raise cloud_error(go_text(error)) from error
            except (AzureError, ValueError) as error:
                raise cloud_error(f"{type(error).__name__}: {error}") from error
            time.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - nothing secret
            pause = min(2 * pause, _LONGEST_PAUSE)


class Sessions:
    """All sessions with one endpoint; None is Azure itself."""

    def __init__(self, endpoint: str | None, authority: Path | None) -> None:
        self._endpoint = endpoint
        self._authority = authority
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, ...], Session] = {}

    def get(self, credentials: Mapping[str, str]) -> Session:
        """The session for these credentials; made when first asked for. Raises CloudError if they cannot be any."""
        missing = next((key for key in _KEYS if not credentials.get(key)), None)
        if missing:
            raise CloudError(f'secret doesn\'t have a {missing}: missing "{missing}" field in secret')
        key = tuple(credentials[key] for key in _KEYS)
        with self._lock:
            if key not in self._sessions:
                try:
                    self._sessions[key] = Session(self._endpoint, self._authority, credentials)
                except ValueError as error:
                    raise cloud_error(f"Authentication failed: {error}") from error
            return self._sessions[key]


def new_principal(endpoint: str, authority: Path | None, subscription: str) -> dict[str, str]:
    """A service principal's keys, from a sandbox's Azure, which may still be about to start."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            verify = ssl.create_default_context(cafile=authority)
            url = f"{endpoint}/sandbox/subscriptions/{subscription}/principals"
            answer = httpx.post(url, trust_env=False, timeout=_SECONDS, verify=verify)
        except (httpx.TransportError, FileNotFoundError):
            # The server makes its certificate before it listens.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return dict(answer.raise_for_status().json())


def _ended(poller: Any) -> Any:
    poller.wait(_SECONDS)
    if not poller.done():
        raise cloud_error(f"timeout while waiting for state to become Succeeded: {_SECONDS:.0f} s")
    return poller.result()
