"""OpenStack, as Gardener's extension provider-openstack treats it.

There is no Nova: a machine is its port, as Nova would own it, and there are no key pairs. There is no Octavia either.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.garden.problems import Problem
from sandbox.garden.providers import Host, Order, Record
from sandbox.garden.providers.openstack import rules
from sandbox.garden.providers.openstack.infrastructure import Infrastructure
from sandbox.garden.providers.openstack.machines import delete_machines, reconcile_machines
from sandbox.garden.providers.openstack.reach import Reach
from sandbox.garden.providers.openstack.removal import delete_infrastructure
from sandbox.garden.providers.openstack.session import Session, Sessions
from sandbox.kube import Object

__all__ = ["OpenStack"]


class OpenStack:
    """The provider `openstack`."""

    type = "openstack"

    def __init__(self, auth_url: str | None) -> None:
        """Keystone is at `auth_url`; None: where the Secret says, or else the CloudProfile."""
        self._sessions = Sessions(auth_url)
        self._reach = Reach(self._sessions)

    def fill_in(self, shoot: Object, old: Object | None) -> None:
        """See `Provider`."""
        rules.fill_in(shoot, old)

    def problems(self, shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
        """See `Provider`."""
        return rules.problems(shoot, old, profile)

    def reconcile(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        Infrastructure(self._session(order), order, record).ensure()

    def reconcile_machines(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        reconcile_machines(self._session(order), order, record)

    def delete_machines(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        if record.get("hadMachines"):
            delete_machines(self._session(order), order, record)
        record.machines = []
        record.save()

    def delete(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        if not record.get("begun"):
            return  # Nothing was ever made, perhaps for want of working credentials.
        delete_infrastructure(self._session(order), order, record)
        record.clear()
        record.save()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider`."""
        return self._reach.reached(source, address, port, candidates)

    def _session(self, order: Order) -> Session:
        return self._sessions.get(order)
