"""The garden as a process of its own on the sandbox's AWS, and what tests do with it."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.sandbox.aws.server import REGION, Server, by

NAMESPACE = "garden-trellis"
SHOOTS = f"/apis/core.gardener.cloud/v1beta1/namespaces/{NAMESPACE}/shoots"
MERGE = {"Content-Type": "application/merge-patch+json"}
CONFIRM = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
_PATIENCE = 120.0

Object = dict[str, Any]


class Api:
    """An API server, as its kubeconfig describes it."""

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.server = cluster["server"]
        self._http = httpx.Client(
            base_url=self.server,
            headers={"Authorization": f"Bearer {user['token']}"},
            verify=ssl.create_default_context(cadata=authority),
            timeout=30,
        )

    def __call__(self, method: str, path: str, body: Any = None, **extra: Any) -> httpx.Response:
        return self._http.request(method, path, **({} if body is None else {"json": body}), **extra)

    def get(self, path: str) -> Object:
        answer = self("GET", path)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def make(self, path: str, body: Object) -> Object:
        answer = self("POST", path, body)
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    def close(self) -> None:
        self._http.close()


class Garden:
    """One life of the garden; `start` it again on the same directory to see what survived."""

    def __init__(self, state_dir: Path, aws: str, *options: str) -> None:
        self.state_dir = state_dir
        self._command = [sys.executable, "-m", "sandbox.garden", "--state-dir", str(state_dir), "--aws-endpoint", aws]
        self._command += ["--shoot-seconds", "0.2", "--retry-seconds", "0.2", *options]
        self._port = "0"
        self.start()

    @property
    def kubeconfig(self) -> Path:
        return self.state_dir / "garden.kubeconfig"

    def start(self) -> None:
        self.process = subprocess.Popen([*self._command, "--port", self._port], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on https://127.0.0.1:"), line
        self._port = line.rsplit(":", 1)[1].strip()
        self.url = line.split()[-1]
        eventually(lambda: self.kubeconfig.exists())
        self.api = Api(self.kubeconfig.read_text())
        eventually(lambda: _answers(self.api))

    def kill(self) -> None:
        self.api.close()
        self.process.kill()
        self.process.communicate(timeout=20)

    def stop(self) -> int:
        self.api.close()
        self.process.terminate()
        self.process.communicate(timeout=20)
        return self.process.returncode

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        return subprocess.run(
            ["kubectl", *arguments], input=stdin, env=environment, capture_output=True, text=True, timeout=60
        )

    @contextmanager
    def having(self, **settings: Any) -> Iterator[None]:
        """Other settings for a while."""
        before = self.api.get("/sandbox/settings")
        answer = self.api("PUT", "/sandbox/settings", settings)
        assert answer.status_code == 200, answer.text
        try:
            yield
        finally:
            self.api("PUT", "/sandbox/settings", before)

    def shoot(self, name: str) -> Object:
        return self.api.get(f"{SHOOTS}/{name}")

    def create(self, manifest: Object) -> Object:
        return self.api.make(SHOOTS, manifest)

    def patch(self, name: str, patch: Object) -> httpx.Response:
        return self.api("PATCH", f"{SHOOTS}/{name}", headers=MERGE, content=json.dumps(patch))

    def settled(self, name: str) -> Object:
        """The shoot when its present operation is over, well or badly."""
        return eventually(lambda: _settled(self.shoot(name)))

    def made(self, manifest: Object) -> Object:
        """A shoot that is created, and ready."""
        self.create(manifest)
        shoot = self.settled(manifest["metadata"]["name"])
        assert shoot["status"]["lastOperation"]["state"] == "Succeeded", shoot["status"]
        return shoot

    def delete(self, name: str) -> None:
        """Confirms and asks; does not wait."""
        assert self.patch(name, CONFIRM).status_code == 200
        assert self.api("DELETE", f"{SHOOTS}/{name}").status_code == 200

    def is_gone(self, name: str) -> bool:
        return self.api("GET", f"{SHOOTS}/{name}").status_code == 404

    def removed(self, name: str) -> None:
        self.delete(name)
        eventually(lambda: self.is_gone(name))

    def kubeconfig_of(self, name: str, role: str = "admin", **spec: Any) -> httpx.Response:
        body = {
            "apiVersion": "authentication.gardener.cloud/v1alpha1",
            "kind": f"{role.capitalize()}KubeconfigRequest",
            "spec": spec,
        }
        return self.api("POST", f"{SHOOTS}/{name}/{role}kubeconfig", body)

    def inside(self, name: str, role: str = "admin") -> Api:
        answer = self.kubeconfig_of(name, role)
        assert answer.status_code in (200, 201), answer.text
        return Api(base64.b64decode(answer.json()["status"]["kubeconfig"]).decode())


class Cloud:
    """The account in which a test works, seen by boto3."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.ec2 = server.client()

    def vpc(self, cidr: str = "10.0.0.0/16", domain: str = f"{REGION}.compute.internal") -> str:
        """A VPC with all that Gardener wants."""
        vpc = str(self.ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"])
        for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
            self.ec2.modify_vpc_attribute(VpcId=vpc, **{attribute: {"Value": True}})
        self.give_options(vpc, domain=domain)
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        return vpc

    def give_options(self, vpc: str, **values: str) -> None:
        """DHCP options: the domain name, and the name servers if they are other than Amazon's."""
        configurations = [
            {"Key": "domain-name", "Values": [values["domain"]]},
            {"Key": "domain-name-servers", "Values": [values.get("servers", "AmazonProvidedDNS")]},
        ]
        options = self.ec2.create_dhcp_options(DhcpConfigurations=configurations)["DhcpOptions"]["DhcpOptionsId"]
        self.ec2.associate_dhcp_options(VpcId=vpc, DhcpOptionsId=options)

    def names(self, vpc: str) -> dict[str, list[str]]:
        """What is in a VPC: kinds to `Name` tags, or ids of things without one."""
        inside = by(vpc_id=vpc)
        ec2 = self.ec2
        gateways = [
            each
            for each in ec2.describe_nat_gateways(Filters=inside)["NatGateways"]
            if each["State"] not in ("deleted", "deleting")
        ]
        tables = [
            each
            for each in ec2.describe_route_tables(Filters=inside)["RouteTables"]
            if not any(association.get("Main") for association in each["Associations"])
        ]
        groups = [
            each
            for each in ec2.describe_security_groups(Filters=inside)["SecurityGroups"]
            if each["GroupName"] != "default"
        ]
        running = [*inside, {"Name": "instance-state-name", "Values": ["pending", "running"]}]
        instances = [
            each for page in ec2.describe_instances(Filters=running)["Reservations"] for each in page["Instances"]
        ]
        return {
            "subnets": _names(ec2.describe_subnets(Filters=inside)["Subnets"], "SubnetId"),
            "route tables": _names(tables, "RouteTableId"),
            "NAT gateways": _names(gateways, "NatGatewayId"),
            "security groups": _names(groups, "GroupId"),
            "instances": _names(instances, "InstanceId"),
            "addresses": _names(ec2.describe_addresses(Filters=by(tag_key=_OWN))["Addresses"], "AllocationId"),
        }


_OWN = "kubernetes.io/cluster/*"
EMPTY: dict[str, list[str]] = {
    kind: [] for kind in ("subnets", "route tables", "NAT gateways", "security groups", "instances")
}


def inside_vpc(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without the addresses, which belong to no VPC."""
    return {kind: found for kind, found in names.items() if kind != "addresses"}


def manifest(name: str, vpc: str, block: str = "10.0.0.0/22", **changes: Any) -> Object:
    """A shoot in one zone: half of its block for nodes, a quarter each for public and internal subnets."""
    nodes, rest = IPv4Network(block).subnets()
    public, internal = rest.subnets()
    zone = {"name": f"{REGION}a", "workers": str(nodes), "public": str(public), "internal": str(internal)}
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "aws"},
            "credentialsBindingName": "aws",
            "region": REGION,
            "kubernetes": {"version": "1.35.4"},
            "networking": {
                "type": "calico",
                "nodes": str(nodes),
                "pods": "10.96.0.0/13",
                "services": "10.104.0.0/13",
            },
            "provider": {
                "type": "aws",
                "infrastructureConfig": {
                    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
                    "kind": "InfrastructureConfig",
                    "networks": {"vpc": {"id": vpc}, "zones": [zone], **changes.pop("networks", {})},
                },
                "workers": [
                    {
                        "name": "worker",
                        "minimum": 1,
                        "maximum": 3,
                        "zones": [f"{REGION}a"],
                        "volume": {"type": "gp3", "size": "20Gi"},
                        "machine": {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1877.14.0"}},
                    }
                ],
            },
            **changes,
        },
    }


def eventually(look: Callable[[], Any]) -> Any:
    """What `look` gives as soon as it is true."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about in time")


def _answers(api: Api) -> bool:
    try:
        return api("GET", SHOOTS).status_code == 200
    except httpx.TransportError:
        return False


def _settled(shoot: Object) -> Object | None:
    status = shoot.get("status") or {}
    last = status.get("lastOperation")
    if not last or status.get("observedGeneration") != shoot["metadata"]["generation"]:
        return None
    return shoot if last["state"] in ("Succeeded", "Failed", "Error") else None


def _names(things: list[Any], identity: str) -> list[str]:
    return sorted(
        next((tag["Value"] for tag in each.get("Tags", []) if tag["Key"] == "Name"), each[identity]) for each in things
    )
