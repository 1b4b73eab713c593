"""The sandbox's Compute Engine as a process of its own, and google-cloud-compute clients for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials, Credentials
from google.cloud import compute_v1

PROJECT = "trellis-sandbox"
REGION = "europe-west3"
ZONE = "europe-west3-a"


class Server:
    """One life of the server; `start` it again on the same directory to see what survived."""

    def __init__(self, state_dir: Path, **settings: Any) -> None:
        self.state_dir = state_dir
        self.start(**settings)

    def start(self, **settings: Any) -> None:
        command = [sys.executable, "-m", "sandbox.gcp", "--port", "0", "--state-dir", str(self.state_dir)]
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
        self.http = httpx.Client(base_url=f"{self.url}/compute/v1/projects/{PROJECT}", trust_env=False)

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
        return httpx.put(f"{self.url}/sandbox/settings", json=patch, trust_env=False)

    @contextmanager
    def having(self, **patch: Any) -> Iterator[None]:
        """Other settings for a while."""
        before = httpx.get(f"{self.url}/sandbox/settings", trust_env=False).json()
        answer = self.put(**patch)
        assert answer.status_code == 200, answer.text
        try:
            yield
        finally:
            assert self.put(**before).status_code == 200

    def key(self, **wanted: Any) -> dict[str, Any]:
        """A service account's key file."""
        answer = httpx.post(f"{self.url}/sandbox/projects/{PROJECT}/keys", json=wanted, trust_env=False)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def compute(self, credentials: Credentials | None = None) -> Compute:
        return Compute(self.url, credentials or AnonymousCredentials())


class Compute:
    """The SDK's clients, all with the same options."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        def client(kind: Any) -> Any:
            return kind(credentials=credentials, transport="rest", client_options={"api_endpoint": url})

        self.networks = client(compute_v1.NetworksClient)
        self.subnetworks = client(compute_v1.SubnetworksClient)
        self.routers = client(compute_v1.RoutersClient)
        self.firewalls = client(compute_v1.FirewallsClient)
        self.routes = client(compute_v1.RoutesClient)
        self.addresses = client(compute_v1.AddressesClient)
        self.instances = client(compute_v1.InstancesClient)
        self.regions = client(compute_v1.RegionsClient)
        self.zones = client(compute_v1.ZonesClient)
        self.machine_types = client(compute_v1.MachineTypesClient)
        self.projects = client(compute_v1.ProjectsClient)
        self.operations = {
            "global": client(compute_v1.GlobalOperationsClient),
            "region": client(compute_v1.RegionOperationsClient),
            "zone": client(compute_v1.ZoneOperationsClient),
        }

    def wait(self, operation: Any) -> Any:
        """The operation once it is done."""
        place = {"region": operation.region.rpartition("/")[2]} if operation.region else {}
        place |= {"zone": operation.zone.rpartition("/")[2]} if operation.zone else {}
        client = self.operations[next(iter(place), "global")]
        return client.wait(project=PROJECT, operation=operation.name, **place)

    def done(self, operation: Any) -> Any:
        """The same, which must have succeeded."""
        ended = self.wait(operation)
        assert ended.status == compute_v1.Operation.Status.DONE
        assert not ended.error.errors, ended.error
        return ended

    def failure(self, operation: Any) -> tuple[int, str, str]:
        """HTTP status, code and message with which an operation fails."""
        ended = self.wait(operation)
        (error,) = ended.error.errors
        return ended.http_error_status_code, error.code, error.message

    def network(self, name: str, *, auto: bool = False, wait: bool = True) -> Any:
        network = compute_v1.Network(name=name, auto_create_subnetworks=auto)
        operation = self.networks.insert_unary(project=PROJECT, network_resource=network)
        return self.done(operation) if wait else operation

    def subnetwork(self, network: str, name: str, cidr: str, *, region: str = REGION, **more: Any) -> Any:
        subnetwork = compute_v1.Subnetwork(name=name, network=f"global/networks/{network}", ip_cidr_range=cidr, **more)
        return self.subnetworks.insert_unary(project=PROJECT, region=region, subnetwork_resource=subnetwork)

    def router(self, network: str, name: str, region: str = REGION) -> Any:
        router = compute_v1.Router(name=name, network=f"global/networks/{network}")
        return self.routers.insert_unary(project=PROJECT, region=region, router_resource=router)

    def add_nat(self, router: str, nats: list[Any]) -> Any:
        return self.routers.patch_unary(
            project=PROJECT, region=REGION, router=router, router_resource=compute_v1.Router(nats=nats)
        )

    def firewall(self, network: str, name: str) -> Any:
        firewall = compute_v1.Firewall(
            name=name, network=f"global/networks/{network}", allowed=[compute_v1.Allowed(I_p_protocol="icmp")]
        )
        return self.firewalls.insert_unary(project=PROJECT, firewall_resource=firewall)

    def route(self, network: str, name: str, dest: str, **hop: Any) -> Any:
        hop = hop or {"next_hop_ip": "10.0.0.9"}
        route = compute_v1.Route(name=name, network=f"global/networks/{network}", dest_range=dest, **hop)
        return self.routes.insert_unary(project=PROJECT, route_resource=route)

    def instance(self, name: str, subnetwork: str, zone: str = ZONE) -> Any:
        interface = compute_v1.NetworkInterface(subnetwork=f"regions/{REGION}/subnetworks/{subnetwork}")
        instance = compute_v1.Instance(
            name=name, machine_type=f"zones/{zone}/machineTypes/n2-standard-2", network_interfaces=[interface]
        )
        return self.instances.insert_unary(project=PROJECT, zone=zone, instance_resource=instance)

    def peer(self, local: str, peer: str) -> Any:
        peering = compute_v1.NetworkPeering(
            name=f"{local}-{peer}", network=f"projects/{PROJECT}/global/networks/{peer}", exchange_subnet_routes=True
        )
        return self.networks.add_peering_unary(
            project=PROJECT,
            network=local,
            networks_add_peering_request_resource=compute_v1.NetworksAddPeeringRequest(network_peering=peering),
        )

    def unpeer(self, local: str, peer: str) -> Any:
        request = compute_v1.NetworksRemovePeeringRequest(name=f"{local}-{peer}")
        return self.networks.remove_peering_unary(
            project=PROJECT, network=local, networks_remove_peering_request_resource=request
        )

    def states(self, network: str) -> dict[str, str]:
        seen = self.networks.get(project=PROJECT, network=network)
        return {side.name: side.state for side in seen.peerings}


def nat(name: str, *subnetworks: str) -> Any:
    """A Cloud NAT gateway as Gardener makes it for a shoot."""
    return compute_v1.RouterNat(
        name=name,
        nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
        min_ports_per_vm=2048,
        subnetworks=[
            compute_v1.RouterNatSubnetworkToNat(
                name=f"projects/{PROJECT}/regions/{REGION}/subnetworks/{each}",
                source_ip_ranges_to_nat=["ALL_IP_RANGES"],
            )
            for each in subnetworks
        ],
    )


def refusal(call: Callable[..., Any], *arguments: Any, **parameters: Any) -> tuple[int, str, str]:
    """HTTP status, reason and message with which a call is refused."""
    with pytest.raises(GoogleAPICallError) as caught:
        call(*arguments, **parameters)
    (error,) = caught.value.errors
    return int(caught.value.code), error["reason"], error["message"]
