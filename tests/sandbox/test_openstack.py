"""The sandbox's Keystone and Neutron: real rules, and a state that survives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from keystoneauth1.exceptions.http import Unauthorized
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack.exceptions import BadRequestException, ConflictException, ForbiddenException, NotFoundException

from sandbox.faults import Fault, FaultKind, Faults
from sandbox.openstack import environment
from sandbox.ports import is_listening
from sandbox.world import SandboxError
from tests.sandbox.openstack_server import (  # noqa: F401 - fixtures
    MARKS,
    POOL,
    REGION,
    Server,
    openstack_faults,
    openstack_server,
)

LOCK = Path(environment.__file__).with_name("requirements.lock")
pytestmark = MARKS


def test_the_state_survives_a_crash_on_the_same_ports(openstack_server: Server) -> None:  # noqa: F811
    network = openstack_server.connect().network.create_network(name="survivor")
    url = openstack_server.auth_url
    openstack_server.crash()
    openstack_server.start_again()
    assert openstack_server.auth_url == url
    client = openstack_server.connect().network
    assert client.get_network(network.id).name == "survivor"
    client.delete_network(network)


def test_both_servers_end_with_the_process_that_keeps_them(openstack_server: Server) -> None:  # noqa: F811
    ports = [urlsplit(url).port for url in (openstack_server.auth_url, openstack_server.network_url)]
    assert openstack_server.end() == 0
    assert not any(is_listening(port) for port in ports if port)
    openstack_server.start_again()


def test_a_server_that_dies_is_started_again(openstack_server: Server) -> None:  # noqa: F811
    lock = openstack_server.state_dir / "run" / "neutron.lock"
    pid = lock.read_text()
    os.killpg(int(pid), signal.SIGKILL)
    deadline = time.monotonic() + 120
    while lock.read_text() in {pid, ""} or not is_listening(urlsplit(openstack_server.network_url).port or 0):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert list(openstack_server.connect().network.networks(name=POOL))


def test_nobody_gets_in_with_a_wrong_password(openstack_server: Server) -> None:  # noqa: F811
    plugin = v3.Password(
        openstack_server.auth_url,
        username="trellis",
        password="wrong",
        project_name="trellis",
        user_domain_name="Default",
        project_domain_name="Default",
    )
    with pytest.raises(Unauthorized):
        Session(auth=plugin).get_token()


def test_projects_do_not_see_each_other_and_both_see_the_floating_pool(openstack_server: Server) -> None:  # noqa: F811
    mine, theirs = (openstack_server.connect(name).network for name in ("trellis", "other"))
    network = mine.create_network(name="mine")
    with pytest.raises(NotFoundException):
        theirs.get_network(network.id)
    assert [each.name for each in theirs.networks()] == [POOL]
    with pytest.raises(ForbiddenException):
        mine.create_network(is_router_external=True)
    mine.delete_network(network)


def test_neutron_keeps_its_rules(openstack_server: Server) -> None:  # noqa: F811
    client = openstack_server.connect().network
    network = client.create_network()
    subnet = client.create_subnet(network_id=network.id, cidr="10.0.0.0/24", ip_version=4)
    with pytest.raises(BadRequestException, match="overlaps"):
        client.create_subnet(network_id=network.id, cidr="10.0.0.128/25", ip_version=4)
    pool = next(client.networks(name=POOL))
    router = client.create_router(external_gateway_info={"network_id": pool.id})
    client.add_interface_to_router(router, subnet=subnet.id)
    for refused in (lambda: client.delete_router(router), lambda: client.delete_network(network)):
        with pytest.raises(ConflictException):
            refused()
    client.remove_interface_from_router(router, subnet=subnet.id)
    client.delete_router(router)
    client.delete_network(network)


def test_quotas_can_be_set_by_the_administrator(openstack_server: Server) -> None:  # noqa: F811
    admin, connection = openstack_server.connect("admin"), openstack_server.connect("other")
    project = connection.session.get_project_id()
    admin.network.update_quota(project, networks=0)
    with pytest.raises(ConflictException, match="Quota exceeded"):
        connection.network.create_network()
    admin.network.delete_quota(project)
    connection.network.delete_network(connection.network.create_network())


def test_the_proxy_hides_and_refuses_in_neutrons_own_words(
    openstack_server: Server,  # noqa: F811
    openstack_faults: Faults,  # noqa: F811
) -> None:
    client = openstack_server.connect_by_proxy().network
    network = client.create_network(name="hidden")
    for kind, operation in (
        (FaultKind.NOT_YET_VISIBLE, "get_networks"),
        (FaultKind.NOT_YET_VISIBLE, "get_network"),
        (FaultKind.QUOTA, "create_router"),
        (FaultKind.FORBIDDEN, "delete_network"),
    ):
        openstack_faults.add(Fault(api="openstack", operation=operation, kind=kind))
    assert list(client.networks(name="hidden")) == []
    with pytest.raises(NotFoundException, match=f"Network {network.id} could not be found"):
        client.get_network(network.id)
    with pytest.raises(ConflictException, match=r"Quota exceeded for resources: \['router'\]"):
        client.create_router()
    with pytest.raises(ForbiddenException, match="rule:delete_network is disallowed by policy"):
        client.delete_network(network)
    assert openstack_faults.pending() == []
    client.delete_network(network)


def test_the_lock_has_a_hash_for_everything_and_names_no_place() -> None:
    text = LOCK.read_text()
    assert "://" not in text
    pinned = [line for line in text.splitlines() if line and line[0].isalnum()]
    assert all(line.endswith("\\") and "==" in line for line in pinned)


def test_a_directory_with_other_things_is_not_made_an_environment(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SandboxError, match="name an empty directory"):
        environment.installed(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_where_it_cannot_be_installed_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for name, value in {"INDEX_URL": f"http://127.0.0.1:{port}/", "RETRIES": "0", "NO_CACHE_DIR": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    arguments = ["--venv", str(tmp_path / "venv"), "--install-only"]
    done = subprocess.run(
        [sys.executable, "-m", "sandbox.openstack", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"OpenStack cannot be installed into {tmp_path / 'venv'}" in done.stderr
    assert "No matching distribution" in done.stderr
    assert not environment.is_installed(tmp_path / "venv")
