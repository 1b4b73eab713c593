"""Lives of clusters that meet faults: what is called in a life, and what is left after one."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import httpx
import yaml
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowContinuedAsNewError, WorkflowFailureError, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError

from domain.errors import Code, Failure
from domain.names import shoot_name
from domain.specs import ClusterSpec, Provider
from sandbox.supervisor import Sandbox
from starter.client import Trellis

REGION = "eu-central-1"
READY = "ready"
_SHOOTS = "/apis/core.gardener.cloud/v1beta1/namespaces/{}/shoots"
_SECONDS = 120.0

_log = logging.getLogger(__name__)


class Call(NamedTuple):
    """An operation of an API."""

    api: str
    operation: str


class Row(NamedTuple):
    """A row of the matrix: a kind of fault on a call, at a moment of a cluster's life."""

    moment: str
    api: str
    operation: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} on {self.api} {self.operation} while {self.moment}"


@dataclass
class Life:
    """A cluster from its first to its last moment, and the faults it meets. Two rows that fail it are one too many."""

    tenant: str
    cluster: str
    vpc: str
    credentials: str
    key: str
    making: list[Row] = field(default_factory=list)
    removing: list[Row] = field(default_factory=list)

    @property
    def shoot(self) -> str:
        return shoot_name(self.tenant, self.cluster)

    @property
    def is_alone(self) -> bool:
        return self.vpc == "own"

    @property
    def rows(self) -> list[Row]:
        return [*self.making, *self.removing]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.cluster} ({'; '.join(map(str, self.rows))})"


@dataclass(frozen=True)
class Lived:
    """How a life went: `ready` or the code it failed with, and what is wrong about it."""

    life: Life
    ended: str
    wrong: tuple[str, ...]


