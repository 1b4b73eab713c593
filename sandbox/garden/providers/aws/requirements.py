"""What a VPC that somebody else made must have (provider-aws, `pkg/controller/infrastructure/configvalidator.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from sandbox.garden.cidrs import Range
from sandbox.garden.problems import Path, Problem, forbidden, internal, invalid, joined, missing
from sandbox.garden.providers import CloudError
from sandbox.garden.providers.aws.codes import cloud_error, codes_of, error_code
from sandbox.garden.providers.aws.rules import Networks
from sandbox.garden.providers.aws.session import Session

_CONFIGURATION = "ERR_CONFIGURATION_PROBLEM"
_VPC_PATH = Path("networks.vpc.id")


@dataclass(frozen=True)
class VpcFacts:
    """A VPC as it is in the cloud. `gateway` is the id of its internet gateway, `options` its DHCP options."""

    cidrs: tuple[str, ...]
    dns_support: bool
    dns_hostnames: bool
    gateway: str | None
    options: Mapping[str, tuple[str, ...]]


def dhcp_domain(region: str) -> str:
    """The domain that a VPC's DHCP options must name."""
    return "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"


def vpc_facts(session: Session, vpc_id: str) -> VpcFacts | None:
    """What the cloud says about a VPC; None if it is not in this region and account."""
    ec2 = session.ec2
    try:
        vpc = ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"][0]
    except ClientError as error:
        if error_code(error) == "InvalidVpcID.NotFound":
            return None
        raise
    support = ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute="enableDnsSupport")["EnableDnsSupport"]
    names = ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute="enableDnsHostnames")["EnableDnsHostnames"]
    gateways = ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc_id]}])
    return VpcFacts(
        cidrs=tuple(
            each["CidrBlock"]
            for each in vpc.get("CidrBlockAssociationSet", [])
            if each["CidrBlockState"]["State"] == "associated"
        )
        or (vpc["CidrBlock"],),
        dns_support=bool(support["Value"]),
        dns_hostnames=bool(names["Value"]),
        gateway=next((each["InternetGatewayId"] for each in gateways["InternetGateways"]), None),
        options=_options(session, vpc.get("DhcpOptionsId", "default")),
    )


def _options(session: Session, options_id: str) -> dict[str, tuple[str, ...]]:
    if options_id == "default":
        return {}
    found: list[Any] = list(session.ec2.describe_dhcp_options(DhcpOptionsIds=[options_id])["DhcpOptions"])
    return {
        each["Key"]: tuple(value["Value"] for value in each["Values"])
        for options in found
        for each in options["DhcpConfigurations"]
    }


def check_vpc(session: Session, facts: VpcFacts | None, networks: Networks, cluster_tag: str) -> VpcFacts:
    """The facts, if they will do. Raises CloudError with everything that is wrong."""
    vpc_id = str(networks.vpc.id)
    if facts is None:
        raise _refused([missing(_VPC_PATH, vpc_id)])
    found = _attribute_problems(facts, vpc_id)
    public = any(zone.public for zone in networks.zones)
    if public and facts.gateway is None:
        detail = "no attached internet gateway found (required when Gardener manages public subnets)"
        found.append(invalid(_VPC_PATH, vpc_id, detail))
    found += _domain_problems(facts, vpc_id, session.region)
    found += _range_problems(facts, networks)
    found += _security_group_problems(session, networks)
    if not public:
        found += _public_subnet_problems(session, vpc_id, cluster_tag)
    found += _allocation_problems(session, networks, cluster_tag)
    if found:
        raise _refused(found)
    _check_servers(facts)
    return facts


def _refused(found: list[Problem]) -> CloudError:
    text = joined(found)
    if any(problem.reason == "InternalError" for problem in found):
        return CloudError(text, codes_of(text))
    return CloudError(text, (_CONFIGURATION,))


def _attribute_problems(facts: VpcFacts, vpc_id: str) -> list[Problem]:
    attributes = (("enableDnsSupport", facts.dns_support), ("enableDnsHostnames", facts.dns_hostnames))
    return [
        invalid(_VPC_PATH, vpc_id, f"VPC attribute {name} must be set to true")
        for name, value in attributes
        if not value
    ]


