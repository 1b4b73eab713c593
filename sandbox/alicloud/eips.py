"""Elastic IP addresses.

https://www.alibabacloud.com/help/en/eip/developer-reference/api-vpc-2016-04-28-allocateeipaddress-eips (and
-associateeipaddress, -unassociateeipaddress, -releaseeipaddress, -describeeipaddresses, -modifyeipaddressattribute).
"""

from __future__ import annotations

from ipaddress import IPv4Network

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import EIP, NAT, SNAT
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.resources import Resources, iso, page, shown
from sandbox.clouds import Document

__all__ = ["Eips"]

# RFC 2544: addresses of benchmarks stand for the Internet's.
_ADDRESSES = IPv4Network("198.18.0.0/15")
# https://www.alibabacloud.com/help/en/eip/product-overview/limits: of an account; of a NAT gateway.
_EIPS, _PER_NAT = 20, 20
_CHARGES = ("PayByBandwidth", "PayByTraffic")


class Eips:
    """The actions on elastic IP addresses."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        for verb in ("AssociateEipAddress", "UnassociateEipAddress", "ReleaseEipAddress"):
            resources.finishing(verb, EIP)

    def allocate(self, ask: Ask) -> Document:
        """`AllocateEipAddress`: Available at once."""
        existing = self._resources.all(EIP, ask.place)
        if len(existing) >= self._resources.limit("eip_quota_num", _EIPS):
            raise refused(400, "QuotaExceeded.Eip", "Elastic IP address quota exceeded.")
        charge = ask.text("InternetChargeType") or "PayByBandwidth"
        if charge not in _CHARGES:
            raise refused(400, "InvalidParameter", 'Specified value of "InternetChargeType" is not valid')
        taken = {eip["IpAddress"] for eip in existing}
        address = next(str(one) for one in _ADDRESSES.hosts() if str(one) not in taken)
        document: Document = {
            "IpAddress": address,
            "Name": check_name(ask, "Name", "InvalidName.Malformed"),
            "Description": check_description(ask, "InvalidDescription.Malformed"),
            "Bandwidth": str(ask.number("Bandwidth", 5, 1, 1000)),
            "InternetChargeType": charge,
            "ChargeType": "PostPaid",
            "RegionId": ask.place.partition("/")[2],
            "Status": "Available",
            "BusinessStatus": "Normal",
            "InstanceId": "",
            "InstanceType": "",
            "AllocationTime": iso(ask.now),
            "ResourceGroupId": ask.text("ResourceGroupId") or "rg-default",
            "_tags": ask.tags(),
        }
        eip = self._resources.add(ask, EIP, document)
        return {name: eip[name] for name in ("AllocationId", "ResourceGroupId")} | {"EipAddress": address}

    def describe(self, ask: Ask) -> Document:
        """`DescribeEipAddresses`."""
        ids, addresses = ask.several("AllocationId"), ask.several("EipAddress")
        wanted = {
            "Status": ask.text("Status"),
            "InstanceId": ask.text("AssociatedInstanceId"),
            "Name": ask.text("EipName"),
        }
        found = [
            shown(eip)
            for eip in self._resources.seen(EIP, ask.place)
            if (not ids or eip["AllocationId"] in ids)
            and (not addresses or eip["IpAddress"] in addresses)
            and all(value in (None, eip[name]) for name, value in wanted.items())
            and ask.has_wanted_tags(eip)
        ]
        return page(ask, "EipAddresses", "EipAddress", found, most=100)

    def modify(self, ask: Ask) -> Document:
        """`ModifyEipAddressAttribute`: bandwidth, name and description."""
        eip = self._resources.find(EIP, ask.place, ask.required("AllocationId"))
        if ask.text("Bandwidth"):
            eip["Bandwidth"] = str(ask.number("Bandwidth", 5, 1, 1000))
        if ask.text("Name"):
            eip["Name"] = check_name(ask, "Name", "InvalidName.Malformed")
        if ask.text("Description"):
            eip["Description"] = check_description(ask, "InvalidDescription.Malformed")
        self._resources.put(EIP, eip)
        return {}

    def associate(self, ask: Ask) -> Document:
        """`AssociateEipAddress`: with a NAT gateway; Associating, then InUse."""
        eip = self._ready(ask, "Available")
        if ask.text("InstanceType") != "Nat":
            message = "The specified value of InstanceType is not supported."
            raise refused(400, "InvalidInstanceType.ValueNotSupported", message)
        nat = self._resources.get(NAT, ask.place, ask.required("InstanceId"))
        if nat is None:
            raise refused(400, "InvalidParams.NotFound", "instance not found")
        if nat["Status"] != "Available":
            raise refused(400, "IncorrectStatus.NatGateway", "The status of the NAT gateway is incorrect.")
        bound = [other for other in self._resources.all(EIP, ask.place) if other["InstanceId"] == nat["NatGatewayId"]]
        if len(bound) >= self._resources.limit("natgw_quota_eip_num_per_nat", _PER_NAT):
            raise refused(400, "QuotaExceeded.EipPerNat", "The number of EIPs of the NAT gateway exceeds the quota.")
        bind = {"InstanceId": nat["NatGatewayId"], "InstanceType": "Nat"}
        self._resources.begin("AssociateEipAddress", eip | bind, "Associating", {"Status": "InUse"})
        return {}

    def unassociate(self, ask: Ask) -> Document:
        """`UnassociateEipAddress`: not while an SNAT entry uses it."""
        eip = self._ready(ask, "InUse")
        if ask.text("InstanceId") not in (None, eip["InstanceId"]):
            raise refused(400, "InvalidInstanceId.NotFound", "Specified instance does not exist.")
        entries = self._resources.all(SNAT, ask.place)
        users = [entry for entry in entries if entry["NatGatewayId"] == eip["InstanceId"]]
        if any(eip["IpAddress"] in entry["SnatIp"].split(",") for entry in users):
            raise refused(400, "InvalidIpStatus.HasBeenUsedBySnatTable", "The IP is used by SNAT table.")
        changes = {"Status": "Available", "InstanceId": "", "InstanceType": ""}
        self._resources.begin("UnassociateEipAddress", eip, "Unassociating", changes)
        return {}

    def release(self, ask: Ask) -> Document:
        """`ReleaseEipAddress`: one that nothing uses."""
        eip = self._ready(ask, "Available")
        self._resources.begin("ReleaseEipAddress", eip, "Releasing", None)
        return {}

    def _ready(self, ask: Ask, status: str) -> Document:
        return self._resources.ready(EIP, ask.place, ask.required("AllocationId"), "IncorrectEipStatus", status=status)
