"""How somebody sees a cloud who knows nothing of Trellis: by the vendor's own SDK or command line.

Every class here is made as `Outside(region, secret)`: `secret` is the data of the Secret behind the garden's
CredentialsBinding. Endpoints come from the environment, as the adapters' do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any, Protocol
from urllib.parse import urlsplit

from rich.console import RenderableType
from rich.table import Table

from domain.specs import Provider

__all__ = ["OUTSIDES", "Outside", "Place", "Thing"]

_ALIBABA_VERSIONS = {"VPC": "2016-04-28", "ECS": "2014-05-26"}


@dataclass(frozen=True)
class Thing:
    """Something in a cloud: its kind, its id or name, and how the cloud describes it."""

    kind: str
    id: str
    description: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class Outside(Protocol):
    """One account in one region. Every method blocks, and raises what the vendor's SDK raises."""

    def __init__(self, region: str, secret: Mapping[str, str]) -> None:
        """Clients for the region."""

    def networks(self) -> list[str]:
        """The networks, beside those that every account has by itself."""
        ...

    def show(self, network: str) -> Iterator[tuple[str, RenderableType]]:
        """Commands that look at a network and its subnets, each with what it says."""
        ...

    def things(self) -> Iterator[Thing]:
        """Everything that costs money or is in the way, beside what every account has by itself."""
        ...


class Aws:
    """EC2, by boto3, or by `aws` where there is such a command."""

    def __init__(self, region: str, secret: Mapping[str, str]) -> None:
        """See `Outside`."""
        import boto3

        self._region = region
        self._keys = {"AWS_ACCESS_KEY_ID": secret["accessKeyID"], "AWS_SECRET_ACCESS_KEY": secret["secretAccessKey"]}
        self._ec2 = boto3.client(
            "ec2",
            region_name=region,
            aws_access_key_id=secret["accessKeyID"],
            aws_secret_access_key=secret["secretAccessKey"],
        )

    def networks(self) -> list[str]:
        """The ids of the VPCs but the default one."""
        return [vpc["VpcId"] for vpc in self._ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]

    def show(self, network: str) -> Iterator[tuple[str, RenderableType]]:
        """See `Outside.show`."""
        yield from self._said(network) or self._listed(network)

    def _said(self, vpc: str) -> list[tuple[str, RenderableType]]:
        """What the `aws` command says; nothing where there is none, or where it fails."""
        aws, said = shutil.which("aws"), list[tuple[str, RenderableType]]()
        environment = os.environ | self._keys | {"AWS_DEFAULT_REGION": self._region, "AWS_PAGER": ""}
        for arguments in (
            ["describe-vpcs", "--vpc-ids", vpc, "--query", "Vpcs[].{VPC: VpcId, Range: CidrBlock, State: State}"],
            ["describe-subnets", "--filters", f"Name=vpc-id,Values={vpc}", "--query",
             "sort_by(Subnets, &CidrBlock)[].{Subnet: SubnetId, Range: CidrBlock, Zone: AvailabilityZone}"],
        ):  # fmt: skip
            command = ["ec2", *arguments, "--output", "table"]
            if aws is None:
                return []
            answer = subprocess.run([aws, *command], env=environment, capture_output=True, text=True, check=False)
            if answer.returncode != 0:
                return []
            line = " ".join(repr(word) if " " in word else word for word in ["aws", *command])
            said.append((line, answer.stdout.strip()))
        return said

    def _listed(self, vpc: str) -> Iterator[tuple[str, RenderableType]]:
        subnets = self._ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
        rows = [(each["SubnetId"], each["CidrBlock"], each["AvailabilityZone"]) for each in subnets]
        command = f'boto3.client("ec2").describe_subnets(Filters=[{{"Name": "vpc-id", "Values": ["{vpc}"]}}])'
        yield command, _table("ZONE", rows)

    def things(self) -> Iterator[Thing]:
        """See `Outside.things`. EC2 goes on listing what is deleted or terminated for an hour."""
        ec2: Any = self._ec2
        default = [vpc for vpc in ec2.describe_vpcs()["Vpcs"] if vpc["IsDefault"]]
        own = {vpc["VpcId"] for vpc in default}
        for kind, plural, key in (
            ("VPC", "vpcs", "VpcId"),
            ("subnet", "subnets", "SubnetId"),
            ("route table", "route_tables", "RouteTableId"),
            ("security group", "security_groups", "GroupId"),
            ("network interface", "network_interfaces", "NetworkInterfaceId"),
        ):
            (listed,) = (value for name, value in getattr(ec2, f"describe_{plural}")().items() if _is_list(name))
            yield from (Thing(kind, each[key], each) for each in listed if each["VpcId"] not in own)
        for each in ec2.describe_internet_gateways()["InternetGateways"]:
            if not own & {attachment["VpcId"] for attachment in each["Attachments"]}:
                yield Thing("internet gateway", each["InternetGatewayId"], each)
        used = {vpc["DhcpOptionsId"] for vpc in default}
        for each in ec2.describe_dhcp_options()["DhcpOptions"]:
            if each["DhcpOptionsId"] not in used:
                yield Thing("DHCP options", each["DhcpOptionsId"], each)
        yield from (Thing("address", each["PublicIp"], each) for each in ec2.describe_addresses()["Addresses"])
        for each in ec2.describe_nat_gateways()["NatGateways"]:
            if each["State"] != "deleted":
                yield Thing("NAT gateway", each["NatGatewayId"], each)
        for each in (each for group in ec2.describe_instances()["Reservations"] for each in group["Instances"]):
            if each["State"]["Name"] != "terminated":
                yield Thing("instance", each["InstanceId"], each)


