"""The sandbox's AWS survives its process, keeps its word under concurrency, and is quick."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.sandbox.aws_server import REGION, Server, make_gateway, make_group, make_nat, make_subnet, make_vpc, tags

QUICK = {"vpc_pending": 0, "nat_gateway_pending": 0, "nat_gateway_deleting": 0}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "state", delays=QUICK)
    yield server
    if server.process.poll() is None:
        server.stop()


def everything(server: Server, region: str = REGION) -> dict[str, Any]:
    """All that the API shows."""
    ec2 = server.client(region=region)
    names = {
        "describe_vpcs": "Vpcs",
        "describe_subnets": "Subnets",
        "describe_internet_gateways": "InternetGateways",
        "describe_nat_gateways": "NatGateways",
        "describe_route_tables": "RouteTables",
        "describe_addresses": "Addresses",
        "describe_security_groups": "SecurityGroups",
        "describe_dhcp_options": "DhcpOptions",
        "describe_network_interfaces": "NetworkInterfaces",
        "describe_vpc_peering_connections": "VpcPeeringConnections",
        "describe_tags": "Tags",
    }
    return {name: sorted(getattr(ec2, name)()[key], key=str) for name, key in names.items()}


def build(ec2: Any, cidr: str = "10.0.0.0/16") -> dict[str, str]:
    """A network with a bit of everything."""
    base = cidr.rsplit(".", 2)[0]
    vpc = ec2.create_vpc(CidrBlock=cidr, TagSpecifications=tags("vpc", owner="me"))["Vpc"]["VpcId"]
    gateway = make_gateway(ec2, vpc)
    subnet = make_subnet(ec2, vpc, f"{base}.0.0/24")
    nat, allocation = make_nat(ec2, subnet)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    ec2.associate_route_table(RouteTableId=table, SubnetId=make_subnet(ec2, vpc, f"{base}.1.0/24"))
    group = make_group(ec2, vpc)
    ec2.authorize_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=1, ToPort=9, CidrIp=cidr)
    options = ec2.create_dhcp_options(DhcpConfigurations=[{"Key": "domain-name", "Values": ["x"]}])["DhcpOptions"]
    ec2.associate_dhcp_options(VpcId=vpc, DhcpOptionsId=options["DhcpOptionsId"])
    return {"vpc": vpc, "gateway": gateway, "subnet": subnet, "nat": nat, "allocation": allocation, "group": group}


class TestSurvival:
    def test_a_killed_server_comes_back_with_the_same_cloud(self, server: Server) -> None:
        ec2 = server.client()
        one, other = build(ec2), build(ec2, "10.9.0.0/16")
        ec2.create_vpc_peering_connection(VpcId=one["vpc"], PeerVpcId=other["vpc"])
        ec2.delete_nat_gateway(NatGatewayId=other["nat"])
        make_vpc(server.client(region="eu-west-1"))
        before, far = everything(server), everything(server, "eu-west-1")
        for _ in range(2):  # the second time from a snapshot
            server.kill()
            server.start()
            assert everything(server) == before
            assert everything(server, "eu-west-1") == far

    def test_the_cloud_lives_on_after_a_restart(self, server: Server) -> None:
        one = build(server.client())
        server.kill()
        server.start()
        ec2 = server.client()
        with pytest.raises(ClientError, match="DependencyViolation"):
            ec2.delete_vpc(VpcId=one["vpc"])
        other = build(ec2, "10.9.0.0/16")
        assert not set(one.values()) & set(other.values())
        far = make_vpc(server.client(region="eu-west-1"), "10.8.0.0/16")
        order = {"VpcId": one["vpc"], "PeerVpcId": far, "PeerRegion": "eu-west-1"}
        pcx = ec2.create_vpc_peering_connection(**order)["VpcPeeringConnection"]["VpcPeeringConnectionId"]
        server.stop()
        server.start()
        server.client(region="eu-west-1").accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        shown = server.client().describe_vpc_peering_connections(VpcPeeringConnectionIds=[pcx])
        assert shown["VpcPeeringConnections"][0]["Status"]["Code"] == "active"

    def test_a_clean_stop_leaves_a_snapshot_and_an_empty_journal(self, server: Server) -> None:
        build(server.client())
        before = everything(server)
        server.stop()
        assert (server.state_dir / "aws.journal").stat().st_size == 0
        assert not (server.state_dir / "aws.port").exists()
        server.start()
        assert everything(server) == before

    def test_whatever_was_answered_survives_a_kill_in_the_middle_of_work(self, server: Server) -> None:
        answered: list[str] = []
        enough = threading.Event()

        def work(number: int) -> None:
            ec2 = server.client()
            try:
                for step in range(1000):
                    answered.append(make_vpc(ec2, f"10.{number}.0.0/16"))
                    if step % 3 == 0:
                        gone = answered[-1]
                        ec2.delete_vpc(VpcId=gone)
                        answered.remove(gone)
                    if len(answered) > 60:
                        enough.set()
            except Exception:  # noqa: BLE001  # the server is gone
                return

        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        assert enough.wait(60)
        server.kill()
        for worker in workers:
            worker.join()
        server.start()
        present = {vpc["VpcId"] for vpc in server.client().describe_vpcs()["Vpcs"]}
        # A deletion whose answer was lost may have happened: at most one for each worker.
        assert len(set(answered) - present) <= len(workers)
        again = everything(server)
        server.kill()
        server.start()
        assert everything(server) == again

    def test_a_torn_last_line_is_dropped(self, server: Server) -> None:
        vpc = make_vpc(server.client())
        server.kill()
        journal = server.state_dir / "aws.journal"
        with journal.open("ab") as file:
            file.write(b'{"number": 99, "chan')
        server.start()
        make_vpc(server.client(), "10.9.0.0/16")
        before = everything(server)
        server.kill()
        server.start()
        assert everything(server) == before
        assert vpc in {one["VpcId"] for one in before["describe_vpcs"]}

    def test_a_snapshot_with_its_old_journal_counts_nothing_twice(self, server: Server) -> None:
        """As after a crash between writing the snapshot and clearing the journal."""
        build(server.client())
        before = everything(server)
        server.kill()
        journal = (server.state_dir / "aws.journal").read_bytes()
        server.start()
        server.kill()
        (server.state_dir / "aws.journal").write_bytes(journal)
        server.start()
        assert everything(server) == before

    def test_states_that_were_running_out_run_out_after_a_restart(self, server: Server) -> None:
        server.put(delays={"nat_gateway_pending": 0.8})
        one = build(server.client())
        server.kill()
        server.start()
        waiter = server.client().get_waiter("nat_gateway_available")
        waiter.wait(NatGatewayIds=[one["nat"]], WaiterConfig={"Delay": 0.1})

    def test_settings_and_client_tokens_survive(self, server: Server) -> None:
        server.put(limits={"vpcs": 3})
        ec2 = server.client()
        subnet = make_subnet(ec2, make_vpc(ec2))
        order = {"SubnetId": subnet, "ConnectivityType": "private", "ClientToken": "once"}
        nat = ec2.create_nat_gateway(**order)["NatGateway"]["NatGatewayId"]
        server.kill()
        server.start()
        assert server.settings()["limits"]["vpcs"] == 3
        assert server.client().create_nat_gateway(**order)["NatGateway"]["NatGatewayId"] == nat

    def test_the_ordinary_reset_of_moto_empties_the_cloud_for_good(self, server: Server) -> None:
        empty = everything(server)
        build(server.client())
        assert httpx.post(f"{server.url}/moto-api/reset").status_code == 200
        assert everything(server) == empty
        server.kill()
        server.start()
        assert everything(server) == empty

    def test_a_journal_that_gives_another_cloud_is_refused(self, server: Server) -> None:
        make_vpc(server.client())
        server.kill()
        journal = server.state_dir / "aws.journal"
        journal.write_text(journal.read_text().replace("10.0.0.0%2F16", "10.0.0.0%2F8"))
        with pytest.raises(RuntimeError, match="begin with an empty cloud"):
            server.start()

    def test_a_snapshot_of_another_moto_is_refused(self, server: Server) -> None:
        server.stop()
        snapshot = server.state_dir / "aws.snapshot"
        snapshot.write_bytes(snapshot.read_bytes().replace(b"moto ", b"moto 0.", 1))
        with pytest.raises(RuntimeError, match="was not written by moto"):
            server.start()

    def test_one_directory_serves_one_cloud(self, server: Server) -> None:
        with pytest.raises(RuntimeError, match="another sandbox uses"):
            Server(server.state_dir)

    def test_a_bad_settings_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match=r"limits\.vpcs"):
            Server(tmp_path, limits={"vpcs": "many"})


class TestConcurrency:
    def test_a_limit_holds_when_all_ask_at_once(self, server: Server) -> None:
        ec2 = server.client()
        server.put(limits={"vpcs": len(ec2.describe_vpcs()["Vpcs"]) + 5})

        def one(_: int) -> bool:
            try:
                make_vpc(ec2)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "VpcLimitExceeded"  # noqa: PT017
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
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

        def work(number: int) -> None:
            for step in range(5):
                vpc = make_vpc(ec2, f"10.{number}.0.0/16")
                make_subnet(ec2, vpc, f"10.{number}.{step}.0/24")
                ec2.describe_vpcs()
                ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])
                ec2.describe_security_groups()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(ec2.describe_vpcs()["Vpcs"]) == 8 * 5 + 1


class TestServing:
    def test_the_endpoint_variable_is_all_a_client_needs(self, server: Server) -> None:
        script = "import boto3; print(boto3.client('ec2').describe_vpcs()['Vpcs'][0]['IsDefault'])"
        environment = os.environ | {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_DEFAULT_REGION": REGION,
        }
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "True"

    def test_it_can_be_probed_and_tells_its_port(self, server: Server) -> None:
        assert httpx.get(f"{server.url}/moto-api/").status_code == 200
        assert server.url.endswith((server.state_dir / "aws.port").read_text().strip())

    def test_what_moto_cannot_do_is_an_error_that_a_client_can_read(self, server: Server) -> None:
        with pytest.raises(ClientError, match="UnsupportedOperation"):
            server.client().describe_ipams()

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
            assert median_time(call) < 0.05, call.__name__


def median_time(call: Any) -> float:
    took = []
    for _ in range(30):
        before = time.perf_counter()
        call()
        took.append(time.perf_counter() - before)
    return sorted(took)[len(took) // 2]
