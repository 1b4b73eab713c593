"""Azure's operations as the proxy in front of it names them, and the proxy over HTTPS."""

import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.responses import Response

from sandbox.azure.faults import ResourceManager
from sandbox.faults import Call
from sandbox.ports import is_listening
from tests.sandbox.azure_server import SUBSCRIPTION, Server
from tests.sandbox.garden.garden_server import eventually

AZURE = ResourceManager()
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g"
NET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks"


def call(method: str, path: str) -> Call:
    return Call(method, f"{path}?api-version=2026-03-01", {}, b"")


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", f"/subscriptions/{SUBSCRIPTION}/resourcegroups", "resourceGroups.list"),
        ("PUT", GROUP.replace("Groups", "groups"), "resourceGroups.put"),
        ("HEAD", GROUP, "resourceGroups.head"),
        ("GET", f"{GROUP}/resources", "resources.list"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/operationresults/o", "operationResults.get"),
        ("GET", NET, "virtualNetworks.list"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/virtualNetworks", "virtualNetworks.list"),
        ("PUT", f"{NET}/n", "virtualNetworks.put"),
        ("GET", f"{NET}/n/subnets", "subnets.list"),
        ("DELETE", f"{NET}/n/subnets/s", "subnets.delete"),
        (
            "GET",
            f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/westeurope/operations/o",
            "operations.get",
        ),
        ("POST", "/tenant/oauth2/v2.0/token", "token.post"),
        ("GET", "/metadata/endpoints", "GET /metadata/endpoints"),
    ],
)
def test_operations_are_named_by_type_and_method(method: str, path: str, operation: str) -> None:
    assert AZURE.operation(call(method, path)) == operation


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", GROUP, "ResourceGroupNotFound"),
        ("GET", f"{NET}/n", "ResourceNotFound"),
        ("PUT", f"{NET}/n", "ResourceGroupNotFound"),
        ("PUT", f"{NET}/n/subnets/s", "ParentResourceNotFound"),
        ("DELETE", f"{NET}/n", "ResourceNotFound"),
    ],
)
def test_what_is_not_visible_yet_is_not_found_as_azure_says_it(method: str, path: str, code: str) -> None:
    blinded = AZURE.blinded(call(method, path))
    assert isinstance(blinded, Response)
    assert blinded.status_code == 404
    assert json.loads(bytes(blinded.body))["error"]["code"] == code


def test_lists_are_empty_and_what_names_nothing_is_passed_on() -> None:
    blinded = AZURE.blinded(call("GET", NET))
    assert isinstance(blinded, Response)
    assert json.loads(bytes(blinded.body)) == {"value": []}
    for asked in (call("PUT", GROUP), call("POST", "/tenant/oauth2/v2.0/token")):
        assert AZURE.blinded(asked) is asked


def test_the_proxy_serves_https_with_the_clouds_own_certificate(tmp_path: Path) -> None:
    server = Server(tmp_path / "state", operation_seconds=0)
    ports = [_free(), _free()]
    command = [
        sys.executable, "-m", "sandbox.faults", "--control", str(ports[0]),
        "--proxy", f"azure={ports[1]}={server.url}", "--https", f"azure={server.state_dir}",
    ]  # fmt: skip
    with subprocess.Popen(command) as proxy:
        try:
            eventually(lambda: all(map(is_listening, ports)))
            context = ssl.create_default_context(cafile=server.certificate.authority)
            with httpx.Client(base_url=f"https://127.0.0.1:{ports[1]}", trust_env=False, verify=context) as client:
                token = {"grant_type": "client_credentials", "client_id": "a", "scope": "x/.default"}
                answer = client.post("/tenant/oauth2/v2.0/token", data=token)
                assert answer.status_code == 200
                fault = {"api": "azure", "operation": "token.post", "kind": "throttle"}
                control = f"http://127.0.0.1:{ports[0]}/faults"
                assert httpx.post(control, json=fault, trust_env=False).status_code == 200
                assert client.post("/tenant/oauth2/v2.0/token", data=token).status_code == 429
                assert client.post("/tenant/oauth2/v2.0/token", data=token).status_code == 200
        finally:
            proxy.terminate()
    server.stop()


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])
