"""Instances (ECS 2014-05-26), as far as networks have to do with them: each has an address in a vSwitch.

https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-runinstances (and -describeinstances,
-deleteinstance, -deleteinstances).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network

from sandbox.alicloud.asks import Ask, json_list
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import ENTRY, GROUP, INSTANCE, VSWITCH
from sandbox.alicloud.names import check_name
from sandbox.alicloud.resources import Resources, iso, page, tag_list, token_page
from sandbox.clouds import Document

__all__ = ["Instances"]

_TYPE = re.compile(r"ecs\.[a-z0-9-]+\.[a-z0-9]+")
_IMAGE = re.compile(r"m-[a-z0-9]+")
_MOST_AT_ONCE = 100
# The first address of a vSwitch and its last three are reserved (CreateVSwitch).
_FIRST, _LAST = 1, -4


class Instances:
    """The actions on instances."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        for verb in ("RunInstances", "DeleteInstance", "DeleteInstances"):
            resources.finishing(verb, INSTANCE, self._gone if verb.startswith("Delete") else None)

    def run(self, ask: Ask) -> Document:
        """`RunInstances`: Pending, then Running."""
        if not _TYPE.fullmatch(ask.required("InstanceType")):
            message = "The specified InstanceType does not exist or beyond the permitted range."
            raise refused(403, "InvalidInstanceType.ValueNotSupported", message)
        if not _IMAGE.fullmatch(ask.required("ImageId")):
            raise refused(404, "InvalidImageId.NotFound", "The specified ImageId does not exist.")
        vswitch = self._resources.ready(VSWITCH, ask.place, ask.required("VSwitchId"), "InvalidVSwitchId.NotFound")
        if ask.text("ZoneId") not in (None, vswitch["ZoneId"]):
            message = "The specified ZoneId and the zone of the VSwitch are not the same."
            raise refused(400, "InvalidParameter.Mismatch", message)
        groups = ask.several("SecurityGroupIds") or [ask.required("SecurityGroupId")]
        for group_id in groups:
            if self._resources.find(GROUP, ask.place, group_id)["VpcId"] != vswitch["VpcId"]:
                message = "The specified security group and VSwitch are not in the same VPC."
                raise refused(400, "InvalidParameter.Mismatch", message)
        made = [self._run(ask, vswitch, groups) for _ in range(ask.number("Amount", 1, 1, _MOST_AT_ONCE))]
        return {"InstanceIdSets": {"InstanceIdSet": made}}

    def describe(self, ask: Ask) -> Document:
        """`DescribeInstances`: pages by number, or by token where MaxResults or NextToken is given."""
        ids = json_list(ask, "InstanceIds")
        wanted = {"VpcId": ask.text("VpcId"), "_vswitch": ask.text("VSwitchId"), "Status": ask.text("Status")}
        group = ask.text("SecurityGroupId")
        found = [
            _listed(instance)
            for instance in self._resources.seen(INSTANCE, ask.place)
            if (not ids or instance["InstanceId"] in ids)
            and all(value in (None, instance[name]) for name, value in wanted.items())
            and (group is None or group in instance["SecurityGroupIds"]["SecurityGroupId"])
            and ask.has_wanted_tags(instance)
        ]
        if ask.text("MaxResults") or ask.text("NextToken"):
            instances, more = token_page(ask, found, default=10)
            return {"Instances": {"Instance": instances}, "TotalCount": len(found)} | more
        return page(ask, "Instances", "Instance", found, most=100)

    def delete(self, ask: Ask) -> Document:
        """`DeleteInstance` and `DeleteInstances`: running ones with `Force` only."""
        named = ask.several("InstanceId")
        instances = [self._resources.find(INSTANCE, ask.place, one) for one in named or [ask.required("InstanceId")]]
        for instance in instances:
            if instance["Status"] == "Pending" or (instance["Status"] == "Running" and not ask.flag("Force")):
                message = "The current status of the resource does not support this operation."
                raise refused(403, "IncorrectInstanceStatus", message)
            if instance["Status"] == "Running":
                self._resources.begin(ask.action, instance, "Stopping", None)
        return {}

    def _run(self, ask: Ask, vswitch: Document, groups: list[str]) -> str:
        document: Document = {
            "InstanceName": check_name(ask, "InstanceName", "InvalidInstanceName.Malformed"),
            "HostName": ask.text("HostName") or "",
            "InstanceType": ask.required("InstanceType"),
            "ImageId": ask.required("ImageId"),
            "RegionId": ask.place.partition("/")[2],
            "ZoneId": vswitch["ZoneId"],
            "InstanceNetworkType": "vpc",
            "Status": "Pending",
            "CreationTime": iso(ask.now),
            "SecurityGroupIds": {"SecurityGroupId": groups},
            "VpcAttributes": {
                "VpcId": vswitch["VpcId"],
                "VSwitchId": vswitch["VSwitchId"],
                "PrivateIpAddress": {"IpAddress": [self._free_address(vswitch)]},
            },
            "VpcId": vswitch["VpcId"],
            "_vswitch": vswitch["VSwitchId"],
            "_tags": ask.tags(),
        }
        instance = self._resources.add(ask, INSTANCE, document)
        self._resources.begin("RunInstances", instance, "Pending", {"Status": "Running"})
        return str(instance["InstanceId"])

    def _free_address(self, vswitch: Document) -> str:
        inside = self._resources.inside(INSTANCE, vswitch["_place"], vswitch["VpcId"])
        taken = {instance["VpcAttributes"]["PrivateIpAddress"]["IpAddress"][0] for instance in inside}
        cidr = IPv4Network(vswitch["CidrBlock"])
        for index in range(_FIRST, cidr.num_addresses + _LAST + 1):
            if str(cidr[index]) not in taken:
                return str(cidr[index])
        raise refused(403, "InvalidVSwitchId.IpNotEnough", "The specified VSwitch has not enough IP addresses.")

    def _gone(self, place: str, instance: Document) -> None:
        for route in self._resources.inside(ENTRY, place, instance["VpcId"]):
            if route["_hop"] == instance["InstanceId"]:
                self._resources.drop(ENTRY, route)


def _listed(instance: Document) -> Document:
    document: Document = {
        name: value for name, value in instance.items() if not name.startswith("_") and name != "VpcId"
    }
    return document | {"Tags": tag_list(instance, "TagKey", "TagValue")}
