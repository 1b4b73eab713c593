"""One Alibaba Cloud account in one region: its clients, and how Trellis finds there what it made."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from alibabacloud_tea_openapi.client import Client as AnyClient
from alibabacloud_tea_openapi.utils_models import Config, OpenApiRequest, Params
from alibabacloud_vpc20160428 import models
from alibabacloud_vpc20160428.client import Client as VpcClient
from darabonba.runtime import RuntimeOptions

from activities.clouds.alicloud._errors import attempting
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, Owned

__all__ = ["Account", "Json", "Patience", "tags_of"]

Json = dict[str, Any]

_INSTALLATION = "trellis.dev/installation"
_TENANT = "trellis.dev/tenant"
_VPC = "trellis.dev/vpc"
_INCARNATION = "trellis.dev/incarnation"

_REGION = re.compile(r"[a-z]+(-[a-z0-9]+)+")
_PAGE = 50
# Products without an SDK of their own here, which the SDK's generic call reaches: version, and where they answer.
_ECS, _PEER, _STS = "2014-05-26", "2022-01-01", "2015-04-01"
_HOSTS = {"ECS": "ecs.{region}.aliyuncs.com", "VPCPEER": "vpcpeer.aliyuncs.com", "STS": "sts.{region}.aliyuncs.com"}


@dataclass(frozen=True)
class Patience:
    """How long the VPC service may take, in seconds.

    `settle`: until what was just made, or is on record, and cannot be seen, counts as lost; and how long a VPC that is
    empty, or on its way out, is waited for. `poll`: between two looks.
    """

    settle: float = 60.0
    poll: float = 1.0


class Account:
    """An account in a region. Safe to use from several threads."""

    def __init__(self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience) -> None:
        """Clients for `region`; see `AlicloudCloud`."""
        missing = [key for key in ("accessKeyID", "accessKeySecret") if not secret.get(key)]
        if missing:
            raise TrellisError(
                Code.FORBIDDEN,
                f"log in to Alibaba Cloud in {region}: the Secret lacks {' and '.join(missing)}",
                "put an access key into the Secret behind the CredentialsBinding",
            )
        if not _REGION.fullmatch(region):
            raise TrellisError(
                Code.INVALID, f"{region!r} is no region of Alibaba Cloud", "use a name such as eu-central-1"
            )
        self.region, self.patience = region, patience
        self._installation = installation
        self._runtime = RuntimeOptions()
        with attempting(f"log in to Alibaba Cloud in {region}", region=region):
            self._client = VpcClient(_config(region, secret, "VPC"))
            self._others = {
                product: AnyClient(_config(region, secret, product, host.format(region=region)))
                for product, host in _HOSTS.items()
            }

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes nothing: errors become `TrellisError`."""
        return attempting(what, region=self.region, effect=False)

    def changing(self, what: str) -> AbstractContextManager[None]:
        """Around a call that changes something: errors become `TrellisError`, a lost answer included."""
        return attempting(what, region=self.region)

    # --- VPCs ------------------------------------------------------------------------------------------------------

    def vpc(self, vpc_id: str) -> Json | None:
        """The VPC as the service lists it; None where there is none."""
        return next(iter(self._vpcs(vpc_id=vpc_id)), None)

    def tagged(self, order: NetworkOrder) -> list[Json]:
        """The VPCs that carry all tags of this incarnation."""
        return self._vpcs(tags=self._tags(order))

    def owned(self) -> tuple[Owned, ...]:
        """Everything that carries this installation's tag."""
        found = []
        for vpc in self._vpcs(tags={_INSTALLATION: self._installation}):
            tags = tags_of(vpc)
            found.append(
                Owned(
                    kind="vpc",
                    id=vpc["VpcId"],
                    tenant=tags.get(_TENANT, ""),
                    vpc=tags.get(_VPC, ""),
                    incarnation=tags.get(_INCARNATION, ""),
                )
            )
        return tuple(found)

    def create_vpc(self, order: NetworkOrder) -> str:
        """The id of a new VPC, or of the one that an earlier call for the same incarnation made."""
        tags = self._tags(order)
        cidr = str(order.cidrs[0])
        # One account has one token of a kind in all regions.
        token = hashlib.sha256(json.dumps([self.region, tags]).encode()).hexdigest()
        request = models.CreateVpcRequest(
            region_id=self.region,
            cidr_block=cidr,
            vpc_name=f"trellis/{order.tenant}/{order.vpc}",
            client_token=token,
            tag=[models.CreateVpcRequestTag(key=key, value=value) for key, value in tags.items()],
        )
        with self.changing(f"create VPC {cidr} for {order.vpc} in {self.region}"):
            return str(self._client.create_vpc_with_options(request, self._runtime).body.vpc_id)

    def add_range(self, vpc_id: str, cidr: str, what: str) -> None:
        """Begin to associate a further range with a VPC."""
        request = models.AssociateVpcCidrBlockRequest(
            region_id=self.region, vpc_id=vpc_id, secondary_cidr_block=cidr, ip_version="IPV4"
        )
        with self.changing(what):
            self._client.associate_vpc_cidr_block_with_options(request, self._runtime)

    def delete_vpc(self, vpc_id: str, what: str) -> None:
        """Begin to delete a VPC; gone already is success."""
        request = models.DeleteVpcRequest(region_id=self.region, vpc_id=vpc_id)
        try:
            with self.changing(what):
                self._client.delete_vpc_with_options(request, self._runtime)
        except TrellisError as error:
            if error.failure.code is not Code.NOT_FOUND:
                raise

    def check_tags(self, order: NetworkOrder, vpc: Json) -> None:
        """Raises `conflict` where a VPC on record does not carry this incarnation's tags: then it is not ours."""
        tags = tags_of(vpc)
        missing = [f"{key}={value}" for key, value in self._tags(order).items() if tags.get(key) != value]
        if missing:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {vpc['VpcId']} in {self.region} is on record for {order.vpc}, and does not carry the tags "
                f"{', '.join(missing)}: it is left alone",
                "put the tags back, or delete the VPC yourself",
            )

    def check_account(self, order: NetworkOrder, network: Network) -> None:
        """Raises `conflict` where the credentials belong to another account: what is not found there is not gone."""
        if not network.account:
            return
        account = str(
            self._ask("STS", _STS, "GetCallerIdentity", f"ask which account holds VPC {network.id}")["AccountId"]
        )
        if account != network.account:
            raise TrellisError(
                Code.CONFLICT,
                f"VPC {network.id} of {order.vpc} was made in the Alibaba Cloud account {network.account}, and the "
                f"credentials {order.credentials} belong to {account}: nothing was touched",
                f"put an access key of account {network.account} into the Secret behind the CredentialsBinding",
            )

    # --- what is inside one ----------------------------------------------------------------------------------------

    def vswitches(self, vpc_id: str) -> list[Json]:
        """The vSwitches of a VPC."""
        return self._paged(
            f"list vSwitches of VPC {vpc_id}",
            self._client.describe_vswitches_with_options,
            models.DescribeVSwitchesRequest(vpc_id=vpc_id),
            ("VSwitches", "VSwitch"),
        )

    def nat_gateways(self, vpc_id: str) -> list[Json]:
        """The NAT gateways of a VPC."""
        return self._paged(
            f"list NAT gateways of VPC {vpc_id}",
            self._client.describe_nat_gateways_with_options,
            models.DescribeNatGatewaysRequest(vpc_id=vpc_id),
            ("NatGateways", "NatGateway"),
        )

    def route_tables(self, vpc_id: str) -> list[Json]:
        """The route tables of a VPC, with the one that came with it."""
        return self._paged(
            f"list route tables of VPC {vpc_id}",
            self._client.describe_route_table_list_with_options,
            models.DescribeRouteTableListRequest(vpc_id=vpc_id),
            ("RouterTableList", "RouterTableListType"),
        )

    def security_groups(self, vpc_id: str) -> list[Json]:
        """The security groups of a VPC."""
        what = f"list security groups of VPC {vpc_id}"
        pages = self._tokens("ECS", _ECS, "DescribeSecurityGroups", what, VpcId=vpc_id)
        return [group for page in pages for group in page["SecurityGroups"]["SecurityGroup"]]

    def peerings(self, vpc_id: str) -> list[Json]:
        """The peering connections of a VPC, on either side."""
        what = f"list peering connections of VPC {vpc_id}"
        pages = self._tokens("VPCPEER", _PEER, "ListVpcPeerConnections", what, **{"VpcId.1": vpc_id})
        return [peering for page in pages for peering in page.get("VpcPeerConnects", [])]

    def counts(self, vpc_id: str) -> dict[str, int]:
        """How many resources of which type the service counts in a VPC."""
        request = models.DescribeVpcAttributeRequest(region_id=self.region, vpc_id=vpc_id)
        with self.reading(f"count what is in VPC {vpc_id}"):
            body = self._client.describe_vpc_attribute_with_options(request, self._runtime).body.to_map()
        counted = body.get("CloudResources", {}).get("CloudResourceSetType", [])
        return {str(item["ResourceType"]): int(item["ResourceCount"]) for item in counted}

    # --- calls -----------------------------------------------------------------------------------------------------

    def _vpcs(self, *, vpc_id: str | None = None, tags: Mapping[str, str] | None = None) -> list[Json]:
        wanted = [models.DescribeVpcsRequestTag(key=key, value=value) for key, value in (tags or {}).items()]
        found = self._paged(
            f"list VPCs in {self.region}",
            self._client.describe_vpcs_with_options,
            models.DescribeVpcsRequest(vpc_id=vpc_id, tag=wanted or None),
            ("Vpcs", "Vpc"),
        )
        return sorted(found, key=lambda vpc: str(vpc["VpcId"]))

    def _paged(self, what: str, call: Callable[..., Any], request: Any, path: tuple[str, str]) -> list[Json]:
        """All pages of a list of the VPC service."""
        found: list[Json] = []
        request.region_id, request.page_size, request.page_number = self.region, _PAGE, 1
        outer, inner = path
        while True:
            with self.reading(what):
                body = call(request, self._runtime).body.to_map()
            page = body.get(outer, {}).get(inner, [])
            found += page
            if not page or len(found) >= body.get("TotalCount", 0):
                return found
            request.page_number += 1

    def _tokens(self, product: str, version: str, action: str, what: str, **query: str) -> Iterator[Json]:
        """All pages of a list of another product."""
        token: dict[str, str] = {}
        while True:
            page = self._ask(product, version, action, what, MaxResults=str(_PAGE), **query, **token)
            yield page
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _ask(self, product: str, version: str, action: str, what: str, **query: str) -> Json:
        """A call that changes nothing, of any product.

        https://www.alibabacloud.com/help/en/sdk/developer-reference/generalized-call-python.
        """
        parameters = Params(
            action=action,
            version=version,
            protocol="HTTPS",
            pathname="/",
            method="POST",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        request = OpenApiRequest(query={"RegionId": self.region, **query})
        with self.reading(what):
            answer: Json = self._others[product].call_api(parameters, request, self._runtime)["body"]
        return answer

    def _tags(self, order: NetworkOrder) -> dict[str, str]:
        return {
            _INSTALLATION: self._installation,
            _TENANT: order.tenant,
            _VPC: order.vpc,
            _INCARNATION: order.incarnation,
        }


def tags_of(item: Json) -> dict[str, str]:
    """A resource's tags; some lists name key and value otherwise, some have no list around them."""
    tags = item.get("Tags") or []
    pairs = tags.get("Tag", []) if isinstance(tags, dict) else tags
    return {tag.get("Key") or tag.get("TagKey"): tag.get("Value") or tag.get("TagValue") or "" for tag in pairs}


def _config(region: str, secret: Mapping[str, str], product: str, host: str | None = None) -> Config:
    """No retry options: the SDK then repeats nothing by itself."""
    override = os.environ.get(f"ALIBABA_CLOUD_ENDPOINT_{product}", "")
    scheme, _, rest = override.rpartition("://")
    return Config(
        access_key_id=secret["accessKeyID"],
        access_key_secret=secret["accessKeySecret"],
        region_id=region,
        endpoint=rest.rstrip("/") or host,
        protocol=(scheme or "https").upper(),
        connect_timeout=5_000,
        read_timeout=30_000,
        user_agent="trellis",
    )
