"""What a user asks for: the cluster and the VPC, validated as far as the request alone can tell."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from domain.cidr import parse_cidr
from domain.names import check_name, own_vpc
from domain.ranges import check_ranges
from domain.rules import MAX_ZONES, Provider, check_block_prefix, check_vpc_cidrs

__all__ = ["Cidr", "ClusterSpec", "Frozen", "Name", "OnFailure", "Provider", "VpcSpec"]

DEFAULT_TENANT = "default"
DEFAULT_VPC_CIDR = IPv4Network("10.0.0.0/16")
DEFAULT_CLUSTER_PREFIX = 22
# Kyma's defaults (kyma-environment-broker, internal/networking/cidr.go): every cluster may have the same.
DEFAULT_PODS = IPv4Network("10.96.0.0/13")
DEFAULT_SERVICES = IPv4Network("10.104.0.0/13")


class Frozen(BaseModel):
    """A value: immutable, and closed to fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Name = Annotated[str, AfterValidator(check_name)]
Cidr = Annotated[IPv4Network, BeforeValidator(parse_cidr)]


class OnFailure(StrEnum):
    """What a failed provision does: clean up at once, or wait for a person."""

    COMPENSATE = "compensate"
    HOLD = "hold"


class VpcSpec(Frozen):
    """A shared network. Everything but the name is fixed when the first cluster joins."""

    tenant: Name = DEFAULT_TENANT
    # Not `Name`: a VPC that was made for one cluster has a name that no user can give.
    name: str
    provider: Provider
    region: Annotated[str, Field(min_length=1, max_length=64)]
    credentials: Annotated[str, Field(min_length=1, max_length=128)]
    cidrs: Annotated[tuple[Cidr, ...], Field(min_length=1)] = (DEFAULT_VPC_CIDR,)
    cluster_prefix: int = DEFAULT_CLUSTER_PREFIX
    # Seconds to keep an empty VPC: a cluster that leaves and one that comes at once share it.
    linger: Annotated[int, Field(ge=1, le=86_400)] = 1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_vpc_cidrs(self.provider, self.cidrs)
        for cidr in self.cidrs:
            check_block_prefix(self.provider, self.cluster_prefix, cidr)
        return self


class ClusterSpec(Frozen):
    """A cluster as the user wants it. What is not given is chosen when the cluster is planned."""

    tenant: Name = DEFAULT_TENANT
    name: Name
    provider: Provider
    region: Annotated[str, Field(min_length=1, max_length=64)]
    # The VPC to join or to create; None: a VPC of its own.
    vpc: Name | None = None
    # The garden's CredentialsBinding; None: the one named like the provider.
    credentials: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    # Parameters of the VPC; None: whatever the VPC has, or the default for a new one.
    vpc_cidr: Cidr | None = None
    cluster_prefix: int | None = None
    # Exactly this block; None: the next free one.
    block: Cidr | None = None
    # None given: the region's first zone. AWS allows 200 subnets a VPC by default, and a zone takes three.
    zones: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(max_length=MAX_ZONES)] = ()
    pods: Cidr = DEFAULT_PODS
    services: Cidr = DEFAULT_SERVICES
    # Keep clear of ranges that only older Gardener landscapes and Kyma's broker reserve.
    legacy_ranges: bool = True
    machine_type: str | None = None
    kubernetes_version: str | None = None
    nodes_min: Annotated[int, Field(ge=1, le=500)] = 1
    nodes_max: Annotated[int, Field(ge=1, le=500)] = 3
    on_failure: OnFailure = OnFailure.COMPENSATE

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.zones)) != len(self.zones):
            raise ValueError(f"zones: {', '.join(self.zones)} names a zone twice")
        if self.nodes_min > self.nodes_max:
            raise ValueError(f"nodes_min {self.nodes_min} is more than nodes_max {self.nodes_max}")
        vpc = self.vpc_spec()  # checks the VPC's own numbers
        zones = max(1, len(self.zones))
        if self.block is not None:
            self._check_block(self.block, vpc, zones)
        else:
            check_block_prefix(self.provider, vpc.cluster_prefix, None, zones=zones)
        check_ranges(
            vpc=vpc.cidrs if self._fixes_vpc else (),
            pods=self.pods,
            services=self.services,
            legacy=self.legacy_ranges,
        )
        return self

    def _check_block(self, block: IPv4Network, vpc: VpcSpec, zones: int) -> None:
        vpc_cidr = vpc.cidrs[0] if self._fixes_vpc else None
        check_block_prefix(self.provider, block.prefixlen, vpc_cidr, zones=zones, asked=f"block: {block}")
        if vpc_cidr is not None and not block.subnet_of(vpc_cidr):
            raise ValueError(f"block: {block} is outside the VPC's range {vpc_cidr}: choose a part of {vpc_cidr}")

    @property
    def _fixes_vpc(self) -> bool:
        """Whether the request itself says what ranges the VPC has; one that exists may have others, and checks."""
        return self.vpc is None or self.vpc_cidr is not None

    @property
    def vpc_name(self) -> str:
        """The VPC's name, also where the user gave none."""
        return self.vpc or own_vpc(self.name)

    def vpc_spec(self) -> VpcSpec:
        """The VPC as it will be made if this cluster is its first."""
        return VpcSpec(
            tenant=self.tenant,
            name=self.vpc_name,
            provider=self.provider,
            region=self.region,
            credentials=self.credentials or self.provider.value,
            cidrs=(self.vpc_cidr or DEFAULT_VPC_CIDR,),
            cluster_prefix=DEFAULT_CLUSTER_PREFIX if self.cluster_prefix is None else self.cluster_prefix,
        )
