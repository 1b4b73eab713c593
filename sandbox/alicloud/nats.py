"""NAT gateways and SNAT entries.

https://www.alibabacloud.com/help/en/nat-gateway/developer-reference/api-vpc-2016-04-28-createnatgateway-natgws (and
-describenatgateways, -deletenatgateway, -listenhanhcednatgatewayavailablezones, -createsnatentry,
-describesnattableentries, -deletesnatentry).
"""

from __future__ import annotations

import secrets
from ipaddress import IPv4Network

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import EIP, ENTRY, NAT, SNAT, TABLE, VPC, VSWITCH
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.places import check_region, zones_of
from sandbox.alicloud.resources import Resources, iso, page, tag_list
from sandbox.alicloud.tables import Tables
from sandbox.clouds import Document

__all__ = ["Nats"]

_EVERYTHING = "0.0.0.0/0"
# https://www.alibabacloud.com/help/en/nat-gateway/user-guide/quotas
_NATS, _SNATS = 5, 40


class Nats:
    """The actions on NAT gateways and their SNAT entries."""

    def __init__(self, resources: Resources, tables: Tables) -> None:
        self._resources = resources
        self._tables = tables
        resources.finishing("CreateNatGateway", NAT)
        resources.finishing("DeleteNatGateway", NAT, self._gone)
        resources.finishing("CreateSnatEntry", SNAT)
        resources.finishing("DeleteSnatEntry", SNAT)

    def create(self, ask: Ask) -> Document:
        """`CreateNatGateway`: Creating, then Available.

        The first one of a VPC gets the default route of the system's route table by itself; a table has one only
        (https://www.alibabacloud.com/help/en/nat-gateway/user-guide/create-and-manage-internet-nat-gateways).
        """
        vpc = self._resources.ready(VPC, ask.place, ask.required("VpcId"), "IncorrectVpcStatus")
        if ask.text("NatType") not in (None, "Enhanced"):
            raise refused(400, "InvalidParameter.NatType", "Only enhanced NAT gateways can be created.")
        vswitch = self._resources.ready(VSWITCH, ask.place, ask.required("VSwitchId"), "IncorrectStatus.VSWITCH")
        if vswitch["VpcId"] != vpc["VpcId"]:
            raise refused(404, *VSWITCH.missing)
        others = self._resources.inside(NAT, ask.place, vpc["VpcId"])
        if len(others) >= self._resources.limit("natgw_quota_nat_num_per_vpc", _NATS):
            raise refused(400, "QuotaExceeded.NatGateway", "The maximum number of NAT gateways in the VPC is exceeded.")
        nat = self._resources.add(ask, NAT, self._document(ask, vpc, vswitch))
        self._resources.begin("CreateNatGateway", nat, "Creating", {"Status": "Available"})
        self._default_route(ask, nat)
        return {name: nat[name] for name in ("NatGatewayId", "SnatTableIds", "ForwardTableIds")}

    def describe(self, ask: Ask) -> Document:
        """`DescribeNatGateways`."""
        wanted = {name: ask.text(name) for name in ("VpcId", "NatGatewayId", "Name", "Status")}
        found = [
            self._listed(nat)
            for nat in self._resources.seen(NAT, ask.place)
            if all(value in (None, nat[name]) for name, value in wanted.items()) and ask.has_wanted_tags(nat)
        ]
        return page(ask, "NatGateways", "NatGateway", found)

    def delete(self, ask: Ask) -> Document:
        """`DeleteNatGateway`: with `Force`, its SNAT entries go with it and its EIPs are set free."""
        nat = self._resources.ready(NAT, ask.place, ask.required("NatGatewayId"), "IncorrectStatus.NatGateway")
        entries, eips = self._snat_of(nat), self._eips_of(nat)
        if not ask.flag("Force"):
            if entries:
                raise refused(400, "DependencyViolation.SnatEntry", "Specified object has dependent resources.")
            if eips:
                raise refused(400, "DependencyViolation.EIPS", "Specified object has dependent resources EIPS.")
        self._resources.begin("DeleteNatGateway", nat, "Deleting", None)
        return {}

    def zones(self, ask: Ask) -> Document:
        """`ListEnhanhcedNatGatewayAvailableZones` (so it is spelled)."""
        region = check_region(ask.required("RegionId"))
        return {"Zones": [{"ZoneId": zone, "LocalName": zone} for zone in zones_of(region)]}

    def create_snat(self, ask: Ask) -> Document:
        """`CreateSnatEntry`: for a vSwitch or a range, by EIPs that belong to the gateway."""
        nat = self._by_table(ask)
        if nat["Status"] != "Available":
            raise refused(400, "IncorrectStatus.NATGW", "The status of the NAT gateway is incorrect.")
        addresses = ask.several("SnatIp")
        owned = {eip["IpAddress"] for eip in self._eips_of(nat) if eip["Status"] == "InUse"}
        if not addresses or not set(addresses) <= owned:
            raise refused(404, "InvalidSnatIp.NotFound", "The specified SnatIp is not found in the NAT Gateway.")
        vswitch_id, cidr = ask.text("SourceVSwitchId"), ask.text("SourceCIDR")
        if vswitch_id is not None:
            vswitch = self._resources.find(VSWITCH, ask.place, vswitch_id)
            if vswitch["VpcId"] != nat["VpcId"]:
                raise refused(404, *VSWITCH.missing)
            cidr = vswitch["CidrBlock"]
        else:
            cidr = str(ask.cidr("SourceCIDR"))
        entries = self._snat_of(nat)
        if any(IPv4Network(entry["SourceCIDR"]) == IPv4Network(cidr) for entry in entries):
            raise refused(400, "Forbidden.SourceVSwitchId.Duplicated", "The specified SourceCIDR is duplicated.")
        if len(entries) >= self._resources.limit("natgw_quota_snat_entry_num", _SNATS):
            message = "SNAT entry in the specified SNAT table reaches its limit."
            raise refused(400, "Forbidden.SnatEntryCountLimited", message)
        document: Document = {
            "SnatTableId": ask.required("SnatTableId"),
            "NatGatewayId": nat["NatGatewayId"],
            "SourceVSwitchId": vswitch_id or "",
            "SourceCIDR": cidr,
            "SnatIp": ",".join(addresses),
            "SnatEntryName": check_name(ask, "SnatEntryName", "InvalidParameter.Name.Malformed"),
            "Status": "Pending",
        }
        entry = self._resources.add(ask, SNAT, document)
        self._resources.begin("CreateSnatEntry", entry, "Pending", {"Status": "Available"})
        return {"SnatEntryId": entry["SnatEntryId"]}

    def describe_snat(self, ask: Ask) -> Document:
        """`DescribeSnatTableEntries`: of a table or of a gateway."""
        names = ("SnatTableId", "NatGatewayId", "SnatEntryId", "SourceVSwitchId", "SourceCIDR", "SnatIp")
        wanted = {name: ask.text(name) for name in names}
        if wanted["SnatTableId"] is not None:
            self._by_table(ask)
        found = [
            {name: value for name, value in entry.items() if not name.startswith("_")}
            for entry in self._resources.seen(SNAT, ask.place)
            if all(value in (None, entry[name]) for name, value in wanted.items())
        ]
        return page(ask, "SnatTableEntries", "SnatTableEntry", found)

    def delete_snat(self, ask: Ask) -> Document:
        """`DeleteSnatEntry`."""
        self._by_table(ask)
        entry = self._resources.ready(SNAT, ask.place, ask.required("SnatEntryId"), "IncorretSnatEntryStatus")
        self._resources.begin("DeleteSnatEntry", entry, "Deleting", None)
        return {}

    def _document(self, ask: Ask, vpc: Document, vswitch: Document) -> Document:
        private = {
            "VswitchId": vswitch["VSwitchId"],
            "IzNo": vswitch["ZoneId"],
            "EniInstanceId": f"eni-{secrets.token_hex(10)}",
            "PrivateIpAddress": str(IPv4Network(vswitch["CidrBlock"])[-4]),
        }
        return {
            "Name": check_name(ask, "Name", "InvalidNatGatewayName.MalFormed"),
            "Description": check_description(ask, "InvalidNatGatewayDescription.MalFormed"),
            "VpcId": vpc["VpcId"],
            "RegionId": vpc["RegionId"],
            "NatType": "Enhanced",
            "NetworkType": ask.text("NetworkType") or "internet",
            "InternetChargeType": "PayByLcu",
            "InstanceChargeType": "PostPaid",
            "EipBindMode": ask.text("EipBindMode") or "MULTI_BINDED",
            "BusinessStatus": "Normal",
            "Status": "Creating",
            "CreationTime": iso(ask.now),
            "ResourceGroupId": vpc["ResourceGroupId"],
            "SnatTableIds": {"SnatTableId": [f"stb-{secrets.token_hex(10)}"]},
            "ForwardTableIds": {"ForwardTableId": [f"ftb-{secrets.token_hex(10)}"]},
            "NatGatewayPrivateInfo": private,
            "_vswitch": vswitch["VSwitchId"],
            "_tags": ask.tags(),
        }

    def _default_route(self, ask: Ask, nat: Document) -> None:
        tables = self._resources.inside(TABLE, ask.place, nat["VpcId"])
        system = next(table for table in tables if table["RouteTableType"] == "System")
        entries = self._resources.inside(ENTRY, ask.place, nat["VpcId"])
        own = [entry for entry in entries if entry["RouteTableId"] == system["RouteTableId"]]
        if not any(entry["DestinationCidrBlock"] == _EVERYTHING for entry in own):
            self._tables.add_entry(ask, system, _EVERYTHING, "NatGateway", nat["NatGatewayId"])

    def _by_table(self, ask: Ask) -> Document:
        table = ask.required("SnatTableId")
        for nat in self._resources.all(NAT, ask.place):
            if table in nat["SnatTableIds"]["SnatTableId"]:
                return nat
        raise refused(404, "InvalidSnatTableId.NotFound", "Specified SNAT table does not exist.")

    def _snat_of(self, nat: Document) -> list[Document]:
        return [
            entry for entry in self._resources.all(SNAT, nat["_place"]) if entry["NatGatewayId"] == nat["NatGatewayId"]
        ]

    def _eips_of(self, nat: Document) -> list[Document]:
        return [eip for eip in self._resources.all(EIP, nat["_place"]) if eip["InstanceId"] == nat["NatGatewayId"]]

    def _listed(self, nat: Document) -> Document:
        used = {address for entry in self._snat_of(nat) for address in entry["SnatIp"].split(",")}
        addresses = [
            {
                "AllocationId": eip["AllocationId"],
                "IpAddress": eip["IpAddress"],
                "SnatEntryEnabled": True,
                "UsingStatus": "UsedBySnatTable" if eip["IpAddress"] in used else "Idle",
            }
            for eip in self._eips_of(nat)
        ]
        document = {name: value for name, value in nat.items() if not name.startswith("_")}
        return document | {"IpLists": {"IpList": addresses}, "Tags": tag_list(nat, "TagKey", "TagValue")}

    def _gone(self, place: str, nat: Document) -> None:
        for entry in self._snat_of(nat):
            self._resources.drop(SNAT, entry)
        for eip in self._eips_of(nat):
            self._resources.put(EIP, eip | {"InstanceId": "", "InstanceType": "", "Status": "Available"})
        for route in self._resources.inside(ENTRY, place, nat["VpcId"]):
            if route["_hop"] == nat["NatGatewayId"]:
                self._resources.drop(ENTRY, route)
