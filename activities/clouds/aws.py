"""AWS: a VPC as Gardener wants to find it, with what its clusters share.

What Gardener asks of a VPC that it did not make: both DNS attributes, an internet gateway, and DHCP options with the
region's domain name and AmazonProvidedDNS (gardener-extension-provider-aws, pkg/controller/infrastructure:
configvalidator.go and infraflow/reconcile.go). Nodes of different clusters reach each other through one shared
security group, the `nodesSecurityGroupID` of the same repository's pkg/apis/aws/v1alpha1/types_infrastructure.go; its
rules are those that Gardener gives a group of its own.

No create call used here takes an idempotency token, so nothing that changes anything is repeated blindly: a create
whose answer was lost is looked up by its tags, which are part of the create call itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from activities.clouds._aws_errors import attempting
from activities.clouds._aws_inventory import Inventory, described, take_inventory
from domain.errors import Code, TrellisError
from domain.networks import Blocker, Network, NetworkOrder, NetworkRecord, NetworkSeen, Owned
from domain.specs import Provider

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

__all__ = ["AwsCloud"]

_Json = dict[str, Any]

_GATEWAY = "internet-gateway"
_DHCP = "dhcp-options"
_GROUP = "nodes-security-group"
_GROUP_NAME = "trellis-nodes"

_INSTALLATION = "trellis.dev/installation"
_TENANT = "trellis.dev/tenant"
_VPC = "trellis.dev/vpc"
_INCARNATION = "trellis.dev/incarnation"

# Where each kind of ours is listed: the call, its list, its id, and the kind's name in tag specifications.
_LISTS = {
    "vpc": ("describe_vpcs", "Vpcs", "VpcId", "vpc"),
    _GATEWAY: ("describe_internet_gateways", "InternetGateways", "InternetGatewayId", "internet-gateway"),
    _DHCP: ("describe_dhcp_options", "DhcpOptions", "DhcpOptionsId", "dhcp-options"),
    _GROUP: ("describe_security_groups", "SecurityGroups", "GroupId", "security-group"),
}

# EC2 is eventually consistent: what was just made may be unknown for a while, seldom longer than some seconds.
_SETTLE_SECONDS = 60.0
# How long a create without an answer is looked for before it counts as not having happened.
_LOOK_SECONDS = 10.0
_POLL_SECONDS = 1.0

_COMMON: dict[str, Any] = {"connect_timeout": 5, "read_timeout": 30, "user_agent_extra": "trellis"}
_READING = Config(retries={"mode": "standard", "total_max_attempts": 4}, **_COMMON)
_CHANGING = Config(retries={"mode": "standard", "total_max_attempts": 1}, **_COMMON)

_ALL_TRAFFIC: _Json = {"IpProtocol": "-1"}
_ANYWHERE: _Json = {"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
_NODE_PORTS: _Json = {"FromPort": 30000, "ToPort": 32767}
# Blockers named in one message.
_SHOWN = 10


class AwsCloud:
    """One AWS account in one region; see `activities.clouds.Cloud`. Safe to use from several threads."""

    def __init__(
        self,
        region: str,
        secret: Mapping[str, str],
        *,
        installation: str,
        settle_seconds: float = _SETTLE_SECONDS,
        look_seconds: float = _LOOK_SECONDS,
        poll_seconds: float = _POLL_SECONDS,
    ) -> None:
        """A client for `region`.

        Args:
            region: AWS's name of the region, such as `eu-central-1`.
            secret: data of the garden's Secret, with the keys `accessKeyID` and `secretAccessKey`, as Gardener reads
                them (gardener-extension-provider-aws, pkg/aws/types.go).
            installation: what tells this Trellis's resources from another's in the same account.
            settle_seconds: how long what was just made may be unknown to EC2 before it counts as lost.
            look_seconds: how long a create whose answer was lost is looked for.
            poll_seconds: pause between two looks.

        Raises:
            TrellisError: `forbidden` where the secret lacks a key.
        """
        missing = [key for key in ("accessKeyID", "secretAccessKey") if not secret.get(key)]
        if missing:
            raise TrellisError(
                Code.FORBIDDEN,
                f"log in to AWS in {region}: the Secret lacks {' and '.join(missing)}",
                "put an access key into the Secret behind the CredentialsBinding",
            )
        # A session of its own: the default one is neither shared safely between threads nor free of the environment.
        session = boto3.Session(
            aws_access_key_id=secret["accessKeyID"],
            aws_secret_access_key=secret["secretAccessKey"],
            region_name=region,
        )
        self._region = region
        self._installation = installation
        self._settle, self._look, self._poll = settle_seconds, look_seconds, poll_seconds
        with attempting("log in to AWS", region=region):
            self._read: EC2Client = session.client("ec2", config=_READING)
            self._change: EC2Client = session.client("ec2", config=_CHANGING)
            self._sts = session.client("sts", config=_READING)

    # --- Cloud ---------------------------------------------------------------------------------------------------

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """See `Cloud.ensure`. Some six describe calls where nothing is to be done."""
        order = self._checked(record.order)
        with self._visible_soon():
            vpc = self._on_record(order, record.network) if record.network else self._found_or_made(order)
            vpc = self._with_ranges(order, vpc)
            self._ensure_dns(vpc["VpcId"])
            parts = {
                _GATEWAY: self._ensure_gateway(order, vpc["VpcId"]),
                _DHCP: self._ensure_dhcp(order, vpc),
                _GROUP: self._ensure_group(order, vpc["VpcId"]),
            }
            subnets = self._list("describe_subnets", "Subnets", {"vpc-id": [vpc["VpcId"]]})
        return NetworkSeen(
            network=Network(id=vpc["VpcId"], account=vpc["OwnerId"], parts=parts),
            ranges=tuple(sorted(IPv4Network(subnet["CidrBlock"]) for subnet in subnets)),
        )

    def remove(self, record: NetworkRecord) -> None:
        """See `Cloud.remove`."""
        order = self._checked(record.order)
        for vpc_id in self._vpcs_to_remove(record):
            self._remove_vpc(record, vpc_id)
        # Detached ones: their VPC was removed by hand, or they never came to be attached.
        for gateway in self._ours(record, _GATEWAY):
            self._delete_gateway(gateway)
        for options in self._ours(record, _DHCP):
            self._delete_dhcp(order, options["DhcpOptionsId"])

    def blockers(self, record: NetworkRecord) -> tuple[Blocker, ...]:
        """See `Cloud.blockers`."""
        self._checked(record.order)
        return tuple(
            blocker for vpc_id in self._vpcs_to_remove(record) for blocker in self._inventory(record, vpc_id).staying
        )

    def owned(self) -> tuple[Owned, ...]:
        """See `Cloud.owned`."""
        found = []
        for kind, (operation, key, id_key, _) in _LISTS.items():
            for item in self._list(operation, key, {f"tag:{_INSTALLATION}": [self._installation]}):
                tags = _tags_of(item)
                found.append(
                    Owned(
                        kind=kind,
                        id=item[id_key],
                        tenant=tags.get(_TENANT, ""),
                        vpc=tags.get(_VPC, ""),
                        incarnation=tags.get(_INCARNATION, ""),
                    )
                )
        return tuple(sorted(found, key=lambda owned: (owned.kind, owned.id)))

    # --- finding -------------------------------------------------------------------------------------------------

    def _checked(self, order: NetworkOrder) -> NetworkOrder:
        if order.provider is not Provider.AWS or order.region != self._region:
            raise TrellisError(
                Code.INVALID,
                f"VPC {order.vpc} is in {order.region} of {order.provider}, and this client serves "
                f"{self._region} of aws: nothing was touched",
                "a defect in how the worker picks its clients: what is not found in the wrong region is not gone",
            )
        return order

    def _tags(self, order: NetworkOrder) -> dict[str, str]:
        return {
            _INSTALLATION: self._installation,
            _TENANT: order.tenant,
            _VPC: order.vpc,
            _INCARNATION: order.incarnation,
        }

    def _list(self, operation: str, key: str, filters: dict[str, list[str]]) -> list[_Json]:
        with attempting(f"{operation.replace('_', ' ')} in {self._region}", region=self._region, effect=False):
            return described(self._read, operation, key, filters)

    def _tagged(self, order: NetworkOrder, kind: str, vpc_id: str | None = None) -> list[_Json]:
        """What carries all tags of this incarnation, in a stable order; inside one VPC where that is given."""
        operation, key, id_key, _ = _LISTS[kind]
        filters = {f"tag:{name}": [value] for name, value in self._tags(order).items()}
        if vpc_id:
            filters["vpc-id"] = [vpc_id]
        return sorted(self._list(operation, key, filters), key=lambda item: str(item[id_key]))

    def _ours(self, record: NetworkRecord, kind: str, vpc_id: str | None = None) -> list[_Json]:
        """What may be removed: tagged as ours, and on record where there is a record."""
        id_key = _LISTS[kind][2]
        found = self._tagged(record.order, kind, vpc_id)
        if record.network is None:
            return found
        return [item for item in found if item[id_key] == record.network.parts.get(kind)]

    def _vpc(self, vpc_id: str) -> _Json | None:
        return next(iter(self._list("describe_vpcs", "Vpcs", {"vpc-id": [vpc_id]})), None)

    def _vpcs_to_remove(self, record: NetworkRecord) -> list[str]:
        if record.network is None:
            return [vpc["VpcId"] for vpc in self._tagged(record.order, "vpc")]
        vpc = self._vpc(record.network.id)
        if vpc is None:
            self._check_account(record.order, record.network)
            return []
        self._check_tags(record.order, vpc)
        return [vpc["VpcId"]]

    def _check_tags(self, order: NetworkOrder, vpc: _Json) -> None:
        tags = _tags_of(vpc)
        missing = [f"{key}={value}" for key, value in self._tags(order).items() if tags.get(key) != value]
        if missing:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {vpc['VpcId']} in {self._region} is on record for {order.vpc}, and no longer carries the tags "
                f"{', '.join(missing)}: it is left alone",
                "put the tags back, or delete the VPC yourself",
            )

    def _check_account(self, order: NetworkOrder, network: Network) -> None:
        """Refuses where the credentials belong to another account: what is not found there is not gone."""
        if not network.account:
            return
        with attempting(f"ask which account holds VPC {network.id}", region=self._region, effect=False):
            account = self._sts.get_caller_identity()["Account"]
        if account != network.account:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {network.id} of {order.vpc} was made in the AWS account {network.account}, and the credentials "
                f"{order.credentials} now belong to {account}: nothing was touched",
                f"put credentials of account {network.account} back into the CredentialsBinding's Secret",
            )

    # --- making --------------------------------------------------------------------------------------------------

    @contextmanager
    def _visible_soon(self) -> Iterator[None]:
        """While a network is being made, what is not found was made a moment ago, or removed: another look tells."""
        try:
            yield
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise
            raise TrellisError(Code.EVENTUAL, error.failure.message, "tried again by itself") from None

    def _on_record(self, order: NetworkOrder, network: Network) -> _Json:
        vpc = self._await_vpc(order, network)
        self._check_tags(order, vpc)
        return vpc

    def _found_or_made(self, order: NetworkOrder) -> _Json:
        found = self._tagged(order, "vpc")
        if len(found) > 1:
            # Two creates, one of whose answers was lost and which then was invisible for long. Which one to keep
            # cannot be told from here, and neither is in use yet.
            ids = ", ".join(vpc["VpcId"] for vpc in found)
            raise TrellisError(
                Code.CONFLICT,
                f"several VPCs in {self._region} carry the tags of {order.vpc}: {ids}",
                "delete all but one of them, or take the tags away, then retry",
            )
        if found:
            return self._await_vpc(order, Network(id=found[0]["VpcId"]))
        cidr = str(order.cidrs[0])

        def create() -> str:
            made = self._change.create_vpc(CidrBlock=cidr, TagSpecifications=self._specify(order, "vpc"))
            return made["Vpc"]["VpcId"]

        what = f"create VPC {cidr} for {order.vpc} in {self._region}"
        made = self._create(what, create, lambda: self._tagged(order, "vpc"), "vpc")
        return self._await_vpc(order, Network(id=made))

    def _create(self, what: str, create: Callable[[], str], find: Callable[[], list[_Json]], kind: str) -> str:
        """The id of what `create` makes, or, where its answer was lost, of what `find` then finds."""
        try:
            with attempting(what, region=self._region):
                return create()
        except TrellisError as error:
            if error.failure.code not in {Code.LOST_RESPONSE, Code.UNAVAILABLE}:
                raise
            deadline = time.monotonic() + self._look
            while not (found := find()):
                if time.monotonic() > deadline:
                    raise
                time.sleep(self._poll)
            return str(found[0][_LISTS[kind][2]])

    def _specify(self, order: NetworkOrder, kind: str) -> Any:
        tags = {**self._tags(order), "Name": f"trellis/{order.tenant}/{order.vpc}"}
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        return [{"ResourceType": _LISTS[kind][3], "Tags": pairs}]

    def _await_vpc(self, order: NetworkOrder, network: Network) -> _Json:
        """The VPC once it is available. Not found for the whole time means that somebody deleted it."""
        deadline = time.monotonic() + self._settle
        while (vpc := self._vpc(network.id)) is None or vpc["State"] != "available":
            if time.monotonic() > deadline:
                raise self._never_available(order, network, vpc)
            time.sleep(self._poll)
        return vpc

    def _never_available(self, order: NetworkOrder, network: Network, vpc: _Json | None) -> TrellisError:
        if vpc is not None:
            return TrellisError(
                Code.BUSY, f"VPC {network.id} in {self._region} is still {vpc['State']}", "tried again by itself"
            )
        self._check_account(order, network)
        return TrellisError(
            Code.LOST,
            f"VPC {network.id} of {order.vpc} is not there any more in {self._region}: "
            f"not found for {self._settle:.0f} s",
            "somebody else deleted it: delete its clusters, then the name is free again",
        )

    def _with_ranges(self, order: NetworkOrder, vpc: _Json) -> _Json:
        """The VPC once all ranges of the order are associated with it."""
        vpc_id, wanted = vpc["VpcId"], [str(cidr) for cidr in order.cidrs]
        if vpc["CidrBlock"] != wanted[0]:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {vpc_id} of {order.vpc} has the primary range {vpc['CidrBlock']}, not {wanted[0]}",
                "a VPC's primary range cannot be changed: ask for the range it has",
            )
        for cidr in wanted:
            if _range_state(vpc, cidr) is None:
                with attempting(f"add the range {cidr} to VPC {vpc_id} of {order.vpc}", region=self._region):
                    self._change.associate_vpc_cidr_block(VpcId=vpc_id, CidrBlock=cidr)
        deadline = time.monotonic() + self._settle
        while pending := [cidr for cidr in wanted if _range_state(vpc, cidr) != "associated"]:
            if time.monotonic() > deadline:
                raise TrellisError(
                    Code.BUSY, f"VPC {vpc_id}: {', '.join(pending)} is not associated yet", "tried again by itself"
                )
            vpc = self._vpc(vpc_id) or vpc
            if any(_range_state(vpc, cidr) != "associated" for cidr in pending):
                time.sleep(self._poll)
        return vpc

    def _ensure_dns(self, vpc_id: str) -> None:
        # Host names need DNS support, and one call changes one attribute only.
        for attribute, key in (("enableDnsSupport", "EnableDnsSupport"), ("enableDnsHostnames", "EnableDnsHostnames")):
            with attempting(f"read {attribute} of VPC {vpc_id}", region=self._region, effect=False):
                answer: Any = self._read.describe_vpc_attribute(VpcId=vpc_id, Attribute=attribute)  # type: ignore[arg-type]
            if not answer[key]["Value"]:
                change: Any = {key: {"Value": True}}
                with attempting(f"switch on {attribute} of VPC {vpc_id}", region=self._region):
                    self._change.modify_vpc_attribute(VpcId=vpc_id, **change)

    def _ensure_gateway(self, order: NetworkOrder, vpc_id: str) -> str:
        found = self._tagged(order, _GATEWAY)
        attached = {item["InternetGatewayId"] for item in found if vpc_id in _attachments(item)}
        if attached:
            return min(attached)

        def create() -> str:
            made = self._change.create_internet_gateway(TagSpecifications=self._specify(order, _GATEWAY))
            return made["InternetGateway"]["InternetGatewayId"]

        detached = [item["InternetGatewayId"] for item in found if not _attachments(item)]
        gateway = (
            detached[0]
            if detached
            else self._create(
                f"create an internet gateway for VPC {vpc_id}", create, lambda: self._tagged(order, _GATEWAY), _GATEWAY
            )
        )
        others = self._list("describe_internet_gateways", "InternetGateways", {"attachment.vpc-id": [vpc_id]})
        if others:
            raise TrellisError(
                Code.CONFLICT,
                f"attach internet gateway {gateway} to VPC {vpc_id}: {others[0]['InternetGatewayId']} "
                "is attached to it, which Trellis did not make",
                "detach that gateway, then retry",
            )
        with attempting(f"attach internet gateway {gateway} to VPC {vpc_id}", region=self._region):
            self._change.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc_id)
        return gateway

    def _ensure_dhcp(self, order: NetworkOrder, vpc: _Json) -> str:
        found = [item["DhcpOptionsId"] for item in self._tagged(order, _DHCP)]
        if vpc["DhcpOptionsId"] in found:
            return str(vpc["DhcpOptionsId"])
        domain = "ec2.internal" if self._region == "us-east-1" else f"{self._region}.compute.internal"

        def create() -> str:
            made = self._change.create_dhcp_options(
                DhcpConfigurations=[
                    {"Key": "domain-name", "Values": [domain]},
                    {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]},
                ],
                TagSpecifications=self._specify(order, _DHCP),
            )
            return made["DhcpOptions"]["DhcpOptionsId"]

        options = (
            found[0]
            if found
            else self._create(
                f"create DHCP options for VPC {vpc['VpcId']}", create, lambda: self._tagged(order, _DHCP), _DHCP
            )
        )
        with attempting(f"associate DHCP options {options} with VPC {vpc['VpcId']}", region=self._region):
            self._change.associate_dhcp_options(DhcpOptionsId=options, VpcId=vpc["VpcId"])
        return options

    def _ensure_group(self, order: NetworkOrder, vpc_id: str) -> str:
        def find() -> list[_Json]:
            return self._tagged(order, _GROUP, vpc_id)

        def create() -> str:
            return self._change.create_security_group(
                GroupName=_GROUP_NAME,
                Description="Nodes of all clusters in this VPC reach each other",
                VpcId=vpc_id,
                TagSpecifications=self._specify(order, _GROUP),
            )["GroupId"]

        # What EC2 gives a new group: no rule but that everything may leave.
        group: _Json = {"IpPermissions": [], "IpPermissionsEgress": [{**_ALL_TRAFFIC, **_ANYWHERE}]}
        if found := find():
            group, group_id = found[0], str(found[0]["GroupId"])
        else:
            group_id = self._create(f"create the nodes' security group in VPC {vpc_id}", create, find, _GROUP)
        ingress = [
            {**_ALL_TRAFFIC, "UserIdGroupPairs": [{"GroupId": group_id}]},
            {"IpProtocol": "tcp", **_NODE_PORTS, **_ANYWHERE},
            {"IpProtocol": "udp", **_NODE_PORTS, **_ANYWHERE},
        ]
        what = f"open security group {group_id} in VPC {vpc_id}"
        if missing := _missing(ingress, group["IpPermissions"]):
            with attempting(what, region=self._region):
                self._change.authorize_security_group_ingress(GroupId=group_id, IpPermissions=missing)
        if missing := _missing([{**_ALL_TRAFFIC, **_ANYWHERE}], group["IpPermissionsEgress"]):
            with attempting(what, region=self._region):
                self._change.authorize_security_group_egress(GroupId=group_id, IpPermissions=missing)
        return group_id

    # --- removing ------------------------------------------------------------------------------------------------

    def _remove_vpc(self, record: NetworkRecord, vpc_id: str) -> None:
        groups = self._ours(record, _GROUP, vpc_id)
        # A foreign group that one of ours refers to could not be removed by its owner: each would wait for the other.
        for group in groups:
            self._drop_references(group)
        try:
            self._refuse_if_used(record, vpc_id)
            for group_id in (group["GroupId"] for group in groups):
                with self._gone_is_fine(f"delete security group {group_id} of VPC {vpc_id}"):
                    self._change.delete_security_group(GroupId=group_id)
            for gateway in self._ours(record, _GATEWAY):
                self._delete_gateway(gateway)
            with self._gone_is_fine(f"delete VPC {vpc_id} of {record.order.vpc} in {self._region}"):
                self._change.delete_vpc(VpcId=vpc_id)
        except TrellisError as error:
            if error.failure.code is Code.BUSY:
                self._refuse_if_used(record, vpc_id)  # something came in meanwhile: say what
            raise

    def _drop_references(self, group: _Json) -> None:
        group_id = group["GroupId"]
        for direction, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
            rules = _references(group[key], besides=group_id)
            if rules:
                revoke: Any = getattr(self._change, f"revoke_security_group_{direction}")
                with self._gone_is_fine(f"revoke rules of security group {group_id} that name other groups"):
                    revoke(GroupId=group_id, IpPermissions=rules)

    def _delete_gateway(self, gateway: _Json) -> None:
        gateway_id = gateway["InternetGatewayId"]
        for vpc_id in _attachments(gateway):
            with self._gone_is_fine(f"detach internet gateway {gateway_id} from VPC {vpc_id}"):
                self._change.detach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
        with self._gone_is_fine(f"delete internet gateway {gateway_id}"):
            self._change.delete_internet_gateway(InternetGatewayId=gateway_id)

    def _delete_dhcp(self, order: NetworkOrder, options_id: str) -> None:
        try:
            with self._gone_is_fine(f"delete DHCP options {options_id} of {order.vpc}"):
                self._change.delete_dhcp_options(DhcpOptionsId=options_id)
        except TrellisError as error:
            users = self._list("describe_vpcs", "Vpcs", {"dhcp-options-id": [options_id]})
            if error.failure.code is not Code.BUSY or not users:
                raise
            blockers = tuple(Blocker(kind="vpc", id=vpc["VpcId"], name=_tags_of(vpc).get("Name", "")) for vpc in users)
            raise _blocked(f"delete DHCP options {options_id} of {order.vpc}", blockers) from None

    def _inventory(self, record: NetworkRecord, vpc_id: str) -> Inventory:
        ours = {group["GroupId"] for group in self._ours(record, _GROUP, vpc_id)}
        ours |= {gateway["InternetGatewayId"] for gateway in self._ours(record, _GATEWAY)}
        with attempting(f"list what is inside VPC {vpc_id}", region=self._region, effect=False):
            return take_inventory(self._read, vpc_id, frozenset(ours))

    def _refuse_if_used(self, record: NetworkRecord, vpc_id: str) -> None:
        inventory = self._inventory(record, vpc_id)
        what = f"delete VPC {vpc_id} of {record.order.vpc} in {self._region}"
        if inventory.staying:
            raise _blocked(what, inventory.staying)
        if inventory.leaving:
            raise TrellisError(
                Code.BUSY, f"{what}: still being deleted: {_listed(inventory.leaving)}", "tried again by itself"
            )

    @contextmanager
    def _gone_is_fine(self, what: str) -> Iterator[None]:
        try:
            with attempting(what, region=self._region):
                yield
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise


def _tags_of(item: _Json) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}


def _attachments(gateway: _Json) -> list[str]:
    return [attachment["VpcId"] for attachment in gateway["Attachments"]]


def _range_state(vpc: _Json, cidr: str) -> str | None:
    """The state of a range's association; None where it is not, or no longer, associated."""
    for association in vpc["CidrBlockAssociationSet"]:
        state = association["CidrBlockState"]["State"]
        if association["CidrBlock"] == cidr and state in {"associating", "associated"}:
            return str(state)
    return None


