"""What a shoot has in AWS, found by its cluster tag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.garden.providers.aws.session import Session

ROLE_PUBLIC, ROLE_INTERNAL = "kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"
_GONE = ("deleting", "deleted", "failed")


def cluster_tag(technical_id: str) -> str:
    """The tag key that makes a thing the cluster's own."""
    return f"kubernetes.io/cluster/{technical_id}"


def tags(technical_id: str, name: str, more: Mapping[str, str] | None = None) -> list[Any]:
    """The tags of a thing that is made for the cluster; `name` follows the technical id."""
    full = f"{technical_id}-{name}" if name else technical_id
    values = {cluster_tag(technical_id): "owned", "Name": full, **(more or {})}
    return [{"Key": key, "Value": value} for key, value in values.items()]


def specification(kind: str, technical_id: str, name: str, more: Mapping[str, str] | None = None) -> Any:
    """The same as `TagSpecifications` of a create call."""
    return [{"ResourceType": kind, "Tags": tags(technical_id, name, more)}]


def tag_of(thing: Mapping[str, Any], key: str) -> str:
    """The value of a tag of something described; "" without it."""
    return next((each["Value"] for each in thing.get("Tags", []) if each["Key"] == key), "")


@dataclass
class Inventory:
    """The described things of one cluster in one VPC."""

    subnets: list[Any] = field(default_factory=list)
    route_tables: list[Any] = field(default_factory=list)
    nat_gateways: list[Any] = field(default_factory=list)
    addresses: list[Any] = field(default_factory=list)
    security_groups: list[Any] = field(default_factory=list)
    endpoints: list[Any] = field(default_factory=list)

    @staticmethod
    def named(things: Iterable[Any], name: str) -> Any | None:
        """The one with this `Name` tag."""
        return next((each for each in things if tag_of(each, "Name") == name), None)


def take_inventory(session: Session, technical_id: str, vpc_id: str) -> Inventory:
    """Everything that carries the cluster's tag.

    Asks for the tags first: for a new cluster that is the only call.
    """
    ec2 = session.ec2
    key = cluster_tag(technical_id)
    if not ec2.describe_tags(Filters=[{"Name": "key", "Values": [key]}])["Tags"]:
        return Inventory()
    by_tag: Any = [{"Name": "tag-key", "Values": [key]}]
    in_vpc: Any = [*by_tag, {"Name": "vpc-id", "Values": [vpc_id]}]
    gateways = ec2.describe_nat_gateways(Filters=in_vpc)["NatGateways"]
    return Inventory(
        subnets=list(ec2.describe_subnets(Filters=in_vpc)["Subnets"]),
        route_tables=list(ec2.describe_route_tables(Filters=in_vpc)["RouteTables"]),
        nat_gateways=[each for each in gateways if each["State"] not in _GONE],
        addresses=list(ec2.describe_addresses(Filters=by_tag)["Addresses"]),
        security_groups=list(ec2.describe_security_groups(Filters=in_vpc)["SecurityGroups"]),
        endpoints=list(ec2.describe_vpc_endpoints(Filters=in_vpc)["VpcEndpoints"]),
    )


def machines_of(session: Session, technical_id: str) -> list[Any]:
    """The cluster's instances that live, or are about to."""
    filters: Any = [
        {"Name": "tag-key", "Values": [cluster_tag(technical_id)]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    reservations = session.ec2.describe_instances(Filters=filters)["Reservations"]
    return [instance for reservation in reservations for instance in reservation["Instances"]]
