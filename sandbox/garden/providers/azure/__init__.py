"""Azure, as Gardener's extension provider-azure treats it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sandbox.garden.problems import Problem
from sandbox.garden.providers import Host, Order, Record
from sandbox.garden.providers.azure import rules
from sandbox.garden.providers.azure.infrastructure import Infrastructure
from sandbox.garden.providers.azure.machines import delete_machines, reconcile_machines
from sandbox.garden.providers.azure.reach import Reach
from sandbox.garden.providers.azure.removal import delete_infrastructure
from sandbox.garden.providers.azure.session import Session, Sessions
from sandbox.kube import Object

__all__ = ["Azure"]


class Azure:
    """The provider `azure`; `authority` signed the certificate of a private cloud."""

    type = "azure"

    def __init__(self, endpoint: str | None, authority: Path | None = None) -> None:
        self._sessions = Sessions(endpoint, authority)
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
        if record.get("group"):
            delete_machines(self._session(order), order, record)
        record.machines = []
        record.save()

    def delete(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        if not record.get("group"):
            return  # Nothing was ever made, perhaps for want of working credentials.
        delete_infrastructure(self._session(order), order, record)
        record.clear()
        record.save()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider`."""
        return self._reach.reached(source, address, port, candidates)

    def _session(self, order: Order) -> Session:
        return self._sessions.get(order.credentials)
