"""What a shoot has in Alibaba Cloud, found by its cluster tag (provider-alicloud, `infraflow/context.go`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.garden.providers.alicloud.session import Json, Session, tag_of, tagged

__all__ = ["Inventory", "Look", "cluster_tag", "machines_of", "tags"]

_CLUSTERS = "kubernetes.io/cluster/"


def cluster_tag(technical_id: str) -> str:
    """The tag key that makes a thing the cluster's own."""
    return f"{_CLUSTERS}{technical_id}"


def tags(technical_id: str, suffix: str) -> dict[str, str]:
    """The tags of a thing that is made for the cluster."""
    name = f"{technical_id}-{suffix}" if suffix else technical_id
    return {cluster_tag(technical_id): "1", "Name": name}


class Look:
    """Lists, by what is in them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def vpcs(self, **query: Any) -> list[Json]:
        """VPCs."""
        return self._session.listed("vpc", "DescribeVpcs", ("Vpcs", "Vpc"), **query)

    def vswitches(self, **query: Any) -> list[Json]:
        """VSwitches."""
        return self._session.listed("vpc", "DescribeVSwitches", ("VSwitches", "VSwitch"), **query)

    def nat_gateways(self, **query: Any) -> list[Json]:
        """NAT gateways."""
        return self._session.listed("vpc", "DescribeNatGateways", ("NatGateways", "NatGateway"), **query)

    def addresses(self, **query: Any) -> list[Json]:
        """Elastic IP addresses."""
        return self._session.listed("vpc", "DescribeEipAddresses", ("EipAddresses", "EipAddress"), **query)

    def snat_entries(self, **query: Any) -> list[Json]:
        """SNAT entries."""
        listing = ("SnatTableEntries", "SnatTableEntry")
        return self._session.listed("vpc", "DescribeSnatTableEntries", listing, **query)

    def route_tables(self, **query: Any) -> list[Json]:
        """Route tables."""
        listing = ("RouterTableList", "RouterTableListType")
        return self._session.listed("vpc", "DescribeRouteTableList", listing, **query)

    def custom_routes(self, table: str, **query: Any) -> list[Json]:
        """The custom entries of a route table, all pages."""
        found: list[Json] = []
        more: dict[str, str] = {}
        while True:
            answer = self._session.call(
                "vpc",
                "DescribeRouteEntryList",
                RouteTableId=table,
                RouteEntryType="Custom",
                MaxResults=100,
                **query,
                **more,
            )
            found += answer["RouteEntrys"]["RouteEntry"]
            if not answer.get("NextToken"):
                return found
            more = {"NextToken": answer["NextToken"]}

    def security_groups(self, **query: Any) -> list[Json]:
        """Security groups."""
        return self._session.listed("ecs", "DescribeSecurityGroups", ("SecurityGroups", "SecurityGroup"), **query)

    def instances(self, **query: Any) -> list[Json]:
        """Instances."""
        return self._session.listed("ecs", "DescribeInstances", ("Instances", "Instance"), **query)

    def instance(self, instance_id: str) -> list[Json]:
        """One instance, or nothing."""
        return self.instances(InstanceIds=json.dumps([instance_id]))


@dataclass(frozen=True)
class Inventory:
    """The listed things of one cluster in one VPC."""

    vswitches: list[Json]
    route_tables: list[Json]
    nat_gateways: list[Json]
    addresses: list[Json]
    security_groups: list[Json]

    @classmethod
    def of(cls, session: Session, technical_id: str, vpc: str) -> Inventory:
        """Everything that carries the cluster's tag."""
        look = Look(session)
        by_tag = tagged({cluster_tag(technical_id): "1"})
        return cls(
            vswitches=look.vswitches(VpcId=vpc, **by_tag),
            route_tables=look.route_tables(VpcId=vpc, **by_tag),
            nat_gateways=look.nat_gateways(VpcId=vpc, **by_tag),
            addresses=look.addresses(**by_tag),
            security_groups=look.security_groups(VpcId=vpc, **by_tag),
        )

    @staticmethod
    def named(things: Iterable[Json], name: str) -> Json | None:
        """The one with this `Name` tag."""
        return next((each for each in things if tag_of(each, "Name") == name), None)


def clusters_of(thing: Mapping[str, Any]) -> list[str]:
    """The clusters whose tags something carries."""
    keys = [each.get("Key") or each.get("TagKey") for each in thing["Tags"]["Tag"]]
    return [key.removeprefix(_CLUSTERS) for key in keys if key.startswith(_CLUSTERS)]


def machines_of(session: Session, technical_id: str) -> list[Json]:
    """The cluster's instances that live, or are about to."""
    found = Look(session).instances(**tagged({cluster_tag(technical_id): "1"}))
    return [each for each in found if each["Status"] in ("Pending", "Starting", "Running")]
