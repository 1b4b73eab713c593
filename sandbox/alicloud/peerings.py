"""VPC peering connections (VpcPeer 2022-01-01).

https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpcpeer-2022-01-01-createvpcpeerconnection (and
-acceptvpcpeerconnection, -rejectvpcpeerconnection, -deletevpcpeerconnection, -getvpcpeerconnectionattribute,
-listvpcpeerconnections): Creating, Accepting, Updating, Activated, Rejected, Deleting. Between two VPCs of one account
no acceptance is needed.
"""

from __future__ import annotations

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import ENTRY, PEERING, VPC
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.places import check_region
from sandbox.alicloud.resources import Resources, iso, tag_list, token_page
from sandbox.alicloud.vpcs import ranges_of
from sandbox.clouds import Document

__all__ = ["Peerings"]

# https://www.alibabacloud.com/help/en/vpc/user-guide/vpc-peering-quotas
_PER_VPC = 10
_ENDED = ("Rejected", "Expired")


class Peerings:
    """The actions on peering connections. One is kept where the requester is."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        resources.finishing("CreateVpcPeerConnection", PEERING)
        resources.finishing("AcceptVpcPeerConnection", PEERING)
        resources.finishing("DeleteVpcPeerConnection", PEERING, self._gone)

    def create(self, ask: Ask) -> Document:
        """`CreateVpcPeerConnection`: Creating, then Accepting (another account's VPC) or Activated."""
        vpc = self._resources.get(VPC, ask.place, ask.required("VpcId"))
        account = ask.text("AcceptingAliUid") or ask.caller.account
        there = f"{account}/{check_region(ask.required('AcceptingRegionId'))}"
        accepting = self._resources.get(VPC, there, ask.required("AcceptingVpcId"))
        if vpc is None or accepting is None:
            raise refused(404, "ResourceNotFound.Vpc", "The specified resource of Vpc is not found.")
        if vpc["VpcId"] == accepting["VpcId"]:
            raise refused(400, "InvalidParameter.AcceptingVpcId", "The two VPCs must be different.")
        for side in (vpc, accepting):
            if side["Status"] != "Available":
                raise refused(400, "IncorrectStatus.Vpc", "The status of Vpc is incorrect.")
            connections = self._of_vpc(side["VpcId"])
            if len(connections) >= self._resources.limit("vpcpeer_quota_peer_num", _PER_VPC):
                raise refused(400, "QuotaExceeded.VpcPeerCountPerVpc", "The VPC peering quota of the VPC is exceeded.")
            if any({vpc["VpcId"], accepting["VpcId"]} == _sides(connection) for connection in connections):
                raise refused(400, "ResourceAlreadyExist.VpcPeer", "The VPC peering connection already exists.")
        document: Document = {
            "Name": check_name(ask, "Name", "IllegalParam.Name"),
            "Description": check_description(ask, "IllegalParam.Description"),
            "OwnerId": int(ask.caller.account),
            "AcceptingOwnerUid": int(account),
            "RegionId": ask.place.partition("/")[2],
            "AcceptingRegionId": there.partition("/")[2],
            "Vpc": {"VpcId": vpc["VpcId"], "Ipv4Cidrs": list(map(str, ranges_of(vpc)))},
            "AcceptingVpc": {"VpcId": accepting["VpcId"], "Ipv4Cidrs": list(map(str, ranges_of(accepting)))},
            "Bandwidth": ask.number("Bandwidth", -1, 1, 10**6) if ask.text("Bandwidth") else -1,
            "BizStatus": "Normal",
            "Status": "Creating",
            "GmtCreate": iso(ask.now),
            "VpcId": vpc["VpcId"],
            "_accepting_place": there,
            "_accepting_vpc": accepting["VpcId"],
            "_tags": ask.tags(),
        }
        peering = self._resources.add(ask, PEERING, document)
        then = "Activated" if account == ask.caller.account else "Accepting"
        self._resources.begin("CreateVpcPeerConnection", peering, "Creating", {"Status": then})
        return {"InstanceId": peering["InstanceId"]}

    def accept(self, ask: Ask) -> Document:
        """`AcceptVpcPeerConnection`: by the accepter's account."""
        peering = self._asked(ask)
        self._resources.begin("AcceptVpcPeerConnection", peering, "Updating", {"Status": "Activated"})
        return {}

    def reject(self, ask: Ask) -> Document:
        """`RejectVpcPeerConnection`: by the accepter's account."""
        self._resources.put(PEERING, self._asked(ask) | {"Status": "Rejected"})
        return {}

    def delete(self, ask: Ask) -> Document:
        """`DeleteVpcPeerConnection`: with `Force`, the routes that lead through it go with it."""
        peering = self._find(ask)
        if peering["Status"] not in ("Activated", "Accepting", *_ENDED):
            raise refused(400, "IncorrectStatus.VpcPeer", "The status of VpcPeer is incorrect.")
        if self._routes(peering) and not ask.flag("Force"):
            raise refused(400, "DependencyViolation.RouteEntry", "Specified object has dependent resources RouteEntry.")
        self._resources.begin("DeleteVpcPeerConnection", peering, "Deleting", None)
        return {}

    def describe_one(self, ask: Ask) -> Document:
        """`GetVpcPeerConnectionAttribute`."""
        return _listed(self._find(ask))

    def describe(self, ask: Ask) -> Document:
        """`ListVpcPeerConnections`: those of the caller on either side."""
        vpcs, ids = ask.several("VpcId"), ask.several("InstanceId")
        name = ask.text("Name")
        found = [
            _listed(peering)
            for peering in self._visible(ask)
            if (not vpcs or _sides(peering) & set(vpcs))
            and (not ids or peering["InstanceId"] in ids)
            and name in (None, peering["Name"])
            and ask.has_wanted_tags(peering)
        ]
        peerings, more = token_page(ask, found, default=20)
        return {"VpcPeerConnects": peerings, "TotalCount": len(found), "MaxResults": len(peerings)} | more

    def _find(self, ask: Ask) -> Document:
        instance_id = ask.required("InstanceId")
        for peering in self._visible(ask):
            if peering["InstanceId"] == instance_id:
                return peering
        raise refused(404, *PEERING.missing)

    def _asked(self, ask: Ask) -> Document:
        peering = self._find(ask)
        if peering["AcceptingOwnerUid"] != int(ask.caller.account):
            raise refused(403, "OperationDenied.NotAccepter", "Only the accepter can answer the request.")
        if peering["Status"] != "Accepting":
            raise refused(400, "IncorrectStatus.VpcPeer", "The status of VpcPeer is incorrect.")
        return peering

    def _visible(self, ask: Ask) -> list[Document]:
        region = ask.text("RegionId")
        mine = ask.caller.account if region is None else f"{ask.caller.account}/{check_region(region)}"
        return [
            peering
            for peering in self._resources.all(PEERING)
            if any(place.startswith(mine) for place in (peering["_place"], peering["_accepting_place"]))
        ]

    def _of_vpc(self, vpc_id: str) -> list[Document]:
        return [
            peering
            for peering in self._resources.all(PEERING)
            if vpc_id in _sides(peering) and peering["Status"] not in _ENDED
        ]

    def _routes(self, peering: Document) -> list[Document]:
        places = (peering["_place"], peering["_accepting_place"])
        entries = [entry for place in dict.fromkeys(places) for entry in self._resources.all(ENTRY, place)]
        return [entry for entry in entries if entry["_hop"] == peering["InstanceId"]]

    def _gone(self, place: str, peering: Document) -> None:
        del place
        for entry in self._routes(peering):
            self._resources.drop(ENTRY, entry)


def _sides(peering: Document) -> set[str]:
    return {peering["VpcId"], peering["_accepting_vpc"]}


def _listed(peering: Document) -> Document:
    document = {name: value for name, value in peering.items() if not name.startswith("_") and name != "VpcId"}
    return document | {"Tags": tag_list(peering)["Tag"]}
