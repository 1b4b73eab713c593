"""Removing a network: in order, only what Trellis made, and nothing while anything else is inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from activities.clouds.gcp._inventory import take_inventory
from activities.clouds.gcp._project import Project
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkRecord

__all__ = ["remove", "staying_inside"]

# Blockers named in one message.
_SHOWN = 10
_REMOVE = "remove these, or have their owners do it; the deletion then goes on by itself"
_USER = re.compile(r"is already being used by '([^']+)'")


def remove(project: Project, record: NetworkRecord) -> None:
    """See `Cloud.remove`."""
    order = record.order
    network = _network(project, record)
    name = network.name if network else project.network_name(order)
    # On record as far as their names follow from the network's.
    routers = project.own_routers(order, name)
    if network:
        _refuse_if_used(project, record, network, routers)
    for router in routers.values():
        what = f"delete router {router.name} of {order.vpc} in {project.region} of project {project.id}"
        with _gone_is_fine():
            project.change(what, project.routers.delete_unary, region=project.region, router=router.name)
    if network is None:
        return
    try:
        with _gone_is_fine():
            project.change(_deletion(project, record, name), project.networks.delete_unary, network=name)
    except TrellisError as error:
        if error.failure.code is Code.BUSY:
            # Something came in meanwhile, or is of a kind that the inventory does not know.
            _refuse_if_used(project, record, network, routers)
            _refuse_if_said(error, {router.name for router in routers.values()})
        raise


def staying_inside(project: Project, record: NetworkRecord) -> tuple[Blocker, ...]:
    """See `Cloud.blockers`."""
    network = _network(project, record)
    if network is None:
        return ()
    return _inventory(project, network, project.own_routers(record.order, network.name))


def _network(project: Project, record: NetworkRecord) -> Any | None:
    """The network on record; without a record, what a half-made attempt left."""
    order = record.order
    if record.network is None:
        found = project.network(project.network_name(order))
        return found if found and project.is_ours(order, found) else None
    network = project.network(record.network.id)
    if network:
        project.check_mark(order, "network", network)
    return network


def _inventory(project: Project, network: Any, routers: dict[str, Any]) -> tuple[Blocker, ...]:
    return take_inventory(project, network, frozenset(router.name for router in routers.values()))


def _refuse_if_used(project: Project, record: NetworkRecord, network: Any, routers: dict[str, Any]) -> None:
    staying = _inventory(project, network, routers)
    if staying:
        shown = ", ".join(str(blocker) for blocker in staying[:_SHOWN])
        more = f" and {len(staying) - _SHOWN} more" if len(staying) > _SHOWN else ""
        raise _blocked(_deletion(project, record, network.name), shown + more)


def _refuse_if_said(error: TrellisError, ours: set[str]) -> None:
    user = _USER.search(error.failure.message)
    if user and user[1].rpartition("/")[2] not in ours:
        raise TrellisError(Code.BLOCKED, error.failure.message, _REMOVE) from None


def _blocked(what: str, by: str) -> TrellisError:
    return TrellisError(Code.BLOCKED, f"{what}: in use by what Trellis did not make: {by}", _REMOVE)


def _deletion(project: Project, record: NetworkRecord, name: str) -> str:
    return f"delete network {name} of {record.order.vpc} in project {project.id}"


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    """Around a removal: what is not there is removed."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise
