"""A small AWS, and in front of it the proxy that does wrong on request."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.faults import Faults
from tests.activities.proxied import proxied


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The cloud itself, without faults."""
    state = tmp_path_factory.mktemp("aws")
    log = state / "log"
    settings = state / "settings.json"
    settings.write_text('{"delays": {"vpc_pending": 0.05, "nat_gateway_pending": 0.1}}')
    command = [
        sys.executable,
        "-m",
        "sandbox.aws",
        "--port",
        "0",
        "--state-dir",
        str(state),
        "--settings",
        str(settings),
    ]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield f"http://127.0.0.1:{_port_from(state / 'aws.port', process, log)}"
        finally:
            process.terminate()


def _port_from(file: Path, process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + 120
    while not (file.exists() and file.read_text().endswith("\n")):
        assert process.poll() is None, f"the cloud ended: {log.read_text()}"
        assert time.monotonic() < deadline, f"the cloud did not start: {log.read_text()}"
        time.sleep(0.05)
    return int(file.read_text())


@pytest.fixture(scope="session")
def _proxied(aws_endpoint: str) -> Iterator[tuple[str, Faults]]:
    with proxied("aws", aws_endpoint) as found:
        yield found


@pytest.fixture
def faults(_proxied: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """What goes wrong with calls to the cloud. Clients made from here on go through the proxy."""
    endpoint, faults = _proxied
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    faults.clear()
    yield faults
    faults.clear()
