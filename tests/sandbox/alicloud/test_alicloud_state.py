"""What of the sandbox's Alibaba Cloud survives, and what takes time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.alicloud.server import Server


def test_everything_survives_a_kill_and_what_was_under_way_goes_on(tmp_path: Path) -> None:
    server = Server(tmp_path / "state", operation_seconds=0.02)
    key = server.key()
    sdk = server.sdk(key)
    vpc = sdk.vpc(Tag__1__Key="k", Tag__1__Value="v")
    server.put(operation_seconds=3600)
    vswitch = sdk("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.0.0/24", ZoneId="eu-central-1a", ClientToken="t")
    server.kill()

    server.start()
    sdk = server.sdk(key)
    try:
        (found,) = sdk.list("DescribeVSwitches", "VSwitches", "VSwitch", VpcId=vpc)
        assert (found["VSwitchId"], found["Status"]) == (vswitch["VSwitchId"], "Pending")
        assert sdk.vpcs(Tag__1__Key="k")[0]["VpcId"] == vpc
        assert (
            sdk("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.0.0/24", ZoneId="eu-central-1a", ClientToken="t") == vswitch
        ), "tokens are kept too"
        server.put(clock_offset_seconds=7200)
        (found,) = sdk.list("DescribeVSwitches", "VSwitches", "VSwitch", VpcId=vpc)
        assert found["Status"] == "Available"
    finally:
        server.stop()
    assert server.process.returncode == 0


def test_what_takes_time_shows_its_status_and_is_left_alone(tmp_path: Path) -> None:
    server = Server(tmp_path / "state", operation_seconds=0, operation_seconds_by_verb={"CreateVpc": 3600})
    sdk = server.sdk()
    try:
        vpc = sdk("CreateVpc", CidrBlock="10.0.0.0/16")["VpcId"]
        assert sdk.vpcs(VpcId=vpc)[0]["Status"] == "Pending"
        assert sdk.refused("DeleteVpc", VpcId=vpc) == (400, "IncorrectVpcStatus")
        refused = sdk.refused("CreateVSwitch", VpcId=vpc, CidrBlock="10.0.0.0/24", ZoneId="eu-central-1a")
        assert refused == (400, "IncorrectVpcStatus")
        assert sdk.refused("AssociateVpcCidrBlock", VpcId=vpc, SecondaryCidrBlock="10.1.0.0/16") == (
            400,
            "IncorrectStatus.Vpc",
        )
        server.put(clock_offset_seconds=3601)
        sdk("DeleteVpc", VpcId=vpc)
        assert sdk.vpcs(VpcId=vpc) == []
    finally:
        server.stop()


def test_a_directory_is_one_servers_only(tmp_path: Path) -> None:
    server = Server(tmp_path / "state")
    try:
        with pytest.raises(RuntimeError, match="another sandbox"):
            Server(tmp_path / "state")
    finally:
        server.stop()
