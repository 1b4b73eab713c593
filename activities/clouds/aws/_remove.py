"""Removing a network: in order, only what Trellis made, and nothing while anything else is inside."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from activities.clouds.aws._account import DHCP, GATEWAY, GROUP, VPC, Account, Json, Kind, attachments, tags_of
from activities.clouds.aws._inventory import take_inventory
from activities.clouds.aws._patience import Patience
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkOrder, NetworkRecord

__all__ = ["remove", "staying_inside"]

# Blockers named in one message.
_SHOWN = 10


@dataclass
class _Ours:
    """What is left of a network, by id: what may be removed, and nothing else."""

    vpcs: dict[str, Json] = field(default_factory=dict)
    groups: dict[str, Json] = field(default_factory=dict)
    gateways: dict[str, Json] = field(default_factory=dict)
    options: dict[str, Json] = field(default_factory=dict)

    def kinds(self) -> tuple[tuple[Kind, dict[str, Json]], ...]:
        return (VPC, self.vpcs), (GROUP, self.groups), (GATEWAY, self.gateways), (DHCP, self.options)

    def ids(self) -> set[str]:
        return {one for _, found in self.kinds() for one in found}


def remove(account: Account, record: NetworkRecord, patience: Patience) -> None:
    """See `Cloud.remove`."""
    ours = _seen(account, record, patience)
    for vpc_id in ours.vpcs:
        _remove_vpc(account, record, vpc_id, ours)
    # Detached ones: their VPC was removed by hand, or they never came to be attached.
    for gateway in ours.gateways.values():
        _delete_gateway(account, gateway)
    for options_id in ours.options:
        _delete_dhcp(account, record.order, options_id, ours)
    if left := _look(account, record).ids():
        # EC2 may say "not found" of what is only not visible yet; what is deleted may also be listed for a moment.
        what = f"delete the network {record.order.vpc} in {account.region}: {', '.join(sorted(left))} can still be seen"
        raise TrellisError(Code.EVENTUAL, what, "tried again by itself")


def staying_inside(account: Account, record: NetworkRecord) -> tuple[Blocker, ...]:
    """See `Cloud.blockers`."""
    ours = _look(account, record)
    found = [take_inventory(account, vpc_id, frozenset(ours.ids())).staying for vpc_id in ours.vpcs]
    return tuple(blocker for blockers in found for blocker in blockers)


def _seen(account: Account, record: NetworkRecord, patience: Patience) -> _Ours:
    """What is left of the network, looked for until all that is on record was seen, or patience ends.

    EC2 does not show at once what was made a moment ago, and what is overlooked here is never removed. Without a
    record nobody knows how much there is: then patience ends the search.
    """
    on_record = {record.network.id, *record.network.parts.values()} if record.network else set()
    deadline = time.monotonic() + patience.look
    ours = _look(account, record)
    while not (on_record and on_record <= ours.ids()) and time.monotonic() < deadline:
        time.sleep(patience.poll)
        for (_, known), (_, found) in zip(ours.kinds(), _look(account, record).kinds(), strict=True):
            known.update(found)
    if record.network and record.network.id not in ours.vpcs:
        account.check_account(record.order, record.network)
    return ours


def _look(account: Account, record: NetworkRecord) -> _Ours:
    """One look. The VPC on record is ours only with our tags, and without them nothing is touched."""
    ours = _Ours()
    for kind, found in ours.kinds():
        found.update({str(item[kind.id]): item for item in account.ours(record, kind)})
    if record.network and record.network.id not in ours.vpcs and (vpc := account.vpc(record.network.id)):
        account.check_tags(record.order, vpc)
    return ours


def _remove_vpc(account: Account, record: NetworkRecord, vpc_id: str, ours: _Ours) -> None:
    groups = [group for group in ours.groups.values() if group["VpcId"] == vpc_id]
    # A foreign group that one of ours refers to could not be removed by its owner: each would wait for the other.
    for group in groups:
        _drop_references(account, group)
    try:
        _refuse_if_used(account, record, vpc_id, ours)
        for group_id in (group["GroupId"] for group in groups):
            with account.removing(f"delete security group {group_id} of VPC {vpc_id}"):
                account.change.delete_security_group(GroupId=group_id)
        for gateway in ours.gateways.values():
            _delete_gateway(account, gateway)
        with account.removing(_deletion(account, record, vpc_id)):
            account.change.delete_vpc(VpcId=vpc_id)
    except TrellisError as error:
        if error.failure.code is Code.BUSY:
            _refuse_if_used(account, record, vpc_id, ours)  # something came in meanwhile: say what
        raise


def _drop_references(account: Account, group: Json) -> None:
    group_id = group["GroupId"]
    for direction, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
        if rules := _references(group[key], besides=group_id):
            revoke: Any = getattr(account.change, f"revoke_security_group_{direction}")
            with account.removing(f"revoke {direction} rules of security group {group_id} that name other groups"):
                revoke(GroupId=group_id, IpPermissions=rules)


def _references(permissions: list[Json], *, besides: str) -> list[Json]:
    """The rules that name other groups, as `revoke` takes them."""
    rules = []
    for permission in permissions:
        pairs = [pair for pair in permission.get("UserIdGroupPairs", []) if pair["GroupId"] != besides]
        if pairs:
            rule: Json = {key: permission[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in permission}
            rules.append({**rule, "UserIdGroupPairs": [{"GroupId": pair["GroupId"]} for pair in pairs]})
    return rules


def _delete_gateway(account: Account, gateway: Json) -> None:
    gateway_id = gateway["InternetGatewayId"]
    for vpc_id in attachments(gateway):
        with account.removing(f"detach internet gateway {gateway_id} from VPC {vpc_id}"):
            account.change.detach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
    with account.removing(f"delete internet gateway {gateway_id}"):
        account.change.delete_internet_gateway(InternetGatewayId=gateway_id)


def _delete_dhcp(account: Account, order: NetworkOrder, options_id: str, ours: _Ours) -> None:
    what = f"delete DHCP options {options_id} of {order.vpc}"
    try:
        with account.removing(what):
            account.change.delete_dhcp_options(DhcpOptionsId=options_id)
    except TrellisError as error:
        if error.failure.code is not Code.BUSY:
            raise
        users = [
            vpc for vpc in account.described(VPC, {"dhcp-options-id": [options_id]}) if vpc["VpcId"] not in ours.vpcs
        ]
        if not users:
            raise
        blockers = [Blocker(kind="vpc", id=vpc["VpcId"], name=tags_of(vpc).get("Name", "")) for vpc in users]
        raise _blocked(what, tuple(blockers)) from None


def _refuse_if_used(account: Account, record: NetworkRecord, vpc_id: str, ours: _Ours) -> None:
    inventory = take_inventory(account, vpc_id, frozenset(ours.ids()))
    what = _deletion(account, record, vpc_id)
    if inventory.staying:
        raise _blocked(what, inventory.staying)
    if inventory.leaving:
        raise TrellisError(
            Code.BUSY, f"{what}: still on its way out: {_listed(inventory.leaving)}", "tried again by itself"
        )


def _deletion(account: Account, record: NetworkRecord, vpc_id: str) -> str:
    return f"delete VPC {vpc_id} of {record.order.vpc} in {account.region}"


def _blocked(what: str, blockers: tuple[Blocker, ...]) -> TrellisError:
    return TrellisError(
        Code.BLOCKED,
        f"{what}: in use by what Trellis did not make: {_listed(blockers)}",
        "remove these, or have their owners do it; the deletion then goes on by itself",
    )


def _listed(blockers: tuple[Blocker, ...]) -> str:
    shown = ", ".join(str(blocker) for blocker in blockers[:_SHOWN])
    return shown if len(blockers) <= _SHOWN else f"{shown} and {len(blockers) - _SHOWN} more"
