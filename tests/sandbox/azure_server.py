"""The sandbox's Azure as a process of its own, and clients of azure-mgmt-network and -resource for it."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.core.exceptions import HttpResponseError
from azure.identity import ClientSecretCredential
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.network import models as network_models
from azure.mgmt.resource.resources import ResourceManagementClient

from sandbox.tls import ServerCertificate, server_certificate

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
LOCATION = "westeurope"
VERSION = {"api-version": "2026-03-01"}


class Server:
    """One life of the server; `start` it again on the same directory to see what survived."""

    def __init__(self, state_dir: Path, **settings: Any) -> None:
        self.state_dir = state_dir
        self.start(**settings)

    def start(self, **settings: Any) -> None:
        command = [sys.executable, "-m", "sandbox.azure", "--port", "0", "--state-dir", str(self.state_dir)]
        if settings:
            self.state_dir.mkdir(exist_ok=True)
            file = self.state_dir / "settings.json"
            file.write_text(json.dumps(settings))
            command += ["--settings", str(file)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1])
        self.url = line.split()[-1]
        context = ssl.create_default_context(cafile=self.certificate.authority)
        self.http = httpx.Client(base_url=self.url, trust_env=False, verify=context)

    @property
    def certificate(self) -> ServerCertificate:
        return server_certificate(self.state_dir, "azure")

    def kill(self) -> None:
        self.process.kill()
        self.ended()

    def stop(self) -> None:
        self.process.terminate()
        self.ended()

    def ended(self) -> None:
        self.http.close()
        self.process.communicate(timeout=20)

    def put(self, **patch: Any) -> httpx.Response:
        return self.http.put("/sandbox/settings", json=patch)

    @contextmanager
    def having(self, **patch: Any) -> Iterator[None]:
        """Other settings for a while."""
        before = self.http.get("/sandbox/settings").json()
        answer = self.put(**patch)
        assert answer.status_code == 200, answer.text
        try:
            yield
        finally:
            assert self.put(**before).status_code == 200

    def principal(self, subscription: str = SUBSCRIPTION, **wanted: Any) -> dict[str, str]:
        """The keys of a new service principal, as Gardener's Secret has them."""
        answer = self.http.post(f"/sandbox/subscriptions/{subscription}/principals", json=wanted)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def azure(self, secret: dict[str, str] | None = None) -> Azure:
        return Azure(self.url, self.certificate.authority, secret or self.principal())


class Azure:
    """The SDK's clients, all with the same options."""

    def __init__(self, url: str, authority: Path | str, secret: dict[str, str]) -> None:
        # The variable of azure-identity and that of requests are for whole processes; both have a parameter.
        trusted = {"connection_verify": str(authority)}
        self.credential = ClientSecretCredential(
            secret["tenantID"],
            secret["clientID"],
            secret["clientSecret"],
            authority=url,
            disable_instance_discovery=True,
            **trusted,
        )
        options: dict[str, Any] = {
            "base_url": url,
            "credential_scopes": [f"{url}/.default"],
            "polling_interval": 0.02,
            "retry_total": 0,
            **trusted,
        }
        self.subscription = secret["subscriptionID"]
        self.network = NetworkManagementClient(self.credential, self.subscription, **options)
        resources = ResourceManagementClient(self.credential, self.subscription, **options)
        self.groups, self.resources = resources.resource_groups, resources.resources

    def group(self, name: str, location: str = LOCATION, **more: Any) -> Any:
        return self.groups.create_or_update(name, {"location": location, **more})  # type: ignore[typeddict-item]

    def vnet(self, group: str, name: str, *cidrs: str, wait: bool = True, **more: Any) -> Any:
        space = network_models.AddressSpace(address_prefixes=list(cidrs or ("10.0.0.0/16",)))
        wanted = network_models.VirtualNetwork(
            location=more.pop("location", LOCATION),
            tags=more.pop("tags", None),
            properties=network_models.VirtualNetworkPropertiesFormat(address_space=space, **more),
        )
        poller = self.network.virtual_networks.begin_create_or_update(group, name, wanted, polling=wait)
        return poller.result()

    def subnet(self, group: str, vnet: str, name: str, cidr: str, *, wait: bool = True, **references: str) -> Any:
        wanted = network_models.Subnet(
            properties=network_models.SubnetPropertiesFormat(
                address_prefix=cidr,
                **{key: _REFERENCES[key](id=value) for key, value in references.items()},  # type: ignore[arg-type]
            )
        )
        return self.network.subnets.begin_create_or_update(group, vnet, name, wanted, polling=wait).result()

    def interface(self, group: str, name: str, subnet: str, *, wait: bool = True, **address: str) -> Any:
        configuration = {"name": "main", "properties": {"subnet": {"id": subnet}, **address}}
        wanted: Any = {"location": LOCATION, "properties": {"ipConfigurations": [configuration]}}
        return self.network.network_interfaces.begin_create_or_update(group, name, wanted, polling=wait).result()

    def peer(self, local: Any, remote: Any, name: str = "p", **query: Any) -> Any:
        wanted: Any = {"properties": {"remoteVirtualNetwork": {"id": remote.id}, "allowForwardedTraffic": True}}
        group = local.id.split("/")[4]
        client = self.network.virtual_network_peerings
        return client.begin_create_or_update(group, local.name, name, wanted, **query).result()


_REFERENCES: dict[str, Callable[..., Any]] = {
    "nat_gateway": network_models.SubResource,
    "network_security_group": network_models.NetworkSecurityGroup,
    "route_table": network_models.RouteTable,
}


def refusal(call: Callable[..., Any], *arguments: Any, **parameters: Any) -> tuple[int, str, str]:
    """HTTP status, code and message with which a call, or its operation, fails."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **parameters)
    error = caught.value.error
    assert error is not None
    assert caught.value.status_code is not None
    return caught.value.status_code, str(error.code), str(error.message)
