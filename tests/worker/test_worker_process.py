"""The worker as a process: starts, tells what it does, and ends as told."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from activities.attributes import ALL
from domain.errors import Code, TrellisError
from worker.temporal import missing_attributes, register_attributes

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: garden
contexts: [{name: garden, context: {cluster: garden, user: me, namespace: garden-x}}]
clusters: [{name: garden, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {token: secret-token}}]
"""


@pytest.fixture(scope="module")
async def bare_temporal() -> AsyncIterator[Client]:
    """A server that has never heard of Trellis."""
    binary = str(Path(sys.executable).parent / "temporal")
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary, dev_server_log_level="error", dev_server_extra_args=["--headless"]
    )
    async with environment:
        yield environment.client


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts workers; those that still run are killed with the test."""
    begun: list[subprocess.Popen[str]] = []
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)

    def start(**environment: str) -> subprocess.Popen[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("TEMPORAL_", "TRELLIS_"))}
        garden = {"TRELLIS_GARDEN_KUBECONFIG": str(kubeconfig), "TRELLIS_GARDEN_NAMESPACE": "garden-x"}
        process = subprocess.Popen(
            [sys.executable, "-m", "starter", "worker"],
            env=clean | garden | {"TEMPORAL_CONFIG_FILE": "/nonexistent"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def said_until(process: subprocess.Popen[str], event: str) -> list[dict[str, Any]]:
    """The log lines up to the one that begins so."""
    assert process.stderr is not None
    lines: list[dict[str, Any]] = []
    for line in process.stderr:
        lines.append(json.loads(line))
        if lines[-1]["event"].startswith(event):
            return lines
    pytest.fail(f"the worker ended before it said {event!r}: {lines}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_worker_serves_until_it_is_told_to_end(
    bare_temporal: Client, begin: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    process = begin(TEMPORAL_ADDRESS=bare_temporal.service_client.config.target_host, TRELLIS_LOG_FORMAT="json")
    lines = said_until(process, "serving task queue trellis")
    assert {"event", "level", "logger", "timestamp"} <= set(lines[-1])
    assert await missing_attributes(bare_temporal) == {}
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert time.monotonic() - began < 10, "an idle worker has nothing to wait for"
    assert out == ""
    assert "secret-token" not in err


async def test_metrics_are_served_where_asked_for(
    bare_temporal: Client, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    address = f"127.0.0.1:{free_port()}"
    process = begin(
        TEMPORAL_ADDRESS=bare_temporal.service_client.config.target_host,
        TRELLIS_LOG_FORMAT="json",
        TRELLIS_METRICS_ADDRESS=address,
    )
    said_until(process, "serving task queue")
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.get(f"http://{address}/metrics")
    assert "temporal_" in answer.text


def test_a_worker_without_temporal_ends_with_status_1_and_says_why(begin: Callable[..., subprocess.Popen[str]]) -> None:
    process = begin(TEMPORAL_ADDRESS=f"127.0.0.1:{free_port()}")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err.startswith("error: unavailable: Temporal at 127.0.0.1:")


async def test_a_worker_without_a_garden_ends_with_status_1_and_says_why(
    bare_temporal: Client, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    process = begin(
        TEMPORAL_ADDRESS=bare_temporal.service_client.config.target_host,
        TRELLIS_GARDEN_KUBECONFIG="",
        TRELLIS_GARDEN_NAMESPACE="",
    )
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "no garden is configured" in err


async def test_search_attributes_are_registered_once_and_again_without_harm(bare_temporal: Client) -> None:
    for _ in range(2):
        await register_attributes(bare_temporal)
    listed = await bare_temporal.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=bare_temporal.namespace)
    )
    assert {key.name for key in ALL} <= set(listed.custom_attributes)


async def test_a_search_attribute_of_another_type_is_named() -> None:
    binary = str(Path(sys.executable).parent / "temporal")
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary, dev_server_log_level="error", dev_server_extra_args=["--headless"]
    )
    async with environment:
        wrong = {"TrellisPhase": IndexedValueType.INDEXED_VALUE_TYPE_INT}
        await environment.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=environment.client.namespace, search_attributes=wrong)
        )
        with pytest.raises(TrellisError, match="TrellisPhase") as refused:
            await register_attributes(environment.client)
        assert refused.value.failure.code is Code.CONFLICT
