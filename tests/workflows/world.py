"""Stand-ins for everything outside: a cloud and a garden that are a few dictionaries, and keep watch over the rules.

The workflows, the membership activities and the Temporal server are the real ones. What is checked is what only an
all-seeing cloud can see: no network under two incarnations, none deleted under a shoot, no block given twice.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from temporalio import activity
from temporalio.exceptions import ApplicationError

from domain.errors import Code, Failure, TrellisError
from domain.names import shoot_name, technical_id
from domain.networks import Network, NetworkRecord, NetworkSeen
from domain.routers import router_of
from domain.shoots import (
    ClusterKey,
    FoundShoot,
    NatGateway,
    Reach,
    ShootKey,
    ShootOrder,
    ShootPlan,
    VerifyConnectivity,
)
from domain.specs import ClusterSpec, Provider


@dataclass
class World:
    """What exists, what happened, and what must never happen."""

    pause: float = 0.01
    networks: dict[tuple[str, str], str] = field(default_factory=dict)  # (tenant, vpc) -> network id
    shoots: dict[tuple[str, str], ShootOrder] = field(default_factory=dict)  # (tenant, cluster) -> order
    made: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    # Router -> the shoot whose change of it has not arrived yet.
    routers: dict[str, str] = field(default_factory=dict)
    foreign: list[IPv4Network] = field(default_factory=list)
    # Step name -> failures that its next calls meet.
    failures: dict[str, list[Failure]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    reached: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    random: random.Random = field(default_factory=lambda: random.Random(7))

    async def enter(self, step: str) -> None:
        """Take the time a step takes, stop at its gate, and fail as told."""
        self.calls[step] += 1
        gate = self.gates.get(step)
        self.reached[step].set()
        await asyncio.sleep(self.random.uniform(0, self.pause))
        while gate is not None and not gate.is_set():
            activity.heartbeat("at the gate")
            try:
                await asyncio.wait_for(gate.wait(), 0.2)
            except TimeoutError:
                continue
        if self.failures[step]:
            failure = self.failures[step].pop(0)
            raise ApplicationError(
                str(failure),
                failure,
                type=failure.code,
                non_retryable=not failure.transient and failure.code is not Code.BLOCKED,
            )

    def activities(self) -> Sequence[object]:
        """The steps, under the names of the real ones."""
        return [
            self.ensure_network, self.remove_network, self.await_nat_gateway, self.plan_shoot, self.create_shoot,
            self.await_shoot, self.find_shoot, self.delete_shoot, self.await_shoot_gone, self.verify_connectivity,
        ]  # fmt: skip

    @activity.defn
    async def ensure_network(self, record: NetworkRecord) -> NetworkSeen:
        await self.enter("ensure_network")
        order = record.order
        key = (order.tenant, order.vpc)
        if record.network:
            if self.networks.get(key) != record.network.id:
                failure = Failure(code=Code.LOST, message=f"{record.network.id} is gone")
                raise ApplicationError(str(failure), failure, type=failure.code, non_retryable=True)
            return NetworkSeen(network=record.network, ranges=self._ranges(key))
        network = f"net-{order.incarnation}"
        if self.networks.get(key, network) != network:
            self.violations.append(f"two networks for {key}")
        if network not in self.made:
            self.made.append(network)
        self.networks[key] = network
        parts = {f"router-{n}": f"{network}-{n}" for n in range(2)} if order.provider is Provider.GCP else {}
        return NetworkSeen(network=Network(id=network, parts=parts), ranges=self._ranges(key))

    def _ranges(self, key: tuple[str, str]) -> tuple[IPv4Network, ...]:
        inside = [o.layout.nodes for o in self.shoots.values() if (o.spec.tenant, o.spec.vpc_name) == key]
        return (*inside, *self.foreign)

    @activity.defn
    async def remove_network(self, record: NetworkRecord) -> None:
        await self.enter("remove_network")
        key = (record.order.tenant, record.order.vpc)
        users = [o.spec.name for o in self.shoots.values() if (o.spec.tenant, o.spec.vpc_name) == key]
        if users:
            self.violations.append(f"{key} deleted under {users}")
        if self.networks.get(key) == f"net-{record.order.incarnation}":
            self.removed.append(self.networks.pop(key))

    @activity.defn
    async def await_nat_gateway(self, nat: NatGateway) -> None:
        await self.enter("await_nat_gateway")
        self._settle_router(nat.shoot)

    def _settle_router(self, shoot: str) -> None:
        self.routers = {router: other for router, other in self.routers.items() if other != shoot}

    def _change_router(self, order: ShootOrder) -> None:
        router = router_of(order.spec.provider, order.network, order.slot)
        shoot = technical_id(order.plan.shoot.namespace, order.plan.shoot.name)
        if router and self.routers.setdefault(router, shoot) != shoot:
            self.violations.append(f"{shoot} and {self.routers[router]} change {router} at once")

    @activity.defn
    async def plan_shoot(self, spec: ClusterSpec) -> ShootPlan:
        await self.enter("plan_shoot")
        return ShootPlan(
            shoot=ShootKey(namespace="garden-test", name=shoot_name(spec.tenant, spec.name)),
            cloud_profile="aws",
            zones=spec.zones or ("eu-central-1a",),
            machine_type="m5.large",
            machine_image="gardenlinux",
            machine_image_version="1592.1.0",
            kubernetes_version="1.33.1",
        )

    @activity.defn
    async def create_shoot(self, order: ShootOrder) -> None:
        await self.enter("create_shoot")
        key = (order.spec.tenant, order.spec.vpc_name)
        if self.networks.get(key) != order.network.id:
            self.violations.append(f"{order.spec.name} uses {order.network.id}, which is not there")
        for other in self.shoots.values():
            same = (other.spec.tenant, other.spec.vpc_name) == key and other.spec.name != order.spec.name
            if same and other.layout.block.overlaps(order.layout.block):
                self.violations.append(f"{order.spec.name} and {other.spec.name} share {order.layout.block}")
        self._change_router(order)
        self.shoots[order.spec.tenant, order.spec.name] = order

    @activity.defn
    async def await_shoot(self, key: ClusterKey) -> None:
        await self.enter("await_shoot")
        if order := self.shoots.get((key.tenant, key.cluster)):
            self._settle_router(technical_id(order.plan.shoot.namespace, order.plan.shoot.name))

    @activity.defn
    async def find_shoot(self, key: ClusterKey) -> FoundShoot | None:
        await self.enter("find_shoot")
        order = self.shoots.get((key.tenant, key.cluster))
        if order is None:
            return None
        return FoundShoot(
            shoot=order.plan.shoot,
            vpc=order.spec.vpc_name,
            provider=order.spec.provider,
            region=order.spec.region,
            credentials="aws",
            block=order.layout.block,
            deleting=False,
        )

    @activity.defn
    async def delete_shoot(self, key: ClusterKey) -> None:
        await self.enter("delete_shoot")
        if order := self.shoots.get((key.tenant, key.cluster)):
            self._change_router(order)

    @activity.defn
    async def await_shoot_gone(self, key: ClusterKey) -> None:
        await self.enter("await_shoot_gone")
        order = self.shoots.pop((key.tenant, key.cluster), None)
        if order:
            self._settle_router(technical_id(order.plan.shoot.namespace, order.plan.shoot.name))

    @activity.defn
    async def verify_connectivity(self, order: VerifyConnectivity) -> Reach:
        await self.enter("verify_connectivity")
        return Reach(note="no peers")

    def check(self) -> None:
        """Nothing that must not happen has happened."""
        assert not self.violations, self.violations


def refused(code: Code, message: str = "told to fail") -> Failure:
    """A failure to be met by a step."""
    return TrellisError(code, message, "try something else").failure
