"""The step that makes `ready` mean something: clusters of one VPC really reach each other, in both directions."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio import activity

from activities.gardener.manifest import cluster_of, selector
from activities.gardener.probe import Probe, probe
from activities.gardener.status import ShootStatus
from activities.heartbeat import heartbeating
from domain.errors import Code, TrellisError
from domain.names import shoot_name
from domain.shoots import Reach, VerifyConnectivity

if TYPE_CHECKING:
    from activities.gardener.client import Garden

__all__ = ["ConnectivityActivities"]

DEFAULT_PROBE_IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.53"
T = TypeVar("T")

_NONCE_LENGTH = 10
_DIAL_PAUSE = 2.0
_UNREACHABLE_HINT = (
    "check that the security groups or firewall rules of both clusters' nodes admit TCP 30000-32767 from the other's "
    "node range, that both subnets' routes cover it, and that no other network has that range"
)


class ConnectivityActivities:
    """Proves reachability from inside the clusters, through their own API servers."""

    def __init__(self, garden: Garden, probe_image: str = DEFAULT_PROBE_IMAGE, patience: float = 45.0) -> None:
        """Make the step.

        Args:
            garden: The project that the shoots live in.
            probe_image: An agnhost image; where clusters cannot pull from Kubernetes' registry, a mirror of it.
            patience: Seconds in which an answer must come: nodes program a new NodePort with some delay.
        """
        self._garden = garden
        self._image = probe_image
        self._patience = patience

    @activity.defn
    async def verify_connectivity(self, order: VerifyConnectivity) -> Reach:
        """Let the cluster and a sample of its VPC's other clusters call each other over the node network.

        Each answer must carry the other cluster's name and this check's nonce: a cluster that talks to itself, or to a
        stranger with the same addresses, does not count. Access to a cluster lasts ten minutes and is kept nowhere.

        Raises:
            TrellisError: `unreachable`, naming who did not reach whom, where, and what came back; `timeout` where the
                probe does not start.
        """
        async with heartbeating("looking for other clusters in the VPC") as report:
            peers = await self._peers(order)
            if not peers:
                return Reach(note=f"no other cluster of VPC {order.vpc} is ready: nothing to reach")
            info = activity.info()
            nonce = hashlib.sha256(f"{info.workflow_run_id}/{info.activity_id}".encode()).hexdigest()[:_NONCE_LENGTH]
            report(f"calling {', '.join(peers)}")
            shoot = shoot_name(order.tenant, order.cluster)
            async with (
                await self._garden.admin_access(shoot) as api,
                probe(api, order.cluster, nonce, self._image) as newcomer,
            ):
                results = await _all(*(self._check(newcomer, peer, order, nonce) for peer in peers))
        trouble = {peer: why for peer, why in zip(peers, results, strict=True) if why}
        reached = tuple(peer for peer in peers if peer not in trouble)
        return Reach(peers=reached, note="; ".join(f"{peer} {why}" for peer, why in trouble.items()))

    async def _peers(self, order: VerifyConnectivity) -> list[str]:
        """A sample of the VPC's other clusters: spread over all of them, and the same at each attempt."""
        shoots = await self._garden.shoots(selector(order.tenant, order.vpc))
        others = {cluster_of(shoot) for shoot in shoots if ShootStatus.of(shoot).reachable} - {order.cluster}

        def weight(peer: str) -> bytes:
            return hashlib.sha256(f"{order.cluster}/{peer}".encode()).digest()

        return sorted(others, key=weight)[: order.sample]

    async def _check(self, newcomer: Probe, peer: str, order: VerifyConnectivity, nonce: str) -> str:
        """Both directions; else why this peer says nothing about the newcomer: it left, or has trouble of its own."""
        shoot = shoot_name(order.tenant, peer)
        try:
            async with (
                await self._garden.admin_access(shoot) as api,
                probe(api, peer, nonce, self._image) as other,
            ):
                await _all(self._reach(newcomer, other), self._reach(other, newcomer))
        except TrellisError as error:
            now = await self._garden.shoot(shoot)
            if now is None or ShootStatus.of(now).deleting:
                return "left meanwhile"
            if error.failure.code is Code.TIMEOUT:
                return f"could not take part: {error.failure.message}"
            raise
        return ""

    async def _reach(self, source: Probe, target: Probe) -> None:
        """Dial until the answer is right or patience ends."""
        deadline = asyncio.get_running_loop().time() + self._patience
        while came := await source.dial(target):
            if asyncio.get_running_loop().time() > deadline:
                what = f"cluster {source.cluster} does not reach cluster {target.cluster}"
                raise TrellisError(
                    Code.UNREACHABLE,
                    f"{what} at {target.address} (node network, NodePort): {came}",
                    _UNREACHABLE_HINT,
                )
            await asyncio.sleep(_DIAL_PAUSE)


async def _all(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """The results of all; the first failure only after every one of them has ended and cleaned up."""
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
