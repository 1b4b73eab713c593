"""Alibaba Cloud, as Gardener's extension provider-alicloud treats it."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.garden.problems import Problem
from sandbox.garden.providers import Host, Order, Record
from sandbox.garden.providers.alicloud import rules
from sandbox.garden.providers.alicloud.config import InfrastructureConfig
from sandbox.garden.providers.alicloud.infrastructure import Infrastructure
from sandbox.garden.providers.alicloud.machines import delete_machines, reconcile_machines
from sandbox.garden.providers.alicloud.reach import Reach
from sandbox.garden.providers.alicloud.removal import delete_infrastructure
from sandbox.garden.providers.alicloud.requirements import check
from sandbox.garden.providers.alicloud.session import Session, Sessions
from sandbox.kube import Object

__all__ = ["Alicloud"]


class Alicloud:
    """The provider `alicloud`."""

    type = "alicloud"

    def __init__(self, endpoint: str | None) -> None:
        self._sessions = Sessions(endpoint)
        self._reach = Reach(self._sessions)

    def fill_in(self, shoot: Object, old: Object | None) -> None:
        """See `Provider`."""
        rules.fill_in(shoot, old)

    def problems(self, shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
        """See `Provider`."""
        return rules.problems(shoot, old, profile)

    def reconcile(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        session = self._session(order)
        networks = InfrastructureConfig.model_validate(order.infrastructure).networks
        check(session, order, networks, new=not record.get("complete"))
        Infrastructure(session, order, record).ensure()

    def reconcile_machines(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        reconcile_machines(self._session(order), order, record)

    def delete_machines(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        delete_machines(self._session(order), order, record)
        record.save()

    def delete(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        if not record.get("vpc"):
            return  # Nothing was ever made, perhaps for want of working credentials.
        delete_infrastructure(self._session(order), order, record)
        record.clear()
        record.save()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider`."""
        return self._reach.reached(source, address, port, candidates)

    def _session(self, order: Order) -> Session:
        return self._sessions.get(order.region, order.credentials)
