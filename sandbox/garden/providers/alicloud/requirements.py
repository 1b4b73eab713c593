"""What a VPC that somebody else made must have.

provider-alicloud, `pkg/controller/infrastructure/configvalidator.go`.
"""

from __future__ import annotations

from sandbox.garden.cidrs import Range
from sandbox.garden.problems import Path, Problem, forbidden, invalid, joined, missing, required
from sandbox.garden.providers import CloudError, Order
from sandbox.garden.providers.alicloud.config import Networks, Vpc
from sandbox.garden.providers.alicloud.inventory import Look, clusters_of
from sandbox.garden.providers.alicloud.session import Json, Session

__all__ = ["check", "user_nat_gateways"]

_CONFIGURATION = "ERR_CONFIGURATION_PROBLEM"
_VPC = Path("networks.vpc")
_ZONES = Path("networks.zones")


def check(session: Session, order: Order, networks: Networks, *, new: bool) -> None:
    """Raises CloudError with everything that is wrong.

    Args:
        session: The account.
        order: The shoot.
        networks: What it says about its network.
        new: Whether it is being created: only then is it compared with what others have in the VPC.
    """
    look, found = Look(session), []
    if networks.vpc.id is not None:
        found += _vpc_problems(look, networks.vpc)
        if new and not found:
            vswitches = look.vswitches(VpcId=networks.vpc.id)
            found += _sharing_problems(vswitches, order.technical_id, networks.vpc)
            found += _overlap_problems(vswitches, order.technical_id, networks)
    if networks.vpc.managed_nat_gateway:
        found += _zone_problems(session, networks.zones[0].name)
    found += _allocation_problems(look, networks)
    if found:
        raise CloudError(joined(found), (_CONFIGURATION,))


def user_nat_gateways(look: Look, vpc: str) -> list[Json]:
    """The NAT gateways of a VPC that Gardener did not make."""
    return [each for each in look.nat_gateways(VpcId=vpc) if not clusters_of(each)]


def _vpc_problems(look: Look, vpc: Vpc) -> list[Problem]:
    path, vpc_id = _VPC / "id", str(vpc.id)
    if not look.vpcs(VpcId=vpc_id):
        return [missing(path, vpc_id)]
    if vpc.managed_nat_gateway:
        return []
    gateways = user_nat_gateways(look, vpc_id)
    if not gateways:
        return [invalid(path, vpc_id, "no user natgateway found")]
    return [invalid(path, vpc_id, "more than one user natgateway found")] if len(gateways) > 1 else []


def _sharing_problems(vswitches: list[Json], technical_id: str, vpc: Vpc) -> list[Problem]:
    """Two NAT gateways cannot both have the default route of the system's route table (`validateMultiShootVPC`)."""
    others = {cluster for each in vswitches for cluster in clusters_of(each)} - {technical_id}
    if not others or not vpc.gardenerManagedNATGateway or vpc.useCustomRouteTable:
        return []
    detail = (
        "useCustomRouteTable must be true when gardenerManagedNATGateway is true and the VPC already contains other "
        "Gardener-managed shoots"
    )
    return [required(_VPC / "useCustomRouteTable", detail)]


def _overlap_problems(vswitches: list[Json], technical_id: str, networks: Networks) -> list[Problem]:
    """`validateVSwitchCIDRConflict`: the shoot's own are told by their names' beginning."""
    foreign = [each for each in vswitches if not each["VSwitchName"].startswith(f"{technical_id}-")]
    return [
        invalid(
            _ZONES[index] / "workers",
            zone.nodes,
            f"conflicts with existing vswitch {each['VSwitchId']} ({each['CidrBlock']}) in VPC {networks.vpc.id}",
        )
        for index, zone in enumerate(networks.zones)
        for each in foreign
        if Range("", zone.nodes).overlaps(Range("", each["CidrBlock"]))
    ]


def _zone_problems(session: Session, zone: str) -> list[Problem]:
    answer = session.call("vpc", "ListEnhanhcedNatGatewayAvailableZones")
    zones = [each["ZoneId"] for each in answer["Zones"]]
    if zone in zones:
        return []
    detail = f"zone {zone} does not support enhance natgateway, please use following zones: {' '.join(zones)}"
    return [forbidden("networks.zones[0].name", detail)]


def _allocation_problems(look: Look, networks: Networks) -> list[Problem]:
    path = "networks.zones[].natGateway.eipAllocationID"
    seen: set[str] = set()
    found = []
    for zone in networks.zones:
        allocation = zone.allocation
        if allocation is None:
            continue
        if allocation in seen:
            found.append(forbidden(path, f"Duplicate EIP Allocation ID {allocation}"))
        elif not look.addresses(AllocationId=allocation):
            found.append(missing(path, allocation))
        seen.add(allocation)
    return found
