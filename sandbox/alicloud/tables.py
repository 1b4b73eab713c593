"""Route tables and their entries.

https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-createroutetable (and
-describeroutetablelist, -associateroutetable, -unassociateroutetable, -deleteroutetable, -createrouteentry,
-deleterouteentry, -describerouteentrylist).
"""

from __future__ import annotations

from ipaddress import IPv4Network

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import ENTRY, INSTANCE, NAT, PEERING, TABLE, VPC, VSWITCH
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.resources import Kind, Resources, iso, page, shown, token_page
from sandbox.clouds import Document

__all__ = ["Tables", "system_table"]

# https://www.alibabacloud.com/help/en/vpc/user-guide/vpc-quotas: custom ones beside the system's, entries of one.
_TABLES, _ENTRIES = 9, 200
# "The destination CIDR block ... cannot be 100.64.0.0/10 or a subset of it" (CreateRouteEntry).
_SERVICES = IPv4Network("100.64.0.0/10")
_HOPS: dict[str, tuple[Kind, str]] = {
    "Instance": (INSTANCE, "Running"),
    "NatGateway": (NAT, "Available"),
    "VpcPeer": (PEERING, "Activated"),
}


class Tables:
    """The actions on route tables and entries."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        for verb in ("CreateRouteTable", "DeleteRouteTable", "AssociateRouteTable", "UnassociateRouteTable"):
            resources.finishing(verb, TABLE)
        resources.finishing("CreateRouteEntry", ENTRY)
        resources.finishing("DeleteRouteEntry", ENTRY)

    def create(self, ask: Ask) -> Document:
        """`CreateRouteTable`: a custom one; Pending, then Available."""
        vpc = self._resources.ready(VPC, ask.place, ask.required("VpcId"), "IncorrectVpcStatus")
        custom = [table for table in self._inside(ask, vpc["VpcId"]) if table["RouteTableType"] == "Custom"]
        if len(custom) >= self._resources.limit("vpc_quota_route_tables_num", _TABLES):
            raise refused(400, "QuotaExceeded.RouteTable", "The maximum number of route tables is exceeded.")
        document = _table(ask, vpc, "Custom", ask.text("AssociateType") or "VSwitch")
        table = self._resources.add(ask, TABLE, document)
        self._resources.begin("CreateRouteTable", table, "Pending", {"Status": "Available"})
        return {"RouteTableId": table["RouteTableId"]}

    def describe(self, ask: Ask) -> Document:
        """`DescribeRouteTableList`."""
        wanted = {name: ask.text(name) for name in ("VpcId", "RouteTableId", "RouteTableName", "RouteTableType")}
        found = [
            shown(table)
            for table in self._resources.seen(TABLE, ask.place)
            if all(value in (None, table[name]) for name, value in wanted.items()) and ask.has_wanted_tags(table)
        ]
        return page(ask, "RouterTableList", "RouterTableListType", found)

    def delete(self, ask: Ask) -> Document:
        """`DeleteRouteTable`: a custom one that no vSwitch uses and that has no custom entries."""
        table = self._ready(ask)
        if table["RouteTableType"] == "System":
            raise refused(400, "OperationDenied", "Specified operation is denied as route table type is system.")
        if table["VSwitchIds"]["VSwitchId"]:
            raise refused(400, "DependencyViolation.VSwitch", "Specified object has dependent resources VSwitch.")
        if self._entries(table):
            raise refused(400, "DependencyViolation.RouteEntry", "Specified object has dependent resources RouteEntry.")
        self._resources.begin("DeleteRouteTable", table, "Deleting", None)
        return {}

    def associate(self, ask: Ask) -> Document:
        """`AssociateRouteTable`: a vSwitch uses one custom table at most."""
        table = self._ready(ask)
        vswitch = self._resources.ready(VSWITCH, ask.place, ask.required("VSwitchId"), "IncorrectVSwitchStatus")
        if vswitch["VpcId"] != table["VpcId"]:
            raise refused(400, "InvalidParameter", "The vSwitch and the route table are not in the same VPC.")
        for other in self._inside(ask, table["VpcId"]):
            if other["RouteTableType"] == "Custom" and vswitch["VSwitchId"] in other["VSwitchIds"]["VSwitchId"]:
                raise refused(400, "OperationDenied", "The vSwitch is associated with a custom route table already.")
        users = {"VSwitchId": [*table["VSwitchIds"]["VSwitchId"], vswitch["VSwitchId"]]}
        changes = {"Status": "Available", "VSwitchIds": users}
        self._resources.begin("AssociateRouteTable", table, "Associating", changes)
        return {}

    def unassociate(self, ask: Ask) -> Document:
        """`UnassociateRouteTable`."""
        table, vswitch_id = self._ready(ask), ask.required("VSwitchId")
        users = table["VSwitchIds"]["VSwitchId"]
        if vswitch_id not in users:
            raise refused(404, *VSWITCH.missing)
        rest = {"VSwitchId": [user for user in users if user != vswitch_id]}
        changes = {"Status": "Available", "VSwitchIds": rest}
        self._resources.begin("UnassociateRouteTable", table, "Unassociating", changes)
        return {}

    def create_entry(self, ask: Ask) -> Document:
        """`CreateRouteEntry`: Pending, then Available."""
        table = self._ready(ask)
        cidr = ask.cidr("DestinationCidrBlock")
        hop_type, hop = ask.text("NextHopType") or "Instance", ask.required("NextHopId")
        self._check_destination(table, cidr)
        if hop_type not in _HOPS:
            raise refused(404, "InvalidNextHopId.NotFound", "Specified next hop does not exist.")
        kind, status = _HOPS[hop_type]
        target = self._resources.get(kind, ask.place, hop)
        if target is None or table["VpcId"] not in (target.get("VpcId"), target.get("_accepting_vpc")):
            raise refused(404, "InvalidNextHopId.NotFound", "Specified next hop does not exist.")
        if target["Status"] != status:
            raise refused(400, f"IncorrectStatus.{kind.name}", f"The status of {kind.name} is incorrect.")
        return {"RouteEntryId": self.add_entry(ask, table, str(cidr), hop_type, hop)}

    def add_entry(self, ask: Ask, table: Document, cidr: str, hop_type: str, hop: str) -> str:
        """A new custom entry, without checks; its id."""
        document = _entry(table, cidr, hop_type, hop, "Custom") | {
            "RouteEntryName": ask.text("RouteEntryName") or "",
            "Description": ask.text("Description") or "",
            "VpcId": table["VpcId"],
            "_hop": hop,
        }
        entry = self._resources.add(ask, ENTRY, document)
        self._resources.begin("CreateRouteEntry", entry, "Pending", {"Status": "Available"})
        return str(entry["RouteEntryId"])

    def delete_entry(self, ask: Ask) -> Document:
        """`DeleteRouteEntry`: by its id, or by table, destination and next hop."""
        entry_id = ask.text("RouteEntryId")
        if entry_id is not None:
            entry = self._resources.find(ENTRY, ask.place, entry_id)
        else:
            table_id, cidr = ask.required("RouteTableId"), ask.required("DestinationCidrBlock")
            table = self._resources.find(TABLE, ask.place, table_id)
            matching = [entry for entry in self._entries(table) if entry["DestinationCidrBlock"] == cidr]
            matching = [entry for entry in matching if ask.text("NextHopId") in (None, entry["_hop"])]
            if not matching:
                raise refused(400, *ENTRY.missing)
            entry = matching[0]
        if entry["Status"] != "Available":
            raise refused(400, "IncorrectRouteEntryStatus", "Specified routeEntry status error.")
        self._resources.begin("DeleteRouteEntry", entry, "Deleting", None)
        return {}

    def describe_entries(self, ask: Ask) -> Document:
        """`DescribeRouteEntryList`: custom entries, and those of the system: the vSwitches and Alibaba's services."""
        table = self._resources.find(TABLE, ask.place, ask.required("RouteTableId"))
        wanted = {
            "DestinationCidrBlock": ask.text("DestinationCidrBlock"),
            "RouteEntryId": ask.text("RouteEntryId"),
            "RouteEntryName": ask.text("RouteEntryName"),
            "Type": ask.text("RouteEntryType"),
        }
        found = [
            {name: value for name, value in entry.items() if not name.startswith("_") and name != "VpcId"}
            for entry in [*self._entries(table), *self._system_entries(table)]
            if all(value in (None, entry.get(name)) for name, value in wanted.items())
            and ask.text("NextHopId") in (None, entry.get("_hop"))
        ]
        entries, more = token_page(ask, found, default=20)
        return {"RouteEntrys": {"RouteEntry": entries}, "TotalCount": len(found)} | more

    def _ready(self, ask: Ask) -> Document:
        return self._resources.ready(TABLE, ask.place, ask.required("RouteTableId"), "IncorrectStatus.RouteTable")

    def _inside(self, ask: Ask, vpc_id: str) -> list[Document]:
        return self._resources.inside(TABLE, ask.place, vpc_id)

    def _entries(self, table: Document) -> list[Document]:
        inside = self._resources.inside(ENTRY, table["_place"], table["VpcId"])
        return [entry for entry in inside if entry["RouteTableId"] == table["RouteTableId"]]

    def _system_entries(self, table: Document) -> list[Document]:
        vswitches = self._resources.inside(VSWITCH, table["_place"], table["VpcId"])
        cidrs = [*(vswitch["CidrBlock"] for vswitch in vswitches), str(_SERVICES)]
        return [_entry(table, cidr, "local", "", "System") | {"Status": "Available"} for cidr in cidrs]

    def _check_destination(self, table: Document, cidr: IPv4Network) -> None:
        entries = self._entries(table)
        if len(entries) >= self._resources.limit("vpc_quota_route_entrys_num", _ENTRIES):
            raise refused(400, "QuotaExceeded", "Route entry quota exceeded in this route table.")
        if any(entry["DestinationCidrBlock"] == str(cidr) for entry in entries):
            raise refused(400, "InvalidCIDRBlock.Duplicate", "Specified CIDR block is already exists.")
        vswitches = self._resources.inside(VSWITCH, table["_place"], table["VpcId"])
        taken = [IPv4Network(vswitch["CidrBlock"]) for vswitch in vswitches]
        if any(cidr.subnet_of(network) for network in [*taken, _SERVICES]):
            raise refused(400, "InvalidCidrBlock", "Specified CIDR block is not valid.")


