"""A whole sandbox: ready when it says so, the same after every crash, and gone when it is told to go."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from temporalio.client import Client

from sandbox import supervisor
from sandbox.ports import choose_ports, is_listening
from sandbox.supervisor import Options, Sandbox
from sandbox.world import AwsAddress, FaultsAddress, GardenAddress, SandboxError, TemporalAddress, World

# One sandbox at a time: each is a handful of processes.
pytestmark = pytest.mark.xdist_group("supervisor")

PARTS = ["temporal", "aws", "faults", "garden", "worker"]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    running = supervisor.start(tmp_path_factory.mktemp("a box, 'quoted'"), Options(shoot_seconds=0.5))
    yield running
    running.stop()


def ec2(world: World) -> Any:
    return boto3.client(
        "ec2",
        endpoint_url=world.aws.endpoint,
        region_name="eu-central-1",
        aws_access_key_id=world.aws.access_key_id,
        aws_secret_access_key=world.aws.secret_access_key,
    )


def test_the_record_has_the_fields_that_others_rely_on(box: Sandbox) -> None:
    record = json.loads((box.state_dir / "sandbox.json").read_text())
    assert {part: set(fields) for part, fields in record.items()} == {
        "temporal": {"address", "namespace", "ui"},
        "garden": {"kubeconfig", "namespace"},
        "aws": {"endpoint", "access_key_id", "secret_access_key"},
        "faults": {"url"},
        "processes": {"supervisor", *PARTS},
        "variables": set(),
    }
    assert record["processes"]["supervisor"] == os.getpid()
    assert World.load(box.state_dir) == box.world


def test_tables_that_a_server_left_half_made_are_made_anew(tmp_path: Path) -> None:
    (tmp_path / "temporal.db").write_bytes(b"not a database")
    box = supervisor.start(tmp_path, Options(shoot_seconds=0.5, workers=0))
    assert box.restarts("temporal") == 0
    box.stop()


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss of iproute2")
def test_nothing_listens_beyond_loopback(box: Sandbox) -> None:
    pids = {box.pid(name) for name in box.names()}
    listening = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [line for line in listening if any(f"pid={pid}," in line for pid in pids)]
    assert len(ours) >= 3
    assert [line for line in ours if not line.split()[3].startswith("127.")] == []


@pytest.mark.parametrize("part", PARTS)
async def test_a_part_that_is_killed_comes_back_at_the_same_address(box: Sandbox, part: str) -> None:
    before = box.world
    died = box.kill(part)
    box.wait_ready()
    assert box.pid(part) != died
    assert World.load(box.state_dir).processes[part] == box.pid(part)
    assert box.world.model_copy(update={"processes": {}}) == before.model_copy(update={"processes": {}})
    await Client.connect(box.world.temporal.address)


def test_a_second_sandbox_in_the_same_place_is_refused(box: Sandbox) -> None:
    with pytest.raises(SandboxError, match=f"already runs in .* \\(process {os.getpid()}\\)"):
        supervisor.start(box.state_dir)
    with pytest.raises(SandboxError, match="already runs"):
        supervisor.launch(box.state_dir)


def test_the_exports_are_taken_by_a_shell_as_they_are(box: Sandbox) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "AWS_PROFILE": "mine",
        "TEMPORAL_API_KEY": "mine",
        "NO_PROXY": "intern.example",
    }
    script = f"{box.world.exports(environ)}\nenv -0"
    seen = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=True).stdout
    variables = dict(entry.split("=", 1) for entry in seen.split("\0") if "=" in entry)
    assert variables["KUBECONFIG"] == box.world.garden.kubeconfig
    assert "'quoted'" in variables["KUBECONFIG"]
    assert {name: variables[name] for name in box.world.environment()} == box.world.environment()
    assert variables["NO_PROXY"] == "intern.example,127.0.0.1,localhost"
    assert not {"AWS_PROFILE", "TEMPORAL_API_KEY"} & set(variables)


def test_kubectl_and_boto3_find_the_same_world(box: Sandbox) -> None:
    assert ec2(box.world).describe_vpcs()["Vpcs"]
    # The settings name a namespace; so does the kubeconfig, for everybody else.
    kubeconfig = Path(box.world.garden.kubeconfig).read_text()
    assert f"namespace: {box.world.garden.namespace}" in kubeconfig


def test_a_part_that_cannot_start_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"(?s)worker ended 3 times.*grace_seconds"):
        supervisor.start(tmp_path, Options(worker_env={"TRELLIS_GRACE_SECONDS": "soon"}))
    assert not any(supervisor.status(tmp_path).values())
    assert not supervisor.is_running(tmp_path)


def test_a_sandbox_in_the_background_survives_its_supervisors_death_and_a_restart(tmp_path: Path) -> None:
    options = Options(shoot_seconds=0.5, workers=0)
    world = supervisor.launch(tmp_path, options)
    try:
        vpc = ec2(world).create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        os.kill(world.processes["supervisor"], signal.SIGKILL)
        while supervisor.is_running(tmp_path):
            time.sleep(0.01)
        supervisor_lock = tmp_path / "run" / "supervisor.lock"
        assert supervisor_lock.exists()
        # What it left behind still runs; the next one takes its place and not another one's port.
        again = supervisor.launch(tmp_path, options)
        assert again.aws == world.aws
        assert again.temporal == world.temporal
        assert set(again.processes.values()).isdisjoint(world.processes.values())
        assert vpc in [each["VpcId"] for each in ec2(again).describe_vpcs()["Vpcs"]]
        assert all(supervisor.status(tmp_path).values())
    finally:
        assert supervisor.stop(tmp_path) is True
    assert not any(supervisor.status(tmp_path).values())
    assert not is_listening(int(world.aws.endpoint.rpartition(":")[2]))
    assert supervisor.stop(tmp_path) is False


def test_the_command_line_starts_and_stops_one(tmp_path: Path) -> None:
    trellis = str(Path(sys.executable).parent / "trellis")
    place = ["--state-dir", str(tmp_path)]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([trellis, "sandbox", *arguments, *place], capture_output=True, text=True, check=False)

    started = run("start", "--detach", "--workers", "0", "--clouds", "")
    try:
        assert started.returncode == 0, started.stderr
        assert World.load(tmp_path).temporal.ui in started.stderr
        again = run("start", "--detach")
        assert (again.returncode, "already runs" in again.stderr) == (1, True)
        status = run("status", "--output", "json")
        assert set(json.loads(status.stdout)["processes"]) == {"supervisor", "temporal", "aws", "faults", "garden"}
        assert status.returncode == 0
        assert "export KUBECONFIG=" in run("env").stdout
    finally:
        stopped = run("stop")
    assert stopped.returncode == 0
    assert run("status").returncode == 1
    assert run("env").returncode == 1


def test_ports_stay_unless_somebody_else_has_taken_one(tmp_path: Path) -> None:
    first = choose_ports(tmp_path, ["a", "b"])
    assert choose_ports(tmp_path, ["a", "b"]) == first
    with socket.socket() as other:
        other.bind(("127.0.0.1", first["a"]))
        other.listen()
        second = choose_ports(tmp_path, ["a", "b"])
    assert second["a"] != first["a"]
    assert second["b"] == first["b"]
    assert len({*first.values(), *second.values()}) == 3


@pytest.mark.parametrize("content", ["", "{}", "nonsense", '{"temporal": {}}'])
def test_a_record_that_is_none_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "sandbox.json").write_text(content)
    with pytest.raises(SandboxError, match="is not the record of a sandbox"):
        World.load(tmp_path)


def test_a_record_is_never_read_half_written(tmp_path: Path) -> None:
    world = World(
        temporal=TemporalAddress(address="127.0.0.1:1", namespace="default", ui="http://127.0.0.1:2"),
        garden=GardenAddress(kubeconfig="/k", namespace="garden-x"),
        aws=AwsAddress(endpoint="http://127.0.0.1:3"),
        faults=FaultsAddress(url="http://127.0.0.1:4"),
        processes={"supervisor": 1},
    )
    world.save(tmp_path)
    assert World.load(tmp_path) == world
    assert [path.name for path in tmp_path.iterdir()] == ["sandbox.json"]
