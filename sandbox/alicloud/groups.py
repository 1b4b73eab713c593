"""Security groups (ECS 2014-05-26).

https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-createsecuritygroup (and
-describesecuritygroups, -describesecuritygroupattribute, -authorizesecuritygroup, -revokesecuritygroup,
-authorizesecuritygroupegress, -revokesecuritygroupegress, -deletesecuritygroup).
"""

from __future__ import annotations

import re
import secrets

from sandbox.alicloud.asks import Ask, json_list
from sandbox.alicloud.errors import refused
from sandbox.alicloud.kinds import GROUP, INSTANCE, VPC
from sandbox.alicloud.names import check_description, check_name
from sandbox.alicloud.resources import Resources, iso, page, tag_list, token_page
from sandbox.clouds import Document, parse_cidr

__all__ = ["Groups"]

# https://www.alibabacloud.com/help/en/ecs/user-guide/limitations: groups of an account in a region; rules of a group.
_GROUPS, _RULES = 100, 200
_PROTOCOLS = ("TCP", "UDP", "ICMP", "ICMPv6", "GRE", "ALL")
_PORTS = re.compile(r"(-1/-1|[0-9]{1,5}/[0-9]{1,5})")
_MOST_PORT = 65535
_RULE = (
    "IpProtocol", "PortRange", "SourceCidrIp", "DestCidrIp", "SourceGroupId", "DestGroupId", "Policy", "Priority",
    "NicType",
)  # fmt: skip


