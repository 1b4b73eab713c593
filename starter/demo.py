"""`trellis demo`: the whole story, told in a sandbox of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.text import Text

from domain.errors import Code, TrellisError
from domain.messages import ClusterPhase
from domain.specs import DEFAULT_TENANT, ClusterSpec, Provider
from sandbox import supervisor
from starter.client import Trellis
from starter.console import out
from starter.live import follow
from starter.outside import OUTSIDES, Outside
from starter.progress import await_cluster, await_deletion, await_vpc_end
from starter.render import cluster_table
from starter.space_map import SpaceMap, space_map
from worker.settings import Settings
from worker.wiring import garden_of

if TYPE_CHECKING:
    from activities.gardener.client import Garden
    from sandbox.supervisor import Sandbox

__all__ = ["tell"]

_TITLES = {
    Provider.AWS: "AWS",
    Provider.GCP: "Compute Engine",
    Provider.AZURE: "Azure",
    Provider.ALICLOUD: "Alibaba Cloud",
    Provider.OPENSTACK: "OpenStack",
}
_VPC = "shared"
_TOGETHER = ("alpha", "beta", "gamma")
_LATER = "delta"
_SHOOT_SECONDS = 4.0


async def tell(provider: Provider) -> None:
    """Tell the story of a provider; ends with nothing left in its cloud.

    Raises:
        TrellisError: a chapter did not end as it should, or `invalid` where there is no such story.
    """
    if provider not in OUTSIDES:
        raise TrellisError(Code.INVALID, f"there is no demo for {provider}", f"choose one of: {', '.join(OUTSIDES)}")
    clouds = () if provider is Provider.AWS else (provider.value,)  # AWS is always there
    options = supervisor.Options(shoot_seconds=_SHOOT_SECONDS, clouds=clouds)
    began = time.monotonic()
    # A state directory per telling: so it can be told again, and twice at the same time.
    state_dir = Path(tempfile.mkdtemp(prefix="trellis-demo-"))
    keep = out.is_terminal and "CI" not in os.environ
    cloud = _TITLES[provider]
    _chapter(1, "A small world", f"Temporal, {cloud} and a Garden start on this machine, and a Trellis worker.")
    box = await asyncio.to_thread(supervisor.start, state_dir, options)
    try:
        environment = box.environment
        os.environ.clear()
        os.environ.update(environment)
        out.print(f"Watch along in Temporal's UI: {box.world.temporal.ui}")
        async with await garden_of(Settings()) as garden:
            secret = await garden.credentials(provider.value)
            outside = await asyncio.to_thread(OUTSIDES[provider].seen, secret)
            await _Story(box, await Trellis.connect(), garden, provider, outside).tell()
    finally:
        await asyncio.to_thread(box.stop)
        if not keep:
            shutil.rmtree(state_dir, ignore_errors=True)
    _farewell(box, provider, state_dir if keep else None, time.monotonic() - began)


class _Story:
    def __init__(self, box: Sandbox, trellis: Trellis, garden: Garden, provider: Provider, outside: Outside) -> None:
        self._box = box
        self._trellis = trellis
        self._garden = garden
        self._provider = provider
        self._outside = outside

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
            _command(_create_line(self._provider, name))
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
        network = await self._only_network(f"one VPC for {len(_TOGETHER)} clusters")
        for command, said in await asyncio.to_thread(lambda: list(self._outside.show(network))):
            _command(command)
            out.print(said)

    async def _crash(self) -> None:
        _chapter(
            5, "A crash", f"{_LATER} joins while {_TOGETHER[0]} leaves, and in the middle of it the worker is killed."
        )
        _command(_create_line(self._provider, _LATER))
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
        await self._only_network("nothing was lost, nothing was done twice")

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
        left = await asyncio.to_thread(lambda: list(map(str, self._outside.things())))
        left += [f"shoot {shoot['metadata']['name']}" for shoot in await self._garden.shoots("")]
        _expect(not left, "nothing is left in the cloud, and no shoot in the Garden", f"left behind: {', '.join(left)}")

    async def _create(self, name: str) -> None:
        region = OUTSIDES[self._provider].region
        await self._trellis.create_cluster(ClusterSpec(name=name, provider=self._provider, region=region, vpc=_VPC))

    async def _only_network(self, proves: str) -> str:
        networks = await asyncio.to_thread(self._outside.networks)
        _expect(len(networks) == 1, proves, f"networks in the cloud: {', '.join(networks) or 'none'}")
        return networks[0]

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


def _create_line(provider: Provider, name: str) -> str:
    region = OUTSIDES[provider].region
    return f"trellis cluster create {name} --provider {provider} --region {region} --vpc {_VPC} --wait"


def _farewell(box: Sandbox, provider: Provider, state_dir: Path | None, seconds: float) -> None:
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
        f"  {_create_line(provider, _TOGETHER[0])}",
        "  trellis vpc map shared ; trellis vpc explain shared ; trellis doctor",
        "  kubectl get shoots -n garden-trellis",
        "  trellis sandbox stop",
    ]
    out.print("\n".join(lines), soft_wrap=True)
