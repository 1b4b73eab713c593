from collections.abc import Iterator

import pytest

from tests.sandbox.aws.server import Server
from tests.sandbox.garden.garden_server import Cloud, Garden

QUICK = {"vpc_pending": 0.0, "nat_gateway_pending": 0.1, "nat_gateway_deleting": 0.1}


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """An AWS with short delays."""
    server = Server(tmp_path_factory.mktemp("aws"), delays=QUICK)
    yield Cloud(server)
    server.stop()


@pytest.fixture(scope="session")
def garden(tmp_path_factory: pytest.TempPathFactory, cloud: Cloud) -> Iterator[Garden]:
    """A garden in which shoots are ready at once."""
    garden = Garden(tmp_path_factory.mktemp("garden"), cloud.server.url)
    yield garden
    assert garden.stop() == 0
