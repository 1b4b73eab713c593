"""Takes away what was made for one shoot, and nothing else.

provider-alicloud, `pkg/controller/infrastructure/infraflow`: delete.go and reconcile_zone.go.
"""

from __future__ import annotations

from functools import partial

from sandbox.garden.providers import Order, Record
from sandbox.garden.providers.alicloud.config import InfrastructureConfig
from sandbox.garden.providers.alicloud.inventory import Inventory, Look
from sandbox.garden.providers.alicloud.session import Json, Session

__all__ = ["delete_infrastructure"]


def delete_infrastructure(session: Session, order: Order, record: Record) -> None:
    """All that carries the cluster's tag. The user's VPC and NAT gateway stay.

    What others put into the shoot's vSwitches stops it: DependencyViolation.
    """
    _Removal(session, order, record["vpc"]).remove()
    if record.get("ownVpc"):
        look = Look(session)
        session.delete("vpc", "DeleteVpc", lambda: look.vpcs(VpcId=record["vpc"]), VpcId=record["vpc"])


class _Removal:
    def __init__(self, session: Session, order: Order, vpc: str) -> None:
        self._session = session
        self._look = Look(session)
        self._managed = InfrastructureConfig.model_validate(order.infrastructure).networks.vpc.managed_nat_gateway
        self._vpc = vpc
        self._found = Inventory.of(session, order.technical_id, vpc)

    def remove(self) -> None:
        for entry in self._snat_entries():
            gone = {"SnatTableId": entry["SnatTableId"], "SnatEntryId": entry["SnatEntryId"]}
            self._session.delete("vpc", "DeleteSnatEntry", partial(self._look.snat_entries, **gone), **gone)
            # An address that belongs to the user is set free.
            for address in self._look.addresses(EipAddress=entry["SnatIp"]):
                self._unbind(address)
        for address in self._found.addresses:
            self._unbind(address)
            one = {"AllocationId": address["AllocationId"]}
            self._session.delete("vpc", "ReleaseEipAddress", partial(self._look.addresses, **one), **one)
        if self._managed:
            for gateway in self._found.nat_gateways:
                one = {"NatGatewayId": gateway["NatGatewayId"]}
                look = partial(self._look.nat_gateways, **one)
                self._session.delete("vpc", "DeleteNatGateway", look, **one, Force="true")
        for vswitch in self._found.vswitches:
            self._leave_tables(vswitch["VSwitchId"])
            one = {"VSwitchId": vswitch["VSwitchId"]}
            self._session.delete("vpc", "DeleteVSwitch", partial(self._look.vswitches, **one), **one)
        for group in self._found.security_groups:
            one = {"SecurityGroupId": group["SecurityGroupId"]}
            self._session.delete("ecs", "DeleteSecurityGroup", partial(self._look.security_groups, **one), **one)
        for table in self._found.route_tables:
            self._delete_table(table["RouteTableId"])

    def _snat_entries(self) -> list[Json]:
        return [
            entry
            for vswitch in self._found.vswitches
            for entry in self._look.snat_entries(SourceVSwitchId=vswitch["VSwitchId"])
        ]

    def _unbind(self, address: Json) -> None:
        one = {"AllocationId": address["AllocationId"]}
        bound = [each for each in self._look.addresses(**one) if each["Status"] == "InUse"]
        for each in bound:
            target = {"InstanceId": each["InstanceId"], "InstanceType": each["InstanceType"]}
            self._session.call("vpc", "UnassociateEipAddress", **one, **target)
            self._session.until(partial(self._look.addresses, **one), one["AllocationId"], "Available")

    def _leave_tables(self, vswitch: str) -> None:
        for table in self._look.route_tables(VpcId=self._vpc, RouteTableType="Custom"):
            if vswitch in table["VSwitchIds"]["VSwitchId"]:
                one = {"RouteTableId": table["RouteTableId"]}
                self._session.call("vpc", "UnassociateRouteTable", **one, VSwitchId=vswitch)
                self._session.until(partial(self._look.route_tables, **one), one["RouteTableId"], "Available")

    def _delete_table(self, table: str) -> None:
        for entry in self._look.custom_routes(table):
            one = {"RouteEntryId": entry["RouteEntryId"]}
            self._session.delete("vpc", "DeleteRouteEntry", partial(self._look.custom_routes, table, **one), **one)
        one = {"RouteTableId": table}
        self._session.delete("vpc", "DeleteRouteTable", partial(self._look.route_tables, **one), **one)
