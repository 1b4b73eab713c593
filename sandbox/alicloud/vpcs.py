"""VPCs.

https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-createvpc (and -describevpcs,
-describevpcattribute, -modifyvpcattribute, -deletevpc, -associatevpccidrblock, -unassociatevpccidrblock).
"""

from __future__ import annotations

import secrets
from ipaddress import IPv4Network

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import ENTRY, GROUP, NAT, PEERING, TABLE, VPC, VSWITCH
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.resources import Kind, Resources, iso, page, shown
from sandbox.alicloud.tables import system_table
from sandbox.clouds import Document, Refusal, overlapping

__all__ = ["Vpcs", "ranges_of"]

# "You can also use a custom CIDR block other than ..." and "The CIDR block cannot start with 0" (CreateVpc, CidrBlock).
_REFUSED = tuple(map(IPv4Network, ("100.64.0.0/10", "224.0.0.0/4", "127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8")))
_LARGEST, _SMALLEST = 8, 28
_DEFAULT = IPv4Network("172.16.0.0/12")
# https://www.alibabacloud.com/help/en/vpc/user-guide/vpc-quotas
_VPCS, _SECONDARY = 10, 5
# What a VPC may not hold when it is deleted, in the order in which it is told.
_DEPENDENTS = (VSWITCH, NAT, GROUP, TABLE, ENTRY, PEERING)


