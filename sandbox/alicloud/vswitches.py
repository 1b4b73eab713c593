"""vSwitches.

https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-createvswitch (and -describevswitches,
-describevswitchattributes, -deletevswitch).
"""

from __future__ import annotations

from ipaddress import IPv4Network

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import ENTRY, INSTANCE, NAT, SNAT, TABLE, VPC, VSWITCH
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.places import check_zone
from sandbox.alicloud.resources import Resources, iso, page, shown
from sandbox.alicloud.vpcs import ranges_of
from sandbox.clouds import Document, overlapping

__all__ = ["VSwitches"]

_LARGEST, _SMALLEST = 16, 29
# "The first IP address and last three IP addresses of each vSwitch CIDR block are reserved" (CreateVSwitch).
_RESERVED = 4
# https://www.alibabacloud.com/help/en/vpc/user-guide/vpc-quotas
_VSWITCHES = 150


class VSwitches:
    """The actions on vSwitches."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        resources.finishing("CreateVSwitch", VSWITCH)
        resources.finishing("DeleteVSwitch", VSWITCH, self._gone)

    def create(self, ask: Ask) -> Document:
        """`CreateVSwitch`: Pending, then Available; one at a time in a VPC."""
        zone = check_zone(ask.place.partition("/")[2], ask.required("ZoneId"))
        cidr = ask.cidr("CidrBlock")
        vpc = self._resources.ready(VPC, ask.place, ask.required("VpcId"), "IncorrectVpcStatus")
        others = self._resources.inside(VSWITCH, ask.place, vpc["VpcId"])
        if len(others) >= self._resources.limit("vpc_quota_vswitches_num", _VSWITCHES):
            raise refused(400, "QuotaExceeded.VSwitch", "Virtual switch quota exceeded.")
        if any(other["Status"] != "Available" for other in others):
            raise refused(400, "TaskConflict", "Operate too frequent.")
        self._check_range(ask, vpc, cidr, others)
        document: Document = {
            "VSwitchName": check_name(ask, "VSwitchName", "InvalidVSwitchName.Malformed"),
            "Description": check_description(ask, "InvalidVSwitchDiscription.Malformed"),
            "VpcId": vpc["VpcId"],
            "ZoneId": zone,
            "CidrBlock": str(cidr),
            "Ipv6CidrBlock": "",
            "EnabledIpv6": False,
            "AvailableIpAddressCount": cidr.num_addresses - _RESERVED,
            "Status": "Pending",
            "IsDefault": False,
            "OwnerId": int(ask.caller.account),
            "ResourceGroupId": vpc["ResourceGroupId"],
            "CreationTime": iso(ask.now),
            "_tags": ask.tags(),
        }
        vswitch = self._resources.add(ask, VSWITCH, document)
        self._resources.begin("CreateVSwitch", vswitch, "Pending", {"Status": "Available"})
        return {"VSwitchId": vswitch["VSwitchId"]}

    def describe(self, ask: Ask) -> Document:
        """`DescribeVSwitches`."""
        wanted = {name: ask.text(name) for name in ("VpcId", "ZoneId", "VSwitchName")}
        ids = ask.several("VSwitchId")
        found = [
            self._listed(vswitch)
            for vswitch in self._resources.seen(VSWITCH, ask.place)
            if (not ids or vswitch["VSwitchId"] in ids)
            and all(value in (None, vswitch[name]) for name, value in wanted.items())
            and ask.has_wanted_tags(vswitch)
        ]
        return page(ask, "VSwitches", "VSwitch", found)

    def describe_one(self, ask: Ask) -> Document:
        """`DescribeVSwitchAttributes`."""
        return self._listed(self._resources.find(VSWITCH, ask.place, ask.required("VSwitchId")))

    def delete(self, ask: Ask) -> Document:
        """`DeleteVSwitch`: Available only, and with nothing inside."""
        vswitch = self._resources.ready(VSWITCH, ask.place, ask.required("VSwitchId"), "IncorrectVSwitchStatus")
        nats = self._resources.inside(NAT, ask.place, vswitch["VpcId"])
        if any(nat["_vswitch"] == vswitch["VSwitchId"] for nat in nats):
            raise refused(400, "DependencyViolation.EnhancedNatgw", "Specified object has dependent resources.")
        instances = self._resources.inside(INSTANCE, ask.place, vswitch["VpcId"])
        if any(instance["_vswitch"] == vswitch["VSwitchId"] for instance in instances):
            raise refused(400, "DependencyViolation", "Specified object has dependent resources.")
        if any(entry["SourceVSwitchId"] == vswitch["VSwitchId"] for entry in self._resources.all(SNAT, ask.place)):
            raise refused(400, "DependencyViolation.SnatEntry", "Specified object has dependent resources.")
        if self._resources.settling([NAT, INSTANCE], ask.place, vswitch["VSwitchId"]):
            raise refused(400, "DependencyViolation", "Specified object has dependent resources.")
        self._resources.begin("DeleteVSwitch", vswitch, "Pending", None)
        return {}

    def _check_range(self, ask: Ask, vpc: Document, cidr: IPv4Network, others: list[Document]) -> None:
        if not _LARGEST <= cidr.prefixlen <= _SMALLEST:
            raise refused(400, "InvalidCirdrBlock.MaskLength", "Specified CIDR block is not valid .")
        if not any(cidr.subnet_of(network) for network in ranges_of(vpc)):
            raise refused(400, "InvalidParameter", "Specified CIDR block is not valid in VPC.")
        if overlapping(cidr, [(IPv4Network(other["CidrBlock"]), other) for other in others]):
            raise refused(400, "InvalidCidrBlock.Overlapped", "Specified CIDR block overlapped with other subnets.")
        for entry in self._resources.inside(ENTRY, ask.place, vpc["VpcId"]):
            # "... cannot be the same as or contain the destination CIDR block of a route" (CreateVSwitch, CidrBlock).
            if IPv4Network(entry["DestinationCidrBlock"]).subnet_of(cidr):
                raise refused(400, "InvalidCidrBlock.Overlapped", "Specified CIDR block overlapped with other entry.")

    def _listed(self, vswitch: Document) -> Document:
        tables = self._resources.inside(TABLE, vswitch["_place"], vswitch["VpcId"])
        own = [table for table in tables if vswitch["VSwitchId"] in table["VSwitchIds"]["VSwitchId"]]
        table = (own or [table for table in tables if table["RouteTableType"] == "System"])[0]
        route_table = {"RouteTableId": table["RouteTableId"], "RouteTableType": table["RouteTableType"]}
        instances = self._resources.inside(INSTANCE, vswitch["_place"], vswitch["VpcId"])
        used = sum(instance["_vswitch"] == vswitch["VSwitchId"] for instance in instances)
        free = vswitch["AvailableIpAddressCount"] - used
        return shown(vswitch) | {"RouteTable": route_table, "AvailableIpAddressCount": free}

    def _gone(self, place: str, vswitch: Document) -> None:
        for table in self._resources.inside(TABLE, place, vswitch["VpcId"]):
            users = table["VSwitchIds"]["VSwitchId"]
            if vswitch["VSwitchId"] in users:
                users.remove(vswitch["VSwitchId"])
                self._resources.put(TABLE, table)
