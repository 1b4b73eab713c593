"""`trellis demo`: the whole story, told in a sandbox of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from domain.errors import Code, TrellisError
from domain.messages import ClusterPhase
from domain.specs import DEFAULT_TENANT, ClusterSpec, Provider
from sandbox import supervisor
from starter.client import Trellis
from starter.console import out
from starter.live import follow
from starter.progress import await_cluster, await_deletion, await_vpc_end
from starter.render import cluster_table
from starter.space_map import SpaceMap, space_map
from worker.settings import Settings
from worker.wiring import garden_of

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

    from sandbox.supervisor import Sandbox

__all__ = ["tell"]

_REGION = "eu-central-1"
_VPC = "shared"
_TOGETHER = ("alpha", "beta", "gamma")
_LATER = "delta"
_OPTIONS = supervisor.Options(shoot_seconds=4.0)


async def tell() -> None:
    """Tell the story; ends with nothing left in the cloud.

    Raises:
        TrellisError: a chapter did not end as it should.
    """
    began = time.monotonic()
    # A state directory per telling: so it can be told again, and twice at the same time.
    state_dir = Path(tempfile.mkdtemp(prefix="trellis-demo-"))
    keep = out.is_terminal and "CI" not in os.environ
    _chapter(1, "A small world", "Temporal, AWS and a Garden start on this machine, and a Trellis worker.")
    box = await asyncio.to_thread(supervisor.start, state_dir, _OPTIONS)
    try:
        environment = box.environment
        os.environ.clear()
        os.environ.update(environment)
        out.print(f"Watch along in Temporal's UI: {box.world.temporal.ui}")
        await _Story(box, await Trellis.connect()).tell()
    finally:
        await asyncio.to_thread(box.stop)
        if not keep:
            shutil.rmtree(state_dir, ignore_errors=True)
    _farewell(box, state_dir if keep else None, time.monotonic() - began)


class _Story:
    def __init__(self, box: Sandbox, trellis: Trellis) -> None:
        self._box = box
        self._trellis = trellis
        self._ec2: EC2Client = boto3.client("ec2", region_name=_REGION)

    async def tell(self) -> None:
        await self._together()
        await self._map()
        await self._from_outside()
        await self._crash()
        await self._leave()
        await self._nothing_left()

    async def _together(self) -> None:
        _chapter(2, "Three clusters, one VPC", "All three ask at the same time; none knows of the others.")
        for name in _TOGETHER:
            _command(f"trellis cluster create {name} --provider aws --region {_REGION} --vpc {_VPC} --wait")
        await asyncio.gather(*(self._create(name) for name in _TOGETHER))
        await follow({name: await_cluster(self._trellis, name, DEFAULT_TENANT) for name in _TOGETHER})
        await self._check_ready(*_TOGETHER)
        _command("trellis cluster list")
        out.print(cluster_table(await self._trellis.clusters()))

    async def _map(self) -> None:
        _chapter(3, "Who has which addresses", "One block per cluster, cut into nodes and infrastructure. No overlap.")
        _command(f"trellis vpc map {_VPC}")
        view, space, clusters = await asyncio.gather(
            self._trellis.vpc(_VPC), self._trellis.space(_VPC), self._trellis.clusters()
        )
        out.print(space_map(SpaceMap.of(view, space, {cluster.name: cluster for cluster in clusters}), out.width))

    async def _from_outside(self) -> None:
        _chapter(4, "The same from outside", "What the cloud itself says, without Trellis.")
        vpcs = await asyncio.to_thread(self._vpc_ids)
        _expect(
            len(vpcs) == 1, f"one VPC for {len(_TOGETHER)} clusters", f"VPCs in the cloud: {', '.join(vpcs) or 'none'}"
        )
        if not await asyncio.to_thread(self._show_by_cli, vpcs[0]):
            await asyncio.to_thread(self._show_by_boto3, vpcs[0])

    async def _crash(self) -> None:
        _chapter(
            5, "A crash", f"{_LATER} joins while {_TOGETHER[0]} leaves, and in the middle of it the worker is killed."
        )
        _command(f"trellis cluster create {_LATER} --provider aws --region {_REGION} --vpc {_VPC} --wait")
        await self._create(_LATER)
        await self._until_creating(_LATER)
        _command(f"trellis cluster delete {_TOGETHER[0]} --wait")
        await self._trellis.delete_cluster(_TOGETHER[0])
        _command(f"kill -9 {self._box.pid('worker')}    # the worker")
        await asyncio.to_thread(self._box.kill, "worker")
        await follow(
            {
                _LATER: await_cluster(self._trellis, _LATER, DEFAULT_TENANT),
                _TOGETHER[0]: await_deletion(self._trellis, _TOGETHER[0], DEFAULT_TENANT),
            }
        )
        await self._check_ready(_LATER)
        await self._check_gone(_TOGETHER[0])
        vpcs = await asyncio.to_thread(self._vpc_ids)
        _expect(len(vpcs) == 1, "nothing was lost, nothing was done twice", f"VPCs in the cloud: {', '.join(vpcs)}")

    async def _leave(self) -> None:
        staying = (*_TOGETHER[1:], _LATER)
        _chapter(6, "The last one out", "Every cluster leaves; the VPC goes with the last of them.")
        for name in staying:
            _command(f"trellis cluster delete {name} --wait")
        await asyncio.gather(*(self._trellis.delete_cluster(name) for name in staying))
        await follow({name: await_deletion(self._trellis, name, DEFAULT_TENANT) for name in staying})
        await self._check_gone(*staying)
        last = await self._trellis.last_of_cluster(staying[-1])
        await follow({f"VPC {_VPC}": await_vpc_end(self._trellis, last)})
        _expect(not await self._trellis.vpcs(), "the VPC is gone", "Trellis still lists a VPC")

    async def _nothing_left(self) -> None:
        _chapter(7, "Nothing is left", "Asked from outside: is there anything that was not there before?")
        left = await asyncio.to_thread(lambda: list(_left_in(self._ec2)))
        async with await garden_of(Settings()) as garden:
            left += [f"shoot {shoot['metadata']['name']}" for shoot in await garden.shoots("")]
        _expect(not left, "nothing is left in the cloud, and no shoot in the Garden", f"left behind: {', '.join(left)}")

    async def _create(self, name: str) -> None:
        await self._trellis.create_cluster(ClusterSpec(name=name, provider=Provider.AWS, region=_REGION, vpc=_VPC))

    async def _until_creating(self, name: str) -> None:
        """Wait until the cluster is in the middle of it: its shoot is being built."""
        async for progress in await_cluster(self._trellis, name, DEFAULT_TENANT):
            if progress.phase == ClusterPhase.CREATING and any("await" in step.name for step in progress.steps):
                return

    async def _check_ready(self, *names: str) -> None:
        for name in names:
            view = await self._trellis.cluster(name)
            if view.phase is not ClusterPhase.READY:
                raise TrellisError.of(view.failure) if view.failure else _wrong(f"cluster {name} is {view.phase}")
        out.print(Text(f"✔ ready: {', '.join(names)}", style="green"))

    async def _check_gone(self, *names: str) -> None:
        for name in names:
            view = await self._trellis.last_of_cluster(name)
            if view.phase is not ClusterPhase.DELETED:
                raise TrellisError.of(view.failure) if view.failure else _wrong(f"cluster {name} is {view.phase}")
        out.print(Text(f"✔ gone: {', '.join(names)}", style="green"))

    def _vpc_ids(self) -> list[str]:
        return [vpc["VpcId"] for vpc in self._ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]

    def _show_by_cli(self, vpc: str) -> bool:
        """Whether the `aws` command is there and did it."""
        aws = shutil.which("aws")
        if aws is None:
            return False
        for arguments in (
            ["describe-vpcs", "--vpc-ids", vpc, "--query", "Vpcs[].{VPC: VpcId, Range: CidrBlock, State: State}"],
            ["describe-subnets", "--filters", f"Name=vpc-id,Values={vpc}", "--query",
             "sort_by(Subnets, &CidrBlock)[].{Subnet: SubnetId, Range: CidrBlock, Zone: AvailabilityZone}"],
        ):  # fmt: skip
            command = ["aws", "ec2", *arguments, "--output", "table"]
            answer = subprocess.run([aws, *command[1:]], env=self._env(), capture_output=True, text=True, check=False)
            if answer.returncode != 0:
                return False
            _command(" ".join(repr(word) if " " in word else word for word in command))
            out.print(answer.stdout.strip())
        return True

    def _show_by_boto3(self, vpc: str) -> None:
        """The same, where there is no `aws` command."""
        subnets = self._ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
        _command(f'boto3.client("ec2").describe_subnets(Filters=[{{"Name": "vpc-id", "Values": ["{vpc}"]}}])')
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("SUBNET", "RANGE", "ZONE"):
            table.add_column(column)
        for subnet in sorted(subnets, key=lambda each: each["CidrBlock"]):
            table.add_row(subnet["SubnetId"], subnet["CidrBlock"], subnet["AvailabilityZone"])
        out.print(table)

    def _env(self) -> dict[str, str]:
        return self._box.environment | {"AWS_PAGER": ""}


def _left_in(ec2: EC2Client) -> Iterable[str]:
    """Everything in the region that does not belong to the VPC that AWS makes for every account."""
    default = [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if vpc["IsDefault"]]
    own = {vpc["VpcId"] for vpc in default}
    inside: dict[str, Callable[[], Any]] = {
        "Vpcs": ec2.describe_vpcs,
        "Subnets": ec2.describe_subnets,
        "RouteTables": ec2.describe_route_tables,
        "SecurityGroups": ec2.describe_security_groups,
        "NetworkInterfaces": ec2.describe_network_interfaces,
    }
    for kind, describe in inside.items():
        yield from (f"{kind} in {each['VpcId']}" for each in describe()[kind] if each["VpcId"] not in own)
    for gateway in ec2.describe_internet_gateways()["InternetGateways"]:
        if not own & {attachment["VpcId"] for attachment in gateway["Attachments"]}:
            yield f"internet gateway {gateway['InternetGatewayId']}"
    used = {vpc["DhcpOptionsId"] for vpc in default}
    options = (each["DhcpOptionsId"] for each in ec2.describe_dhcp_options()["DhcpOptions"])
    yield from (f"DHCP options {each}" for each in options if each not in used)
    yield from _running_in(ec2)


def _running_in(ec2: EC2Client) -> Iterable[str]:
    """What costs money. EC2 goes on listing what is deleted or terminated for an hour."""
    yield from (f"address {address['PublicIp']}" for address in ec2.describe_addresses()["Addresses"])
    nats = ec2.describe_nat_gateways()["NatGateways"]
    yield from (f"NAT gateway {nat['NatGatewayId']}" for nat in nats if nat["State"] != "deleted")
    instances = [each for group in ec2.describe_instances()["Reservations"] for each in group["Instances"]]
    yield from (f"instance {each['InstanceId']}" for each in instances if each["State"]["Name"] != "terminated")


def _expect(holds: bool, good: str, bad: str) -> None:
    if not holds:
        raise _wrong(bad)
    out.print(Text(f"✔ {good}", style="green"))


def _wrong(what: str) -> TrellisError:
    return TrellisError(Code.INTERNAL, f"the story went wrong: {what}", "this is a defect of Trellis")


def _chapter(number: int, title: str, text: str) -> None:
    out.print()
    out.print(Panel(text, title=f"{number}. {title}", title_align="left", border_style="cyan"))


def _command(line: str) -> None:
    out.print(Text.assemble(("$ ", "dim"), (line, "bold")), soft_wrap=True)  # whole, to be copied


def _farewell(box: Sandbox, state_dir: Path | None, seconds: float) -> None:
    out.print()
    out.print(f"Told in {seconds:.0f} s. The sandbox has ended.")
    lines = ["Try next:"]
    if state_dir is not None:
        lines += [
            f"  trellis sandbox start --detach --state-dir {state_dir}    # this world again, with its history",
            f"  {box.world.temporal.ui}/namespaces/default/workflows    # then: every workflow, step by step",
        ]
    lines += [
        "  trellis sandbox start --detach              # a world that stays; prints the link to its Temporal UI",
        '  eval "$(trellis sandbox env)"                # aws, kubectl, temporal and trellis now look at it',
        f"  trellis cluster create alpha --provider aws --region {_REGION} --vpc shared --wait",
        "  trellis vpc map shared ; trellis vpc explain shared ; trellis doctor",
        "  kubectl get shoots -n garden-trellis",
        "  trellis sandbox stop",
    ]
    out.print("\n".join(lines), soft_wrap=True)
