"""Removing a network: in order, only what Trellis made, and nothing while anything else is inside."""

from __future__ import annotations

from typing import Any

from activities.clouds.aws._account import DHCP, GATEWAY, GROUP, VPC, Account, Json, attachments, tags_of
from activities.clouds.aws._inventory import Inventory, take_inventory
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkOrder, NetworkRecord

__all__ = ["remove", "staying_inside"]

# Blockers named in one message.
_SHOWN = 10


def remove(account: Account, record: NetworkRecord) -> None:
    """See `Cloud.remove`."""
    for vpc_id in _vpcs(account, record):
        _remove_vpc(account, record, vpc_id)
    # Detached ones: their VPC was removed by hand, or they never came to be attached.
    for gateway in account.ours(record, GATEWAY):
        _delete_gateway(account, gateway)
    for options in account.ours(record, DHCP):
        _delete_dhcp(account, record.order, options["DhcpOptionsId"])


def staying_inside(account: Account, record: NetworkRecord) -> tuple[Blocker, ...]:
    """See `Cloud.blockers`."""
    found = [_inventory(account, record, vpc_id).staying for vpc_id in _vpcs(account, record)]
    return tuple(blocker for blockers in found for blocker in blockers)


def _vpcs(account: Account, record: NetworkRecord) -> list[str]:
    """The VPC on record; without a record, what half-made attempts left."""
    if record.network is None:
        return [vpc["VpcId"] for vpc in account.tagged(record.order, VPC)]
    vpc = account.vpc(record.network.id)
    if vpc is None:
        account.check_account(record.order, record.network)
        return []
    account.check_tags(record.order, vpc)
    return [vpc["VpcId"]]


def _remove_vpc(account: Account, record: NetworkRecord, vpc_id: str) -> None:
    groups = account.ours(record, GROUP, vpc_id)
    # A foreign group that one of ours refers to could not be removed by its owner: each would wait for the other.
    for group in groups:
        _drop_references(account, group)
    try:
        _refuse_if_used(account, record, vpc_id)
        for group_id in (group["GroupId"] for group in groups):
            with account.removing(f"delete security group {group_id} of VPC {vpc_id}"):
                account.change.delete_security_group(GroupId=group_id)
        for gateway in account.ours(record, GATEWAY):
            _delete_gateway(account, gateway)
        with account.removing(_deletion(account, record, vpc_id)):
            account.change.delete_vpc(VpcId=vpc_id)
    except TrellisError as error:
        if error.failure.code is Code.BUSY:
            _refuse_if_used(account, record, vpc_id)  # something came in meanwhile: say what
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


def _delete_dhcp(account: Account, order: NetworkOrder, options_id: str) -> None:
    what = f"delete DHCP options {options_id} of {order.vpc}"
    try:
        with account.removing(what):
            account.change.delete_dhcp_options(DhcpOptionsId=options_id)
    except TrellisError as error:
        users = account.described(VPC, {"dhcp-options-id": [options_id]})
        if error.failure.code is not Code.BUSY or not users:
            raise
        blockers = [Blocker(kind="vpc", id=vpc["VpcId"], name=tags_of(vpc).get("Name", "")) for vpc in users]
        raise _blocked(what, tuple(blockers)) from None


def _inventory(account: Account, record: NetworkRecord, vpc_id: str) -> Inventory:
    ours = {group["GroupId"] for group in account.ours(record, GROUP, vpc_id)}
    ours |= {gateway["InternetGatewayId"] for gateway in account.ours(record, GATEWAY)}
    return take_inventory(account, vpc_id, frozenset(ours))


def _refuse_if_used(account: Account, record: NetworkRecord, vpc_id: str) -> None:
    inventory = _inventory(account, record, vpc_id)
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
