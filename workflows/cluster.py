"""The cluster: joins a VPC, becomes a shoot, proves that it is reached, lives, and leaves without a trace.

The running workflow is the cluster. A provision that is done continues as new in a settled form with a short history.
`deprovision` or a cancellation, at any moment, also in the middle of a provision, leads to the same clean-up as a
failure. Every step is idempotent, so the clean-up needs no record of how far the provision came.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributePair, SearchAttributeUpdate
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.attributes import PHASE, STUCK
    from activities.connectivity import ConnectivityActivities
    from activities.membership import MembershipActivities
    from activities.network import NetworkActivities
    from activities.shoot import ShootActivities
    from domain.errors import Failure, TrellisError
    from domain.layout import cut
    from domain.messages import Answer, Claim, ClusterPhase, ClusterView, Grant, Join, Leave
    from domain.names import technical_id, vpc_workflow_id
    from domain.networks import Layout, NetworkRecord
    from domain.routers import router_of
    from domain.shoots import ClusterKey, NatGateway, Reach, ShootOrder, ShootPlan, VerifyConnectivity
    from domain.specs import OnFailure
    from domain.states import ClusterInput, ClusterState, Decision
    from workflows.failures import failure_of
    from workflows.policies import BRIEF, LONG, PATIENT, UNTIL_DONE

__all__ = ["ClusterWorkflow"]

# A VPC that was terminated answers nobody; asking again starts it anew. Joining and leaving are idempotent.
_ASK_AGAIN = timedelta(minutes=10)

T = TypeVar("T")


@workflow.defn(name="ClusterWorkflow")
class ClusterWorkflow:
    """One cluster, from the request to the last trace of it."""

    @workflow.init
    def __init__(self, start: ClusterInput) -> None:
        self._tenant = start.tenant
        self._name = start.name
        self._spec = start.spec
        state = start.state
        # Grows with every life of a cluster: a late message of an earlier life is known by it.
        self._token = state.token if state else int(workflow.now().timestamp() * 1000)
        self._plan: ShootPlan | None = state.plan if state else None
        self._grant: Grant | None = state.grant if state else None
        self._layout: Layout | None = state.layout if state else None
        self._reach: Reach | None = state.reach if state else None
        self._phase = ClusterPhase.READY if state else ClusterPhase.JOINING
        self._vpcs: list[str] = [start.spec.vpc_name] if start.spec and state else []
        self._failure: Failure | None = None
        self._answer: Answer | None = None
        self._decision: str | None = None
        self._choices: tuple[str, ...] = ()
        self._has_router = False
        self._leaving = False
        self._cancelled = False

    @workflow.run
    async def run(self, start: ClusterInput) -> ClusterView:
        """Live until told to leave; ends with nothing left in the cloud, the garden or the VPC."""
        failure = await self._live(start.state is not None) if self._spec else None
        await self._undisturbed(self._remove)
        self._failure = failure
        if failure and not self._leaving:
            self._enter(ClusterPhase.FAILED)
            raise ApplicationError(str(failure), failure, type=failure.code, non_retryable=True)
        self._enter(ClusterPhase.DELETED)
        if self._cancelled:
            raise asyncio.CancelledError
        return self.describe()

    # --- what others say -------------------------------------------------------------------------------------------

    @workflow.signal(description="A VPC's answer to `join` or `leave`.")
    def answered(self, answer: Answer) -> None:
        """Take the answer to this life's question; a late one to an earlier life is dropped."""
        if answer.token == self._token:
            self._answer = answer

    @workflow.signal(description="Remove the cluster and everything of it.")
    def deprovision(self, decision: Decision) -> None:
        """Leave, from wherever the cluster is."""
        self._leaving = True

    @workflow.signal(description="Try a held step again.")
    def retry(self, decision: Decision) -> None:
        """Try a held step again."""
        self._decide("retry")

    @workflow.signal(description="Go on without the held step (connectivity only).")
    def skip(self, decision: Decision) -> None:
        """Go on without the held step."""
        self._decide("skip")

    @workflow.signal(description="Give up a held provision and clean up.")
    def abort(self, decision: Decision) -> None:
        """Give up a held provision; it is cleaned up and ends as failed."""
        self._decide("abort")

    @workflow.query(description="The cluster as data.")
    def describe(self) -> ClusterView:
        """The cluster as it is now."""
        spec, layout = self._spec, self._layout
        return ClusterView(
            name=self._name,
            tenant=self._tenant,
            provider=spec and spec.provider,
            region=spec and spec.region,
            vpc=spec.vpc_name if spec else next(iter(self._vpcs), None),
            phase=self._phase,
            shoot=self._plan and self._plan.shoot,
            block=layout and layout.block,
            nodes=layout and layout.nodes,
            infra=layout and layout.infra,
            zones=layout.zones if layout else (),
            workflow_id=workflow.info().workflow_id,
            failure=self._failure,
        )

    # --- living ----------------------------------------------------------------------------------------------------

    async def _live(self, settled: bool) -> Failure | None:
        """Provision unless that is done, then wait; returns what went wrong, or None when it is time to leave."""
        if settled:
            await self._until(lambda: self._leaving)
            return None
        failure = await self._interruptible(self._provision)
        if failure is None and not self._leaving:
            assert self._plan
            assert self._grant
            assert self._layout
            state = ClusterState(
                token=self._token, plan=self._plan, grant=self._grant, layout=self._layout, reach=self._reach
            )
            workflow.continue_as_new(
                ClusterInput(tenant=self._tenant, name=self._name, spec=self._spec, state=state),
                search_attributes=workflow.info().typed_search_attributes.updated(
                    SearchAttributePair(PHASE, ClusterPhase.READY)
                ),
            )
        return failure

    async def _provision(self) -> None:
        """The way to a cluster, step by step."""
        spec = self._spec
        assert spec is not None
        self._plan = await self._step(
            lambda: workflow.execute_activity_method(
                ShootActivities.plan_shoot, spec, summary="choose zones, machines and versions", **BRIEF
            )
        )
        self._grant = await self._step(self._join)
        self._layout = cut(spec.provider, self._grant.block, self._plan.zones)
        order = ShootOrder(
            spec=spec, plan=self._plan, network=self._grant.network, layout=self._layout, slot=self._grant.slot
        )
        self._enter(ClusterPhase.CREATING)
        await self._claim_router()
        await self._step(
            lambda: workflow.execute_activity_method(
                ShootActivities.create_shoot, order, summary=f"create shoot {order.plan.shoot.name}", **LONG
            )
        )
        await self._freeing_router(self._await_shoot, present=True)
        self._enter(ClusterPhase.VERIFYING)
        await self._step(self._verify, skip=lambda: None)

    async def _await_shoot(self) -> None:
        await self._step(
            lambda: workflow.execute_activity_method(
                ShootActivities.await_shoot, self._key, summary="await the shoot", **LONG
            )
        )

    async def _join(self) -> Grant:
        spec = self._spec
        assert spec is not None
        join = Join(
            cluster=self._name,
            token=self._token,
            vpc=spec.vpc_spec(),
            block=spec.block,
            fixed_cidr=spec.vpc_cidr is not None,
            fixed_prefix=spec.cluster_prefix is not None,
            pods=spec.pods,
            services=spec.services,
            legacy_ranges=spec.legacy_ranges,
        )
        self._vpcs = [spec.vpc_name]  # from now on there may be something to leave

        async def ask() -> None:
            await workflow.execute_activity_method(
                MembershipActivities.join_vpc, join, summary=f"join VPC {spec.vpc_name}", **BRIEF
            )

        answer = await self._ask(ask)
        if answer.refused:
            raise TrellisError.of(answer.refused)
        assert answer.grant
        return answer.grant

    # Where clusters share a router that each of them changes, they do so one at a time (`domain.leases`).

    async def _claim_router(self) -> None:
        """Wait until no other cluster works on the router."""
        claim = self._claim()
        if claim is None:
            return
        while (await self._ask(lambda: self._tell_vpc("claim", claim))).lent != claim.part:
            """An answer to something else; the one to the claim is still to come."""
        self._has_router = True

    async def _freeing_router(self, work: Callable[[], Awaitable[None]], *, present: bool) -> None:
        """Wait for the shoot. The next cluster gets the router as soon as this one's NAT gateway is there, or gone."""
        watch = asyncio.ensure_future(self._watch_nat_gateway(present=present))
        try:
            await work()
        except BaseException:
            await _ended(watch)
            raise
        await _ended(watch)  # what it waits for has come with the shoot
        await self._give_router_back()

    async def _watch_nat_gateway(self, *, present: bool) -> None:
        grant, plan = self._grant, self._plan
        if not (self._has_router and grant and grant.order and plan):
            return
        nat = NatGateway(
            record=NetworkRecord(order=grant.order, network=grant.network),
            shoot=technical_id(plan.shoot.namespace, plan.shoot.name),
            present=present,
        )
        await workflow.execute_activity_method(
            NetworkActivities.await_nat_gateway, nat, summary=f"watch the NAT gateway of {nat.shoot}", **UNTIL_DONE
        )
        await self._give_router_back()

    async def _give_router_back(self) -> None:
        claim = self._claim()
        if self._has_router and claim:
            await self._tell_vpc("give_back", claim)
            self._has_router = False  # not before: what is cancelled here is said again

    def _claim(self) -> Claim | None:
        grant, spec = self._grant, self._spec
        router = router_of(spec.provider, grant.network, grant.slot) if grant and spec else None
        return Claim(cluster=self._name, token=self._token, part=router) if router else None

    async def _verify(self) -> None:
        spec = self._spec
        assert spec is not None
        self._reach = await workflow.execute_activity_method(
            ConnectivityActivities.verify_connectivity,
            VerifyConnectivity(tenant=self._tenant, cluster=self._name, vpc=spec.vpc_name),
            summary="prove that the clusters of the VPC reach each other",
            **LONG,
        )

    # --- leaving ---------------------------------------------------------------------------------------------------

    async def _remove(self) -> None:
        """Shoot first, then the block: whatever of them there is."""
        self._enter(ClusterPhase.DELETING)
        if self._spec is None:
            await self._recall()
        if self._spec is None or self._grant:
            await self._claim_router()
            await self._remove_shoot()
        for vpc in self._vpcs:
            await self._leave(vpc)

    async def _recall(self) -> None:
        """Find out what is left of a cluster whose own workflow is not there to tell."""
        shoot = await workflow.execute_activity_method(
            ShootActivities.find_shoot, self._key, summary="look for its shoot", **UNTIL_DONE
        )
        members = await workflow.execute_activity_method(
            MembershipActivities.find_memberships, self._key, summary="look for its VPC", **UNTIL_DONE
        )
        self._vpcs = sorted({*members, shoot.vpc} if shoot else members)

    async def _remove_shoot(self) -> None:
        await self._patiently(ShootActivities.delete_shoot, "delete the shoot")
        await self._freeing_router(
            lambda: self._patiently(ShootActivities.await_shoot_gone, "await the shoot's end"), present=False
        )

    async def _patiently(self, step: Callable[[ShootActivities, ClusterKey], Awaitable[None]], summary: str) -> None:
        """Do a step of the removal; where something is in its way, say so and go on as soon as that is mended."""
        try:
            await workflow.execute_activity_method(step, self._key, summary=summary, **UNTIL_DONE)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            self._failure = failure_of(error)
            self._mark_stuck(True)
            await workflow.execute_activity_method(step, self._key, summary=f"{summary}, patiently", **PATIENT)
            self._mark_stuck(False)

    async def _leave(self, vpc: str) -> None:
        leave = Leave(cluster=self._name, token=self._token)
        while not (await self._ask(lambda: self._tell_vpc("leave", leave, vpc))).left:
            """A late answer to the join; the one to the leave is still to come."""

    # --- the machinery ---------------------------------------------------------------------------------------------

    async def _ask(self, ask: Callable[[], Awaitable[None]]) -> Answer:
        """Ask a VPC, and again when it stays silent for long."""
        self._answer = None
        while self._answer is None:
            await ask()
            try:
                await workflow.wait_condition(lambda: self._answer is not None, timeout=_ASK_AGAIN)
            except TimeoutError:
                continue
        return self._answer

    async def _tell_vpc(self, signal: str, message: Leave | Claim, vpc: str | None = None) -> None:
        """Signal a VPC. Where none of that name runs nobody counts this cluster, and nobody else is in its way."""
        name = vpc or (self._spec.vpc_name if self._spec else "")
        handle = workflow.get_external_workflow_handle(vpc_workflow_id(self._tenant, name))
        try:
            await handle.signal(signal, message)
        except ApplicationError:
            lent = message.part if isinstance(message, Claim) else None
            self._answer = Answer(token=self._token, left=lent is None, lent=lent)

    async def _step(self, step: Callable[[], Awaitable[T]], skip: Callable[[], T] | None = None) -> T:
        """Do a step; where the cluster is to be held on failure, wait for a person and do as told."""
        while True:
            try:
                return await step()
            except (FailureError, TrellisError) as error:
                if is_cancelled_exception(error) or not self._holds:
                    raise
                match await self._hold(failure_of(error), skippable=skip is not None):
                    case "abort":
                        raise
                    case "skip" if skip:
                        return skip()

    async def _hold(self, failure: Failure, *, skippable: bool) -> str:
        """Stay as it is, visibly stuck, until a person decides: `retry`, `abort`, or `skip` where that makes sense."""
        before = self._phase
        self._failure = failure
        self._choices = ("retry", "abort", "skip") if skippable else ("retry", "abort")
        self._decision = None
        self._enter(ClusterPhase.HELD)
        await workflow.wait_condition(self._decided)
        self._failure, self._choices = None, ()
        self._enter(before)
        return str(self._decision)

    async def _interruptible(self, work: Callable[[], Awaitable[None]]) -> Failure | None:
        """Do the work unless told to leave meanwhile; what was begun has then really ended."""
        task = asyncio.ensure_future(work())
        await self._until(lambda: self._leaving or task.done())
        task.cancel()
        try:
            await task
        except (FailureError, TrellisError, asyncio.CancelledError) as error:
            if is_cancelled_exception(error) and self._leaving:
                return None
            return failure_of(error)
        return None

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait; a cancellation of the workflow is a wish to leave."""
        try:
            await workflow.wait_condition(condition)
        except asyncio.CancelledError:
            self._cancelled = self._leaving = True

    async def _undisturbed(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work to its end; a cancellation that arrives now wants what is being done anyway."""
        while True:
            try:
                return await work()
            except BaseException as error:
                if not is_cancelled_exception(error):
                    raise

    def _decide(self, decision: str) -> None:
        if decision in self._choices:
            self._decision = decision

    def _decided(self) -> bool:
        return self._decision is not None

    @property
    def _key(self) -> ClusterKey:
        return ClusterKey(tenant=self._tenant, cluster=self._name)

    @property
    def _holds(self) -> bool:
        return self._spec is not None and self._spec.on_failure is OnFailure.HOLD

    def _enter(self, phase: ClusterPhase) -> None:
        held = ClusterPhase.HELD in (phase, self._phase)
        self._phase = phase
        changes: list[SearchAttributeUpdate[str] | SearchAttributeUpdate[bool]] = [PHASE.value_set(phase)]
        if held:
            changes.append(STUCK.value_set(phase is ClusterPhase.HELD))
        workflow.upsert_search_attributes(changes)
        self._tell()

    def _mark_stuck(self, stuck: bool) -> None:
        workflow.upsert_search_attributes([STUCK.value_set(stuck)])
        self._tell()

    def _tell(self) -> None:
        """What the UI shows on the workflow's page."""
        view = self.describe()
        lines = [f"**{view.phase}** in VPC `{view.vpc}`"]
        lines += [f"block `{view.block}`, nodes `{view.nodes}`, infra `{view.infra}`"] if view.block else []
        lines += [f"shoot `{view.shoot.namespace}/{view.shoot.name}`"] if view.shoot else []
        if self._failure:
            lines += [f"**{self._failure.code}**: {self._failure.message}", self._failure.hint]
        if self._choices:
            lines.append("signals that help: " + ", ".join(f"`{choice}`" for choice in (*self._choices, "deprovision")))
        workflow.set_current_details("\n\n".join(lines))


async def _ended(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait until it has really ended; how does not matter."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, FailureError):
        await task
