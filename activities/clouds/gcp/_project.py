"""One GCP project: its clients, calls that are awaited to their end, and how Trellis finds there what it made."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from google.api_core.gapic_v1.client_info import ClientInfo
from google.api_core.retry import Retry
from google.cloud import compute_v1
from google.oauth2 import service_account
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from activities.clouds.gcp._errors import attempting, failed, is_passing
from activities.clouds.gcp._marks import Mark, network_name, router_name
from domain.errors import Code, TrellisError
from domain.networks import NetworkOrder, Owned
from domain.routers import ROUTERS_MAX

__all__ = ["Patience", "Project", "last"]

_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"
_KEY = "serviceaccount.json"
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
_CLIENT_INFO: Any = ClientInfo(user_agent="trellis", gapic_version=compute_v1.__version__)  # type: ignore[no-untyped-call]
_SECONDS = 30.0
# An operation's `wait` answers after two minutes at most.
_WAIT_SECONDS = 150.0


@dataclass(frozen=True)
class Patience:
    """How long Compute Engine may take, in seconds.

    `settle`: until what was just made, or is on record, and cannot be seen, counts as lost. `operation`: until an
    operation that has not ended is left to the next attempt. `retry`: how long a call that changes nothing is repeated.
    `poll`: between two looks.
    """

    settle: float = 30.0
    operation: float = 300.0
    retry: float = 10.0
    poll: float = 1.0


class _Key(BaseModel):
    """A service account's key file, as far as it is used here; Google adds fields at will."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str = Field(pattern=r"^service_account$")
    # As Gardener checks it (gardener-extension-provider-gcp, pkg/gcp/serviceaccount.go).
    project_id: str = Field(pattern=r"^[a-z][a-z0-9-]{4,28}[a-z0-9]$")
    private_key_id: str = Field(min_length=1)
    private_key: str = Field(min_length=1)
    client_email: str = Field(min_length=1)
    token_uri: str = Field(min_length=1)


