"""From settings to a worker that has all its clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.connectivity import ConnectivityActivities
from activities.gardener.client import Garden
from activities.membership import MembershipActivities
from activities.network import NetworkActivities
from activities.shoot import ShootActivities
from domain.errors import Code, TrellisError
from worker.clouds import Clouds
from worker.interceptors import FailureInterceptor
from worker.settings import Settings
from workflows.cluster import ClusterWorkflow
from workflows.vpc import VpcWorkflow

__all__ = ["WORKFLOWS", "garden_of", "sandboxed", "trellis_worker"]

WORKFLOWS = (ClusterWorkflow, VpcWorkflow)
# Pure, or never used inside a workflow (activity modules are only named there): no need to load them anew for each.
_PASSED_THROUGH = ("domain", "activities", "pydantic", "netaddr", "sortedcontainers")


def sandboxed() -> SandboxedWorkflowRunner:
    """What keeps workflow code deterministic; for workers and for replays."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH),
    )


async def garden_of(settings: Settings) -> Garden:
    """The garden project that the settings name.

    Raises:
        TrellisError: `invalid` where they name none, or no readable kubeconfig.
    """
    if settings.garden_kubeconfig is None or settings.garden_namespace is None:
        raise TrellisError(
            Code.INVALID,
            "no garden is configured",
            "set TRELLIS_GARDEN_KUBECONFIG and TRELLIS_GARDEN_NAMESPACE, or start a sandbox: `trellis sandbox start`",
        )
    return await Garden.connect(Path(settings.garden_kubeconfig), settings.garden_namespace)


@asynccontextmanager
async def trellis_worker(
    settings: Settings, client: Client, on_fatal_error: Callable[[BaseException], Awaitable[None]] | None = None
) -> AsyncIterator[Worker]:
    """A worker that is not running yet, with clients that are closed afterwards."""
    async with await garden_of(settings) as garden:
        network = NetworkActivities(Clouds(garden, settings.installation))
        shoots = ShootActivities(garden, settings.cloud_profiles)
        membership = MembershipActivities(client)
        connectivity = ConnectivityActivities(garden, settings.probe_image)
        yield Worker(
            client,
            task_queue=settings.task_queue,
            workflows=WORKFLOWS,
            activities=[
                network.ensure_network,
                network.remove_network,
                network.await_nat_gateway,
                shoots.plan_shoot,
                shoots.create_shoot,
                shoots.await_shoot,
                shoots.delete_shoot,
                shoots.await_shoot_gone,
                shoots.find_shoot,
                membership.join_vpc,
                membership.find_memberships,
                connectivity.verify_connectivity,
            ],
            workflow_runner=sandboxed(),
            interceptors=[FailureInterceptor()],
            max_cached_workflows=settings.max_cached_workflows,
            max_concurrent_activities=settings.max_activities,
            max_heartbeat_throttle_interval=timedelta(seconds=settings.progress_seconds),
            graceful_shutdown_timeout=timedelta(seconds=settings.grace_seconds),
            on_fatal_error=on_fatal_error,
        )