def _domain_problems(facts: VpcFacts, vpc_id: str, region: str) -> list[Problem]:
    domain = facts.options.get("domain-name")
    if domain is None:
        return [invalid(_VPC_PATH, vpc_id, "missing domain-name value in DHCP options used by the VPC")]
    if domain != (dhcp_domain(region),):
        detail = f"invalid domain-name specified in DHCP options used by VPC: {','.join(domain)}"
        return [invalid(_VPC_PATH, vpc_id, detail)]
    return []


def _range_problems(facts: VpcFacts, networks: Networks) -> list[Problem]:
    blocks = [Range("", cidr) for cidr in facts.cidrs]
    subnets = [
        Range((Path("networks.zones")[index]) / field, text)
        for index, zone in enumerate(networks.zones)
        for field, text in (("nodes", zone.workers), ("public", zone.public), ("internal", zone.internal))
        if text is not None
    ]
    return [
        invalid(
            subnet.path,
            subnet.text,
            f'subnet CIDR "{subnet.text}" is not contained in any of the VPC\'s associated CIDR blocks',
        )
        for subnet in subnets
        if not any(block.contains(subnet) for block in blocks)
    ]


def _security_group_problems(session: Session, networks: Networks) -> list[Problem]:
    group_id = networks.nodesSecurityGroupID
    if group_id is None:
        return []
    path = "networks.nodesSecurityGroupID"
    try:
        group = session.ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
    except ClientError as error:
        if error_code(error).startswith("InvalidGroup"):
            return [missing(path, group_id)]
        return [internal(path, f"could not get security group {group_id}: {cloud_error(error)}")]
    if group["VpcId"] != networks.vpc.id:
        return [invalid(path, group_id, f"security group is in VPC {group['VpcId']}, expected {networks.vpc.id}")]
    return []


def _public_subnet_problems(session: Session, vpc_id: str, cluster_tag: str) -> list[Problem]:
    filters: Any = [
        {"Name": "vpc-id", "Values": [vpc_id]},
        {"Name": "tag:kubernetes.io/role/elb", "Values": ["1"]},
        {"Name": "tag-key", "Values": [cluster_tag]},
    ]
    if session.ec2.describe_subnets(Filters=filters)["Subnets"]:
        return []
    detail = (
        "no public subnet available for the AWS Cloud Controller Manager configuration; "
        "either specify a public CIDR in at least one zone, use publicSubnetID in BYO mode, or ensure an existing "
        f"subnet in the VPC is tagged with kubernetes.io/role/elb=1 and {cluster_tag}=1"
    )
    return [forbidden("networks.zones", detail)]


def _allocation_problems(session: Session, networks: Networks, cluster_tag: str) -> list[Problem]:
    zones = {zone.elasticIPAllocationID: zone.name for zone in networks.zones if zone.elasticIPAllocationID}
    if not zones:
        return []
    path = "networks.zones[].elasticIPAllocationID"
    addresses = {each["AllocationId"]: each for each in session.ec2.describe_addresses()["Addresses"]}
    filters: Any = [{"Name": "tag-key", "Values": [cluster_tag]}]
    own = {
        address.get("AllocationId")
        for gateway in session.ec2.describe_nat_gateways(Filters=filters)["NatGateways"]
        for address in gateway["NatGatewayAddresses"]
    }
    found = []
    for allocation, zone in zones.items():
        if allocation not in addresses:
            detail = f'elastic IP in zone "{zone}" cannot be used as it does not exist.'
            found.append(invalid(path, allocation, detail))
        elif addresses[allocation].get("AssociationId") and allocation not in own:
            detail = (
                f'elastic IP in zone "{zone}" cannot be attached to the clusters NAT Gateway(s) '
                "as it is already associated."
            )
            found.append(invalid(path, allocation, detail))
    return found


def _check_servers(facts: VpcFacts) -> None:
    # The flow checks this, not the config validator, so it comes later and has no code of its own (`validateVpc`).
    servers = facts.options.get("domain-name-servers", ())
    if servers != ("AmazonProvidedDNS",):
        actual = ",".join(servers)
        text = f"missing DhcpConfiguration 'domain-name-servers'='AmazonProvidedDNS' (actual: {actual})"
        raise CloudError(text, codes_of(text))
