"""One sandbox for the session, with the command line as its user sees it and the cloud as an outsider sees it."""

from __future__ import annotations

import base64
import json
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from kubernetes import client as kubernetes
from kubernetes import config

from sandbox.supervisor import Options, Sandbox, start

_TRELLIS = str(Path(sys.executable).parent / "trellis")


@dataclass(frozen=True)
class Ran:
    """What a command left: exit status, standard output, standard error."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """`trellis`, with everything of one tenant and one sandbox in its environment."""

    sandbox: Sandbox
    tenant: str

    def __call__(self, *arguments: str, status: int | None = 0) -> Ran:
        """Run `trellis`; where a status is expected, any other fails the test with what was said."""
        done = self.begin(*arguments)
        out, err = done.communicate(timeout=400)
        if status is not None:
            assert done.returncode == status, f"{arguments}: exit {done.returncode}\n{out}\n{err}"
        return Ran(done.returncode, out, err)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `trellis` and leave it running."""
        tenant = () if "--tenant" in arguments or arguments[0] in {"doctor", "sandbox"} else ("--tenant", self.tenant)
        return subprocess.Popen(
            [_TRELLIS, *arguments, *tenant],
            env=self.sandbox.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def create(self, name: str, *more: str, status: int | None = 0) -> Ran:
        """Create a cluster on AWS and wait for it; JSON."""
        where = ("--provider", "aws", "--region", "eu-central-1")
        return self("cluster", "create", name, *where, "--wait", "--output", "json", *more, status=status)

    def delete(self, name: str, status: int | None = 0) -> Ran:
        """Delete a cluster and wait until it, and its VPC if it was the last, are gone."""
        return self("cluster", "delete", name, "--wait", status=status)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox whose shoots take a moment."""
    running = start(tmp_path_factory.mktemp("sandbox"), Options(shoot_seconds=0.5))
    yield running
    running.stop()


@pytest.fixture
def trellis(sandbox: Sandbox) -> Shell:
    """The command line, for a tenant of this test's own."""
    return Shell(sandbox, tenant="t" + uuid.uuid4().hex[:12])


@pytest.fixture(scope="session")
def ec2(sandbox: Sandbox) -> Any:
    """The cloud, seen from outside."""
    aws = sandbox.world.aws
    return boto3.client(
        "ec2",
        region_name="eu-central-1",
        endpoint_url=aws.endpoint,
        aws_access_key_id=aws.access_key_id,
        aws_secret_access_key=aws.secret_access_key,
    )


def ours(ec2: Any, tenant: str) -> list[dict[str, Any]]:
    """The VPCs of a tenant, as the cloud lists them."""
    return list(ec2.describe_vpcs(Filters=[{"Name": "tag:trellis.dev/tenant", "Values": [tenant]}])["Vpcs"])


def subnets(ec2: Any, vpc_id: str) -> list[dict[str, Any]]:
    """The subnets of a VPC, as the cloud lists them."""
    return list(ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])["Subnets"])


def secret_data(sandbox: Sandbox) -> dict[str, dict[str, str]]:
    """The data of the garden's Secrets, by their names."""
    garden = sandbox.world.garden
    api = kubernetes.CoreV1Api(config.new_client_from_config(garden.kubeconfig))
    return {
        each.metadata.name: {key: base64.b64decode(value).decode() for key, value in (each.data or {}).items()}
        for each in api.list_namespaced_secret(garden.namespace).items
    }


def check_no_secrets(sandbox: Sandbox, *names: str) -> None:
    """Look for what is secret in the named Secrets, in all logs and in all that Temporal keeps."""
    known = secret_data(sandbox)
    secrets = {name: [*_secret_values(known[name])] for name in names}
    assert all(secrets.values()), "nothing to look for"
    database = next(iter(sandbox.state_dir.glob("*temporal*.db")))
    texts = {file: file.read_bytes() for file in (sandbox.state_dir / "logs").iterdir()}
    texts[database] = "\n".join(sqlite3.connect(database).iterdump()).encode()
    assert b"ensure_network".hex().encode() in texts[database].lower(), "histories can be read there"
    for file, text in texts.items():
        folded = text.lower()
        for name, values in secrets.items():
            for value in values:
                assert value not in text, f"{file} holds a credential of {name}"
                assert value.hex().encode() not in folded, f"{file} holds a credential of {name}"


# These tell who somebody is, and are part of every resource's id.
_NO_SECRETS = {"subscriptionID", "tenantID", "clientID"}


def _secret_values(data: dict[str, str]) -> Iterator[bytes]:
    for key, value in data.items():
        if key == "serviceaccount.json":
            # Wherever the key is written, line breaks may have become something else.
            lines = json.loads(value)["private_key"].splitlines()
            yield from (line.encode() for line in lines if "PRIVATE KEY" not in line)
        elif key not in _NO_SECRETS and len(value) >= 12:  # what is a word of everyday text proves nothing
            yield value.encode()
