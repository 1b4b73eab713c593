"""Removing a network: in order, only what Trellis made, and nothing while anything else is inside."""

from __future__ import annotations

from typing import Any

from activities.clouds.openstack._inventory import take_inventory
from activities.clouds.openstack._project import NETWORK, ROUTER, Project
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkRecord

__all__ = ["remove", "staying_inside"]

# Blockers named in one message.
_SHOWN = 10
# Neutron's own words: NetworkInUse, RouterInUse, RouterInUseByVPNService, …
_IN_USE = "InUse"
_REMOVE = "remove these, or have their owners do it; the deletion then goes on by itself"


def remove(project: Project, record: NetworkRecord) -> None:
    """See `Cloud.remove`."""
    networks = _networks(project, record)
    _refuse_if_used(project, record)
    try:
        # A router first: its gateway goes with it, and an interface of it would keep the network.
        for router_id in _routers(project, record):
            with project.removing(f"delete router {router_id} of {record.order.vpc} in {project.region}"):
                project.network.delete_router(router_id, ignore_missing=False)
        for network in networks:
            # Only as it was when it was looked into: with a network, Neutron deletes subnets that have no ports.
            revision = network.revision_number
            with project.removing(_deletion(project, record)):
                project.network.delete_network(network.id, ignore_missing=False, if_revision=revision)
    except TrellisError as error:
        if error.failure.code is Code.BUSY and _IN_USE in error.failure.message:
            # Something came in meanwhile, or is of a kind that the inventory does not know.
            _refuse_if_used(project, record)
            raise TrellisError(Code.BLOCKED, error.failure.message, _REMOVE) from None
        raise


def staying_inside(project: Project, record: NetworkRecord) -> tuple[Blocker, ...]:
    """See `Cloud.blockers`."""
    routers = _routers(project, record)
    networks: list[str | None] = [str(each.id) for each in _networks(project, record)]
    found = [take_inventory(project, network, routers) for network in networks or [None]]
    return tuple(dict.fromkeys(blocker for blockers in found for blocker in blockers))


def _networks(project: Project, record: NetworkRecord) -> list[Any]:
    """The network on record; without a record, what half-made attempts left."""
    if record.network is None:
        return project.marked(NETWORK, record.order)
    found = project.listed("networks", id=record.network.id)
    for network in found:
        project.check_mark(record.order, network)
    return found


def _routers(project: Project, record: NetworkRecord) -> list[str]:
    found = [str(each.id) for each in project.marked(ROUTER, record.order)]
    if record.network is None:
        return found
    return [each for each in found if each == record.network.parts.get(ROUTER)]


def _refuse_if_used(project: Project, record: NetworkRecord) -> None:
    blockers = staying_inside(project, record)
    if blockers:
        shown = ", ".join(str(blocker) for blocker in blockers[:_SHOWN])
        more = f" and {len(blockers) - _SHOWN} more" if len(blockers) > _SHOWN else ""
        what = _deletion(project, record)
        raise TrellisError(Code.BLOCKED, f"{what}: in use by what Trellis did not make: {shown}{more}", _REMOVE)


def _deletion(project: Project, record: NetworkRecord) -> str:
    name = record.network.id if record.network else f"(half made, {project.mark(record.order)})"
    return f"delete network {name} of {record.order.vpc} in {project.region}"
