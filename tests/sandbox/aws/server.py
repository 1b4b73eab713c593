"""The sandbox's AWS as a process of its own, and boto3 clients for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

REGION = "eu-central-1"
QUICK = {"vpc_pending": 0, "nat_gateway_pending": 0, "nat_gateway_deleting": 0}
SLOW = {"vpc_pending": 3600, "nat_gateway_pending": 3600, "nat_gateway_deleting": 3600}


class Server:
    """One life of the server; `start` it again on the same directory to see what survived."""

    def __init__(self, state_dir: Path, **settings: Any) -> None:
        self.state_dir = state_dir
        self._settings = settings
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "sandbox.aws", "--port", "0", "--state-dir", str(self.state_dir)]
        if self._settings:
            file = self.state_dir / "settings.json"
            self.state_dir.mkdir(exist_ok=True)
            file.write_text(json.dumps(self._settings))
            command += ["--settings", str(file)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1])
        self.url = line.split()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.ended()

    def stop(self) -> None:
        self.process.terminate()
        self.ended()

    def ended(self) -> None:
        self.process.communicate(timeout=20)

    def client(self, service: str = "ec2", region: str = REGION, key: str = "sandbox") -> Any:
        return boto3.client(
            service,
            region_name=region,
            endpoint_url=self.url,
            aws_access_key_id=key,
            aws_secret_access_key="sandbox",
            # A refusal shall be seen as it is.
            config=Config(retries={"total_max_attempts": 1}),
        )

    def put(self, **patch: Any) -> httpx.Response:
        return httpx.put(f"{self.url}/sandbox/settings", json=patch)

    def settings(self) -> dict[str, Any]:
        answer: dict[str, Any] = httpx.get(f"{self.url}/sandbox/settings").json()
        return answer

    @contextmanager
    def having(self, **patch: Any) -> Iterator[None]:
        """Other settings for a while."""
        before = self.settings()
        assert self.put(**patch).status_code == 200
        yield
        assert self.put(**before).status_code == 200


def refusal(call: Callable[..., Any], **parameters: Any) -> str:
    """The error code that EC2 answers with."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response = caught.value.response
    assert 400 <= response["ResponseMetadata"]["HTTPStatusCode"] < 500, response
    assert response["Error"]["Message"]
    return str(response["Error"]["Code"])


def make_vpc(ec2: Any, cidr: str = "10.0.0.0/16") -> str:
    return str(ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"])


def make_subnet(ec2: Any, vpc: str, cidr: str = "10.0.0.0/24", zone: str = REGION + "a") -> str:
    return str(ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"])


def make_gateway(ec2: Any, vpc: str) -> str:
    gateway = str(ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"])
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    return gateway


def make_group(ec2: Any, vpc: str, name: str = "nodes") -> str:
    return str(ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"])


def make_nat(ec2: Any, subnet: str) -> tuple[str, str]:
    """A NAT gateway and its allocation."""
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=allocation)["NatGateway"]["NatGatewayId"]
    return str(nat), str(allocation)


def tags(kind: str, **pairs: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in pairs.items()]}]


def by(**filters: str) -> list[dict[str, Any]]:
    """Filters from keywords, with dashes for underscores."""
    return [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]


def nat_state(ec2: Any, nat: str) -> str:
    return str(ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"])


def ask(ec2: Any, vpc: str, other: str) -> str:
    answer = ec2.create_vpc_peering_connection(VpcId=vpc, PeerVpcId=other)
    return str(answer["VpcPeeringConnection"]["VpcPeeringConnectionId"])


def peer(ec2: Any, vpc: str, other: str) -> str:
    pcx = ask(ec2, vpc, other)
    ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
    return pcx


def peering_status(ec2: Any, pcx: str) -> str:
    shown = ec2.describe_vpc_peering_connections(VpcPeeringConnectionIds=[pcx])["VpcPeeringConnections"][0]
    return str(shown["Status"]["Code"])


def route_states(ec2: Any, table: str) -> dict[str, str]:
    routes = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
    return {route["DestinationCidrBlock"]: route["State"] for route in routes}


def make_options(ec2: Any, **more: Any) -> str:
    configuration = [{"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]}]
    return str(ec2.create_dhcp_options(DhcpConfigurations=configuration, **more)["DhcpOptions"]["DhcpOptionsId"])


def gateway_of(ec2: Any, vpc: str) -> str:
    """The internet gateway that the VPC has."""
    found = ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc]}])
    return str(found["InternetGateways"][0]["InternetGatewayId"])


def everything_from(group: str) -> list[dict[str, Any]]:
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
