"""Making a network and its router, or finding what an earlier attempt made of them, and mending what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from activities.clouds.openstack._inventory import ranges_of, take_inventory
from activities.clouds.openstack._project import FLOATING_POOL, NETWORK, ROUTER, Project
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord, NetworkSeen

__all__ = ["ensure"]


def ensure(project: Project, record: NetworkRecord) -> NetworkSeen:
    """See `Cloud.ensure`."""
    with _visible_soon():
        return _Ensuring(project, record.order).network(record.network)


@contextmanager
def _visible_soon() -> Iterator[None]:
    """While a network is being made, what is not found was made a moment ago: another look tells."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise
        raise TrellisError(Code.EVENTUAL, error.failure.message, "tried again by itself") from None


class _Ensuring:
    def __init__(self, project: Project, order: NetworkOrder) -> None:
        self._project = project
        self._order = order

    def network(self, recorded: Network | None) -> NetworkSeen:
        network = self._recorded(recorded.id) if recorded else self._only(NETWORK, self._make_network)
        self._project.check_mark(self._order, network)
        router, pool = self._router(recorded.parts.get(ROUTER) if recorded else None)
        for thing in (network, router):
            self._ensure_tags(thing)
        return NetworkSeen(
            network=Network(id=network.id, account=self._project.id, parts={ROUTER: router.id, FLOATING_POOL: pool}),
            ranges=ranges_of(self._project, network.id, router.id),
        )

    def _recorded(self, network_id: str) -> Any:
        """The network on record. Not found for the whole time means that somebody deleted it."""
        deadline = time.monotonic() + self._project.patience.settle
        while not (found := self._project.listed("networks", id=network_id)):
            if time.monotonic() > deadline:
                raise TrellisError(
                    Code.LOST,
                    f"network {network_id} of {self._order.vpc} is not there any more in {self._project.region}: "
                    f"not found for {self._project.patience.settle:.0f} s",
                    "somebody else deleted it: delete its clusters, then the name is free again",
                )
            time.sleep(self._project.patience.poll)
        return found[0]

    # --- one of each, whatever was lost ----------------------------------------------------------------------------

    def _only(self, kind: str, make: Callable[[], Any]) -> Any:
        """The one that carries the mark: found, or made. Of several, the oldest; whoever looks next does the same."""
        found = self._project.marked(kind, self._order)
        if not found:
            made = self._made(kind, make)
            # Another attempt, whose worker is cut off, may have made one at the same moment.
            found = self._project.marked(kind, self._order) or [made]
        for spare in found[1:]:
            self._drop_spare(kind, spare)
        return found[0]

    def _made(self, kind: str, make: Callable[[], Any]) -> Any:
        """What `make` makes, or, where its answer was lost, what then carries the mark."""
        try:
            return make()
        except TrellisError as error:
            if error.failure.code not in {Code.LOST_RESPONSE, Code.UNAVAILABLE}:
                raise
            deadline = time.monotonic() + self._project.patience.look
            while not (found := self._project.marked(kind, self._order)):
                if time.monotonic() > deadline:
                    raise
                time.sleep(self._project.patience.poll)
            return found[0]

    def _drop_spare(self, kind: str, spare: Any) -> None:
        """Nobody was ever told of a spare one; where it is in use all the same, it stays."""
        place = (spare.id, []) if kind == NETWORK else (None, [spare.id])
        if take_inventory(self._project, *place):
            return
        delete = getattr(self._project.network, f"delete_{kind}")
        with self._project.removing(f"delete {kind} {spare.id}, a second one of {self._order.vpc}"):
            delete(spare.id, ignore_missing=False)

    # --- network and router ----------------------------------------------------------------------------------------

    def _make_network(self) -> Any:
        with self._project.changing(f"create a network for {self._order.vpc} in {self._project.region}"):
            return self._project.network.create_network(**self._project.named(self._order))

    def _router(self, recorded: str | None) -> tuple[Any, str]:
        """The router, and the name of the external network that its gateway is in."""
        router = next((each for each in self._project.marked(ROUTER, self._order) if each.id == recorded), None)
        router = router or self._only(ROUTER, self._make_router)
        gateway = router.external_gateway_info
        if not gateway:
            pool = self._project.floating_pool()
            with self._project.changing(f"set the gateway of router {router.id} to {pool.name}"):
                gateway = {"network_id": pool.id}
                router = self._project.network.update_router(router.id, external_gateway_info=gateway)
        pools = self._project.listed("networks", id=gateway["network_id"])
        if not pools:
            raise TrellisError(
                Code.CONFLICT,
                f"the gateway of router {router.id} of {self._order.vpc} is in network {gateway['network_id']}, which "
                f"the project {self._project.id} does not see",
                "have the operator share that external network with the project again",
            )
        return router, str(pools[0].name)

    def _make_router(self) -> Any:
        pool = self._project.floating_pool()
        what = f"create a router for {self._order.vpc} in {self._project.region} with a gateway in {pool.name}"
        with self._project.changing(what):
            return self._project.network.create_router(
                **self._project.named(self._order), external_gateway_info={"network_id": pool.id}
            )

    def _ensure_tags(self, thing: Any) -> None:
        present = set(thing.tags or ())
        wanted = self._project.mark(self._order).tags
        if not wanted <= present:
            with self._project.changing(f"tag {thing.id} of {self._order.vpc}"):
                self._project.network.set_tags(thing, sorted(present | wanted))
