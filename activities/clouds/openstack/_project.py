"""One OpenStack project in one region: its clients, and how Trellis finds there what it made."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from keystoneauth1.session import Session
from openstack.connection import Connection

from activities.clouds.openstack._errors import attempting
from activities.clouds.openstack._marks import Mark
from activities.clouds.openstack._secret import LogIn
from domain.errors import Code, TrellisError
from domain.networks import NetworkOrder, Owned

__all__ = ["FLOATING_POOL", "NETWORK", "POOL_VARIABLE", "ROUTER", "Patience", "Project"]

NETWORK = "network"
ROUTER = "router"
# Not made, but chosen: the external network's name, which every shoot has to give.
FLOATING_POOL = "floating-pool"
POOL_VARIABLE = "TRELLIS_OPENSTACK_FLOATING_POOL"
_SECONDS = 60


@dataclass(frozen=True)
class Patience:
    """How long Neutron may take, in seconds. Behind its load balancers, replicas may lag a little.

    `settle`: until what is on record and cannot be seen counts as lost. `look`: how long a create whose answer was
    lost is looked for before it counts as not having happened. `poll`: between two looks.
    """

    settle: float = 10.0
    look: float = 10.0
    poll: float = 1.0


class Project:
    """A project as seen from a region. Safe to use from several threads."""

    def __init__(self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience) -> None:
        """A client for `region`; see `OpenStackCloud`. Nothing is asked yet."""
        log_in = LogIn.read(secret, region)
        self.region, self.patience = region, patience
        self._installation = installation
        self._certificates = _as_file(log_in.ca_certificates)
        trusted = self._certificates.name if self._certificates else True
        self._session = Session(
            auth=log_in.plugin(),
            verify=False if log_in.is_insecure else trusted,
            timeout=_SECONDS,
            app_name="trellis",
        )
        self._connection = Connection(session=self._session, region_name=region)
        self._log_in = threading.Lock()

    @property
    def id(self) -> str:
        """The project's id. Logs in where that was not done yet."""
        with self.reading(f"log in to OpenStack in {self.region}"):
            return str(self._session.get_project_id())

    @property
    def network(self) -> Any:
        """The SDK's client of Neutron. None of its calls is repeated by itself."""
        with self._log_in:
            # The SDK would not say what is wrong where the catalog has no such region.
            plugin: Any = self._session.auth
            plugin.get_access(self._session).service_catalog.url_for(
                service_type="network", region_name=self.region, interface="public"
            )
            return self._connection.network

    # --- calls -----------------------------------------------------------------------------------------------------

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes nothing: errors become `TrellisError`."""
        return attempting(what, region=self.region, effect=False)

    def changing(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes something: errors become `TrellisError`, a lost answer included."""
        return attempting(what, region=self.region)

    @contextmanager
    def removing(self, what: str) -> Iterator[None]:
        """Like `changing`, for a removal: what is not there is removed."""
        try:
            with self.changing(what):
                yield
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise

    def listed(self, kind: str, **filters: Any) -> list[Any]:
        """All of a kind, such as `networks`, that pass Neutron's own filters, the oldest first."""
        with self.reading(f"list {kind} in {self.region}"):
            call: Callable[..., Any] = getattr(self.network, kind)
            return sorted(call(**filters), key=lambda each: (str(each.created_at), str(each.id)))

    # --- what Trellis made -----------------------------------------------------------------------------------------

    def mark(self, order: NetworkOrder) -> Mark:
        """What everything that is made for the order carries."""
        return Mark.of(order, self._installation)

    def named(self, order: NetworkOrder) -> dict[str, str]:
        """Name and description, as every create call takes them: nothing exists without."""
        mark = self.mark(order)
        return {"name": mark.name, "description": str(mark)}

    def marked(self, kind: str, order: NetworkOrder) -> list[Any]:
        """All networks or routers of the project that carry the order's mark, the oldest first."""
        return self.listed(f"{kind}s", project_id=self.id, description=str(self.mark(order)))

    def check_mark(self, order: NetworkOrder, network: Any) -> None:
        """Raises `conflict` where a network on record does not carry the mark: then it is not ours."""
        mark = self.mark(order)
        if Mark.read(network.description) != mark:
            raise TrellisError(
                Code.CONFLICT,
                f"network {network.id} in {self.region} is on record for {order.vpc}, and its description is not "
                f"{mark}: it is left alone",
                f"put that description back (`openstack network set --description {mark} {network.id}`), or delete "
                "the network yourself",
            )

    def owned(self) -> tuple[Owned, ...]:
        """Everything that carries this installation's mark."""
        return tuple(
            Owned(kind=kind, id=thing.id, tenant=mark.tenant, vpc=mark.vpc, incarnation=mark.incarnation)
            for kind in (NETWORK, ROUTER)
            for thing in self.listed(f"{kind}s", project_id=self.id)
            if (mark := Mark.read(thing.description)) and mark.installation == self._installation
        )

    # --- what others made ------------------------------------------------------------------------------------------

    def floating_pool(self) -> Any:
        """The external network that routers get their addresses from.

        That which the setting names (a name, or a pattern with `*`), else the only one that the project sees, else the
        one that the operator made the default (`openstack network set --default`).

        Raises:
            TrellisError: `invalid` where that is not exactly one.
        """
        seen = self.listed("networks", is_router_external=True)
        pattern = os.environ.get(POOL_VARIABLE, "")
        found = [each for each in seen if fnmatchcase(each.name, pattern or "*")]
        if not pattern and len(found) > 1:
            found = [each for each in seen if each.is_default]
        if len(found) == 1:
            return found[0]
        wanted = f"named {pattern}" if pattern else "that all routers could use"
        raise TrellisError(
            Code.INVALID,
            f"find an external network {wanted} in {self.region}: the project {self.id} sees "
            f"{', '.join(sorted(each.name for each in seen)) or 'none'}",
            f"set {POOL_VARIABLE} for the worker to one of them" if seen else "ask the operator for a floating pool",
        )


def _as_file(certificates: str) -> Any:
    """Certificates where the SDK takes them from; the file lives as long as what is returned."""
    if not certificates:
        return None
    file = tempfile.NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115 - kept open
    file.write(certificates)
    file.flush()
    return file
