"""Making a network, or finding what an earlier attempt made of it, and mending what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import Any

from activities.clouds.aws._account import DHCP, GATEWAY, GROUP, VPC, Account, Json, Kind
from activities.clouds.aws._patience import Patience
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkRecord, NetworkSeen

__all__ = ["ensure"]

_GROUP_NAME = "trellis-nodes"
_SUBNET = Kind("subnet", "describe_subnets", "Subnets", "SubnetId", "subnet")

_ALL_TRAFFIC: Json = {"IpProtocol": "-1"}
_ANYWHERE: Json = {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
_NODE_PORTS: Json = {"FromPort": 30000, "ToPort": 32767}
_LEAVING_RULES: list[Json] = [{**_ALL_TRAFFIC, **_ANYWHERE}]


def ensure(account: Account, record: NetworkRecord, patience: Patience) -> NetworkSeen:
    """See `Cloud.ensure`."""
    with _visible_soon():
        return _Ensuring(account, record, patience).network(record.network)


@contextmanager
def _visible_soon() -> Iterator[None]:
    """While a network is being made, what is not found was made a moment ago: another look tells."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise
        raise TrellisError(Code.EVENTUAL, error.failure.message, "tried again by itself") from None


class _Ensuring:
    def __init__(self, account: Account, record: NetworkRecord, patience: Patience) -> None:
        self._account = account
        self._order = record.order
        self._recorded = frozenset(record.network.parts) if record.network else frozenset()
        self._patience = patience

    def network(self, recorded: Network | None) -> NetworkSeen:
        vpc = self._await_vpc(recorded) if recorded else self._found_or_made()
        self._account.check_tags(self._order, vpc)
        vpc = self._with_ranges(vpc)
        vpc_id = vpc["VpcId"]
        self._ensure_dns(vpc_id)
        parts = {
            GATEWAY.name: self._ensure_gateway(vpc_id),
            DHCP.name: self._ensure_dhcp(vpc),
            GROUP.name: self._ensure_group(vpc_id),
        }
        subnets = self._account.described(_SUBNET, {"vpc-id": [vpc_id]})
        return NetworkSeen(
            network=Network(id=vpc_id, account=vpc["OwnerId"], parts=parts),
            ranges=tuple(sorted(IPv4Network(subnet["CidrBlock"]) for subnet in subnets)),
        )

    # --- the VPC itself --------------------------------------------------------------------------------------------

    def _found_or_made(self) -> Json:
        found = self._account.tagged(self._order, VPC)
        if len(found) > 1:
            # Two creates, one of whose answers was lost and which was invisible for long. Which one to keep cannot be
            # told from here.
            raise TrellisError(
                Code.CONFLICT,
                f"several VPCs in {self._account.region} carry the tags of {self._order.vpc}: "
                f"{', '.join(vpc['VpcId'] for vpc in found)}",
                "delete all but one of them, or take the tags away, then retry",
            )
        if found:
            return self._await_vpc(Network(id=found[0]["VpcId"]))
        cidr = str(self._order.cidrs[0])

        def create() -> str:
            tags = self._account.specify(self._order, VPC)
            return self._account.change.create_vpc(CidrBlock=cidr, TagSpecifications=tags)["Vpc"]["VpcId"]

        what = f"create VPC {cidr} for {self._order.vpc} in {self._account.region}"
        return self._await_vpc(Network(id=self._made(VPC, what, create)))

    def _made(self, kind: Kind, what: str, create: Callable[[], str], vpc_id: str | None = None) -> str:
        """The id of what `create` makes, or, where its answer was lost, of what then carries the tags."""
        try:
            with self._account.changing(what):
                return create()
        except TrellisError as error:
            if error.failure.code not in {Code.LOST_RESPONSE, Code.UNAVAILABLE}:
                raise
            deadline = time.monotonic() + self._patience.look
            while not (found := self._account.tagged(self._order, kind, vpc_id)):
                if time.monotonic() > deadline:
                    raise
                time.sleep(self._patience.poll)
            return str(found[0][kind.id])

    def _await_vpc(self, network: Network) -> Json:
        """The VPC once it is available. Not found for the whole time means that somebody deleted it."""
        deadline = time.monotonic() + self._patience.settle
        while (vpc := self._account.vpc(network.id)) is None or vpc["State"] != "available":
            if time.monotonic() > deadline:
                raise self._never_available(network, vpc)
            time.sleep(self._patience.poll)
        return vpc

    def _never_available(self, network: Network, vpc: Json | None) -> TrellisError:
        region = self._account.region
        if vpc is not None:
            return TrellisError(
                Code.BUSY, f"VPC {network.id} in {region} is still {vpc['State']}", "tried again by itself"
            )
        self._account.check_account(self._order, network)
        return TrellisError(
            Code.LOST,
            f"VPC {network.id} of {self._order.vpc} is not there any more in {region}: "
            f"not found for {self._patience.settle:.0f} s",
            "somebody else deleted it: delete its clusters, then the name is free again",
        )

    def _with_ranges(self, vpc: Json) -> Json:
        """The VPC once all ranges of the order are associated with it."""
        vpc_id, wanted = vpc["VpcId"], [str(cidr) for cidr in self._order.cidrs]
        if vpc["CidrBlock"] != wanted[0]:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {vpc_id} of {self._order.vpc} has the primary range {vpc['CidrBlock']}, not {wanted[0]}",
                "a VPC's primary range cannot be changed: ask for the range it has",
            )
        for cidr in wanted:
            if _range_state(vpc, cidr) is None:
                with self._account.changing(f"add the range {cidr} to VPC {vpc_id} of {self._order.vpc}"):
                    self._account.change.associate_vpc_cidr_block(VpcId=vpc_id, CidrBlock=cidr)
        deadline = time.monotonic() + self._patience.settle
        while pending := [cidr for cidr in wanted if _range_state(vpc, cidr) != "associated"]:
            if time.monotonic() > deadline:
                raise TrellisError(
                    Code.BUSY, f"VPC {vpc_id}: {', '.join(pending)} is not associated yet", "tried again by itself"
                )
            time.sleep(self._patience.poll)
            vpc = self._account.vpc(vpc_id) or vpc
        return vpc

    # --- what goes with it -----------------------------------------------------------------------------------------

    def _ensure_dns(self, vpc_id: str) -> None:
        # Host names need DNS support, and one call reads or changes one attribute only.
        for key in ("EnableDnsSupport", "EnableDnsHostnames"):
            attribute: Any = key[0].lower() + key[1:]
            with self._account.reading(f"read {attribute} of VPC {vpc_id}"):
                answer: Any = self._account.read.describe_vpc_attribute(VpcId=vpc_id, Attribute=attribute)
            if not answer[key]["Value"]:
                change: Any = {key: {"Value": True}}
                with self._account.changing(f"switch on {attribute} of VPC {vpc_id}"):
                    self._account.change.modify_vpc_attribute(VpcId=vpc_id, **change)

    def _found(self, kind: Kind, vpc_id: str | None = None) -> list[Json]:
        """What carries the tags. What is on record was there before: it is looked for until patience ends."""
        deadline = time.monotonic() + self._patience.look
        while not (found := self._account.tagged(self._order, kind, vpc_id)):
            if kind.name not in self._recorded or time.monotonic() > deadline:
                break
            time.sleep(self._patience.poll)
        return found

    def _ensure_gateway(self, vpc_id: str) -> str:
        # A VPC has one at most.
        for gateway in self._account.described(GATEWAY, {"attachment.vpc-id": [vpc_id]}):
            if not self._account.carries_tags(self._order, gateway):
                raise TrellisError(
                    Code.CONFLICT,
                    f"attach an internet gateway to VPC {vpc_id}: {gateway['InternetGatewayId']} is attached already, "
                    "which Trellis did not make",
                    "detach that gateway, then retry",
                )
            return str(gateway["InternetGatewayId"])
        found = self._found(GATEWAY)
        ours = [str(gateway["InternetGatewayId"]) for gateway in found]
        for gateway in found:  # the look by attachment may have been too early
            if any(attachment["VpcId"] == vpc_id for attachment in gateway["Attachments"]):
                return str(gateway["InternetGatewayId"])

        def create() -> str:
            tags = self._account.specify(self._order, GATEWAY)
            made = self._account.change.create_internet_gateway(TagSpecifications=tags)
            return made["InternetGateway"]["InternetGatewayId"]

        gateway_id = ours[0] if ours else self._made(GATEWAY, f"create an internet gateway for VPC {vpc_id}", create)
        with self._account.changing(f"attach internet gateway {gateway_id} to VPC {vpc_id}"):
            self._account.change.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
        return gateway_id

    def _ensure_dhcp(self, vpc: Json) -> str:
        vpc_id, current = vpc["VpcId"], str(vpc["DhcpOptionsId"])
        found = [str(options["DhcpOptionsId"]) for options in self._found(DHCP)]
        if current in found:
            return current
        region = self._account.region
        domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"

        def create() -> str:
            made = self._account.change.create_dhcp_options(
                DhcpConfigurations=[
                    {"Key": "domain-name", "Values": [domain]},
                    {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]},
                ],
                TagSpecifications=self._account.specify(self._order, DHCP),
            )
            return made["DhcpOptions"]["DhcpOptionsId"]

        options_id = found[0] if found else self._made(DHCP, f"create DHCP options for VPC {vpc_id}", create)
        with self._account.changing(f"associate DHCP options {options_id} with VPC {vpc_id}"):
            self._account.change.associate_dhcp_options(DhcpOptionsId=options_id, VpcId=vpc_id)
        return options_id

    def _ensure_group(self, vpc_id: str) -> str:
        def create() -> str:
            return self._account.change.create_security_group(
                GroupName=_GROUP_NAME,
                Description="Nodes of all clusters in this VPC reach each other",
                VpcId=vpc_id,
                TagSpecifications=self._account.specify(self._order, GROUP),
            )["GroupId"]

        if found := self._found(GROUP, vpc_id):
            group = found[0]
        else:
            made = self._made(GROUP, f"create the nodes' security group in VPC {vpc_id}", create, vpc_id)
            # What EC2 gives a new group: no rule but that everything may leave.
            group = {"GroupId": made, "IpPermissions": [], "IpPermissionsEgress": _LEAVING_RULES}
        self._ensure_rules(group)
        return str(group["GroupId"])

    def _ensure_rules(self, group: Json) -> None:
        group_id = group["GroupId"]
        entering: list[Json] = [
            {**_ALL_TRAFFIC, "UserIdGroupPairs": [{"GroupId": group_id}]},
            {"IpProtocol": "tcp", **_NODE_PORTS, **_ANYWHERE},
            {"IpProtocol": "udp", **_NODE_PORTS, **_ANYWHERE},
        ]
        for direction, key, wanted in (
            ("ingress", "IpPermissions", entering),
            ("egress", "IpPermissionsEgress", _LEAVING_RULES),
        ):
            if missing := _missing(wanted, group[key]):
                authorize: Any = getattr(self._account.change, f"authorize_security_group_{direction}")
                with self._account.changing(f"add {direction} rules to security group {group_id}"):
                    authorize(GroupId=group_id, IpPermissions=missing)


def _range_state(vpc: Json, cidr: str) -> str | None:
    """The state of a range's association; None where it is not, or no longer, associated."""
    for association in vpc["CidrBlockAssociationSet"]:
        state = association["CidrBlockState"]["State"]
        if association["CidrBlock"] == cidr and state in {"associating", "associated"}:
            return str(state)
    return None


def _missing(wanted: list[Json], have: list[Json]) -> list[Json]:
    present = {rule for permission in have for rule in _rules(permission)}
    return [permission for permission in wanted if not _rules(permission) <= present]


def _rules(permission: Json) -> set[tuple[Any, ...]]:
    """A permission as its single rules; EC2 groups them as it likes."""
    protocol = permission["IpProtocol"]
    ports = (None, None) if protocol == "-1" else (permission.get("FromPort"), permission.get("ToPort"))
    sources = [entry["CidrIp"] for entry in permission.get("IpRanges", [])]
    sources += [entry["GroupId"] for entry in permission.get("UserIdGroupPairs", [])]
    return {(protocol, *ports, source) for source in sources}