def system_table(ask: Ask, vpc: Document) -> Document:
    """The route table that comes with a VPC."""
    return _table(ask, vpc, "System", "VSwitch") | {"Status": "Available"}


def _table(ask: Ask, vpc: Document, table_type: str, associate_type: str) -> Document:
    custom = table_type == "Custom"
    return {
        "VpcId": vpc["VpcId"],
        "RouterId": vpc["VRouterId"],
        "RouterType": "VRouter",
        "RouteTableType": table_type,
        "RouteTableName": check_name(ask, "RouteTableName", "InvalidRouteTableName.Malformed") if custom else "",
        "Description": check_description(ask, "InvalidDescription.Malformed") if custom else "",
        "AssociateType": associate_type,
        "OwnerId": int(ask.caller.account),
        "ResourceGroupId": vpc["ResourceGroupId"],
        "CreationTime": iso(ask.now),
        "Status": "Pending",
        "VSwitchIds": {"VSwitchId": []},
        "GatewayIds": {"GatewayIds": []},
        "_tags": ask.tags() if custom else {},
    }


def _entry(table: Document, cidr: str, hop_type: str, hop: str, entry_type: str) -> Document:
    return {
        "RouteTableId": table["RouteTableId"],
        "DestinationCidrBlock": cidr,
        "Type": entry_type,
        "IpVersion": "IPv4",
        "Status": "Pending",
        "NextHops": {"NextHop": [{"NextHopId": hop, "NextHopType": hop_type, "Enabled": 1, "Weight": 0}]},
    }
