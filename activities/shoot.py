"""Shoots: planned from what the landscape offers, asked for, awaited, and removed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from temporalio import activity

from activities._deletions import waiting_for_a_person
from activities.gardener.manifest import belongs_to, belongs_to_another, found, same_place, shoot_manifest
from activities.gardener.profile import CloudProfile
from activities.gardener.status import ShootStatus
from activities.heartbeat import heartbeating
from domain.errors import Code, TrellisError
from domain.names import shoot_name
from domain.shoots import ClusterKey, FoundShoot, ShootKey, ShootOrder, ShootPlan
from domain.specs import ClusterSpec, Provider

if TYPE_CHECKING:
    from activities.gardener.api import Object
    from activities.gardener.client import Garden

__all__ = ["ShootActivities"]

_THROTTLED_MAX = 600.0


class ShootActivities:
    """The steps that concern a cluster's shoot. Each may be repeated at any time."""

    def __init__(
        self, garden: Garden, cloud_profiles: Mapping[Provider, str] | None = None, throttled_pause: float = 30.0
    ) -> None:
        """Make the steps.

        Args:
            garden: The project that the shoots live in.
            cloud_profiles: The CloudProfile of each provider; one that is left out is named like the provider.
            throttled_pause: Seconds before a shoot that the cloud throttled is tried again; doubles each time.
        """
        self._garden = garden
        self._profiles = dict(cloud_profiles or {})
        self._throttled_pause = throttled_pause

    @activity.defn
    async def plan_shoot(self, spec: ClusterSpec) -> ShootPlan:
        """Check the cluster's wishes against the landscape and choose what was left open.

        Raises:
            TrellisError: `invalid`, naming the valid choices, for an unknown region, zone, machine type, version or
                CredentialsBinding.
        """
        async with heartbeating("asking what the landscape offers"):
            return await self.plan(spec)

    async def plan(self, spec: ClusterSpec) -> ShootPlan:
        """The same for those who ask before there is a workflow."""
        name = self._profiles.get(spec.provider, spec.provider.value)
        await self._check_credentials(spec)
        profile = await self._cloud_profile(spec.provider, name)
        shoot = ShootKey(namespace=self._garden.namespace, name=shoot_name(spec.tenant, spec.name))
        return CloudProfile.of(profile).plan(spec, shoot, name)

    @activity.defn
    async def create_shoot(self, order: ShootOrder) -> None:
        """Ask Gardener for the shoot, or adopt what an earlier attempt asked for.

        Raises:
            TrellisError: `busy` while a shoot of that name is being deleted; `cluster-exists` where the cluster has a
                shoot elsewhere; `conflict` where the shoot of that name is not the cluster's; `invalid`, `forbidden`
                or `quota` with what Gardener says.
        """
        async with heartbeating("asking Gardener for the shoot"):
            try:
                await self._garden.create_shoot(shoot_manifest(order))
            except TrellisError as error:
                if error.failure.code is not Code.CONFLICT:
                    raise
                await self._adopt(order)

    @activity.defn
    async def await_shoot(self, key: ClusterKey) -> None:
        """Wait until the shoot is there as asked for, and healthy. What failed before the wait is tried again first.

        Raises:
            TrellisError: `lost` where somebody deleted it; `quota`, `no-capacity`, `forbidden` or `shoot-failed` with
                Gardener's own words.
        """

        def ready(status: ShootStatus | None) -> bool:
            if status is None or status.deleting:
                what = (
                    f"shoot {shoot_name(key.tenant, key.cluster)} of cluster {key.cluster} was deleted by somebody else"
                )
                raise TrellisError(Code.LOST, what, "delete the cluster, then create it again")
            return status.ready

        await self._follow(key, ready, lambda status: status.creation_failure)

    @activity.defn
    async def delete_shoot(self, key: ClusterKey) -> None:
        """Ask Gardener to delete the cluster's shoot; gone or going already is success.

        Raises:
            TrellisError: `blocked` where the shoot of that name has lost its labels, or where Gardener refuses for
                another reason that only a person can mend; `eventual` where it took the request, and nothing followed.
        """
        async with heartbeating("asking Gardener to delete the shoot"):
            with waiting_for_a_person():
                shoot = await self._staying(key)
                if shoot is None:
                    return
                await self._garden.delete_shoot(shoot)
                if await self._staying(key):
                    what = f"shoot {shoot['metadata']['name']} is still there, and its deletion was not taken note of"
                    raise TrellisError(Code.EVENTUAL, what, "tried again by itself")

    @activity.defn
    async def await_shoot_gone(self, key: ClusterKey) -> None:
        """Wait until the shoot is gone. A deletion that had failed before the wait is tried again first.

        Raises:
            TrellisError: `blocked` where the cloud refuses because of things that Gardener did not make, where Gardener
                gave up for another reason, or where the shoot has lost its labels.
        """
        with waiting_for_a_person():
            await self._follow(key, lambda status: status is None, lambda status: status.deletion_failure, leaving=True)

    @activity.defn
    async def find_shoot(self, key: ClusterKey) -> FoundShoot | None:
        """The cluster's shoot as the garden tells it, or None: for clusters whose own workflow is not there to ask."""
        async with heartbeating("looking for the shoot"):
            shoot = await self._garden.shoot(shoot_name(key.tenant, key.cluster))
        return found(shoot) if shoot and belongs_to(shoot, key) else None

    async def _staying(self, key: ClusterKey) -> Object | None:
        """The cluster's shoot where its deletion is still to be asked for; None where it is gone, or on its way."""
        shoot = await self._garden.shoot(shoot_name(key.tenant, key.cluster))
        if shoot is None or belongs_to_another(shoot, key):
            return None
        _check_owner(shoot, key)
        return None if ShootStatus.of(shoot).deleting else shoot

    async def _adopt(self, order: ShootOrder) -> None:
        name, cluster = order.plan.shoot.name, order.spec.name
        shoot = await self._garden.shoot(name)
        if shoot is None:
            raise TrellisError(Code.BUSY, f"shoot {name} was there a moment ago and is gone now")
        _check_owner(shoot, ClusterKey(tenant=order.spec.tenant, cluster=cluster))
        if ShootStatus.of(shoot).deleting:
            raise TrellisError(Code.BUSY, f"an earlier shoot {name} of cluster {cluster} is still being deleted")
        if not same_place(shoot, order):
            what = f"cluster {cluster} has a shoot {name} already, in another VPC, block or subnet"
            raise TrellisError(Code.CLUSTER_EXISTS, what, "delete the cluster, then create it again")

    async def _follow(
        self,
        key: ClusterKey,
        done: Callable[[ShootStatus | None], bool],
        failure_of: Callable[[ShootStatus], TrellisError | None],
        *,
        leaving: bool = False,
    ) -> None:
        """Look at each change of the cluster's shoot until it is `done`; raises its failures, but none from before.

        Gardener does not retry by itself what it gave up, be it only because of the cloud's rate limit.
        """
        name, before, pause = shoot_name(key.tenant, key.cluster), None, self._throttled_pause
        async with heartbeating("looking for the shoot") as report, self._garden.follow_shoot(name) as states:
            async for shoot in states:
                if shoot is not None and leaving and belongs_to_another(shoot, key):
                    return
                if shoot is not None:
                    _check_owner(shoot, key)
                status = ShootStatus.of(shoot) if shoot else None
                if done(status) or status is None:
                    return
                report(status.progress)
                failure = failure_of(status) if status.moment != before else None
                if failure and before is None and status.given_up:
                    await self._garden.retry_shoot(name)
                elif failure and status.throttled:
                    await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - jitter
                    pause = min(2 * pause, _THROTTLED_MAX)
                    await self._garden.retry_shoot(name)
                elif failure and before is not None:
                    raise failure
                before = status.moment

    async def _cloud_profile(self, provider: Provider, name: str) -> Object:
        try:
            return await self._garden.cloud_profile(name)
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise
            what = f"provider {provider}: this landscape has no CloudProfile {name!r}"
            raise TrellisError(Code.INVALID, what, "set the worker's cloud profile for this provider") from None

    async def _check_credentials(self, spec: ClusterSpec) -> None:
        wanted = spec.vpc_spec().credentials
        bindings = await self._garden.credentials_bindings()
        if bindings.get(wanted) == spec.provider.value:
            return
        choices = sorted(name for name, provider in bindings.items() if provider == spec.provider.value)
        hint = f"choose one of: {', '.join(choices) or 'none: make a CredentialsBinding first'}"
        where = f"namespace {self._garden.namespace}"
        what = f"is for {bindings[wanted]}" if wanted in bindings else f"is no CredentialsBinding in {where}"
        raise TrellisError(Code.INVALID, f"credentials {wanted!r}: {what}, not for {spec.provider}", hint)


def _check_owner(shoot: Object, key: ClusterKey) -> None:
    if not belongs_to(shoot, key):
        name = shoot["metadata"]["name"]
        what = f"shoot {name} does not carry the labels of cluster {key.cluster} of tenant {key.tenant}"
        raise TrellisError(Code.CONFLICT, what, "Trellis leaves it alone: rename or remove it by hand")
