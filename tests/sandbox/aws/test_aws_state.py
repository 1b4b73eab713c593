"""The sandbox's AWS survives its process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.sandbox.aws.server import (
    QUICK,
    REGION,
    Server,
    make_gateway,
    make_group,
    make_nat,
    make_subnet,
    make_vpc,
    tags,
)


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
            except Exception:  # the server is gone
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

    def test_snapshots_in_the_middle_of_work_change_nothing(self, server: Server) -> None:
        server.put(changes_per_snapshot=3)
        ec2 = server.client()
        one = build(ec2)
        other = build(ec2, "10.9.0.0/16")
        # Everything is still connected with everything.
        assert ec2.describe_vpcs(VpcIds=[one["vpc"]])["Vpcs"][0]["Tags"] == [{"Key": "owner", "Value": "me"}]
        for kind, parameter in (
            ("delete_vpc", {"VpcId": one["vpc"]}),
            ("delete_subnet", {"SubnetId": other["subnet"]}),
        ):
            with pytest.raises(ClientError, match="DependencyViolation"):
                getattr(ec2, kind)(**parameter)
        before = everything(server)
        server.kill()
        assert (server.state_dir / "aws.journal").read_text().count("\n") < 3
        server.start()
        assert everything(server) == before

    def test_instances_survive_too(self, server: Server) -> None:
        ec2 = server.client()
        subnet = make_subnet(ec2, make_vpc(ec2))
        image = ec2.describe_images()["Images"][0]["ImageId"]
        order = {"ImageId": image, "InstanceType": "t3.micro", "SubnetId": subnet, "MinCount": 2, "MaxCount": 2}
        ids = [one["InstanceId"] for one in ec2.run_instances(**order)["Instances"]]
        ec2.terminate_instances(InstanceIds=ids[:1])
        before = [one["Instances"] for one in ec2.describe_instances()["Reservations"]]
        server.kill()
        server.start()
        assert [one["Instances"] for one in server.client().describe_instances()["Reservations"]] == before

    def test_calls_that_fail_and_accounts_apart_come_back_the_same(self, server: Server) -> None:
        ec2, other = server.client(), server.client(key="210987654321")
        with pytest.raises(ClientError, match="InternalError"):
            ec2.delete_fleets(FleetIds=["fleet-unknown"], TerminateInstances=True)
        with pytest.raises(ClientError, match="InvalidVpc"):
            make_vpc(ec2, "10.0.0.0/8")
        one, theirs = build(ec2), build(other, "10.9.0.0/16")
        order = {"VpcId": one["vpc"], "PeerVpcId": theirs["vpc"], "PeerOwnerId": "210987654321"}
        pcx = ec2.create_vpc_peering_connection(**order)["VpcPeeringConnection"]["VpcPeeringConnectionId"]
        before = everything(server)
        server.kill()
        server.start()
        assert everything(server) == before
        server.client(key="210987654321").accept_vpc_peering_connection(VpcPeeringConnectionId=pcx)
        with pytest.raises(ClientError, match=r"InvalidVpcID\.NotFound"):
            server.client().describe_vpcs(VpcIds=[theirs["vpc"]])

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

    def test_a_damaged_journal_is_named(self, server: Server) -> None:
        make_vpc(server.client())
        server.kill()
        journal = server.state_dir / "aws.journal"
        journal.write_bytes(b"not JSON\n" + journal.read_bytes())
        with pytest.raises(RuntimeError, match=r"aws\.journal is damaged in line 1"):
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
