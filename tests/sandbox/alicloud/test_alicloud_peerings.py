"""Peering connections, through the vendor's SDK."""

from __future__ import annotations

from tests.sandbox.alicloud.server import PEER, QUOTAS, REGION, Sdk, Server

OTHER = "9999999999999999"


def test_vpcs_of_one_account_are_joined_without_being_asked(sdk: Sdk, vpc: str) -> None:
    other = sdk.vpc("10.9.0.0/16")
    instance = sdk.peered(vpc, other, route=True)
    found = sdk("GetVpcPeerConnectionAttribute", PEER, InstanceId=instance)
    assert (found["Vpc"]["VpcId"], found["AcceptingVpc"]["VpcId"]) == (vpc, other)
    assert found["AcceptingVpc"]["Ipv4Cidrs"] == ["10.9.0.0/16"]
    for side in (vpc, other):
        assert [
            each["InstanceId"] for each in sdk("ListVpcPeerConnections", PEER, VpcId__1=side)["VpcPeerConnects"]
        ] == [instance]
    accepter = {"AcceptingVpcId": vpc, "AcceptingRegionId": REGION}
    refused = sdk.refused("CreateVpcPeerConnection", PEER, VpcId=other, **accepter)
    assert refused == (400, "ResourceAlreadyExist.VpcPeer")
    assert sdk.refused("DeleteVpcPeerConnection", PEER, InstanceId=instance)[1] == "DependencyViolation.RouteEntry"
    sdk("DeleteVpcPeerConnection", PEER, InstanceId=instance, Force="true")
    sdk.peering_is(instance, None)
    assert sdk.entries(sdk.system_table(vpc), RouteEntryType="Custom") == []
    assert sdk.refused("GetVpcPeerConnectionAttribute", PEER, InstanceId=instance) == (
        404,
        "ResourceNotFound.InstanceId",
    )


def test_another_account_has_to_accept(server: Server, sdk: Sdk, vpc: str) -> None:
    theirs = server.sdk(server.key(account=OTHER))
    instance = sdk.peered(vpc, theirs.vpc("10.9.0.0/16"), account=OTHER)
    assert sdk.refused("AcceptVpcPeerConnection", PEER, InstanceId=instance)[0] == 403
    theirs("AcceptVpcPeerConnection", PEER, InstanceId=instance)
    sdk.peering_is(instance, "Activated")
    assert theirs.refused("AcceptVpcPeerConnection", PEER, InstanceId=instance) == (400, "IncorrectStatus.VpcPeer")


def test_a_connection_that_was_turned_down_is_in_nobodys_way(server: Server, sdk: Sdk, vpc: str) -> None:
    theirs = server.sdk(server.key(account=OTHER))
    instance = sdk.peered(vpc, theirs.vpc("10.9.0.0/16"), account=OTHER)
    theirs("RejectVpcPeerConnection", PEER, InstanceId=instance)
    sdk.peering_is(instance, "Rejected")
    sdk("DeleteVpc", VpcId=vpc)
    sdk.until("DescribeVpcs", "Vpcs", "Vpc", None, VpcId=vpc)


def test_connections_of_a_vpc_are_limited(server: Server, sdk: Sdk, vpc: str) -> None:
    accepter = {"AcceptingVpcId": sdk.vpc("10.9.0.0/16"), "AcceptingRegionId": REGION}
    with server.having(quotas=QUOTAS | {"vpcpeer_quota_peer_num": 0}):
        refused = sdk.refused("CreateVpcPeerConnection", PEER, VpcId=vpc, **accepter)
        assert refused == (400, "QuotaExceeded.VpcPeerCountPerVpc")
    refused = sdk.refused("CreateVpcPeerConnection", PEER, VpcId="vpc-none", **accepter)
    assert refused == (404, "ResourceNotFound.Vpc")