class Groups:
    """The actions on security groups."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def create(self, ask: Ask) -> Document:
        """`CreateSecurityGroup`: in a VPC; there at once."""
        vpc = self._resources.ready(VPC, ask.place, ask.required("VpcId"), "IncorrectVpcStatus")
        if len(self._resources.all(GROUP, ask.place)) >= self._resources.limit("q_security-groups", _GROUPS):
            message = "The maximum number of security groups is reached."
            raise refused(403, "QuotaExceed.SecurityGroup", message)
        document: Document = {
            "SecurityGroupName": check_name(ask, "SecurityGroupName", "InvalidSecurityGroupName.Malformed"),
            "Description": check_description(ask, "InvalidSecurityGroupDiscription.Malformed"),
            "SecurityGroupType": ask.text("SecurityGroupType") or "normal",
            "VpcId": vpc["VpcId"],
            "CreationTime": iso(ask.now),
            "ServiceManaged": False,
            "ResourceGroupId": ask.text("ResourceGroupId") or "",
            "_tags": ask.tags(),
            "_rules": [],
        }
        group = self._resources.add(ask, GROUP, document)
        return {"SecurityGroupId": group["SecurityGroupId"]}

    def describe(self, ask: Ask) -> Document:
        """`DescribeSecurityGroups`: pages by number, or by token where MaxResults or NextToken is given."""
        wanted = {name: ask.text(name) for name in ("VpcId", "SecurityGroupId", "SecurityGroupName")}
        ids = json_list(ask, "SecurityGroupIds")
        found = [
            _listed(group)
            for group in self._resources.seen(GROUP, ask.place)
            if (not ids or group["SecurityGroupId"] in ids)
            and all(value in (None, group[name]) for name, value in wanted.items())
            and ask.has_wanted_tags(group)
        ]
        region = {"RegionId": ask.place.partition("/")[2]}
        if ask.text("MaxResults") or ask.text("NextToken"):
            groups, more = token_page(ask, found, default=10)
            return {"SecurityGroups": {"SecurityGroup": groups}, "TotalCount": len(found)} | more | region
        return page(ask, "SecurityGroups", "SecurityGroup", found, most=100) | region

    def describe_one(self, ask: Ask) -> Document:
        """`DescribeSecurityGroupAttribute`: with its rules."""
        group = self._find(ask)
        direction = (ask.text("Direction") or "all").lower()
        rules = [rule for rule in group["_rules"] if direction in ("all", rule["Direction"])]
        names = ("SecurityGroupId", "SecurityGroupName", "Description", "VpcId")
        return {name: group[name] for name in names} | {
            "RegionId": ask.place.partition("/")[2],
            "InnerAccessPolicy": "Accept",
            "Permissions": {"Permission": rules},
        }

    def authorize(self, ask: Ask) -> Document:
        """`AuthorizeSecurityGroup` and `AuthorizeSecurityGroupEgress`: a rule that is there already is no error."""
        group, direction = self._find(ask), _direction(ask)
        for wanted in _rules(ask):
            rule = self._checked(ask, wanted, direction)
            if not any(_same(rule, other) for other in group["_rules"]):
                stamp = {"SecurityGroupRuleId": f"sgr-{secrets.token_hex(10)}", "CreateTime": iso(ask.now)}
                group["_rules"].append(rule | stamp)
        if len(group["_rules"]) > self._resources.limit("q_vpc-normal-security-group-rule", _RULES):
            raise refused(403, "QuotaExceed.SecurityGroupRule", "The maximum number of rules is reached.")
        self._resources.put(GROUP, group)
        return {}

    def revoke(self, ask: Ask) -> Document:
        """`RevokeSecurityGroup` and `RevokeSecurityGroupEgress`: by id, or by what they say. None there is no error."""
        group, direction = self._find(ask), _direction(ask)
        ids = ask.several("SecurityGroupRuleId")
        wanted = [] if ids else [self._checked(ask, rule, direction) for rule in _rules(ask)]
        group["_rules"] = [
            rule
            for rule in group["_rules"]
            if rule["SecurityGroupRuleId"] not in ids and not any(_same(rule, other) for other in wanted)
        ]
        self._resources.put(GROUP, group)
        return {}

    def delete(self, ask: Ask) -> Document:
        """`DeleteSecurityGroup`: not while an instance is in it, or a rule of another group names it."""
        group = self._find(ask)
        for instance in self._resources.inside(INSTANCE, ask.place, group["VpcId"]):
            if group["SecurityGroupId"] in instance["SecurityGroupIds"]["SecurityGroupId"]:
                message = "There is still instance(s) in the specified security group."
                raise refused(403, "DependencyViolation", message)
        for other in self._resources.all(GROUP, ask.place):
            named = {rule.get(name) for rule in other["_rules"] for name in ("SourceGroupId", "DestGroupId")}
            if other["SecurityGroupId"] != group["SecurityGroupId"] and group["SecurityGroupId"] in named:
                message = "There is still security group(s) that authorize the specified security group."
                raise refused(403, "DependencyViolation", message)
        self._resources.drop(GROUP, group)
        return {}

    def _find(self, ask: Ask) -> Document:
        return self._resources.find(GROUP, ask.place, ask.required("SecurityGroupId"))

    def _checked(self, ask: Ask, rule: Document, direction: str) -> Document:
        protocol = str(rule.get("IpProtocol", "")).upper().replace("ICMPV6", "ICMPv6")
        if protocol not in _PROTOCOLS:
            raise refused(400, "InvalidIpProtocol.Malformed", "The specified parameter IpProtocol is not valid.")
        peer = next(name for name in ("Source", "Dest") if (direction == "ingress") == (name == "Source"))
        cidr, group_id = rule.get(f"{peer}CidrIp"), rule.get(f"{peer}GroupId")
        if group_id:
            self._resources.find(GROUP, ask.place, group_id)
        elif not cidr or parse_cidr(cidr if "/" in cidr else f"{cidr}/32") is None:
            raise refused(400, f"Invalid{peer}CidrIp.Malformed", f"The specified parameter {peer}CidrIp is not valid.")
        return {
            "Direction": direction,
            "IpProtocol": protocol,
            "PortRange": _ports(protocol, str(rule.get("PortRange", ""))),
            f"{peer}CidrIp": cidr or "",
            f"{peer}GroupId": group_id or "",
            "Policy": str(rule.get("Policy") or "Accept").capitalize(),
            "Priority": str(rule.get("Priority") or "1"),
            "NicType": "intranet",
        }


def _ports(protocol: str, text: str) -> str:
    """Ports as `1/200`; `-1/-1` where the protocol has none."""
    if protocol not in ("TCP", "UDP"):
        return "-1/-1"
    first, _, last = text.partition("/")
    if not _PORTS.fullmatch(text) or not -1 <= int(first) <= int(last) <= _MOST_PORT:
        raise refused(400, "InvalidParam.PortRange", "The specified parameter PortRange is not valid.")
    return text


def _rules(ask: Ask) -> list[Document]:
    """The rules in a request: `Permissions.N.*`, or one in parameters of its own."""
    numbered: dict[int, Document] = {}
    for key, value in ask.parameters.items():
        found = re.fullmatch(r"Permissions\.([0-9]{1,3})\.(\w+)", key)
        if found:
            numbered.setdefault(int(found[1]), {})[found[2]] = value
    if numbered:
        return [numbered[number] for number in sorted(numbered)]
    return [{name: ask.parameters[name] for name in _RULE if name in ask.parameters}]


def _direction(ask: Ask) -> str:
    return "egress" if ask.action.endswith("Egress") else "ingress"


def _same(one: Document, other: Document) -> bool:
    return all(one.get(name) == other.get(name) for name in ("Direction", *_RULE))


def _listed(group: Document) -> Document:
    document: Document = {name: value for name, value in group.items() if not name.startswith("_")}
    tags = tag_list(group, "TagKey", "TagValue")
    return document | {"Tags": tags, "RuleCount": len(group["_rules"])}
