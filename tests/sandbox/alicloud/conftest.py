"""One server for all tests that leave each other's VPCs alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.alicloud.server import QUOTAS, Sdk, Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("alicloud") / "state", operation_seconds=0.01, quotas=QUOTAS)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def sdk(server: Server) -> Sdk:
    return server.sdk()


@pytest.fixture
def vpc(sdk: Sdk) -> str:
    return sdk.vpc()


@pytest.fixture
def vswitch(sdk: Sdk, vpc: str) -> str:
    return sdk.vswitch(vpc)


@pytest.fixture
def nat(sdk: Sdk, vpc: str, vswitch: str) -> Any:
    return sdk.nat(vpc, vswitch)