class World:
    """The sandbox, as its clusters' owners and as outsiders see it."""

    def __init__(self, sandbox: Sandbox, temporal: Client) -> None:
        self.sandbox = sandbox
        self.trellis = Trellis(temporal)
        self._faults = httpx.AsyncClient(base_url=sandbox.world.faults.url, trust_env=False, timeout=60)
        self._garden, self._namespace = _garden(Path(sandbox.world.garden.kubeconfig))
        aws = sandbox.world.aws
        self._ec2 = boto3.client(
            "ec2", region_name=REGION, endpoint_url=aws.endpoint,
            aws_access_key_id=aws.access_key_id, aws_secret_access_key=aws.secret_access_key,
        )  # fmt: skip

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, sandbox: Sandbox) -> AsyncIterator[World]:
        temporal = await Client.connect(sandbox.world.temporal.address, data_converter=pydantic_data_converter)
        world = cls(sandbox, temporal)
        async with world._faults, world._garden:
            yield world

    # --- faults ----------------------------------------------------------------------------------------------------

    async def set_fault(self, row: Row, times: int, *match: str) -> None:
        fault = {
            "api": row.api,
            "operation": row.operation,
            "kind": row.kind,
            "times": times,
            "match": [*match],
            "caller": "trellis",
        }
        (await self._faults.post("/faults", json=fault)).raise_for_status()

    async def clear_faults(self, life: Life) -> None:
        """Those that have not struck yet: the next life may have calls like this one's."""
        for mark in (life.key, life.credentials, life.shoot):
            (await self._faults.delete("/faults", params={"match": mark})).raise_for_status()

    async def faults(self) -> list[dict[str, Any]]:
        return list((await self._faults.get("/faults")).raise_for_status().json()["faults"])

    async def called(self) -> set[Call]:
        """What Trellis called since the last time; counts anew."""
        seen = (await self._faults.get("/operations")).raise_for_status().json()["operations"]
        (await self._faults.delete("/operations")).raise_for_status()
        return {Call(each["api"], each["operation"]) for each in seen if "trellis" in each["caller"]}

    # --- lives -----------------------------------------------------------------------------------------------------

    async def give_credentials(self, name: str, key: str) -> None:
        """A CredentialsBinding of that name with that access key."""
        meta = {"name": name, "namespace": self._namespace}
        data = {"accessKeyID": key, "secretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
        encoded = {field: base64.b64encode(value.encode()).decode() for field, value in data.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": encoded}
        binding = {
            "apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding", "metadata": meta,
            "provider": {"type": "aws"}, "credentialsRef": {"apiVersion": "v1", "kind": "Secret", **meta},
        }  # fmt: skip
        for path, body in (
            (f"/api/v1/namespaces/{self._namespace}/secrets", secret),
            (f"/apis/security.gardener.cloud/v1alpha1/namespaces/{self._namespace}/credentialsbindings", binding),
        ):
            (await self._garden.post(path, json=body)).raise_for_status()

    async def make(self, life: Life) -> Failure | None:
        """Ask for the cluster and wait until it is ready, or why it is not; then it is removed already."""
        spec = ClusterSpec(
            tenant=life.tenant, name=life.cluster, provider=Provider.AWS, region=REGION, vpc=life.vpc,
            credentials=life.credentials,
        )  # fmt: skip
        await self.trellis.create_cluster(spec)
        handle = self.trellis.cluster_handle(life.cluster, life.tenant)
        try:
            await asyncio.wait_for(handle.result(follow_runs=False), _SECONDS)
        except WorkflowContinuedAsNewError:
            return None
        except WorkflowFailureError as error:
            return Failure.model_validate(error.cause.details[0])
        raise AssertionError(f"{life}: ended before it was told to")

    async def remove(self, life: Life) -> None:
        await self.trellis.delete_cluster(life.cluster, life.tenant)
        handle = self.trellis.cluster_handle(life.cluster, life.tenant)
        await asyncio.wait_for(handle.result(), _SECONDS)

    async def await_no_vpc(self, life: Life) -> None:
        """Wait for the end of a VPC that the life had for itself."""
        with contextlib.suppress(WorkflowFailureError):
            await asyncio.wait_for(self.trellis.vpc_handle(life.vpc, life.tenant).result(), _SECONDS)

    @contextlib.asynccontextmanager
    async def slow_shoots(self) -> AsyncIterator[None]:
        """Shoots that are begun in here stay unfinished until the garden starts anew."""
        (await self._garden.put("/sandbox/settings", json={"shoot_seconds": 600})).raise_for_status()
        yield

    async def await_watched(self, life: Life) -> None:
        """Wait until a step follows the cluster's shoot, as its heartbeat tells."""
        handle = self.trellis.cluster_handle(life.cluster, life.tenant)
        async with asyncio.timeout(_SECONDS):
            while not await self._is_watched(handle):  # noqa: ASYNC110 - the event is the server's
                await asyncio.sleep(0.1)

    async def _is_watched(self, handle: WorkflowHandle[Any, Any]) -> bool:
        try:
            description = await handle.describe()
        except RPCError:  # it has not started yet
            return False
        told = [
            payload.data
            for step in description.raw_description.pending_activities
            if step.activity_type.name == "await_shoot"
            for payload in step.heartbeat_details.payloads
        ]
        return any(b"looking" not in text for text in told)

    # --- what is left ----------------------------------------------------------------------------------------------

    async def left_in_cloud(self, tenant: str) -> list[str]:
        return await asyncio.to_thread(self._tagged, {"Name": "tag:trellis.dev/tenant", "Values": [tenant]})

    async def has_shoot(self, life: Life) -> bool:
        answer = await self._garden.get(f"{_SHOOTS.format(self._namespace)}/{life.shoot}")
        return answer.status_code != 404

    async def shoots(self) -> list[str]:
        answer = (await self._garden.get(_SHOOTS.format(self._namespace))).raise_for_status()
        return [shoot["metadata"]["name"] for shoot in answer.json()["items"]]

    async def running(self, tenant: str | None = None) -> list[str]:
        query = "ExecutionStatus = 'Running'" + (f" AND TrellisTenant = '{tenant}'" if tenant else "")
        return [each.id async for each in self.trellis.temporal.list_workflows(query)]

    async def failed_tasks(self) -> list[str]:
        """Workflow tasks that failed for another reason than a worker's death or a signal in the last moment."""
        found = []
        async for each in self.trellis.temporal.list_workflows():
            handle = self.trellis.temporal.get_workflow_handle(each.id, run_id=each.run_id)
            async for event in handle.fetch_history_events():
                if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                    failed = event.workflow_task_failed_event_attributes
                    if failed.failure.message != "UnhandledCommand":
                        found.append(f"{each.id}: {failed.failure.message}")
        return found

    def everything(self) -> list[str]:
        """All that is in the cloud beside what it has from the beginning."""
        return self._tagged({"Name": "tag-key", "Values": ["trellis.dev/*", "kubernetes.io/*"]})

    def _tagged(self, tag: dict[str, Any]) -> list[str]:
        ec2, filters = self._ec2, [tag]
        found = [vpc["VpcId"] for vpc in ec2.describe_vpcs(Filters=filters)["Vpcs"]]
        found += [each["InternetGatewayId"] for each in
                  ec2.describe_internet_gateways(Filters=filters)["InternetGateways"]]  # fmt: skip
        found += [each["DhcpOptionsId"] for each in ec2.describe_dhcp_options(Filters=filters)["DhcpOptions"]]
        found += [each["GroupId"] for each in ec2.describe_security_groups(Filters=filters)["SecurityGroups"]]
        found += [each["SubnetId"] for each in ec2.describe_subnets(Filters=filters)["Subnets"]]
        found += [each["AllocationId"] for each in ec2.describe_addresses(Filters=filters)["Addresses"]]
        return found


def _garden(kubeconfig: Path) -> tuple[httpx.AsyncClient, str]:
    """A client of the garden, and the project's namespace."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    client = httpx.AsyncClient(
        base_url=cluster["server"],
        headers={"authorization": f"Bearer {user['token']}"},
        verify=ssl.create_default_context(cadata=authority),
        trust_env=False,
        timeout=60,
    )
    return client, config["contexts"][0]["context"]["namespace"]


async def lived(world: World, life: Life, expected: set[str]) -> Lived:
    """Live a life, its faults set at their moments, and look at what it left."""
    begun = time.monotonic()
    wrong: list[str] = []
    ended = READY
    try:
        async with _faults(world, life, life.making, wrong):
            failure = await world.make(life)
        if failure is None:
            async with _faults(world, life, life.removing, wrong):
                await world.remove(life)
                if life.is_alone:
                    await world.await_no_vpc(life)
        else:
            ended = failure.code.value
        if ended not in expected:
            wrong.append(f"ended {failure or READY}, not {' or '.join(sorted(expected))}")
        wrong += await _left(world, life)
    except (TimeoutError, WorkflowFailureError, httpx.HTTPError) as error:
        wrong.append(f"{type(error).__name__}: {error.__cause__ or error}")
        wrong += [str(failure) async for failure in _last_failures(world, life)]
    _log.info("%s ended %s after %.1f s %s", life, ended, time.monotonic() - begun, wrong)
    return Lived(life, ended, tuple(wrong))


@contextlib.asynccontextmanager
async def _faults(world: World, life: Life, rows: Sequence[Row], wrong: list[str]) -> AsyncIterator[None]:
    """Faults that strike in here; those that do not are told, since their row has proven nothing."""
    for row in rows:
        await world.set_fault(row, _times(row), _mark(life, row))
    try:
        yield
    finally:
        wrong += await _never_struck(world, life, rows)
        await world.clear_faults(life)


def _mark(life: Life, row: Row) -> str:
    """What tells a call of this life from one of any other."""
    if row.api == "aws":
        return life.key
    return life.credentials if row.operation in {"get:credentialsbindings", "get:secrets"} else life.shoot


def _times(row: Row) -> int:
    """Often enough that the SDK's own attempts do not hide it, where trying again is what is to be seen."""
    if row.kind in {Code.QUOTA, Code.FORBIDDEN}:
        return 1
    if row.api == "aws" and row.operation.startswith("Describe") and row.kind != "not-yet-visible":
        return 4
    return 2 if row.kind == "not-yet-visible" else 1


async def _left(world: World, life: Life) -> list[str]:
    wrong = [f"shoot {life.shoot} is left"] if await world.has_shoot(life) else []
    if not life.is_alone:
        return wrong  # others live there
    await world.await_no_vpc(life)
    wrong += [f"{one} is left" for one in await world.left_in_cloud(life.tenant)]
    return wrong + [f"{one} still runs" for one in await world.running(life.tenant)]


async def _never_struck(world: World, life: Life, rows: Sequence[Row]) -> list[str]:
    untouched = {
        (fault["api"], fault["operation"], fault["kind"], fault["times"], *fault["match"])
        for fault in await world.faults()
    }
    return [f"{row} never struck" for row in rows if (*row[1:], _times(row), _mark(life, row)) in untouched]


async def _last_failures(world: World, life: Life) -> AsyncIterator[str]:
    """What the steps that are still being tried failed with."""
    for handle in (
        world.trellis.cluster_handle(life.cluster, life.tenant),
        world.trellis.vpc_handle(life.vpc, life.tenant),
    ):
        description = await handle.describe()
        for step in description.raw_description.pending_activities:
            yield f"{step.activity_type.name}, attempt {step.attempt}: {step.last_failure.message}"
