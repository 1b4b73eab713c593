"""`trellis doctor`: what is reachable, what is misconfigured, and what to do about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict
from rich.table import Table
from rich.text import Text
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeTaskQueueRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.gardener.client import Garden
from activities.gardener.profile import CloudProfile
from domain.errors import TrellisError
from starter.console import OutputFormat, out, print_json
from worker.clouds import PROVIDERS, Clouds
from worker.settings import Settings
from worker.temporal import connect, connection, missing_attributes
from worker.wiring import garden_of

__all__ = ["Check", "examine", "report"]

# A worker asks for work again after a minute at the latest; Temporal lists it for some minutes more.
_POLL_TIME = timedelta(seconds=75)


class Check(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(frozen=True)

    name: str
    ok: bool
    message: str
    hint: str = ""

    @classmethod
    def failed(cls, name: str, error: TrellisError) -> Check:
        """A check that ended with a failure."""
        failure = error.failure
        return cls(name=name, ok=False, message=f"{failure.code}: {failure.message}", hint=failure.hint)


async def examine(settings: Settings) -> list[Check]:
    """Look at everything; what stands in the way of one check does not stop the others."""
    return [check for source in (_temporal, _garden) async for check in source(settings)]


def report(checks: list[Check], output: OutputFormat) -> None:
    """Show what was found."""
    if output is OutputFormat.JSON:
        print_json(checks)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("!!", style="bold red")
        hint = Text(f"\n{check.hint}", style="cyan") if check.hint else ""
        table.add_row(mark, check.name, Text.assemble(check.message, hint))
    out.print(table)


async def _temporal(settings: Settings) -> AsyncIterator[Check]:
    try:
        client = await connect()
    except TrellisError as error:
        yield Check.failed("temporal", error)
        return
    for name, look in (("temporal", _server), ("namespace", _namespace), ("search attributes", _attributes)):
        yield await _looked(name, look(client))
    yield await _looked("worker", _pollers(client, settings.task_queue))


async def _server(client: Client) -> str:
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest())
    return f"server {info.server_version} at {connection()['target_host']}"


async def _namespace(client: Client) -> str:
    request = DescribeNamespaceRequest(namespace=client.namespace)
    answer = await client.workflow_service.describe_namespace(request)
    days = answer.config.workflow_execution_retention_ttl.ToTimedelta().days
    return f"{client.namespace}; what has ended is remembered for {days} day(s)"


async def _attributes(client: Client) -> str | Check:
    missing = await missing_attributes(client)
    if not missing:
        return "all registered"
    return Check(
        name="search attributes",
        ok=False,
        message=f"missing: {', '.join(missing)}",
        hint="a worker registers them when it starts",
    )


async def _pollers(client: Client, task_queue: str) -> str | Check:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    answer = await client.workflow_service.describe_task_queue(request)
    recent = datetime.now(UTC) - _POLL_TIME
    serving = [each.identity for each in answer.pollers if each.last_access_time.ToDatetime(UTC) > recent]
    if serving:
        return f"task queue {task_queue} is served by {', '.join(sorted(serving))}"
    return Check(
        name="worker",
        ok=False,
        message=f"nobody serves task queue {task_queue}",
        hint="start `trellis worker`, with the same TRELLIS_TASK_QUEUE and Temporal namespace as here",
    )


async def _garden(settings: Settings) -> AsyncIterator[Check]:
    try:
        async with await garden_of(settings) as garden:
            bindings = await garden.credentials_bindings()
            yield Check(
                name="garden",
                ok=bool(bindings),
                message=f"project namespace {garden.namespace}, CredentialsBindings: {', '.join(bindings) or 'none'}",
                hint="" if bindings else "make a CredentialsBinding for every account to build in",
            )
            clouds = Clouds(garden, settings.installation)
            for name, provider in sorted(bindings.items()):
                yield await _looked(f"credentials {name}", _credentials(settings, garden, clouds, name, provider))
    except TrellisError as error:
        yield Check.failed("garden", error)


async def _credentials(settings: Settings, garden: Garden, clouds: Clouds, name: str, kind: str) -> str:
    """Whether the landscape has the provider, and the provider lets these credentials in."""
    provider = next((known for known in PROVIDERS if known.value == kind), None)
    if provider is None:
        return f"provider {kind}: Trellis does not build there"
    profile = CloudProfile.of(await garden.cloud_profile(settings.cloud_profiles.get(provider, provider.value)))
    regions = [region.name for region in profile.regions]
    cloud = await clouds(provider, regions[0], name)
    owned = await asyncio.to_thread(cloud.owned)
    return f"{provider} lets them in ({regions[0]}: {len(owned)} resources of ours); regions: {', '.join(regions)}"


async def _looked(name: str, look: Awaitable[str | Check]) -> Check:
    try:
        found = await look
    except TrellisError as error:
        return Check.failed(name, error)
    except RPCError as error:
        return Check(name=name, ok=False, message=f"Temporal answered {error.status.name}: {error.message}")
    return found if isinstance(found, Check) else Check(name=name, ok=True, message=found)
