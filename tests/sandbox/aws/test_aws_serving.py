"""The sandbox's AWS keeps its word under concurrency, is quick, and needs nothing but its address."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.sandbox.aws.server import REGION, Server, make_gateway, make_subnet, make_vpc, tags


class TestConcurrency:
    def test_a_limit_holds_when_all_ask_at_once(self, server: Server) -> None:
        ec2 = server.client()
        room = {"vpcs": len(ec2.describe_vpcs()["Vpcs"]) + 5}

        def one(_: int) -> bool:
            try:
                make_vpc(ec2)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "VpcLimitExceeded"  # noqa: PT017
                return False
            return True

        with server.having(limits=room), ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(one, range(32))) == 5

    def test_overlapping_subnets_asked_for_at_once_are_one(self, server: Server) -> None:
        ec2 = server.client()
        vpc = make_vpc(ec2)

        def one(_: int) -> bool:
            try:
                make_subnet(ec2, vpc)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "InvalidSubnet.Conflict"  # noqa: PT017
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(one, range(16))) == 1

    def test_readers_are_never_disturbed_by_writers(self, server: Server) -> None:
        ec2 = server.client()
        before = len(ec2.describe_vpcs()["Vpcs"])

        def work(number: int) -> None:
            for step in range(5):
                vpc = make_vpc(ec2, f"10.{number}.0.0/16")
                make_subnet(ec2, vpc, f"10.{number}.{step}.0/24")
                ec2.describe_vpcs()
                ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])
                ec2.describe_security_groups()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(ec2.describe_vpcs()["Vpcs"]) == before + 8 * 5


class TestServing:
    def test_the_endpoint_variable_is_all_a_client_needs(self, server: Server) -> None:
        script = "import boto3; print(boto3.client('ec2').describe_vpcs()['Vpcs'][0]['IsDefault'])"
        environment = os.environ | {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": REGION,
        }
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "True"

    def test_it_can_be_probed_and_tells_its_port(self, server: Server) -> None:
        assert httpx.get(f"{server.url}/moto-api/").status_code == 200
        assert server.url.endswith((server.state_dir / "aws.port").read_text().strip())

    def test_what_moto_cannot_do_is_an_error_that_a_client_can_read(self, server: Server) -> None:
        with pytest.raises(ClientError, match="UnsupportedOperation"):
            server.client().describe_ipams()

    def test_an_action_that_does_not_exist_is_refused(self, server: Server) -> None:
        scope = "AWS4-HMAC-SHA256 Credential=x/20260101/eu-central-1/ec2/aws4_request, SignedHeaders=host, Signature=0"
        answer = httpx.post(server.url, headers={"Authorization": scope}, data={"Action": "MakeTea", "Version": "1"})
        assert (answer.status_code, "<Code>InvalidAction</Code>" in answer.text) == (400, True)

    def test_where_moto_stumbles_a_client_can_read_it(self, server: Server) -> None:
        with pytest.raises(ClientError, match="InternalError"):
            server.client().delete_fleets(FleetIds=["fleet-unknown"], TerminateInstances=True)

    def test_two_hundred_subnets_and_their_calls_stay_quick(self, server: Server) -> None:
        """The medians of 30 calls on a cloud of many clusters; far below what a loaded machine needs."""
        ec2 = server.client()
        vpc = make_vpc(ec2)
        make_gateway(ec2, vpc)
        for number in range(200):
            ec2.create_subnet(
                VpcId=vpc,
                CidrBlock=f"10.0.{number}.0/24",
                AvailabilityZone=REGION + "a",
                TagSpecifications=tags("subnet", owner="me", cluster=f"c{number}", role="nodes"),
            )
        some = ec2.describe_subnets(Filters=[{"Name": "tag:cluster", "Values": ["c7"]}])["Subnets"][0]["SubnetId"]

        def create() -> None:
            ec2.create_security_group(GroupName=f"g{time.monotonic_ns()}", Description="x", VpcId=vpc)

        def describe() -> None:
            assert ec2.describe_subnets(SubnetIds=[some])["Subnets"]

        def search() -> None:
            assert ec2.describe_subnets(Filters=[{"Name": "tag:cluster", "Values": ["c9"]}])["Subnets"]

        for call in (create, describe, search):
            assert median_time(call) < 0.1, call.__name__


def median_time(call: Any) -> float:
    took = []
    for _ in range(30):
        before = time.perf_counter()
        call()
        took.append(time.perf_counter() - before)
    return sorted(took)[len(took) // 2]
