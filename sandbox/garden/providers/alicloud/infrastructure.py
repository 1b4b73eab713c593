"""The network of one shoot in a VPC.

provider-alicloud, `pkg/controller/infrastructure/infraflow`: reconcile.go and reconcile_zone.go.
"""

from __future__ import annotations

from typing import Any

from sandbox.garden.providers import Order, Record
from sandbox.garden.providers.alicloud.codes import cloud_error
from sandbox.garden.providers.alicloud.config import InfrastructureConfig, Zone
from sandbox.garden.providers.alicloud.inventory import Inventory, Look, tags
from sandbox.garden.providers.alicloud.requirements import user_nat_gateways
from sandbox.garden.providers.alicloud.session import Json, Session, tagged

__all__ = ["Infrastructure"]

_EVERYTHING = "0.0.0.0/0"
# Ports of the VPC's first range that get in: all but telnet's and that of remote shells.
_OPEN_PORTS = ("1/22", "24/513", "515/65535")
_BANDWIDTH = 100
# `DefaultInternetChargeType`.
_CHARGE = "PayByTraffic"


class Infrastructure:
    """One pass that makes what is missing and mends what differs."""

    def __init__(self, session: Session, order: Order, record: Record) -> None:
        self._session = session
        self._look = Look(session)
        self._order = order
        self._record = record
        self._tid = order.technical_id
        self._networks = InfrastructureConfig.model_validate(order.infrastructure).networks
        self._vpc: Json = {}
        self._found = Inventory([], [], [], [], [])

    def ensure(self) -> None:
        """All of it, in the order of Gardener's flow."""
        self._vpc = self._ensure_vpc()
        self._found = Inventory.of(self._session, self._tid, self._vpc["VpcId"])
        self._record["securityGroup"] = self._ensure_security_group()
        vswitches = {zone.name: self._ensure_vswitch(index, zone) for index, zone in enumerate(self._networks.zones)}
        self._record["vswitches"] = vswitches
        self._record.save()
        gateway = self._ensure_nat_gateway(vswitches[self._networks.zones[0].name])
        self._record["natGateway"] = gateway["NatGatewayId"]
        self._record["routeTable"] = self._ensure_route_table(gateway, list(vswitches.values()))
        self._record.save()
        egress = []
        for index, zone in enumerate(self._networks.zones):
            address = self._ensure_address(index, zone, gateway)
            self._ensure_snat(index, gateway, vswitches[zone.name], address)
            egress.append(f"{address['IpAddress']}/32")
        self._record["egressCIDRs"] = egress
        self._record["complete"] = True
        self._record.save()

    # --- VPC and security group ------------------------------------------------------------------------------------

    def _ensure_vpc(self) -> Json:
        vpc_id = self._networks.vpc.id
        if vpc_id is None:
            vpc_id = self._record.get("vpc") or self._make_vpc()
        self._record["vpc"] = vpc_id
        self._record.save()
        found = self._look.vpcs(VpcId=vpc_id)
        if not found:
            raise cloud_error(f"VPC {vpc_id} has not been found")
        return found[0]

    def _make_vpc(self) -> str:
        own = tagged(tags(self._tid, ""))
        # An earlier attempt may have made it, and not lived to write it down.
        found = self._look.vpcs(**own)
        vpc_id = (
            found[0]["VpcId"]
            if found
            else self._session.call(
                "vpc", "CreateVpc", CidrBlock=self._networks.vpc.cidr, VpcName=f"{self._tid}-vpc", **own
            )["VpcId"]
        )
        self._record["ownVpc"] = True
        self._session.until(lambda: self._look.vpcs(VpcId=vpc_id), vpc_id, "Available")
        return str(vpc_id)

    def _ensure_security_group(self) -> str:
        group = self._named(self._found.security_groups, "sg")
        if group is None:
            made = self._session.call(
                "ecs",
                "CreateSecurityGroup",
                VpcId=self._vpc["VpcId"],
                SecurityGroupName=f"{self._tid}-sg",
                Description=f"Security group for {self._tid}",
                **self._tags("sg"),
            )["SecurityGroupId"]
            group = self._session.found(lambda: self._look.security_groups(SecurityGroupId=made), made)
        group_id = str(group["SecurityGroupId"])
        self._mend_rules(group_id)
        return group_id

    def _mend_rules(self, group: str) -> None:
        """Rules that others added go."""
        answer = self._session.call("ecs", "DescribeSecurityGroupAttribute", SecurityGroupId=group)
        present = {_rule_key(rule): rule["SecurityGroupRuleId"] for rule in answer["Permissions"]["Permission"]}
        wanted = {_rule_key(rule): rule for rule in self._rules()}
        for key in present.keys() - wanted.keys():
            action = "RevokeSecurityGroupEgress" if key[0] == "egress" else "RevokeSecurityGroup"
            self._session.call("ecs", action, SecurityGroupId=group, SecurityGroupRuleId__1=present[key])
        for key, rule in wanted.items():
            if key not in present:
                asked = {name: value for name, value in rule.items() if name != "Direction"}
                self._session.call("ecs", "AuthorizeSecurityGroup", SecurityGroupId=group, **asked)

    def _rules(self) -> list[Json]:
        """What gets in (`ensureSecurityGroup`). Of a VPC's ranges only the first one counts."""
        first = self._vpc["CidrBlock"]
        inside = [("TCP", ports, first) for ports in _OPEN_PORTS] + [("UDP", ports, first) for ports in _OPEN_PORTS]
        everything = [
            ("TCP", "30000/32767", _EVERYTHING),
            *inside,
            ("ALL", "-1/-1", self._order.networking["pods"]),
        ]
        return [
            {
                "Direction": "ingress",
                "IpProtocol": protocol,
                "PortRange": ports,
                "SourceCidrIp": source,
                "Policy": "Accept",
                "Priority": "1",
            }
            for protocol, ports, source in everything
        ]

    # --- vSwitches, NAT gateway, route table -----------------------------------------------------------------------

    def _ensure_vswitch(self, index: int, zone: Zone) -> str:
        for each in self._found.vswitches:
            if (each["ZoneId"], each["CidrBlock"]) == (zone.name, zone.nodes):
                return str(each["VSwitchId"])
        made = self._session.call(
            "vpc",
            "CreateVSwitch",
            VpcId=self._vpc["VpcId"],
            ZoneId=zone.name,
            CidrBlock=zone.nodes,
            VSwitchName=f"{self._tid}-{zone.name}-vsw",
            **self._tags(f"nodes-z{index}"),
        )["VSwitchId"]
        self._session.until(lambda: self._look.vswitches(VSwitchId=made), made, "Available")
        return str(made)

    def _ensure_nat_gateway(self, vswitch: str) -> Json:
        if not self._networks.vpc.managed_nat_gateway:
            gateways = user_nat_gateways(self._look, self._vpc["VpcId"])
            if len(gateways) != 1:
                which = "more than one" if gateways else "no"
                raise cloud_error(f"{which} user-managed NatGateway found in VPC {self._vpc['VpcId']}")
            return gateways[0]
        gateway = self._named(self._found.nat_gateways, "natgw")
        if gateway is None:
            gateway = self._session.call(
                "vpc",
                "CreateNatGateway",
                VpcId=self._vpc["VpcId"],
                VSwitchId=vswitch,
                NatType="Enhanced",
                Name=f"{self._tid}-natgw",
                **self._tags("natgw"),
            )
        made = gateway["NatGatewayId"]
        return self._session.until(lambda: self._look.nat_gateways(NatGatewayId=made), made, "Available")

    def _ensure_route_table(self, gateway: Json, vswitches: list[str]) -> str:
        """The table that the nodes use: one of their own, or the system's."""
        if not self._networks.vpc.useCustomRouteTable:
            tables = self._look.route_tables(VpcId=self._vpc["VpcId"], RouteTableType="System")
            return str(tables[0]["RouteTableId"])
        table = self._named(self._found.route_tables, "rt")
        if table is None:
            table = self._session.call(
                "vpc",
                "CreateRouteTable",
                VpcId=self._vpc["VpcId"],
                RouteTableName=f"{self._tid}-rt",
                **self._tags("rt"),
            )
        table_id = str(table["RouteTableId"])
        table = self._table_ready(table_id)
        self._ensure_default_route(table_id, gateway["NatGatewayId"])
        for vswitch in vswitches:
            if vswitch not in table["VSwitchIds"]["VSwitchId"]:
                self._session.call("vpc", "AssociateRouteTable", RouteTableId=table_id, VSwitchId=vswitch)
                self._table_ready(table_id)
        return table_id

    def _table_ready(self, table: str) -> Json:
        return self._session.until(lambda: self._look.route_tables(RouteTableId=table), table, "Available")

    def _ensure_default_route(self, table: str, gateway: str) -> None:
        def look() -> list[Json]:
            return self._look.custom_routes(table, DestinationCidrBlock=_EVERYTHING)

        for entry in look():
            if entry["NextHops"]["NextHop"][0]["NextHopId"] == gateway:
                return
            self._session.delete("vpc", "DeleteRouteEntry", look, RouteEntryId=entry["RouteEntryId"])
        self._session.call(
            "vpc",
            "CreateRouteEntry",
            RouteTableId=table,
            DestinationCidrBlock=_EVERYTHING,
            NextHopType="NatGateway",
            NextHopId=gateway,
            RouteEntryName=f"{self._tid}-rt-default",
        )
        self._session.until(look, f"{_EVERYTHING} of {table}", "Available")

    # --- addresses -------------------------------------------------------------------------------------------------

    def _ensure_address(self, index: int, zone: Zone, gateway: Json) -> Json:
        allocation = zone.allocation
        if allocation is None:
            suffix = f"eip-natgw-z{index}"
            own = self._named(self._found.addresses, suffix) or self._session.call(
                "vpc",
                "AllocateEipAddress",
                Name=f"{self._tid}-{suffix}",
                Bandwidth=_BANDWIDTH,
                InternetChargeType=_CHARGE,
                InstanceChargeType="PostPaid",
                **self._tags(suffix),
            )
            allocation = str(own["AllocationId"])
        address = self._session.found(lambda: self._look.addresses(AllocationId=allocation), allocation)
        target = gateway["NatGatewayId"]
        if address["Status"] == "Available":
            self._session.call(
                "vpc", "AssociateEipAddress", AllocationId=allocation, InstanceId=target, InstanceType="Nat"
            )
        elif address["Status"] == "InUse" and address["InstanceId"] != target:
            raise cloud_error(f"the eip {allocation} is not associated to natgateway {target}")
        return self._session.until(lambda: self._look.addresses(AllocationId=allocation), allocation, "InUse")

    def _ensure_snat(self, index: int, gateway: Json, vswitch: str, address: Json) -> None:
        (table,) = gateway["SnatTableIds"]["SnatTableId"]

        def look() -> list[Json]:
            return self._look.snat_entries(SnatTableId=table, SourceVSwitchId=vswitch)

        for entry in look():
            if entry["SnatIp"] == address["IpAddress"]:
                return
            gone = {"SnatTableId": table, "SnatEntryId": entry["SnatEntryId"]}
            self._session.delete("vpc", "DeleteSnatEntry", look, **gone)
        self._session.call(
            "vpc",
            "CreateSnatEntry",
            SnatTableId=table,
            SourceVSwitchId=vswitch,
            SnatIp=address["IpAddress"],
            SnatEntryName=f"{self._tid}-snat-z{index}-{table}",
        )
        self._session.until(look, f"SNAT of {vswitch}", "Available")

    def _tags(self, suffix: str) -> Any:
        return tagged(tags(self._tid, suffix))

    def _named(self, things: list[Json], suffix: str) -> Json | None:
        return Inventory.named(things, f"{self._tid}-{suffix}")


def _rule_key(rule: Json) -> tuple[str, ...]:
    """Whatever makes two rules the same (`diffByID` in `ensureSecurityGroup`)."""
    names = ("Direction", "Policy", "SourceCidrIp", "DestCidrIp", "PortRange", "IpProtocol", "Priority")
    return tuple(str(rule.get(name) or "") for name in names)
