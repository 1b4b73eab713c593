"""The quotas that are enforced, and what Service Quotas says of them.

Codes of quotas: docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.resources.default_quotas.vpc import VPC_DEFAULT_QUOTAS

from .calls import Call, refuse
from .settings import Settings

__all__ = ["QUOTAS", "applied_quota", "applied_quotas", "enforce"]


@dataclass(frozen=True)
class Quota:
    """One quota: its place in Service Quotas, and EC2's error when it is reached."""

    service: str
    code: str
    name: str
    error: str
    default: float
    message: str


QUOTAS = {
    "vpcs": Quota(
        "vpc", "L-F678F1CE", "VPCs per Region", "VpcLimitExceeded", 5,
        "The maximum number of VPCs has been reached.",
    ),
    "internet_gateways": Quota(
        "vpc", "L-A4707A72", "Internet gateways per Region", "InternetGatewayLimitExceeded", 5,
        "The maximum number of internet gateways has been reached.",
    ),
    "subnets_per_vpc": Quota(
        "vpc", "L-407747CB", "Subnets per VPC", "SubnetLimitExceeded", 200,
        "The maximum number of subnets has been reached.",
    ),
    "route_tables_per_vpc": Quota(
        "vpc", "L-589F43AA", "Route tables per VPC", "RouteTableLimitExceeded", 200,
        "The maximum number of route tables has been reached.",
    ),
    "routes_per_route_table": Quota(
        "vpc", "L-93826ACB", "Routes per route table", "RouteLimitExceeded", 50,
        "The maximum number of routes has been reached.",
    ),
    "nat_gateways_per_zone": Quota(
        "vpc", "L-FE5A380F", "NAT gateways per Availability Zone", "NatGatewayLimitExceeded", 5,
        "The maximum number of NAT Gateways has been reached.",
    ),
    "elastic_ips": Quota(
        "ec2", "L-0263D0A3", "EC2-VPC Elastic IPs", "AddressLimitExceeded", 5,
        "The maximum number of addresses has been reached.",
    ),
    "security_groups": Quota(
        "vpc", "L-E79EC296", "VPC security groups per Region", "SecurityGroupLimitExceeded", 2500,
        "The maximum number of security groups has been reached.",
    ),
    "rules_per_security_group": Quota(
        "vpc", "L-0EA8095F", "Inbound or outbound rules per security group", "RulesPerSecurityGroupLimitExceeded", 60,
        "The maximum number of rules per security group has been reached.",
    ),
    "peerings_per_vpc": Quota(
        "vpc", "L-7E9ECCDB", "Active VPC peering connections per VPC",
        "ActiveVpcPeeringConnectionPerVpcLimitExceeded", 50,
        "The maximum number of active VPC peering connections has been reached.",
    ),
}  # fmt: skip


def enforce(call: Call, name: str, in_use: int, more: int = 1) -> None:
    """Refuse `more` of what this quota limits where they go beyond it."""
    if in_use + more > getattr(call.settings.limits, name):
        refuse(QUOTAS[name].error, QUOTAS[name].message)


def applied_quota(settings: Settings, region: str, service: str, code: str) -> dict[str, Any]:
    """One quota as GetServiceQuota shows it: the value in force. Raises NoSuchResource."""
    for quota in applied_quotas(settings, region, service):
        if quota["QuotaCode"] == code:
            return quota
    raise NoSuchResource


def applied_quotas(settings: Settings, region: str, service: str) -> list[dict[str, Any]]:
    """The quotas of a service as ListServiceQuotas shows them."""
    ours = {
        quota.code: _shown(quota, region) | {"Value": float(getattr(settings.limits, name))}
        for name, quota in QUOTAS.items()
        if quota.service == service
    }
    known = {quota["QuotaCode"]: dict(quota) for quota in VPC_DEFAULT_QUOTAS if quota["ServiceCode"] == service}
    if not (known or ours):
        raise NoSuchResource
    return list({code: known.get(code, {}) | ours.get(code, {}) for code in known | ours}.values())


def _shown(quota: Quota, region: str) -> dict[str, Any]:
    return {
        "ServiceCode": quota.service,
        "QuotaArn": f"arn:aws:servicequotas:{region}::{quota.service}/{quota.code}",
        "QuotaCode": quota.code,
        "QuotaName": quota.name,
        "Value": quota.default,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