class Project:
    """A project as seen from a region. Safe to use from several threads."""

    def __init__(self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience) -> None:
        """Clients for `region`; see `GcpCloud`."""
        if not _REGION.fullmatch(region):
            raise TrellisError(Code.INVALID, f"{region!r} is no region of GCP", "use a name such as europe-west3")
        key = _read_key(secret)
        credentials = _credentials(key)
        override = urlsplit(os.environ.get(_ENDPOINT, ""))
        options = {"api_endpoint": f"{override.scheme}://{override.netloc}"} if override.netloc else {}

        def client(kind: Callable[..., Any]) -> Any:
            return kind(credentials=credentials, transport="rest", client_options=options, client_info=_CLIENT_INFO)

        self.region, self.id, self.patience = region, key.project_id, patience
        self._installation = installation
        self._retry = Retry(predicate=is_passing, initial=0.2, maximum=3.0, multiplier=2.0, timeout=patience.retry)
        self.networks = client(compute_v1.NetworksClient)
        self.routers = client(compute_v1.RoutersClient)
        self.subnetworks = client(compute_v1.SubnetworksClient)
        self.firewalls = client(compute_v1.FirewallsClient)
        self.routes = client(compute_v1.RoutesClient)
        self.instances = client(compute_v1.InstancesClient)
        self.global_addresses = client(compute_v1.GlobalAddressesClient)
        self._global_operations = client(compute_v1.GlobalOperationsClient)
        self._region_operations = client(compute_v1.RegionOperationsClient)

    # --- calls -----------------------------------------------------------------------------------------------------

    def listed(self, what: str, call: Callable[..., Any], **fields: Any) -> list[Any]:
        """All pages of a list; of an aggregated one, the items are pairs of a scope and its list."""
        with attempting(what, project=self.id, effect=False):
            return list(call(request={"project": self.id, **fields}, retry=self._retry, timeout=_SECONDS))

    def change(self, what: str, call: Callable[..., Any], **fields: Any) -> None:
        """Make a call that begins an operation, and await the operation's end.

        The call is repeated once where its answer was lost: by its request id it has one effect at most.
        """
        request = {"project": self.id, "request_id": str(uuid.uuid4()), **fields}

        def begin() -> Any:
            with attempting(what, project=self.id):
                return call(request=request, retry=None, timeout=_SECONDS)

        try:
            operation = begin()
        except TrellisError as error:
            if error.failure.code not in {Code.LOST_RESPONSE, Code.UNAVAILABLE}:
                raise
            operation = begin()
        operation = self._ended(what, operation)
        if operation.error.errors:
            raise failed(what, self.id, operation)

    def _ended(self, what: str, operation: Any) -> Any:
        deadline = time.monotonic() + self.patience.operation
        region = {"region": last(operation.region)} if operation.region else {}
        client = self._region_operations if region else self._global_operations
        request = {"project": self.id, "operation": operation.name, **region}
        while operation.status != compute_v1.Operation.Status.DONE:
            if time.monotonic() > deadline:
                raise TrellisError(
                    Code.BUSY, f"{what}: operation {operation.name} has not ended yet", "tried again by itself"
                )
            with attempting(f"{what}: await operation {operation.name}", project=self.id, effect=False):
                operation = client.wait(request=request, retry=self._retry, timeout=_WAIT_SECONDS)
        return operation

    # --- what Trellis made -----------------------------------------------------------------------------------------

    def mark(self, order: NetworkOrder) -> Mark:
        """What everything that is made for the order carries."""
        return Mark.of(order, self._installation)

    def network_name(self, order: NetworkOrder) -> str:
        """The name of the order's network."""
        return network_name(self.mark(order))

    def network(self, name: str) -> Any | None:
        """The network of this name; None where there is none."""
        try:
            with attempting(f"look at network {name} in project {self.id}", project=self.id, effect=False):
                request = {"project": self.id, "network": name}
                return self.networks.get(request=request, retry=self._retry, timeout=_SECONDS)
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise
            return None

    def is_ours(self, order: NetworkOrder, thing: Any) -> bool:
        """Whether a network or router carries the mark of this incarnation."""
        return Mark.read(thing.description) == self.mark(order)

    def check_mark(self, order: NetworkOrder, kind: str, thing: Any) -> None:
        """Raises `conflict` where something of our name does not carry the mark: then it is not ours."""
        if not self.is_ours(order, thing):
            raise TrellisError(
                Code.CONFLICT,
                f"{kind} {thing.name} in project {self.id} does not say in its description that it was made for "
                f"{order.vpc}: it is left alone",
                f"delete that {kind} yourself; whatever was made for {order.vpc} says {self.mark(order)}",
            )

    def own_routers(self, order: NetworkOrder, network: str) -> dict[str, Any]:
        """The routers that were made with a network, by part: `router-0` and so on."""
        parts = {router_name(network, index): f"router-{index}" for index in range(ROUTERS_MAX)}
        found = self.listed(
            f"list routers in {self.region} of project {self.id}", self.routers.list, region=self.region
        )
        own = [router for router in found if router.name in parts and self.is_ours(order, router)]
        return {parts[router.name]: router for router in own}

    def owned(self) -> tuple[Owned, ...]:
        """Everything that carries this installation's mark and was made for this region."""
        networks = self.listed(f"list networks of project {self.id}", self.networks.list)
        routers = self.listed(
            f"list routers in {self.region} of project {self.id}", self.routers.list, region=self.region
        )
        return tuple(
            Owned(kind=kind, id=thing.name, tenant=mark.tenant, vpc=mark.vpc, incarnation=mark.incarnation)
            for kind, things in (("network", networks), ("router", routers))
            for thing in sorted(things, key=lambda thing: str(thing.name))
            if (mark := Mark.read(thing.description))
            and (mark.installation, mark.region) == (self._installation, self.region)
        )


def last(url: str) -> str:
    """The last part of a resource's URL: its name."""
    return url.rpartition("/")[2]


def _read_key(secret: Mapping[str, str]) -> _Key:
    try:
        return _Key.model_validate_json(secret.get(_KEY, ""))
    except ValidationError as error:
        # Never the values: they are the secret.
        wrong = ", ".join(sorted({".".join(map(str, each["loc"])) or "JSON" for each in error.errors()}))
        raise _unusable(f"no service account's key is in {_KEY}: wrong or missing: {wrong}") from None


def _credentials(key: _Key) -> Any:
    try:
        return service_account.Credentials.from_service_account_info(key.model_dump(), scopes=_SCOPES)  # type: ignore[no-untyped-call]
    except ValueError:
        raise _unusable(f"the private_key in {_KEY} cannot be read") from None


def _unusable(why: str) -> TrellisError:
    return TrellisError(
        Code.FORBIDDEN,
        f"log in to GCP: {why}",
        "put a service account's key file into the Secret behind the CredentialsBinding",
    )
