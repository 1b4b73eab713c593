"""How a cluster reaches its VPC: the half of the conversation that needs a client.

Joining is a signal-with-start, which a workflow cannot send by itself. The answer comes back as a signal to the
cluster's workflow; leaving is a plain signal and needs no activity.
"""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from activities.attributes import TENANT, attributes
from domain.errors import Code, TrellisError
from domain.messages import Join, VpcPhase
from domain.names import vpc_workflow_id
from domain.shoots import ClusterKey
from domain.states import VpcInput

__all__ = ["MembershipActivities"]

VPC_WORKFLOW = "VpcWorkflow"


class MembershipActivities:
    """Talks to VPC workflows on behalf of clusters."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn
    async def join_vpc(self, join: Join) -> None:
        """Ask the VPC for a block, starting it where it does not run. Repeating it is harmless.

        Raises:
            TrellisError: `throttled` or `unavailable` where the server did not take the signal.
        """
        vpc = join.vpc
        try:
            await self._client.start_workflow(
                VPC_WORKFLOW,
                VpcInput(spec=vpc),
                id=vpc_workflow_id(vpc.tenant, vpc.name),
                task_queue=activity.info().task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                start_signal="join",
                start_signal_args=[join],
                search_attributes=attributes(
                    tenant=vpc.tenant,
                    vpc=vpc.name,
                    provider=vpc.provider,
                    region=vpc.region,
                    phase=VpcPhase.CREATING,
                ),
                static_summary=f"VPC {vpc.name} · {vpc.provider} {vpc.region}",
                static_details=f"Shared network `{vpc.name}` of tenant `{vpc.tenant}`. "
                "Its members are its reference count: the last one out removes it.",
            )
        except RPCError as error:
            raise _refused(error, f"joining VPC {vpc.name}") from None

    @activity.defn
    async def find_memberships(self, key: ClusterKey) -> list[str]:
        """The names of the tenant's VPCs that count this cluster as a member.

        Asks every running VPC of the tenant: for clusters whose own workflow was lost.

        Raises:
            TrellisError: `unavailable` where a VPC does not answer: what cannot be read counts as in use.
        """
        query = f"WorkflowType = '{VPC_WORKFLOW}' AND ExecutionStatus = 'Running' AND {TENANT.name} = '{key.tenant}'"
        found = []
        try:
            async for running in self._client.list_workflows(query):
                handle = self._client.get_workflow_handle(running.id)
                name = await handle.query("membership", key.cluster, result_type=str | None)  # type: ignore[arg-type]
                if name:
                    found.append(name)
                activity.heartbeat(running.id)
        except RPCError as error:
            raise _refused(error, f"looking for the VPC of cluster {key.cluster}") from None
        return sorted(found)


def _refused(error: RPCError, what: str) -> TrellisError:
    code = Code.THROTTLED if error.status is RPCStatusCode.RESOURCE_EXHAUSTED else Code.UNAVAILABLE
    return TrellisError(code, f"{what}: Temporal answered {error.status.name}: {error.message}")
