"""One AWS account in one region: its clients, and how Trellis finds there what it made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import create_loader

from activities.clouds.aws._errors import attempting
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord, Owned

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

__all__ = ["DHCP", "GATEWAY", "GROUP", "VPC", "Account", "Json", "Kind", "attachments", "tags_of"]

Json = dict[str, Any]

_INSTALLATION = "trellis.dev/installation"
_TENANT = "trellis.dev/tenant"
_VPC = "trellis.dev/vpc"
_INCARNATION = "trellis.dev/incarnation"

_COMMON: dict[str, Any] = {"connect_timeout": 5, "read_timeout": 30, "user_agent_extra": "trellis"}
_READING = Config(retries={"mode": "standard", "total_max_attempts": 4}, **_COMMON)
# Nothing that changes anything is repeated blindly: none of the create calls takes an idempotency token.
_CHANGING = Config(retries={"mode": "standard", "total_max_attempts": 1}, **_COMMON)
# EC2's model takes some 20 MiB: once for all accounts, not for each.
_LOADER = create_loader()


@dataclass(frozen=True)
class Kind:
    """Where a kind of resource is listed: the describe call, its list, and the key of its id.

    `name` is the kind's name in a network's parts, and in EC2's tag specifications unless `resource_type` differs.
    """

    name: str
    operation: str
    key: str
    id: str
    resource_type: str


VPC = Kind("vpc", "describe_vpcs", "Vpcs", "VpcId", "vpc")
GATEWAY = Kind(
    "internet-gateway", "describe_internet_gateways", "InternetGateways", "InternetGatewayId", "internet-gateway"
)
DHCP = Kind("dhcp-options", "describe_dhcp_options", "DhcpOptions", "DhcpOptionsId", "dhcp-options")
GROUP = Kind("nodes-security-group", "describe_security_groups", "SecurityGroups", "GroupId", "security-group")
_OURS = (VPC, GATEWAY, DHCP, GROUP)


class Account:
    """An account in a region. Safe to use from several threads."""

    def __init__(self, region: str, secret: Mapping[str, str], *, installation: str) -> None:
        """A client for `region`; see `AwsCloud`."""
        missing = [key for key in ("accessKeyID", "secretAccessKey") if not secret.get(key)]
        if missing:
            raise TrellisError(
                Code.FORBIDDEN,
                f"log in to AWS in {region}: the Secret lacks {' and '.join(missing)}",
                "put an access key into the Secret behind the CredentialsBinding",
            )
        # A session of its own: the default one is not safe to share between threads.
        core = botocore.session.get_session()
        core.register_component("data_loader", _LOADER)
        session = boto3.Session(
            botocore_session=core,
            aws_access_key_id=secret["accessKeyID"],
            aws_secret_access_key=secret["secretAccessKey"],
            region_name=region,
        )
        self.region = region
        self._installation = installation
        with attempting(f"log in to AWS in {region}", region=region):
            self.read: EC2Client = session.client("ec2", config=_READING)
            self.change: EC2Client = session.client("ec2", config=_CHANGING)
            self._sts = session.client("sts", config=_READING)

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes nothing: errors become `TrellisError`."""
        return attempting(what, region=self.region, effect=False)

    def changing(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes something: errors become `TrellisError`, a lost answer included."""
        return attempting(what, region=self.region)

    @contextmanager
    def removing(self, what: str) -> Iterator[None]:
        """Like `changing`, for a removal: what is not there is removed."""
        try:
            with self.changing(what):
                yield
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise

    def described(self, kind: Kind, filters: dict[str, list[str]]) -> list[Json]:
        """All of a kind that pass the filters, by id. Filters also select by id: what is not there is then no error."""
        found: list[Json] = []
        with self.reading(f"list {kind.name} in {self.region}"):
            for page in pages(self.read, kind.operation, filters):
                found += page[kind.key]
        return sorted(found, key=lambda item: str(item[kind.id]))

    def vpc(self, vpc_id: str) -> Json | None:
        """The VPC as EC2 describes it; None where there is none."""
        return next(iter(self.described(VPC, {"vpc-id": [vpc_id]})), None)

    def tagged(self, order: NetworkOrder, kind: Kind, vpc_id: str | None = None) -> list[Json]:
        """What carries all tags of this incarnation; inside one VPC where that is given."""
        filters = {f"tag:{name}": [value] for name, value in self._tags(order).items()}
        if vpc_id:
            filters["vpc-id"] = [vpc_id]
        return self.described(kind, filters)

    def ours(self, record: NetworkRecord, kind: Kind) -> list[Json]:
        """What may be removed: what carries the tags, and is on record where there is a record."""
        found = self.tagged(record.order, kind)
        if record.network is None:
            return found
        return [item for item in found if item[kind.id] in {record.network.id, *record.network.parts.values()}]

    def owned(self) -> tuple[Owned, ...]:
        """Everything that carries this installation's tag."""
        found = []
        for kind in _OURS:
            for item in self.described(kind, {f"tag:{_INSTALLATION}": [self._installation]}):
                tags = tags_of(item)
                found.append(
                    Owned(
                        kind=kind.name,
                        id=item[kind.id],
                        tenant=tags.get(_TENANT, ""),
                        vpc=tags.get(_VPC, ""),
                        incarnation=tags.get(_INCARNATION, ""),
                    )
                )
        return tuple(found)

    def specify(self, order: NetworkOrder, kind: Kind) -> Any:
        """The tags as a create call takes them: a resource never exists without."""
        tags = {**self._tags(order), "Name": f"trellis/{order.tenant}/{order.vpc}"}
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        return [{"ResourceType": kind.resource_type, "Tags": pairs}]

    def check_tags(self, order: NetworkOrder, vpc: Json) -> None:
        """Raises `conflict` where a VPC on record does not carry this incarnation's tags: then it is not ours."""
        if missing := self._missing_tags(order, vpc):
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {vpc['VpcId']} in {self.region} is on record for {order.vpc}, and does not carry the tags "
                f"{', '.join(missing)}: it is left alone",
                "put the tags back, or delete the VPC yourself",
            )

    def carries_tags(self, order: NetworkOrder, item: Json) -> bool:
        """Whether it carries this incarnation's tags."""
        return not self._missing_tags(order, item)

    def check_account(self, order: NetworkOrder, network: Network) -> None:
        """Raises `conflict` where the credentials belong to another account: what is not found there is not gone."""
        if not network.account:
            return
        with self.reading(f"ask which account holds VPC {network.id}"):
            account = self._sts.get_caller_identity()["Account"]
        if account != network.account:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {network.id} of {order.vpc} was made in the AWS account {network.account}, and the credentials "
                f"{order.credentials} belong to {account}: nothing was touched",
                f"put an access key of account {network.account} into the Secret behind the CredentialsBinding",
            )

    def _missing_tags(self, order: NetworkOrder, item: Json) -> list[str]:
        tags = tags_of(item)
        return [f"{key}={value}" for key, value in self._tags(order).items() if tags.get(key) != value]

    def _tags(self, order: NetworkOrder) -> dict[str, str]:
        return {
            _INSTALLATION: self._installation,
            _TENANT: order.tenant,
            _VPC: order.vpc,
            _INCARNATION: order.incarnation,
        }


def pages(client: EC2Client, operation: str, filters: dict[str, list[str]]) -> Iterator[Json]:
    """All pages of a describe call."""
    untyped: Any = client
    # One describe call names its parameter otherwise.
    name = "Filter" if operation == "describe_nat_gateways" else "Filters"
    parameters = {name: [{"Name": key, "Values": values} for key, values in filters.items()]}
    if client.can_paginate(operation):
        yield from untyped.get_paginator(operation).paginate(**parameters)
    else:
        yield getattr(untyped, operation)(**parameters)


def tags_of(item: Json) -> dict[str, str]:
    """A resource's tags; a network interface has them under another key."""
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags") or item.get("TagSet") or []}


def attachments(gateway: Json) -> list[str]:
    """The VPC that an internet gateway is attached to, if any."""
    return [attachment["VpcId"] for attachment in gateway["Attachments"]]