class Gcp:
    """Compute Engine, by google-cloud-compute. A project has no network that it cannot do without."""

    def __init__(self, region: str, secret: Mapping[str, str]) -> None:
        """See `Outside`."""
        from google.cloud import compute_v1
        from google.oauth2 import service_account

        key = json.loads(secret["serviceaccount.json"])
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        credentials: Any = service_account.Credentials.from_service_account_info(key, scopes=scopes)  # type: ignore[no-untyped-call]
        endpoint = urlsplit(os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", ""))
        options = {"api_endpoint": f"{endpoint.scheme}://{endpoint.netloc}"} if endpoint.netloc else {}

        def client(kind: Any) -> Any:
            return kind(credentials=credentials, transport="rest", client_options=options)

        self._region, self._project = region, key["project_id"]
        self._networks = client(compute_v1.NetworksClient)
        self._subnetworks = client(compute_v1.SubnetworksClient)
        self._routers = client(compute_v1.RoutersClient)
        self._addresses = client(compute_v1.AddressesClient)
        self._instances = client(compute_v1.InstancesClient)
        self._global = {
            "firewall rule": client(compute_v1.FirewallsClient),
            "route": client(compute_v1.RoutesClient),
            "global address": client(compute_v1.GlobalAddressesClient),
        }

    def networks(self) -> list[str]:
        """The networks' names."""
        return [network.name for network in self._networks.list(project=self._project)]

    def show(self, network: str) -> Iterator[tuple[str, RenderableType]]:
        """See `Outside.show`."""
        found = self._subnetworks.list(project=self._project, region=self._region)
        rows = [(each.name, each.ip_cidr_range, self._region) for each in found if _last(each.network) == network]
        command = f'compute_v1.SubnetworksClient().list(project="{self._project}", region="{self._region}")'
        yield command, _table("REGION", rows)

    def things(self) -> Iterator[Thing]:
        """See `Outside.things`."""
        yield from self._listed("network", self._networks)
        for kind, client in self._global.items():
            yield from self._listed(kind, client)
        for kind, plural, client in (
            ("subnetwork", "subnetworks", self._subnetworks),
            ("router", "routers", self._routers),
            ("address", "addresses", self._addresses),
            ("instance", "instances", self._instances),
        ):
            for _, scope in client.aggregated_list(project=self._project):
                for each in getattr(scope, plural):
                    yield _described(kind, each)
                    yield from (_described("NAT gateway", nat) for nat in getattr(each, "nats", ()))

    def _listed(self, kind: str, client: Any) -> Iterator[Thing]:
        yield from (_described(kind, each) for each in client.list(project=self._project))


class Azure:
    """Azure's Resource Manager, by azure-mgmt-network and azure-mgmt-resource."""

    def __init__(self, region: str, secret: Mapping[str, str]) -> None:
        """See `Outside`. Azure's clients see all regions of a subscription."""
        from azure.identity import ClientSecretCredential
        from azure.mgmt.network import NetworkManagementClient
        from azure.mgmt.resource.resources import ResourceManagementClient

        endpoint = os.environ.get("AZURE_RESOURCE_MANAGER_ENDPOINT", "")
        options: dict[str, Any] = {}
        if endpoint:
            options = {"base_url": endpoint, "credential_scopes": [f"{endpoint}/.default"]}
        credential = ClientSecretCredential(
            secret["tenantID"],
            secret["clientID"],
            secret["clientSecret"],
            disable_instance_discovery=bool(os.environ.get("AZURE_AUTHORITY_HOST")),
        )
        self._network = NetworkManagementClient(credential, secret["subscriptionID"], **options)
        self._resources = ResourceManagementClient(credential, secret["subscriptionID"], **options)

    def networks(self) -> list[str]:
        """The virtual networks' ids."""
        return [str(network.id) for network in self._network.virtual_networks.list_all()]

    def show(self, network: str) -> Iterator[tuple[str, RenderableType]]:
        """See `Outside.show`."""
        group, name = network.split("/")[4], _last(network)
        found: list[Any] = list(self._network.subnets.list(group, name))
        rows = [(each.name, each.properties.address_prefix, "all") for each in found]
        yield f'NetworkManagementClient(…).subnets.list("{group}", "{name}")', _table("ZONE", rows)

    def things(self) -> Iterator[Thing]:
        """See `Outside.things`."""
        from azure.mgmt.network.models import VirtualNetwork

        network = self._network
        for group in self._resources.resource_groups.list():
            yield Thing("resource group", str(group.name), group.as_dict())
        known: dict[str, Any] = {}
        for client in (
            network.virtual_networks, network.network_security_groups, network.route_tables, network.nat_gateways,
            network.public_ip_addresses, network.network_interfaces,
        ):  # fmt: skip
            known |= {str(each.id).lower(): each for each in client.list_all()}
        for each in self._resources.resources.list():
            detailed = known.get(str(each.id).lower(), each)
            yield Thing(str(each.type), str(each.name), detailed.as_dict())
            if isinstance(detailed, VirtualNetwork) and detailed.properties:
                subnets = detailed.properties.subnets or []
                yield from (Thing("subnet", str(subnet.name), subnet.as_dict()) for subnet in subnets)


class Alicloud:
    """Alibaba Cloud's VPC and ECS, by the SDK's generic call."""

    def __init__(self, region: str, secret: Mapping[str, str]) -> None:
        """See `Outside`."""
        from alibabacloud_tea_openapi.client import Client
        from alibabacloud_tea_openapi.utils_models import Config

        self._region = region
        self._clients = {}
        for product in _ALIBABA_VERSIONS:
            scheme, _, rest = os.environ.get(f"ALIBABA_CLOUD_ENDPOINT_{product}", "").rpartition("://")
            config = Config(
                access_key_id=secret["accessKeyID"],
                access_key_secret=secret["accessKeySecret"],
                endpoint=rest or f"{product.lower()}.{region}.aliyuncs.com",
                protocol=(scheme or "https").upper(),
            )
            self._clients[product] = Client(config)

    def networks(self) -> list[str]:
        """The ids of the VPCs but the default one."""
        return [vpc["VpcId"] for vpc in self._listed("VPC", "DescribeVpcs", "Vpcs", "Vpc") if not vpc["IsDefault"]]

    def show(self, network: str) -> Iterator[tuple[str, RenderableType]]:
        """See `Outside.show`."""
        found = self._listed("VPC", "DescribeVSwitches", "VSwitches", "VSwitch", VpcId=network)
        rows = [(each["VSwitchId"], each["CidrBlock"], each["ZoneId"]) for each in found]
        yield f'Client(…).describe_vswitches(DescribeVSwitchesRequest(vpc_id="{network}"))', _table("ZONE", rows)

    def things(self) -> Iterator[Thing]:
        """See `Outside.things`; a route table is described with its own routes, and a security group with its rules."""
        for vpc in self._listed("VPC", "DescribeVpcs", "Vpcs", "Vpc"):
            if not vpc["IsDefault"]:
                yield Thing("VPC", vpc["VpcId"], vpc)
                yield from self._inside(vpc["VpcId"])
        for each in self._listed("VPC", "DescribeEipAddresses", "EipAddresses", "EipAddress"):
            yield Thing("address", each["IpAddress"], each)

    def _inside(self, vpc: str) -> Iterator[Thing]:
        for kind, product, action, outer, inner, key in (
            ("vSwitch", "VPC", "DescribeVSwitches", "VSwitches", "VSwitch", "VSwitchId"),
            ("NAT gateway", "VPC", "DescribeNatGateways", "NatGateways", "NatGateway", "NatGatewayId"),
            ("instance", "ECS", "DescribeInstances", "Instances", "Instance", "InstanceId"),
        ):
            found = self._listed(product, action, outer, inner, VpcId=vpc)
            yield from (Thing(kind, each[key], each) for each in found)
        for each in self._listed("VPC", "DescribeRouteTableList", "RouterTableList", "RouterTableListType", VpcId=vpc):
            table = each["RouteTableId"]
            # Every table of a VPC also has the system's routes to all its vSwitches, whoever owns them.
            query = {"RouteTableId": table, "RouteEntryType": "Custom", "MaxResults": "100"}
            routes = self._call("VPC", "DescribeRouteEntryList", **query)["RouteEntrys"]
            yield Thing("route table", table, {**each, **routes})
        for each in self._listed("ECS", "DescribeSecurityGroups", "SecurityGroups", "SecurityGroup", VpcId=vpc):
            group = each["SecurityGroupId"]
            rules = self._call("ECS", "DescribeSecurityGroupAttribute", SecurityGroupId=group)["Permissions"]
            yield Thing("security group", group, {**each, **rules})

    def _listed(self, product: str, action: str, outer: str, inner: str, **query: str) -> list[dict[str, Any]]:
        """All pages of a list."""
        found: list[dict[str, Any]] = []
        while True:
            number = str(len(found) // 50 + 1)
            answer = self._call(product, action, PageNumber=number, PageSize="50", **query)
            page = answer[outer][inner]
            found += page
            if len(page) < 50:
                return found

    def _call(self, product: str, action: str, **query: str) -> dict[str, Any]:
        from alibabacloud_tea_openapi.utils_models import OpenApiRequest, Params
        from darabonba.runtime import RuntimeOptions

        parameters = Params(
            action=action,
            version=_ALIBABA_VERSIONS[product],
            protocol="HTTPS",
            pathname="/",
            method="POST",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        request = OpenApiRequest(query={"RegionId": self._region, **query})
        answer: dict[str, Any] = self._clients[product].call_api(parameters, request, RuntimeOptions())["body"]
        return answer


@dataclass(frozen=True)
class Place:
    """Where to look at a provider: a region that its CloudProfile has, and how."""

    region: str
    look: Callable[[str, Mapping[str, str]], Outside]

    def seen(self, secret: Mapping[str, str]) -> Outside:
        """The region, seen with these credentials."""
        return self.look(self.region, secret)


# One line per provider.
OUTSIDES: Mapping[Provider, Place] = {
    Provider.AWS: Place("eu-central-1", Aws),
    Provider.GCP: Place("europe-west3", Gcp),
    Provider.AZURE: Place("westeurope", Azure),
    Provider.ALICLOUD: Place("eu-central-1", Alicloud),
}


def _table(where: str, rows: list[tuple[Any, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("SUBNET", "RANGE", where):
        table.add_column(column, overflow="fold")
    for row in sorted(rows, key=lambda row: IPv4Network(row[1])):
        table.add_row(*map(str, row))
    return table


def _described(kind: str, thing: Any) -> Thing:
    return Thing(kind, thing.name, type(thing).to_dict(thing))


def _last(url: str) -> str:
    return url.rpartition("/")[2]


def _is_list(name: str) -> bool:
    """Whether a member of an answer of EC2's is the list that was asked for."""
    return name not in {"ResponseMetadata", "NextToken"}
