"""Connections to Compute Engine, shared by all shoots with the same credentials."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError
from google.cloud import compute_v1
from google.oauth2 import service_account
from requests.exceptions import RequestException

from sandbox.garden.providers import CloudError
from sandbox.garden.providers.gcp.codes import cloud_error, go_text

__all__ = ["KEY", "Session", "Sessions", "new_key", "short"]

KEY = "serviceaccount.json"
_SCOPES = ("https://www.googleapis.com/auth/compute",)
_NOT_FOUND = 404
_SECONDS = 30.0
_WAIT_SECONDS = 150.0
_START_SECONDS = 30.0


class Session:
    """The clients for one project. Every method raises CloudError for what the cloud refuses."""

    def __init__(self, endpoint: str | None, key: Mapping[str, Any]) -> None:
        credentials: Any = service_account.Credentials.from_service_account_info(key, scopes=_SCOPES)  # type: ignore[no-untyped-call]
        options = {"api_endpoint": endpoint} if endpoint else {}

        def client(kind: Callable[..., Any]) -> Any:
            return kind(credentials=credentials, transport="rest", client_options=options)

        self.project = str(key["project_id"])
        self.networks = client(compute_v1.NetworksClient)
        self.subnetworks = client(compute_v1.SubnetworksClient)
        self.routers = client(compute_v1.RoutersClient)
        self.firewalls = client(compute_v1.FirewallsClient)
        self.routes = client(compute_v1.RoutesClient)
        self.addresses = client(compute_v1.AddressesClient)
        self.instances = client(compute_v1.InstancesClient)
        self._operations = {
            "zone": client(compute_v1.ZoneOperationsClient),
            "region": client(compute_v1.RegionOperationsClient),
            "": client(compute_v1.GlobalOperationsClient),
        }

    def found(self, call: Callable[..., Any], **fields: Any) -> Any | None:
        """What a get call gives; None where there is nothing."""
        return self._called(call, fields, absent=True)

    def listed(self, call: Callable[..., Any], **fields: Any) -> list[Any]:
        """All pages of a list call; of an aggregated one, pairs of a scope and its list."""
        return list(self._called(lambda **given: list(call(**given)), fields) or ())

    def begun(self, call: Callable[..., Any], **fields: Any) -> Any:
        """The operation that a call begins."""
        return self._called(call, fields)

    def done(self, call: Callable[..., Any], **fields: Any) -> None:
        """Makes a call that begins an operation, and awaits its end."""
        self.ended(self.begun(call, **fields))

    def gone(self, call: Callable[..., Any], **fields: Any) -> None:
        """The same for a deletion: what is not there is deleted."""
        operation = self._called(call, fields, absent=True)
        if operation is not None:
            self.ended(operation)

    def ended(self, operation: Any) -> None:
        """Awaits an operation's end, which must be a good one (provider-gcp, `pkg/gcp/client/compute_utils.go`)."""
        scope = next((each for each in ("zone", "region") if getattr(operation, each)), "")
        where = {"project": self.project, "operation": operation.name}
        where |= {scope: short(getattr(operation, scope))} if scope else {}
        while operation.status != compute_v1.Operation.Status.DONE:
            operation = self._called(self._operations[scope].wait, where, seconds=_WAIT_SECONDS)
        if operation.error.errors:
            messages = ", ".join(each.message for each in operation.error.errors)
            raise cloud_error(f'operation "{operation.name}" failed with error(s): {messages}')

    def _called(
        self, call: Callable[..., Any], fields: Mapping[str, Any], *, absent: bool = False, seconds: float = _SECONDS
    ) -> Any:
        try:
            return call(request={"project": self.project, **fields}, retry=None, timeout=seconds)
        except GoogleAPICallError as error:
            if absent and error.code == _NOT_FOUND:
                return None
            raise cloud_error(go_text(error)) from error
        except (GoogleAuthError, RequestException) as error:
            raise cloud_error(f"{type(error).__name__}: {error}") from error


class Sessions:
    """All sessions with one endpoint; None is GCP itself."""

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def get(self, credentials: Mapping[str, str]) -> Session:
        """The session for these credentials; made when first asked for. Raises CloudError if they are no key."""
        text = credentials.get(KEY)
        if not text:
            raise CloudError(f'missing "{KEY}" field in secret')
        with self._lock:
            if text not in self._sessions:
                try:
                    self._sessions[text] = Session(self._endpoint, json.loads(text))
                except (ValueError, KeyError, GoogleAuthError) as error:
                    raise cloud_error(f"Authentication failed: {KEY} is no service account's key: {error}") from error
            return self._sessions[text]


def new_key(endpoint: str, project: str) -> str:
    """A service account's key file, from a sandbox's Compute Engine, which may still be about to start."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            answer = httpx.post(f"{endpoint}/sandbox/projects/{project}/keys", trust_env=False, timeout=_SECONDS)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return answer.raise_for_status().text


def short(url: str) -> str:
    """The last part of a resource's URL."""
    return url.rpartition("/")[2]
