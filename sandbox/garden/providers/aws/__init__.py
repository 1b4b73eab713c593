"""AWS, as Gardener's extension provider-aws treats it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sandbox.garden.problems import Problem
from sandbox.garden.providers import Host, Order, Record
from sandbox.garden.providers.aws import rules
from sandbox.garden.providers.aws.codes import cloud_error
from sandbox.garden.providers.aws.infrastructure import Infrastructure
from sandbox.garden.providers.aws.inventory import cluster_tag, specification, tags
from sandbox.garden.providers.aws.machines import delete_machines, reconcile_machines
from sandbox.garden.providers.aws.reach import Reach
from sandbox.garden.providers.aws.removal import delete_infrastructure, gone_is_fine
from sandbox.garden.providers.aws.requirements import VpcFacts, check_vpc, dhcp_domain, vpc_facts
from sandbox.garden.providers.aws.rules import InfrastructureConfig
from sandbox.garden.providers.aws.session import Session, Sessions
from sandbox.garden.providers.fresh import Fresh
from sandbox.kube import Object

__all__ = ["Aws"]


class Aws:
    """The provider `aws`."""

    type = "aws"

    def __init__(self, endpoint: str | None) -> None:
        self._sessions = Sessions(endpoint)
        self._reach = Reach(self._sessions)
        self._facts: Fresh[VpcFacts | None] = Fresh()

    def fill_in(self, shoot: Object, old: Object | None) -> None:
        """See `Provider`."""
        rules.fill_in(shoot, old)

    def problems(self, shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
        """See `Provider`."""
        return rules.problems(shoot, old, profile)

    def reconcile(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        config = InfrastructureConfig.model_validate(order.infrastructure)
        with _translated():
            session = self._sessions.get(order.region, order.credentials)
            if config.networks.vpc.id is None:
                gateway = _own_vpc(session, order, record, str(config.networks.vpc.cidr))
            else:
                vpc = config.networks.vpc.id
                facts = self._facts.get((session, vpc), lambda: vpc_facts(session, vpc))
                gateway = check_vpc(session, facts, config.networks, cluster_tag(order.technical_id)).gateway or ""
                record["vpc"] = vpc
            record.save()
            Infrastructure(session, order, record, gateway).ensure()
            record.save()

    def reconcile_machines(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        with _translated():
            reconcile_machines(self._sessions.get(order.region, order.credentials), order, record)
            record.save()

    def delete_machines(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        with _translated():
            delete_machines(self._sessions.get(order.region, order.credentials), order, record)
            record.save()

    def delete(self, order: Order, record: Record) -> None:
        """See `Provider`."""
        if not record.get("vpc"):
            return  # Nothing was ever made, perhaps for want of working credentials.
        with _translated():
            session = self._sessions.get(order.region, order.credentials)
            delete_infrastructure(session, order, record)
            if record.get("ownVpc"):
                _delete_own_vpc(session, record)
            record.clear()
            record.save()

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """See `Provider`."""
        with _translated():
            return self._reach.reached(source, address, port, candidates)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise cloud_error(error) from error


def _own_vpc(session: Session, order: Order, record: Record, cidr: str) -> str:
    """A VPC with DHCP options and internet gateway, made for this shoot alone; returns the gateway."""
    ec2: Any = session.ec2
    tid = order.technical_id
    record["ownVpc"] = True
    if "dhcpOptions" not in record:
        domain = {"Key": "domain-name", "Values": [dhcp_domain(order.region)]}
        servers = {"Key": "domain-name-servers", "Values": ["AmazonProvidedDNS"]}
        options = ec2.create_dhcp_options(DhcpConfigurations=[domain, servers])["DhcpOptions"]["DhcpOptionsId"]
        ec2.create_tags(Resources=[options], Tags=tags(tid, ""))
        record["dhcpOptions"] = options
        record.save()
    if "vpc" not in record:
        specs = specification("vpc", tid, "")
        record["vpc"] = ec2.create_vpc(CidrBlock=cidr, TagSpecifications=specs)["Vpc"]["VpcId"]
        record.save()
    ec2.modify_vpc_attribute(VpcId=record["vpc"], EnableDnsSupport={"Value": True})
    ec2.modify_vpc_attribute(VpcId=record["vpc"], EnableDnsHostnames={"Value": True})
    ec2.associate_dhcp_options(VpcId=record["vpc"], DhcpOptionsId=record["dhcpOptions"])
    if "internetGateway" not in record:
        specs = specification("internet-gateway", tid, "")
        gateway = ec2.create_internet_gateway(TagSpecifications=specs)["InternetGateway"]["InternetGatewayId"]
        record["internetGateway"] = gateway
        record.save()
        ec2.attach_internet_gateway(VpcId=record["vpc"], InternetGatewayId=gateway)
    return str(record["internetGateway"])


def _delete_own_vpc(session: Session, record: Record) -> None:
    ec2, vpc = session.ec2, record["vpc"]
    gateway, options = record.get("internetGateway"), record.get("dhcpOptions")
    if gateway:
        gone_is_fine(ec2.detach_internet_gateway, InternetGatewayId=gateway, VpcId=vpc)
        gone_is_fine(ec2.delete_internet_gateway, InternetGatewayId=gateway)
    gone_is_fine(ec2.delete_vpc, VpcId=vpc)
    if options:
        gone_is_fine(ec2.delete_dhcp_options, DhcpOptionsId=options)
