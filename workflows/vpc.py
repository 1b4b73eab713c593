"""The VPC: a network that lives as long as it has members.

The running workflow is the reference count. Clusters send `join` (by signal-with-start) and `leave`, and are answered
by the signal `answered` on their own workflow. Nothing is ever lost at the end: the workflow returns only in the very
task in which it saw no members and nothing to send; a signal that arrives meanwhile makes the server repeat that task.
So nothing may be awaited between the last look and the return, and the same holds for continue-as-new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.attributes import PHASE, STUCK
    from activities.network import NetworkActivities
    from domain.errors import Code, Failure
    from domain.leases import Leases
    from domain.membership import Membership
    from domain.messages import Claim, Join, Leave, Letter, MemberView, SpaceView, VpcPhase, VpcView
    from domain.names import cluster_workflow_id
    from domain.networks import NetworkOrder, NetworkRecord
    from domain.states import Decision, Member, Note, Release, VpcInput, VpcState
    from workflows.failures import failure_of
    from workflows.policies import LONG, PATIENT, UNTIL_DONE, Step

__all__ = ["VpcWorkflow"]

_NOTES_MAX = 50
# A worker that takes a VPC up again replays its history: long before the server would ask for it, a short one begins.
_EVENTS_MAX = 1_000
# The workflow's page in the UI is told anew with every join and leave; the query `explain` names everyone.
_MEMBERS_TOLD = 20


@workflow.defn(name="VpcWorkflow")
class VpcWorkflow:
    """One VPC: makes the network for the first member, removes it after the last."""

    @workflow.init
    def __init__(self, start: VpcInput) -> None:
        state = start.state
        self._spec = start.spec
        self._book = Membership(start.spec, state.members, state.departed, state.foreign)
        self._incarnation = state.incarnation
        self._network = state.network
        self._leases = Leases(start.spec.tenant, state.claims)
        self._retained = state.retained
        self._lost = state.lost
        self._failure = state.failure
        self._notes = list(state.notes)
        self._phase = self._settled_phase()

    @workflow.run
    async def run(self, start: VpcInput) -> VpcView:
        """Serve members until the last has left and the network is gone."""
        while True:
            try:
                await self._serve()
            except BaseException as error:
                if not is_cancelled_exception(error):
                    raise
                # A VPC under members cannot be cancelled away, and an empty one goes by itself.
                self._note("cancel (refused)", Decision())
            # Nothing is awaited from here to the end of the loop.
            if self._finished():
                self._phase = VpcPhase.GONE
                return self.describe()
            if self._is_long() and not self._has_work():
                workflow.continue_as_new(VpcInput(spec=self._spec, state=self._state()))

    # --- what others say -------------------------------------------------------------------------------------------

    @workflow.signal(description="A cluster asks for a block; answered by the signal `answered`.")
    def join(self, join: Join) -> None:
        """Record a member; it is answered when the network is ready."""
        workflow_id = cluster_workflow_id(self._spec.tenant, join.cluster)
        if self._lost:
            self._book.turn_away(workflow_id, join.token, self._lost_failure())
        else:
            self._book.join(join, workflow_id, workflow.now())

    @workflow.signal(description="A cluster whose shoot is gone gives its block back.")
    def leave(self, leave: Leave) -> None:
        """Forget a member; it is answered at once."""
        self._book.leave(leave, cluster_workflow_id(self._spec.tenant, leave.cluster))
        self._book.letters += self._leases.drop(leave.cluster)

    @workflow.signal(description="A cluster wants to work on a part of the network alone; answered when it may.")
    def claim(self, claim: Claim) -> None:
        """Lend a part of the network, to one cluster at a time."""
        self._book.letters += self._leases.claim(claim)

    @workflow.signal(description="A cluster no longer works on a part of the network.")
    def give_back(self, claim: Claim) -> None:
        """Lend the part to the next one."""
        self._book.letters += self._leases.give_back(claim)

    @workflow.signal(description="Keep the network when the last member has left.")
    def retain(self, decision: Decision) -> None:
        """Keep an empty network until `delete`."""
        self._retained = True
        self._note("retain", decision)

    @workflow.signal(description="Forget a member whose cluster can no longer say so itself.")
    def release(self, release: Release) -> None:
        """Free a member's block on an operator's word."""
        known = self._book.release(release.cluster)
        self._book.letters += self._leases.drop(release.cluster)
        self._note(f"release {release.cluster}" + ("" if known else " (no such member)"), release)

    @workflow.signal(description="Remove the network now. Refused, and forgotten, while there are members.")
    def delete(self, decision: Decision) -> None:
        """Take back `retain`; a VPC with members stays."""
        if self._book.members:
            self._note(f"delete (refused: {len(self._book.members)} members)", decision)
            return
        self._retained = False
        self._note("delete", decision)

    @workflow.query(description="The VPC as data.")
    def describe(self) -> VpcView:
        """The VPC as it is now."""
        return VpcView(
            name=self._spec.name,
            tenant=self._spec.tenant,
            provider=self._spec.provider,
            region=self._spec.region,
            cidrs=self._spec.cidrs,
            cluster_prefix=self._spec.cluster_prefix,
            phase=self._phase,
            network=self._network,
            members=tuple(
                MemberView(cluster=m.cluster, block=m.block, since=m.since, workflow_id=m.workflow_id)
                for m in sorted(self._book.members, key=lambda member: member.block)
            ),
            free=self._book.free(),
            retained=self._retained,
            failure=self._failure,
            workflow_id=workflow.info().workflow_id,
        )

    @workflow.query(description="The name of this VPC if the cluster is a member, else null.")
    def membership(self, cluster: str) -> str | None:
        """Whether a cluster is a member."""
        return self._spec.name if self._book.get(cluster) else None

    @workflow.query(description="Who holds which addresses, and what is free.")
    def space(self) -> SpaceView:
        """The address map."""
        return SpaceView(
            cidrs=self._spec.cidrs,
            blocks={m.cluster: m.block for m in sorted(self._book.members, key=lambda member: member.block)},
            foreign=self._book.foreign,
            free=tuple(self._book.free_ranges()),
        )

    @workflow.query(description="Who holds this VPC, since when, and why it is or is not deletable.")
    def explain(self) -> list[str]:
        """Sentences for a person."""
        return self._sentences(sorted(self._book.members, key=lambda member: member.block))

    def _sentences(self, members: Sequence[Member]) -> list[str]:
        lines = [f"VPC {self._spec.name} is {self._phase}."]
        lines += [f"{m.cluster} holds {m.block} since {_utc(m.since)} ({m.workflow_id})." for m in members]
        if untold := len(self._book.members) - len(members):
            lines.append(f"{untold} more members; the query `explain` names them all.")
        lines += [f"{cidr} is taken by a subnet that Trellis did not make." for cidr in self._book.foreign]
        lines.append(self._deletable())
        if self._failure:
            lines.append(f"{self._failure.code}: {self._failure}")
        lines += [f"{_utc(n.at)} {n.what} by {n.who or 'unknown'}: {n.why or 'no reason given'}." for n in self._notes]
        return lines

    # --- what is done ----------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Do what there is to do, once."""
        await workflow.wait_condition(self._has_work)
        if self._book.unanswered and not self._lost:
            await self._welcome()
        await self._send(self._take_letters())
        self._tell()
        if self._unused and await self._stays_unused():
            await self._remove()

    async def _welcome(self) -> None:
        """Make the network, or look whether it is still as it should be; then answer everyone who waits."""
        if self._incarnation is None:
            self._incarnation = str(workflow.uuid4())
        try:
            seen = await workflow.execute_activity_method(
                NetworkActivities.ensure_network,
                self._record(),
                summary=f"make network {self._spec.name}",
                **LONG,
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._fail(failure_of(error))
            return
        self._network = seen.network
        self._failure = None
        self._book.avoid(seen.ranges)
        self._book.grant(seen.network, self._record().order)
        self._enter(VpcPhase.READY)

    def _fail(self, failure: Failure) -> None:
        """Nobody who waits gets in; a network under members stays as it is."""
        if self._network and failure.code is Code.LOST:
            self._lost = True
            failure = self._lost_failure()
            self._enter(VpcPhase.LOST)
        self._failure = failure
        self._book.refuse_waiting(failure)

    async def _send(self, letters: list[Letter]) -> None:
        """Deliver answers. Who has closed in the meantime needs none: whoever removes that cluster asks again."""
        await asyncio.gather(*(_deliver(letter) for letter in letters))

    async def _stays_unused(self) -> bool:
        """Keep an empty network for a moment: a cluster that leaves and one that comes share it."""
        try:
            await workflow.wait_condition(
                lambda: not self._unused,
                timeout=timedelta(seconds=self._spec.linger),
                timeout_summary="linger",
            )
        except TimeoutError:
            return self._unused
        return False

    async def _remove(self) -> None:
        """Remove the network; where something foreign is inside, say so and go on as soon as it has left."""
        self._enter(VpcPhase.DELETING)
        try:
            await self._remove_network(UNTIL_DONE)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._failure = failure_of(error)
            self._enter(VpcPhase.BLOCKED)
            await self._remove_network(PATIENT)
        self._incarnation = self._network = self._failure = None
        self._lost = False
        self._book.avoid(())
        if self._book.members:
            self._enter(VpcPhase.CREATING)

    async def _remove_network(self, step: Step) -> None:
        await workflow.execute_activity_method(
            NetworkActivities.remove_network,
            self._record(),
            summary=f"remove network {self._spec.name}",
            **step,
        )

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def _unused(self) -> bool:
        """Something was begun in the cloud, and nobody needs it."""
        return self._incarnation is not None and not self._book.members and not self._retained

    def _has_work(self) -> bool:
        return bool(self._book.letters) or self._book.unanswered or self._unused or self._finished()

    def _is_long(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= _EVENTS_MAX

    def _finished(self) -> bool:
        return self._incarnation is None and not self._book.members and not self._book.letters

    def _take_letters(self) -> list[Letter]:
        letters, self._book.letters = self._book.letters, []
        return letters

    def _settled_phase(self) -> VpcPhase:
        if self._lost:
            return VpcPhase.LOST
        return VpcPhase.READY if self._network else VpcPhase.CREATING

    def _record(self) -> NetworkRecord:
        assert self._incarnation is not None
        order = NetworkOrder(
            tenant=self._spec.tenant,
            vpc=self._spec.name,
            incarnation=self._incarnation,
            provider=self._spec.provider,
            region=self._spec.region,
            credentials=self._spec.credentials,
            cidrs=self._spec.cidrs,
            clusters=sum(2 ** (self._spec.cluster_prefix - cidr.prefixlen) for cidr in self._spec.cidrs),
        )
        return NetworkRecord(order=order, network=self._network)

    def _state(self) -> VpcState:
        return VpcState(
            incarnation=self._incarnation,
            network=self._network,
            members=self._book.members,
            departed=self._book.departed,
            foreign=self._book.foreign,
            retained=self._retained,
            lost=self._lost,
            claims=self._leases.claims,
            failure=self._failure,
            notes=tuple(self._notes),
        )

    def _lost_failure(self) -> Failure:
        network = self._network.id if self._network else self._spec.name
        members = ", ".join(sorted(member.cluster for member in self._book.members if member.granted))
        return Failure(
            code=Code.LOST,
            message=f"VPC {self._spec.name} ({network} in {self._spec.region}) was deleted by somebody else "
            f"while it had members: {members or 'none'}",
            hint="delete these clusters; when the last has left, the name is free again",
        )

    def _deletable(self) -> str:
        if self._book.members:
            return f"It is not deletable: {len(self._book.members)} member(s) hold it."
        if self._retained:
            return "It is empty and retained: signal `delete` removes it."
        return "It has no members and is removed, or being removed."

    def _note(self, what: str, decision: Decision) -> None:
        self._notes.append(Note(at=workflow.now(), what=what, who=decision.who, why=decision.why))
        del self._notes[:-_NOTES_MAX]

    def _enter(self, phase: VpcPhase) -> None:
        if phase is not self._phase:
            self._phase = phase
            stuck = phase in {VpcPhase.BLOCKED, VpcPhase.LOST}
            workflow.upsert_search_attributes([PHASE.value_set(phase), STUCK.value_set(stuck)])
        self._tell()

    def _tell(self) -> None:
        """What the UI shows on the workflow's page."""
        workflow.set_current_details("\n\n".join(self._sentences(self._book.members[:_MEMBERS_TOLD])))


def _utc(moment: datetime) -> str:
    # Not strftime: it imports a module each time, which the workflow sandbox makes dear.
    return f"{moment.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


async def _deliver(letter: Letter) -> None:
    handle = workflow.get_external_workflow_handle(letter.workflow_id)
    try:
        await handle.signal("answered", letter.answer)
    except ApplicationError as error:
        workflow.logger.info("No answer to %s: %s", letter.workflow_id, error)
