"""Making a network and its routers, or finding what an earlier attempt made of them, and mending what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import Any

from activities.clouds.gcp._inventory import ranges_of
from activities.clouds.gcp._marks import router_name
from activities.clouds.gcp._project import Project
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord, NetworkSeen
from domain.routers import routers_for

__all__ = ["ensure"]


def ensure(project: Project, record: NetworkRecord) -> NetworkSeen:
    """See `Cloud.ensure`."""
    order = record.order
    name = record.network.id if record.network else project.network_name(order)
    with _visible_soon():
        network = _awaited(project, order, name) if record.network else _found_or_made(project, order, name)
        project.check_mark(order, "network", network)
        routers = _ensure_routers(project, order, network)
        return NetworkSeen(
            network=Network(id=network.name, account=project.id, parts=routers),
            ranges=_ranges(project, network),
        )


@contextmanager
def _visible_soon() -> Iterator[None]:
    """While a network is being made, what is not found was made a moment ago: another look tells."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise
        raise TrellisError(Code.EVENTUAL, error.failure.message, "tried again by itself") from None


def _found_or_made(project: Project, order: NetworkOrder, name: str) -> Any:
    if found := project.network(name):
        return found
    network = {
        "name": name,
        "description": str(project.mark(order)),
        "auto_create_subnetworks": False,
        "routing_config": {"routing_mode": "REGIONAL"},
    }
    what = f"create network {name} for {order.vpc} in project {project.id}"
    with _existing_is_fine(lambda: project.network(name) is not None):
        project.change(what, project.networks.insert_unary, network_resource=network)
    return _awaited(project, order, name)


def _awaited(project: Project, order: NetworkOrder, name: str) -> Any:
    """The network once it can be seen. Not found for the whole time means that somebody deleted it."""
    deadline = time.monotonic() + project.patience.settle
    while (network := project.network(name)) is None:
        if time.monotonic() > deadline:
            raise TrellisError(
                Code.LOST,
                f"network {name} of {order.vpc} is not there any more in project {project.id}: "
                f"not found for {project.patience.settle:.0f} s",
                "somebody else deleted it: delete its clusters, then the name is free again",
            )
        time.sleep(project.patience.poll)
    return network


def _ensure_routers(project: Project, order: NetworkOrder, network: Any) -> dict[str, str]:
    """The routers by part. Those that are there stay as they are: Gardener keeps its NAT gateways on them."""
    routers = {part: str(router.name) for part, router in project.own_routers(order, network.name).items()}
    for index in range(routers_for(order.clusters)):
        if f"router-{index}" not in routers:
            routers[f"router-{index}"] = _make_router(project, order, network, router_name(network.name, index))
    return dict(sorted(routers.items()))


def _make_router(project: Project, order: NetworkOrder, network: Any, name: str) -> str:
    router = {"name": name, "description": str(project.mark(order)), "network": network.self_link}
    what = f"create router {name} for {order.vpc} in {project.region} of project {project.id}"
    with _existing_is_fine(lambda: name in [each.name for each in project.own_routers(order, network.name).values()]):
        project.change(what, project.routers.insert_unary, region=project.region, router_resource=router)
    return name


@contextmanager
def _existing_is_fine(is_there: Callable[[], bool]) -> Iterator[None]:
    """Around a call that makes something: an earlier attempt may have got there first."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.CONFLICT or not is_there():
            raise


def _ranges(project: Project, network: Any) -> tuple[IPv4Network, ...]:
    return tuple(sorted(ranges_of(project, network)))
