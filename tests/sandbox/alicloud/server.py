"""The sandbox's Alibaba Cloud as a process of its own, and the vendor's SDK for it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from alibabacloud_tea_openapi.client import Client
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.utils_models import Config, OpenApiRequest, Params
from darabonba.runtime import RuntimeOptions

REGION = "eu-central-1"
ZONE = "eu-central-1a"
# A session makes more than the quotas of an account allow.
QUOTAS = {f"vpc_quota_instances_num_{REGION}": 1000, "eip_quota_num": 1000, "q_security-groups": 1000}
VPC, PEER, ECS, STS = "2016-04-28", "2022-01-01", "2014-05-26", "2015-04-01"


class Server:
    """One life of the server; `start` it again on the same directory to see what survived."""

    def __init__(self, state_dir: Path, **settings: Any) -> None:
        self.state_dir = state_dir
        self.start(**settings)

    def start(self, **settings: Any) -> None:
        command = [sys.executable, "-m", "sandbox.alicloud", "--port", "0", "--state-dir", str(self.state_dir)]
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

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=20)

    def stop(self) -> None:
        self.process.terminate()
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

    def key(self, **wanted: Any) -> dict[str, str]:
        """A new access key."""
        answer = httpx.post(f"{self.url}/sandbox/keys", json=wanted, trust_env=False)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def sdk(self, key: dict[str, str] | None = None, region: str = REGION, **config: Any) -> Sdk:
        return Sdk(self.url, key or self.key(), region, **config)


class Sdk:
    """Any action of any product, by the SDK's own generic call."""

    def __init__(self, url: str, key: dict[str, str], region: str, **more: Any) -> None:
        self.region, self.account = region, key.get("accountID", "")
        config = Config(
            access_key_id=key["accessKeyID"],
            access_key_secret=key["accessKeySecret"],
            endpoint=url.removeprefix("http://"),
            protocol="HTTP",
            **more,
        )
        self._client = Client(config)

    def __call__(self, action: str, version: str = VPC, **parameters: Any) -> Any:
        query = {"RegionId": self.region, **{name.replace("__", "."): str(value) for name, value in parameters.items()}}
        params = Params(
            action=action,
            version=version,
            protocol="HTTP",
            pathname="/",
            method="POST",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        answer = self._client.call_api(params, OpenApiRequest(query=query), RuntimeOptions())
        assert answer["body"]["RequestId"]
        return answer["body"]

    def refused(self, action: str, version: str = VPC, **parameters: Any) -> tuple[int, str]:
        """HTTP status and code with which a call is refused."""
        with pytest.raises(AlibabaCloudException) as caught:
            self(action, version, **parameters)
        document = caught.value.data
        assert {"Code", "Message", "RequestId", "HostId", "Recommend"} <= set(document)
        return caught.value.status_code, caught.value.code

    # What most tests need.

    def peered(self, one: str, two: str, *, account: str = "", route: bool = False) -> str:
        """A peering connection; another account's has to be accepted still."""
        accepter = {"AcceptingVpcId": two, "AcceptingRegionId": REGION, "AcceptingAliUid": account or self.account}
        instance = str(self("CreateVpcPeerConnection", PEER, VpcId=one, **accepter)["InstanceId"])
        self.peering_is(instance, "Accepting" if account else "Activated")
        if route:
            hop = {"NextHopType": "VpcPeer", "NextHopId": instance}
            self("CreateRouteEntry", RouteTableId=self.system_table(one), DestinationCidrBlock="10.9.0.0/16", **hop)
        return instance

    def peering_is(self, instance: str, status: str | None) -> Any:
        found = "ListVpcPeerConnections", "VpcPeerConnects", slice(None), status
        return self.until(*found, version=PEER, InstanceId=instance)

    def list(self, action: str, outer: str, inner: str | slice, version: str = VPC, **parameters: Any) -> Any:
        """A list in a document; where there is none around it, `inner` is a slice."""
        return self(action, version, **parameters)[outer][inner]

    def vpcs(self, **parameters: Any) -> Any:
        return self.list("DescribeVpcs", "Vpcs", "Vpc", **parameters)

    def until(self, action: str, outer: str, inner: str | slice, status: str | None, **parameters: Any) -> Any:
        """Looks until the only one in the list has a status, or (None) until the list is empty."""
        deadline = time.monotonic() + 90
        while True:
            found = self.list(action, outer, inner, **parameters)
            if (status is None and not found) or (found and status == found[0].get("Status")):
                return found[0] if found else None
            assert time.monotonic() < deadline, found
            time.sleep(0.01)

    def vpc(self, cidr: str = "10.0.0.0/16", **parameters: Any) -> str:
        vpc_id = self("CreateVpc", CidrBlock=cidr, **parameters)["VpcId"]
        self.until("DescribeVpcs", "Vpcs", "Vpc", "Available", VpcId=vpc_id)
        return str(vpc_id)

    def vswitch(self, vpc: str, cidr: str = "10.0.0.0/24", zone: str = ZONE, **parameters: Any) -> str:
        vswitch_id = self("CreateVSwitch", VpcId=vpc, CidrBlock=cidr, ZoneId=zone, **parameters)["VSwitchId"]
        self.until("DescribeVSwitches", "VSwitches", "VSwitch", "Available", VSwitchId=vswitch_id)
        return str(vswitch_id)

    def nat(self, vpc: str, vswitch: str, **parameters: Any) -> Any:
        made = self("CreateNatGateway", VpcId=vpc, VSwitchId=vswitch, NatType="Enhanced", **parameters)
        return self.until(
            "DescribeNatGateways", "NatGateways", "NatGateway", "Available", NatGatewayId=made["NatGatewayId"]
        )

    def table(self, vpc: str, **parameters: Any) -> str:
        table_id = self("CreateRouteTable", VpcId=vpc, **parameters)["RouteTableId"]
        self.table_is(table_id, "Available")
        return str(table_id)

    def table_is(self, table: str, status: str | None) -> Any:
        return self.until(
            "DescribeRouteTableList", "RouterTableList", "RouterTableListType", status, RouteTableId=table
        )

    def group(self, vpc: str, **parameters: Any) -> str:
        return str(self("CreateSecurityGroup", ECS, VpcId=vpc, **parameters)["SecurityGroupId"])

    def instance(self, vswitch: str, group: str, **parameters: Any) -> Any:
        wanted = {"ImageId": "m-1", "InstanceType": "ecs.g7.large", "VSwitchId": vswitch, "SecurityGroupId": group}
        (instance,) = self("RunInstances", ECS, **wanted, **parameters)["InstanceIdSets"]["InstanceIdSet"]
        return self.instance_is(instance, "Running")

    def instance_is(self, instance: str, status: str | None) -> Any:
        ids = json.dumps([instance])
        return self.until("DescribeInstances", "Instances", "Instance", status, version=ECS, InstanceIds=ids)

    def eip(self, nat: Any) -> Any:
        """An address that belongs to a NAT gateway."""
        allocation = self("AllocateEipAddress")["AllocationId"]
        self("AssociateEipAddress", AllocationId=allocation, InstanceId=nat["NatGatewayId"], InstanceType="Nat")
        return self.eip_is(allocation, "InUse")

    def entries(self, table: str, **parameters: Any) -> Any:
        return self.list("DescribeRouteEntryList", "RouteEntrys", "RouteEntry", RouteTableId=table, **parameters)

    def system_table(self, vpc: str) -> str:
        tables = self.list("DescribeRouteTableList", "RouterTableList", "RouterTableListType", VpcId=vpc)
        return str(next(table["RouteTableId"] for table in tables if table["RouteTableType"] == "System"))

    def eip_is(self, allocation: str, status: str | None) -> Any:
        return self.until("DescribeEipAddresses", "EipAddresses", "EipAddress", status, AllocationId=allocation)
