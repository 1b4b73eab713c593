"""The sandbox's garden on the sandbox's AWS, and the steps of a cluster in it."""

import asyncio
import json
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import boto3
from temporalio.testing import ActivityEnvironment

from activities.clouds.aws import AwsCloud
from activities.connectivity import ConnectivityActivities
from activities.gardener.client import Garden
from activities.shoot import ShootActivities
from domain.layout import cut
from domain.networks import Network, NetworkOrder, NetworkRecord
from domain.shoots import ClusterKey, Reach, ShootOrder, VerifyConnectivity
from domain.specs import ClusterSpec

REGION = "eu-central-1"


@contextmanager
def running_garden(state: Path, aws_endpoint: str) -> Iterator[str]:
    """`python -m sandbox.garden` while the context is open; gives its URL."""
    command = [sys.executable, "-m", "sandbox.garden", "--port", "0", "--state-dir", str(state)]
    command += ["--aws-endpoint", aws_endpoint, "--shoot-seconds", "0.1", "--retry-seconds", "0.2"]
    with (state / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + 120
            while not (state / "garden.kubeconfig").exists():
                assert process.poll() is None, (state / "log").read_text()
                assert time.monotonic() < deadline, (state / "log").read_text()
                time.sleep(0.05)
            yield next(line for line in (state / "log").read_text().splitlines() if "listening" in line).split()[-1]
        finally:
            process.terminate()


@dataclass
class World:
    """A VPC in the cloud, made by the adapter, and the garden."""

    garden: Garden
    url: str
    network: Network
    ec2: Any
    tenant: str
    blocks: int = 0

    def setting(self, **settings: Any) -> None:
        """Change how the garden behaves from now on."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"{self.url}/sandbox/settings", json.dumps(settings).encode(), method="PUT")
        with urllib.request.urlopen(request, context=context) as answer:
            assert answer.status == 200

    async def create(self, *names: str) -> list[ShootOrder]:
        """Ask for clusters, all at once, and wait for them; each gets the next /22 of the VPC."""
        first, self.blocks = self.blocks, self.blocks + len(names)
        blocks = [f"10.0.{4 * index}.0/22" for index in range(first, self.blocks)]
        orders = await asyncio.gather(*map(self.ask, names, blocks))
        shoots = ShootActivities(self.garden)
        await asyncio.gather(*(run(shoots.await_shoot, self.key(name)) for name in names))
        return orders

    async def ask(self, name: str, block: str) -> ShootOrder:
        """Ask for a cluster in the VPC."""
        spec = ClusterSpec.model_validate(
            {"tenant": self.tenant, "name": name, "provider": "aws", "region": REGION, "vpc": "shared"}
        )
        shoots = ShootActivities(self.garden)
        plan = await run(shoots.plan_shoot, spec)
        layout = cut(spec.provider, IPv4Network(block), plan.zones)
        order = ShootOrder(spec=spec, plan=plan, network=self.network, layout=layout)
        await run(shoots.create_shoot, order)
        return order

    async def remove(self, name: str) -> None:
        """Delete a cluster and wait for its end."""
        shoots = ShootActivities(self.garden)
        await run(shoots.delete_shoot, self.key(name))
        await run(shoots.await_shoot_gone, self.key(name))

    async def verify(self, name: str, environment: ActivityEnvironment | None = None, **more: Any) -> Reach:
        """The step under test."""
        connectivity = ConnectivityActivities(self.garden, patience=more.pop("patience", 0.5))
        order = VerifyConnectivity(tenant=self.tenant, cluster=name, vpc="shared", **more)
        return await run(connectivity.verify_connectivity, order, environment=environment)

    def key(self, name: str) -> ClusterKey:
        return ClusterKey(tenant=self.tenant, cluster=name)

    async def probes(self, shoot: str, wanted: Callable[[set[str]], bool] = lambda _: True) -> set[str]:
        """The probe namespaces inside a shoot, whatever their state, as soon as they are as wanted."""
        async with asyncio.timeout(20), await self.garden.admin_access(shoot) as api:
            namespaces, version = await api.read_all("/api/v1/namespaces")
            names = {each["metadata"]["name"] for each in namespaces if "probe" in each["metadata"]["name"]}
            async with aclosing(api.watch("/api/v1/namespaces", version, 20)) as events:
                while not wanted(names):
                    kind, namespace = await anext(events)
                    name = namespace["metadata"].get("name", "")
                    if "probe" in name:
                        names = names - {name} if kind == "DELETED" else names | {name}
            return names

    def subnets(self) -> list[str]:
        found = self.ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [self.network.id]}])["Subnets"]
        return sorted(each["CidrBlock"] for each in found)

    def self_rules(self) -> list[dict[str, Any]]:
        """What the shared group admits from its own members and from the world."""
        group = self.network.parts["nodes-security-group"]
        rules: list[dict[str, Any]] = self.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0][
            "IpPermissions"
        ]
        return rules


async def run(step: Any, *arguments: Any, environment: ActivityEnvironment | None = None) -> Any:
    """Runs an activity as a worker does."""
    environment = environment or ActivityEnvironment()
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(seconds=10))
    return await asyncio.wait_for(environment.run(step, *arguments), 60)


def make_network(secret: dict[str, str], tenant: str, aws_endpoint: str) -> tuple[Network, Any]:
    """A VPC by the adapter, and boto3 as somebody else would use it."""
    session = boto3.Session(secret["accessKeyID"], secret["secretAccessKey"], region_name=REGION)
    order = NetworkOrder.model_validate(
        {
            "tenant": tenant, "vpc": "shared", "incarnation": "1", "provider": "aws", "region": REGION,
            "credentials": "aws", "cidrs": ["10.0.0.0/16"],
        }
    )  # fmt: skip
    cloud = AwsCloud(REGION, secret, installation=f"test-{tenant}")
    seen = cloud.ensure(NetworkRecord(order=order, network=None))
    return seen.network, session.client("ec2", endpoint_url=aws_endpoint)
