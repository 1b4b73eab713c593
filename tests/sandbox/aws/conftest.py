"""One server for all tests that leave each other's networks alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.aws.server import QUICK, Server, make_gateway, make_subnet, make_vpc


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(Path(tmp_path_factory.mktemp("aws")) / "state", delays=QUICK)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def ec2(server: Server) -> Any:
    return server.client()


@pytest.fixture
def vpc(ec2: Any) -> str:
    return make_vpc(ec2)


@pytest.fixture
def public(ec2: Any, vpc: str) -> str:
    """A subnet in a VPC with an internet gateway."""
    make_gateway(ec2, vpc)
    return make_subnet(ec2, vpc)
