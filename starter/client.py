"""The Python client: everything that can be asked of Trellis. The command line uses it too; there is no second way.

trellis = await Trellis.connect()
await trellis.create_cluster(ClusterSpec(name="alpha", provider="aws", region="eu-central-1", vpc="shared"))
view = await trellis.cluster("alpha")
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self, TypeVar
from urllib.parse import quote

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.attributes import PHASE, TENANT, attributes
from domain.errors import Code, Failure, TrellisError
from domain.messages import ClusterPhase, ClusterView, SpaceView, VpcPhase, VpcView
from domain.names import check_name, cluster_workflow_id, is_own_vpc, vpc_workflow_id
from domain.specs import DEFAULT_TENANT, ClusterSpec
from domain.states import ClusterInput, Decision, Release
from worker.settings import Settings
from worker.temporal import connect
from workflows.cluster import ClusterWorkflow

__all__ = ["Trellis", "check_vpc_name", "digest_of"]

T = TypeVar("T")

# A query needs a worker; one that is alive answers in milliseconds.
_QUERY_TIMEOUT = timedelta(seconds=10)
_QUERIES_AT_ONCE = 16
_DIGEST = "spec"
_NO_DECISION = Decision()


class Trellis:
    """Clusters and VPCs of tenants. All methods raise `TrellisError`; ValueError for what cannot be a name.

    Errors common to all: `unavailable` where Temporal or its workers do not answer, `not-found` where there is no
    cluster or VPC of that name in the tenant (another tenant's is as good as not there).
    """

    def __init__(self, client: Client, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.temporal = client
        self._task_queue = settings.task_queue
        self._ui = settings.temporal_ui

    @classmethod
    async def connect(cls, settings: Settings | None = None) -> Self:
        """A client for the Temporal that the environment names."""
        return cls(await connect(), settings)

    # --- clusters --------------------------------------------------------------------------------------------------

    async def create_cluster(self, spec: ClusterSpec) -> bool:
        """Ask for a cluster; returns as soon as the request is durable. False: exactly this one was asked for before.

        Raises:
            TrellisError: `cluster-exists` where the name is taken with other parameters, `cluster-busy` while a cluster
                of this name is being deleted.
        """
        workflow_id = cluster_workflow_id(spec.tenant, spec.name)
        with _talking(f"creating cluster {spec.name}"):
            try:
                await self.temporal.start_workflow(
                    ClusterWorkflow.run,
                    ClusterInput(tenant=spec.tenant, name=spec.name, spec=spec),
                    id=workflow_id,
                    task_queue=self._task_queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                    memo={_DIGEST: digest_of(spec)},
                    search_attributes=attributes(
                        tenant=spec.tenant,
                        vpc=spec.vpc_name,
                        provider=spec.provider,
                        region=spec.region,
                        phase=ClusterPhase.JOINING,
                    ),
                    static_summary=f"Cluster {spec.name} · {spec.provider} {spec.region} · VPC {spec.vpc_name}",
                    static_details=f"Cluster `{spec.name}` of tenant `{spec.tenant}` in VPC `{spec.vpc_name}`. "
                    "The signal `deprovision` removes it and everything of it, at any moment.",
                )
            except WorkflowAlreadyStartedError:
                existing = await self.temporal.get_workflow_handle(workflow_id).describe()
            else:
                return True
            _check_same(spec, existing, await existing.memo_value(_DIGEST, default=None))
        return False

    async def delete_cluster(self, name: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION) -> None:
        """Ask for a cluster's removal; returns as soon as that is durable.

        Works at any moment of a cluster's life, and where its workflow was lost: then what is left of it is removed.
        """
        with _talking(f"deleting cluster {name}"):
            await self.temporal.start_workflow(
                ClusterWorkflow.run,
                ClusterInput(tenant=check_name(tenant), name=check_name(name)),
                id=cluster_workflow_id(tenant, name),
                task_queue=self._task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                start_signal="deprovision",
                start_signal_args=[decision],
                search_attributes=attributes(
                    tenant=tenant, vpc=None, provider=None, region=None, phase=ClusterPhase.DELETING
                ),
                static_summary=f"Cluster {name} · removing what is left",
                static_details=f"Makes sure that nothing is left of cluster `{name}` of tenant `{tenant}`.",
            )

    async def retry(self, name: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION) -> None:
        """Let a held cluster try its step again."""
        await self._decide("retry", name, tenant, decision)

    async def skip(self, name: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION) -> None:
        """Let a held cluster go on without the step, where that makes sense (connectivity)."""
        await self._decide("skip", name, tenant, decision)

    async def abort(self, name: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION) -> None:
        """Give up a held cluster: it is cleaned up and ends as failed."""
        await self._decide("abort", name, tenant, decision)

    async def cluster(self, name: str, tenant: str = DEFAULT_TENANT) -> ClusterView:
        """A cluster as it is now; also one that failed. One that was deleted is `not-found`."""
        view = await self.last_of_cluster(name, tenant)
        if view.phase is ClusterPhase.DELETED:
            raise _no_cluster(name, tenant)
        return view

    async def last_of_cluster(self, name: str, tenant: str = DEFAULT_TENANT) -> ClusterView:
        """A cluster as it is, or as it was when it ended."""
        handle = self.cluster_handle(name, tenant)
        with _talking(f"cluster {name}", absent=_no_cluster(name, tenant)):
            view, status = await asyncio.gather(self._query(handle, "describe", ClusterView), handle.describe())
        return _ended(view, status.status)

    async def clusters(self, tenant: str = DEFAULT_TENANT) -> list[ClusterView]:
        """All clusters of a tenant that live, by name."""
        views = await self._each("ClusterWorkflow", tenant, ClusterView)
        return [view for view in views if view.phase not in {ClusterPhase.DELETED, ClusterPhase.FAILED}]

    def cluster_handle(self, name: str, tenant: str = DEFAULT_TENANT) -> WorkflowHandle[Any, Any]:
        """The workflow that is the cluster."""
        return self.temporal.get_workflow_handle(cluster_workflow_id(check_name(tenant), check_name(name)))

    # --- VPCs ------------------------------------------------------------------------------------------------------

    async def vpc(self, name: str, tenant: str = DEFAULT_TENANT) -> VpcView:
        """A VPC as it is now."""
        view = await self._ask_vpc(name, tenant, "describe", VpcView)
        if view.phase is VpcPhase.GONE:
            raise _no_vpc(name, tenant)
        return view

    async def vpcs(self, tenant: str = DEFAULT_TENANT) -> list[VpcView]:
        """All VPCs of a tenant, by name."""
        return [view for view in await self._each("VpcWorkflow", tenant, VpcView) if view.phase is not VpcPhase.GONE]

    async def space(self, name: str, tenant: str = DEFAULT_TENANT) -> SpaceView:
        """A VPC's addresses: who holds what, what is free."""
        return await self._ask_vpc(name, tenant, "space", SpaceView)

    async def explain(self, name: str, tenant: str = DEFAULT_TENANT) -> list[str]:
        """Who holds a VPC, since when, and why it is or is not deletable, in sentences."""
        lines: list[str] = await self._ask_vpc(name, tenant, "explain", list[str])
        return lines

    async def retain_vpc(self, name: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION) -> None:
        """Keep a VPC when its last member has left, until `delete_vpc`."""
        await self._tell_vpc(name, tenant, "retain", decision)

    async def release_member(
        self, name: str, cluster: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION
    ) -> None:
        """Free the block of a member whose cluster can no longer do so itself.

        Raises:
            TrellisError: `not-found` where the VPC has no such member.
        """
        view = await self.vpc(name, tenant)
        if check_name(cluster) not in {member.cluster for member in view.members}:
            members = ", ".join(member.cluster for member in view.members) or "none"
            raise TrellisError(Code.NOT_FOUND, f"cluster {cluster} is no member of VPC {name}", f"members: {members}")
        await self._tell_vpc(name, tenant, "release", Release(cluster=cluster, who=decision.who, why=decision.why))

    async def delete_vpc(self, name: str, tenant: str = DEFAULT_TENANT, decision: Decision = _NO_DECISION) -> None:
        """Take back `retain_vpc` of an empty VPC, which removes it.

        Raises:
            TrellisError: `vpc-closed` while it has members; they are named.
        """
        view = await self.vpc(name, tenant)
        if view.members:
            held = ", ".join(member.cluster for member in view.members)
            raise TrellisError(
                Code.VPC_CLOSED,
                f"VPC {name} is held by {held}",
                "delete these clusters; the VPC goes with the last of them",
            )
        await self._tell_vpc(name, tenant, "delete", decision)

    def vpc_handle(self, name: str, tenant: str = DEFAULT_TENANT) -> WorkflowHandle[Any, Any]:
        """The workflow that is the VPC."""
        return self.temporal.get_workflow_handle(vpc_workflow_id(check_name(tenant), check_vpc_name(name)))

    def link(self, workflow_id: str) -> str | None:
        """Where Temporal's web UI shows a workflow, if the settings say where that is."""
        if self._ui is None:
            return None
        namespace, workflow = (quote(part, safe="") for part in (self.temporal.namespace, workflow_id))
        return f"{self._ui.rstrip('/')}/namespaces/{namespace}/workflows/{workflow}"

    # --- talking to workflows --------------------------------------------------------------------------------------

    async def _decide(self, what: str, name: str, tenant: str, decision: Decision) -> None:
        view = await self.cluster(name, tenant)
        if view.phase is not ClusterPhase.HELD:
            raise TrellisError(
                Code.INVALID,
                f"cluster {name} is {view.phase}, not held: there is nothing to {what}",
                "only a cluster made with on-failure `hold` waits for a decision",
            )
        with _talking(f"cluster {name}: {what}", absent=_no_cluster(name, tenant)):
            await self.cluster_handle(name, tenant).signal(what, decision)

    async def _ask_vpc(self, name: str, tenant: str, query: str, kind: type[T]) -> T:
        handle = self.vpc_handle(name, tenant)
        with _talking(f"VPC {name}", absent=_no_vpc(name, tenant)):
            if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
                raise _no_vpc(name, tenant)
            return await self._query(handle, query, kind)

    async def _tell_vpc(self, name: str, tenant: str, signal: str, decision: Decision) -> None:
        with _talking(f"VPC {name}: {signal}", absent=_no_vpc(name, tenant)):
            await self.vpc_handle(name, tenant).signal(signal, decision)

    async def _each(self, workflow_type: str, tenant: str, kind: type[T]) -> list[T]:
        """Ask all running workflows of a type; who ends meanwhile tells how."""
        query = (
            f"WorkflowType = '{workflow_type}' AND ExecutionStatus = 'Running' "
            f"AND {TENANT.name} = '{check_name(tenant)}'"
        )
        gate = asyncio.Semaphore(_QUERIES_AT_ONCE)

        async def ask(workflow_id: str) -> T:
            async with gate:
                return await self._query(self.temporal.get_workflow_handle(workflow_id), "describe", kind)

        with _talking(f"listing what tenant {tenant} has"):
            ids = sorted([running.id async for running in self.temporal.list_workflows(query)])
            return await asyncio.gather(*(ask(workflow_id) for workflow_id in ids))

    async def _query(self, handle: WorkflowHandle[Any, Any], query: str, kind: type[T]) -> T:
        answer: T = await handle.query(query, result_type=kind, rpc_timeout=_QUERY_TIMEOUT)
        return answer


def digest_of(spec: ClusterSpec) -> str:
    """Tells requests apart: equal for requests that ask for the same, whatever was written out or left to default."""
    asked = spec.model_dump(mode="json", exclude_defaults=True)
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def check_vpc_name(name: str) -> str:
    """A VPC's name: as the user may give it, or as Trellis makes it for one cluster; raises ValueError."""
    check_name(name.partition("--")[2] if is_own_vpc(name) else name)
    return name


def _check_same(spec: ClusterSpec, existing: WorkflowExecutionDescription, digest: str | None) -> None:
    if existing.typed_search_attributes.get(PHASE) == ClusterPhase.DELETING:
        raise TrellisError(
            Code.CLUSTER_BUSY,
            f"cluster {spec.name} is being deleted",
            f"wait for its end (`trellis cluster delete {spec.name} --wait`), then ask again",
        )
    if digest != digest_of(spec):
        raise TrellisError(
            Code.CLUSTER_EXISTS,
            f"cluster {spec.name} exists with other parameters",
            f"`trellis cluster show {spec.name}` shows them; delete it first, or choose another name",
        )


def _ended(view: ClusterView, status: WorkflowExecutionStatus | None) -> ClusterView:
    """A workflow that was ended from outside cannot tell so itself."""
    if status is None or status not in {WorkflowExecutionStatus.TERMINATED, WorkflowExecutionStatus.TIMED_OUT}:
        return view
    how = status.name.lower().replace("_", " ")
    failure = Failure(
        code=Code.CANCELLED,
        message=f"the workflow of cluster {view.name} was {how} while the cluster was {view.phase}",
        hint=f"`trellis cluster delete {view.name}` removes what is left of it",
    )
    return view.model_copy(update={"phase": ClusterPhase.FAILED, "failure": failure})


def _no_cluster(name: str, tenant: str) -> TrellisError:
    return TrellisError(
        Code.NOT_FOUND, f"there is no cluster {name} of tenant {tenant}", "`trellis cluster list` shows all there are"
    )


def _no_vpc(name: str, tenant: str) -> TrellisError:
    return TrellisError(
        Code.NOT_FOUND, f"there is no VPC {name} of tenant {tenant}", "`trellis vpc list` shows all there are"
    )


@contextmanager
def _talking(what: str, absent: TrellisError | None = None) -> Iterator[None]:
    """Turn what Temporal answers into failures of Trellis."""
    try:
        yield
    except WorkflowQueryFailedError as error:
        raise TrellisError(
            Code.UNAVAILABLE, f"{what}: the workflow cannot answer: {error}", "look at the worker's log"
        ) from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND and absent is not None and not _is_about_namespace(error):
            raise absent from error
        hint = "`trellis doctor` tells whether Temporal and a worker are there"
        if error.status in {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED}:
            raise TrellisError(Code.UNAVAILABLE, f"{what}: no worker has answered in time", hint) from error
        code = Code.THROTTLED if error.status is RPCStatusCode.RESOURCE_EXHAUSTED else Code.UNAVAILABLE
        raise TrellisError(code, f"{what}: Temporal answered {error.status.name}: {error.message}", hint) from error


def _is_about_namespace(error: RPCError) -> bool:
    """Whether it is the Temporal namespace that is not there."""
    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in error.grpc_status.details)