class Vpcs:
    """The actions on VPCs."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        for verb in ("CreateVpc", "AssociateVpcCidrBlock", "UnassociateVpcCidrBlock"):
            resources.finishing(verb, VPC)
        resources.finishing("DeleteVpc", VPC, self._gone)

    def create(self, ask: Ask) -> Document:
        """`CreateVpc`: Pending, then Available. It brings a system route table."""
        region = ask.place.partition("/")[2]
        limit = self._resources.limit(f"vpc_quota_instances_num_{region}", _VPCS)
        if len(self._resources.all(VPC, ask.place)) >= limit:
            raise refused(400, "QuotaExceeded.Vpc", "VPC quota exceeded.")
        cidr = _checked(ask.cidr("CidrBlock", "InvalidParameter") if ask.text("CidrBlock") else _DEFAULT)
        router = f"vrt-{secrets.token_hex(10)}"
        document: Document = {
            "VpcName": check_name(ask, "VpcName", "InvalidVpcName.Malformed"),
            "Description": check_description(ask, "InvalidVpcDiscription.Malformed"),
            "CidrBlock": str(cidr),
            "SecondaryCidrBlocks": {"SecondaryCidrBlock": []},
            "RegionId": region,
            "OwnerId": int(ask.caller.account),
            "Status": "Pending",
            "IsDefault": False,
            "CreationTime": iso(ask.now),
            "VRouterId": router,
            "ResourceGroupId": ask.text("ResourceGroupId") or "rg-default",
            "EnabledIpv6": False,
            "Ipv6CidrBlock": "",
            "Ipv6CidrBlocks": {"Ipv6CidrBlock": []},
            "UserCidrs": {"UserCidr": []},
            "DnsHostnameStatus": "DISABLED",
            "_tags": ask.tags(),
        }
        vpc = self._resources.add(ask, VPC, document)
        table = self._resources.add(ask, TABLE, system_table(ask, vpc))
        self._resources.begin("CreateVpc", vpc, "Pending", {"Status": "Available"})
        return {
            "VpcId": vpc["VpcId"],
            "VRouterId": router,
            "RouteTableId": table["RouteTableId"],
            "ResourceGroupId": vpc["ResourceGroupId"],
        }

    def describe(self, ask: Ask) -> Document:
        """`DescribeVpcs`."""
        ids, name = ask.several("VpcId"), ask.text("VpcName")
        found = [
            self._listed(vpc)
            for vpc in self._resources.seen(VPC, ask.place)
            if (not ids or vpc["VpcId"] in ids) and name in (None, vpc["VpcName"]) and ask.has_wanted_tags(vpc)
        ]
        if ask.flag("IsDefault"):
            found = []
        return page(ask, "Vpcs", "Vpc", found)

    def describe_one(self, ask: Ask) -> Document:
        """`DescribeVpcAttribute`: with how many resources of which type are inside."""
        vpc_id = ask.required("VpcId")
        vpc = self._resources.find(VPC, ask.place, vpc_id)
        if not self._resources.cloud.visible(VPC.name, f"{ask.place}/{vpc_id}"):
            raise refused(404, *VPC.missing)
        listed = self._listed(vpc)
        inside = [
            {"ResourceType": kind.name, "ResourceCount": len(self._resources.inside(kind, ask.place, vpc_id))}
            for kind in (VSWITCH, TABLE, NAT, GROUP)
        ]
        inside.insert(0, {"ResourceType": "VRouter", "ResourceCount": 1})
        counted = [item for item in inside if item["ResourceCount"]]
        return listed | {"CloudResources": {"CloudResourceSetType": counted}}

    def modify(self, ask: Ask) -> Document:
        """`ModifyVpcAttribute`: name and description."""
        vpc = self._ready(ask)
        if ask.text("VpcName"):
            vpc["VpcName"] = check_name(ask, "VpcName", "InvalidVpcName.Malformed")
        if ask.text("Description"):
            vpc["Description"] = check_description(ask, "InvalidVpcDiscription.Malformed")
        self._resources.put(VPC, vpc)
        return {}

    def delete(self, ask: Ask) -> Document:
        """`DeleteVpc`: Available and empty only. What was removed a moment ago still counts."""
        vpc = self._ready(ask)
        for kind in _DEPENDENTS:
            if any(_counts(item) for item in self._resources.inside(kind, ask.place, vpc["VpcId"])):
                raise _depended(kind.name)
        peerings = self._resources.all(PEERING)
        if any(vpc["VpcId"] == peering["_accepting_vpc"] and _counts(peering) for peering in peerings):
            raise _depended(PEERING.name)
        lagging = self._resources.settling(_DEPENDENTS, ask.place, vpc["VpcId"])
        if lagging is not None:
            raise _depended(lagging.name)
        self._resources.begin("DeleteVpc", vpc, "Pending", None)
        return {}

    def associate(self, ask: Ask) -> Document:
        """`AssociateVpcCidrBlock`: at most five, apart from each other and from the first one."""
        vpc = self._ready(ask, "IncorrectStatus.Vpc")
        cidr = _checked(ask.cidr("SecondaryCidrBlock", "InvalidParameter"))
        secondary = vpc["SecondaryCidrBlocks"]["SecondaryCidrBlock"]
        if len(secondary) >= self._resources.limit("vpc_quota_secondary_cidr_num", _SECONDARY):
            raise refused(400, "QuotaExceeded.SecondaryCidrNum", "The quota of secondary CIDR blocks is exceeded.")
        if overlapping(cidr, [(taken, None) for taken in ranges_of(vpc)]):
            raise refused(400, "InvalidParameter", "Specified CIDR block overlaps with the CIDR blocks of the VPC.")
        changes = {"Status": "Available", "SecondaryCidrBlocks": {"SecondaryCidrBlock": [*secondary, str(cidr)]}}
        self._resources.begin("AssociateVpcCidrBlock", vpc, "Pending", changes)
        return {}

    def unassociate(self, ask: Ask) -> Document:
        """`UnassociateVpcCidrBlock`: not while a vSwitch is in it."""
        vpc = self._ready(ask, "IncorrectStatus.Vpc")
        cidr = ask.cidr("SecondaryCidrBlock", "InvalidParameter")
        secondary = vpc["SecondaryCidrBlocks"]["SecondaryCidrBlock"]
        if str(cidr) not in secondary:
            raise refused(400, "OperationFailed.CidrNotExist", "The specified CIDR block does not exist.")
        for vswitch in self._resources.inside(VSWITCH, ask.place, vpc["VpcId"]):
            if cidr.overlaps(IPv4Network(vswitch["CidrBlock"])):
                raise refused(400, "OperationFailed.CidrInUse", "The specified CIDR block is in use.")
        rest = [other for other in secondary if other != str(cidr)]
        changes = {"Status": "Available", "SecondaryCidrBlocks": {"SecondaryCidrBlock": rest}}
        self._resources.begin("UnassociateVpcCidrBlock", vpc, "Pending", changes)
        return {}

    def _ready(self, ask: Ask, code: str = "IncorrectVpcStatus") -> Document:
        return self._resources.ready(VPC, ask.place, ask.required("VpcId"), code)

    def _listed(self, vpc: Document) -> Document:
        def ids(kind: Kind) -> list[str]:
            return [str(item[kind.id]) for item in self._resources.inside(kind, vpc["_place"], vpc["VpcId"])]

        return shown(vpc) | {
            "VSwitchIds": {"VSwitchId": ids(VSWITCH)},
            "RouterTableIds": {"RouterTableIds": ids(TABLE)},
            "NatGatewayIds": {"NatGatewayIds": ids(NAT)},
        }

    def _gone(self, place: str, vpc: Document) -> None:
        for table in self._resources.inside(TABLE, place, vpc["VpcId"]):
            self._resources.drop(TABLE, table)


def ranges_of(vpc: Document) -> list[IPv4Network]:
    """All ranges of a VPC, the first one first."""
    return [IPv4Network(cidr) for cidr in (vpc["CidrBlock"], *vpc["SecondaryCidrBlocks"]["SecondaryCidrBlock"])]


def _checked(cidr: IPv4Network) -> IPv4Network:
    if not _LARGEST <= cidr.prefixlen <= _SMALLEST or any(cidr.overlaps(other) for other in _REFUSED):
        raise refused(400, "InvalidParameter", "Specified CIDR block is not valid")
    return cidr


def _counts(item: Document) -> bool:
    return item.get("RouteTableType") != "System" and item.get("Status") not in ("Rejected", "Expired")


def _depended(kind: str) -> Refusal:
    return refused(400, f"DependencyViolation.{kind}", f"Specified object has dependent resources {kind}.")
