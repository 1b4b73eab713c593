"""One Azure subscription in one region: its clients, and how Trellis finds there what it made."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from azure.core.polling import LROPoller
from azure.identity import ClientSecretCredential
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.network.models import VirtualNetwork
from azure.mgmt.resource.resources import ResourceManagementClient
from azure.mgmt.resource.resources.models import ResourceGroup

from activities.clouds.azure._errors import attempting, raise_if_passing
from domain.errors import Code, TrellisError
from domain.names import bounded
from domain.networks import NetworkOrder, NetworkRecord, Owned

__all__ = ["GROUP", "NETWORK", "Patience", "Place", "Subscription"]

GROUP = "resource-group"
NETWORK = "virtual-network"

# A tag's name takes no slash (learn.microsoft.com/azure/azure-resource-manager/management/tag-resources).
_INSTALLATION = "trellis-installation"
_TENANT = "trellis-tenant"
_VPC = "trellis-vpc"
_INCARNATION = "trellis-incarnation"

_KEYS = ("clientID", "clientSecret", "subscriptionID", "tenantID")
_ENDPOINT = "AZURE_RESOURCE_MANAGER_ENDPOINT"
_AUTHORITY = "AZURE_AUTHORITY_HOST"
# A virtual network's name has at most 64 characters, a resource group's 90
# (learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
_NAME_LIMIT = 64
_HASH = 8
_PREFIX = "trellis-"
_ID = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/(?P<group>[^/]+)/providers/Microsoft\.Network/virtualNetworks/(?P<network>[^/]+)",
    re.IGNORECASE,
)
# Only what never arrived is tried again right here: for the rest, Azure may ask for longer pauses than a step has.
_OPTIONS: dict[str, Any] = {
    "connection_timeout": 5,
    "read_timeout": 30,
    "retry_total": 2,
    "retry_connect": 2,
    "retry_read": 0,
    "retry_status": 0,
    "user_agent": "trellis",
}


_Resource = TypeVar("_Resource")


@dataclass(frozen=True)
class Patience:
    """How long Azure may take, in seconds.

    `settle`: until what is on record and not found counts as lost. `operation`: until an operation counts as hanging.
    `poll`: between two looks, where Azure itself asks for none.
    """

    settle: float = 30.0
    operation: float = 240.0
    poll: float = 1.0


@dataclass(frozen=True)
class Place:
    """The names of a resource group and of the network in it."""

    group: str
    network: str


class Subscription:
    """A subscription in a region. Safe to use from several threads."""

    def __init__(self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience) -> None:
        """Clients for `region`; see `AzureCloud`."""
        what = f"log in to Azure in {region}"
        missing = [key for key in _KEYS if not secret.get(key)]
        if missing:
            raise TrellisError(
                Code.FORBIDDEN,
                f"{what}: the Secret lacks {' and '.join(missing)}",
                "put a service principal's keys into the Secret behind the CredentialsBinding",
            )
        self.region = region
        self.id = secret["subscriptionID"]
        self.patience = patience
        self._installation = installation
        options = _OPTIONS | {"polling_interval": patience.poll} | _endpoint()
        with attempting(what, subscription=self.id):
            credential = ClientSecretCredential(
                secret["tenantID"],
                secret["clientID"],
                secret["clientSecret"],
                # An authority of one's own is not among those that Microsoft's discovery knows.
                disable_instance_discovery=bool(os.environ.get(_AUTHORITY)),
                raw_response_hook=raise_if_passing,
                **_OPTIONS,
            )
            self.networks = NetworkManagementClient(credential, self.id, **options).virtual_networks
            resources = ResourceManagementClient(credential, self.id, **options)
        self.groups = resources.resource_groups
        self.resources = resources.resources

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes nothing: errors become `TrellisError`."""
        return attempting(what, subscription=self.id, effect=False)

    def changing(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes something: errors become `TrellisError`, a lost answer included."""
        return attempting(what, subscription=self.id)

    @contextmanager
    def removing(self, what: str) -> Iterator[None]:
        """Like `changing`, for a removal: what is not there is removed."""
        try:
            with self.changing(what):
                yield
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise

    def awaited(self, what: str, begin: Callable[[], LROPoller[Any]]) -> None:
        """Begin an operation and wait until it has ended.

        Raises:
            TrellisError: `busy` where it takes too long; it then goes on by itself.
        """
        poller = begin()
        poller.wait(self.patience.operation)
        if not poller.done():
            raise TrellisError(
                Code.BUSY, f"{what}: Azure is not done after {self.patience.operation:.0f} s", "tried again by itself"
            )

    def place(self, record: NetworkRecord) -> Place:
        """Where a network is, or is to be."""
        if record.network is None:
            name = _name(self._tags(record.order), record.order)
            return Place(group=name, network=name)
        match = _ID.fullmatch(record.network.id)
        if match is None:
            raise TrellisError(
                Code.INTERNAL,
                f"VPC {record.order.vpc}: {record.network.id} on record is no id of a virtual network",
                "a defect: nothing was touched",
            )
        return Place(match["group"], match["network"])

    def group(self, place: Place) -> ResourceGroup | None:
        """The resource group; None where there is none."""
        return self._found(f"look for resource group {place.group}", lambda: self.groups.get(place.group))

    def network(self, place: Place) -> VirtualNetwork | None:
        """The network; None where there is none."""
        what = f"look for virtual network {place.network} in resource group {place.group}"
        return self._found(what, lambda: self.networks.get(place.group, place.network))

    def tags(self, order: NetworkOrder) -> dict[str, str]:
        """The tags as a PUT takes them: a resource never exists without."""
        return self._tags(order)

    def is_ours(self, order: NetworkOrder, found: ResourceGroup | VirtualNetwork) -> bool:
        """Whether a resource carries this incarnation's tags."""
        return not self._missing(order, found)

    def check_ours(self, order: NetworkOrder, kind: str, found: ResourceGroup | VirtualNetwork) -> None:
        """Raises `conflict` where a resource does not carry this incarnation's tags, or is in another region."""
        if missing := self._missing(order, found):
            raise TrellisError(
                Code.CONFLICT,
                f"{kind} {found.name} would be that of VPC {order.vpc}, and does not carry the tags "
                f"{', '.join(missing)}: it is left alone",
                "put the tags back, or delete it yourself",
            )
        location = (found.location or "").replace(" ", "").lower()
        if location != self.region:
            raise TrellisError(
                Code.CONFLICT,
                f"{kind} {found.name} of VPC {order.vpc} is in {location}, not in {self.region}: it is left alone",
                "a resource cannot move to another region: delete it yourself",
            )

    def owned(self) -> tuple[Owned, ...]:
        """Everything in this region that carries this installation's tag."""
        value = self._installation.replace("'", "''")
        with self.reading(f"list resource groups in {self.region}"):
            groups = list(self.groups.list(filter=f"tagName eq '{_INSTALLATION}' and tagValue eq '{value}'"))
        with self.reading(f"list virtual networks in {self.region}"):
            networks = list(self.networks.list_all())
        found = [(GROUP, group) for group in groups] + [(NETWORK, network) for network in networks]
        owned = [
            Owned(
                kind=kind,
                id=each.id or "",
                tenant=tags.get(_TENANT, ""),
                vpc=tags.get(_VPC, ""),
                incarnation=tags.get(_INCARNATION, ""),
            )
            for kind, each in found
            for tags in [each.tags or {}]
            if tags.get(_INSTALLATION) == self._installation
            and (each.location or "").replace(" ", "").lower() == self.region
        ]
        return tuple(sorted(owned, key=lambda each: each.id))

    def _found(self, what: str, get: Callable[[], _Resource]) -> _Resource | None:
        try:
            with self.reading(what):
                return get()
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise
            return None

    def _missing(self, order: NetworkOrder, found: ResourceGroup | VirtualNetwork) -> list[str]:
        tags = found.tags or {}
        return [f"{key}={value}" for key, value in self._tags(order).items() if tags.get(key) != value]

    def _tags(self, order: NetworkOrder) -> dict[str, str]:
        return {
            _INSTALLATION: self._installation,
            _TENANT: order.tenant,
            _VPC: order.vpc,
            _INCARNATION: order.incarnation,
        }


def _name(tags: Mapping[str, str], order: NetworkOrder) -> str:
    """Readable, and of this incarnation alone."""
    digest = hashlib.sha256("/".join(tags.values()).encode()).hexdigest()[:_HASH]
    room = _NAME_LIMIT - len(_PREFIX) - _HASH - 1
    return f"{_PREFIX}{bounded(f'{order.tenant}-{order.vpc}', room)}-{digest}"


def _endpoint() -> dict[str, Any]:
    """What the SDK has to know of a Resource Manager that the environment names; nothing for Microsoft's clouds."""
    endpoint = os.environ.get(_ENDPOINT, "").rstrip("/")
    if not endpoint:
        return {}
    if not endpoint.startswith("https://"):
        raise TrellisError(
            Code.INVALID,
            f"{_ENDPOINT} is {endpoint}: Azure's SDK sends no token but over HTTPS",
            "give the worker an address that begins with https://",
        )
    return {"base_url": endpoint, "credential_scopes": [f"{endpoint}/.default"]}
