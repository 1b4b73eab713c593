"""The network of one shoot in a VPC (provider-aws, `pkg/controller/infrastructure/infraflow/reconcile.go`)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError

from sandbox.garden.providers import CloudError, Order, Record
from sandbox.garden.providers.aws.codes import error_code
from sandbox.garden.providers.aws.inventory import (
    ROLE_INTERNAL,
    ROLE_PUBLIC,
    Inventory,
    specification,
    take_inventory,
)
from sandbox.garden.providers.aws.removal import delete_subnet
from sandbox.garden.providers.aws.rules import InfrastructureConfig, Zone
from sandbox.garden.providers.aws.session import Session

ANYWHERE = "0.0.0.0/0"
NODE_PORTS = (30000, 32767)
_NAT_SECONDS = 180.0
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["ec2:DescribeInstances"], "Resource": ["*"]}],
}
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


class Infrastructure:
    """One pass that makes what is missing and mends what differs."""

    def __init__(self, session: Session, order: Order, record: Record, gateway: str) -> None:
        self._ec2: Any = session.ec2
        self._session = session
        self._tid = order.technical_id
        self._config = InfrastructureConfig.model_validate(order.infrastructure)
        self._record = record
        self._vpc: str = record["vpc"]
        self._gateway = gateway
        self._found = Inventory()

    def ensure(self) -> None:
        """All of it, in the order of Gardener's flow."""
        self._found = take_inventory(self._session, self._tid, self._vpc)
        zones = self._config.networks.zones
        main = self._route_table("") if any(zone.public for zone in zones) else None
        if main is not None:
            self._route(main, GatewayId=self._gateway)
        self._drop_unknown_subnets()
        subnets, egress, tables = {}, [], []
        for index, zone in enumerate(zones):
            made = self._subnets(index, zone)
            subnets[zone.name] = made["workers"]
            table = self._route_table(f"private-{zone.name}")
            tables.append(table["RouteTableId"])
            if "public" in made:
                gateway, address = self._nat_gateway(index, zone, made["public"])
                egress.append(f"{address}/32")
                self._route(table, NatGatewayId=gateway)
            self._associate(main if main is not None else table, made.get("public"))
            self._associate(table, made.get("internal"))
            self._associate(table, made["workers"])
        self._endpoints(tables)
        self._record["subnets"] = subnets
        self._record["egressCIDRs"] = egress
        self._record["securityGroup"] = self._security_group()
        self._identity()

    def _named(self, things: Iterable[Any], name: str) -> Any | None:
        return Inventory.named(things, f"{self._tid}-{name}" if name else self._tid)

    def _route_table(self, name: str) -> Any:
        table = self._named(self._found.route_tables, name)
        if table is None:
            specs = specification("route-table", self._tid, name)
            table = self._ec2.create_route_table(VpcId=self._vpc, TagSpecifications=specs)["RouteTable"]
        return table

    def _route(self, table: Any, **target: str) -> None:
        # Routes that others added stay: aws-custom-route-controller needs them to.
        current = next((each for each in table["Routes"] if each.get("DestinationCidrBlock") == ANYWHERE), None)
        if current is None:
            self._ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock=ANYWHERE, **target)
        elif any(current.get(key) != value for key, value in target.items()):
            self._ec2.replace_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock=ANYWHERE, **target)

    def _associate(self, table: Any, subnet: str | None) -> None:
        if subnet is None:
            return
        for each in [table, *self._found.route_tables]:
            for association in each.get("Associations", []):
                if association.get("SubnetId") != subnet:
                    continue
                if each["RouteTableId"] != table["RouteTableId"]:
                    self._ec2.replace_route_table_association(
                        AssociationId=association["RouteTableAssociationId"], RouteTableId=table["RouteTableId"]
                    )
                return
        self._ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=subnet)

    def _drop_unknown_subnets(self) -> None:
        # Whatever carries the cluster's tag belongs to Gardener, and what the config does not name goes.
        wanted = {
            (zone.name, cidr)
            for zone in self._config.networks.zones
            for cidr in (zone.workers, zone.internal, zone.public)
        }
        for subnet in self._found.subnets:
            if (subnet["AvailabilityZone"], subnet["CidrBlock"]) not in wanted:
                delete_subnet(self._session, subnet["SubnetId"])

    def _subnets(self, index: int, zone: Zone) -> dict[str, str]:
        kinds: tuple[tuple[str, str, str | None, dict[str, str]], ...] = (
            ("workers", "nodes", zone.workers, {}),
            ("internal", "private-utility", zone.internal, {ROLE_INTERNAL: "1"}),
            ("public", "public-utility", zone.public, {ROLE_PUBLIC: "1"}),
        )
        current = {(each["AvailabilityZone"], each["CidrBlock"]): each["SubnetId"] for each in self._found.subnets}
        made = {}
        for kind, suffix, cidr, role in kinds:
            if cidr is None:
                continue
            subnet = current.get((zone.name, cidr))
            if subnet is None:
                subnet = self._ec2.create_subnet(
                    VpcId=self._vpc,
                    CidrBlock=cidr,
                    AvailabilityZone=zone.name,
                    TagSpecifications=specification("subnet", self._tid, f"{suffix}-z{index}", role),
                )["Subnet"]["SubnetId"]
            made[kind] = subnet
        return made

    def _nat_gateway(self, index: int, zone: Zone, subnet: str) -> tuple[str, str]:
        name = f"natgw-z{index}"
        gateway = self._named(self._found.nat_gateways, name)
        if gateway is None:
            gateway = self._ec2.create_nat_gateway(
                SubnetId=subnet,
                AllocationId=zone.elasticIPAllocationID or self._elastic_ip(index),
                TagSpecifications=specification("natgateway", self._tid, name),
            )["NatGateway"]
        gateway = self._available(gateway)
        return gateway["NatGatewayId"], gateway["NatGatewayAddresses"][0].get("PublicIp", "")

    def _available(self, gateway: Any) -> Any:
        deadline = time.monotonic() + _NAT_SECONDS
        pause = 0.1
        while gateway["State"] == "pending":
            if time.monotonic() > deadline:
                raise CloudError(f"NAT gateway {gateway['NatGatewayId']} is still pending", ())
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
            gateway = self._ec2.describe_nat_gateways(NatGatewayIds=[gateway["NatGatewayId"]])["NatGateways"][0]
        if gateway["State"] != "available":
            detail = gateway.get("FailureMessage", "")
            raise CloudError(f"NAT gateway {gateway['NatGatewayId']} is {gateway['State']}: {detail}", ())
        return gateway

    def _elastic_ip(self, index: int) -> str:
        name = f"eip-natgw-z{index}"
        address = self._named(self._found.addresses, name)
        if address is None:
            specs = specification("elastic-ip", self._tid, name)
            address = self._ec2.allocate_address(Domain="vpc", TagSpecifications=specs)
        return str(address["AllocationId"])

    def _endpoints(self, tables: list[str]) -> None:
        prefix = f"com.amazonaws.{self._session.region}."
        current = {each["ServiceName"] for each in self._found.endpoints}
        for endpoint in self._config.networks.vpc.gatewayEndpoints:
            if prefix + endpoint not in current:
                self._ec2.create_vpc_endpoint(
                    VpcId=self._vpc,
                    ServiceName=prefix + endpoint,
                    RouteTableIds=tables,
                    TagSpecifications=specification("vpc-endpoint", self._tid, f"gw-{endpoint}"),
                )

    def _security_group(self) -> str:
        given = self._config.networks.nodesSecurityGroupID
        if given is not None:
            return given
        name = f"{self._tid}-nodes"
        group = next((each for each in self._found.security_groups if each["GroupName"] == name), None)
        if group is None:
            made = self._ec2.create_security_group(
                GroupName=name,
                Description="Security group for nodes",
                VpcId=self._vpc,
                TagSpecifications=specification("security-group", self._tid, "nodes"),
            )
            # EC2 gives every new group the rule that lets everything out.
            group = {"GroupId": made["GroupId"], "IpPermissions": [], "IpPermissionsEgress": _egress()}
        self._mend_rules(group)
        return str(group["GroupId"])

    def _mend_rules(self, group: Any) -> None:
        group_id = group["GroupId"]
        ingress = self._ingress(group_id)
        for direction, current, wanted in (
            ("ingress", group["IpPermissions"], ingress),
            ("egress", group["IpPermissionsEgress"], _egress()),
        ):
            have, want = _flat(current), _flat(wanted)
            surplus = [rule for key, rule in have.items() if key not in want]
            lacking = [rule for key, rule in want.items() if key not in have]
            if surplus:
                getattr(self._ec2, f"revoke_security_group_{direction}")(GroupId=group_id, IpPermissions=surplus)
            if lacking:
                getattr(self._ec2, f"authorize_security_group_{direction}")(GroupId=group_id, IpPermissions=lacking)

    def _ingress(self, group_id: str) -> list[Any]:
        zones = self._config.networks.zones
        sources = dict.fromkeys([ANYWHERE, *(cidr for zone in zones for cidr in (zone.internal, zone.public) if cidr)])
        first, last = NODE_PORTS
        return [
            {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]},
            *(
                {
                    "IpProtocol": protocol,
                    "FromPort": first,
                    "ToPort": last,
                    "IpRanges": [{"CidrIp": cidr} for cidr in sources],
                }
                for protocol in ("tcp", "udp")
            ),
        ]

    def _identity(self) -> None:
        """Key pair, role and instance profile of the nodes. They live outside of the VPC."""
        if self._record.get("identity") == "made":
            return
        self._record["identity"] = "begun"
        self._record.save()
        name = f"{self._tid}-nodes"
        iam = self._session.iam
        _ignoring(
            "InvalidKeyPair.Duplicate",
            lambda: self._ec2.create_key_pair(
                KeyName=f"{self._tid}-ssh-publickey",
                KeyType="ed25519",
                TagSpecifications=specification("key-pair", self._tid, "ssh-publickey"),
            ),
        )
        exists = "EntityAlreadyExists"
        _ignoring(exists, lambda: iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST)))
        _ignoring(exists, lambda: iam.create_instance_profile(InstanceProfileName=name))
        _ignoring("LimitExceeded", lambda: iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name))
        iam.put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=json.dumps(_POLICY))
        self._record["identity"] = "made"


def _egress() -> list[Any]:
    return [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": ANYWHERE}]}]


def _flat(permissions: Iterable[Any]) -> dict[tuple[Any, ...], Any]:
    """One entry per rule: EC2 puts rules that share protocol and ports into one permission."""
    rules: dict[tuple[Any, ...], Any] = {}
    for each in permissions:
        base = {key: each[key] for key in ("IpProtocol", "FromPort", "ToPort") if each.get(key) is not None}
        head = (each["IpProtocol"], each.get("FromPort"), each.get("ToPort"))
        for field, key in (("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6"), ("UserIdGroupPairs", "GroupId")):
            for source in each.get(field) or []:
                rules[(*head, source[key])] = {**base, field: [{key: source[key]}]}
    return rules


def _ignoring(code: str, call: Any) -> None:
    try:
        call()
    except ClientError as error:
        if error_code(error) != code:
            raise