def _missing(wanted: list[_Json], have: list[_Json]) -> list[_Json]:
    present = {rule for permission in have for rule in _rules(permission)}
    return [permission for permission in wanted if not _rules(permission) <= present]


def _rules(permission: _Json) -> set[tuple[Any, ...]]:
    """A permission as its single rules; EC2 groups them as it likes."""
    protocol = permission["IpProtocol"]
    ports = (None, None) if protocol == "-1" else (permission.get("FromPort"), permission.get("ToPort"))
    sources = [entry["CidrIp"] for entry in permission.get("IpRanges", [])]
    sources += [entry["GroupId"] for entry in permission.get("UserIdGroupPairs", [])]
    return {(protocol, *ports, source) for source in sources}


def _references(permissions: list[_Json], *, besides: str) -> list[_Json]:
    """The rules that name other groups, as `revoke` wants them."""
    rules = []
    for permission in permissions:
        pairs = [pair for pair in permission.get("UserIdGroupPairs", []) if pair["GroupId"] != besides]
        if pairs:
            head = {key: permission[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in permission}
            rules.append({**head, "UserIdGroupPairs": [{"GroupId": pair["GroupId"]} for pair in pairs]})
    return rules


def _listed(blockers: tuple[Blocker, ...]) -> str:
    shown = ", ".join(str(blocker) for blocker in blockers[:_SHOWN])
    return shown if len(blockers) <= _SHOWN else f"{shown} and {len(blockers) - _SHOWN} more"


def _blocked(what: str, blockers: tuple[Blocker, ...]) -> TrellisError:
    return TrellisError(
        Code.BLOCKED,
        f"{what}: in use by what Trellis did not make: {_listed(blockers)}",
        "remove these, or have their owners do it; the deletion then goes on by itself",
    )
