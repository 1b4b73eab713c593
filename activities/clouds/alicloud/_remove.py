"""Removing a VPC: only one that Trellis made, and nothing while anything is inside."""

from __future__ import annotations

import time

from activities.clouds.alicloud._account import Account
from activities.clouds.alicloud._inventory import Inventory, take_inventory
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkRecord

__all__ = ["remove", "staying_inside"]

# Blockers named in one message.
_SHOWN = 10


def remove(account: Account, record: NetworkRecord) -> None:
    """See `Cloud.remove`."""
    for vpc_id in _vpcs(account, record):
        _remove_vpc(account, record, vpc_id)


def staying_inside(account: Account, record: NetworkRecord) -> tuple[Blocker, ...]:
    """See `Cloud.blockers`."""
    found = [_inventory(account, vpc_id).staying for vpc_id in _vpcs(account, record)]
    return tuple(blocker for blockers in found for blocker in blockers)


def _vpcs(account: Account, record: NetworkRecord) -> list[str]:
    """The VPC on record; without a record, what half-made attempts left."""
    if record.network is None:
        return [vpc["VpcId"] for vpc in account.tagged(record.order)]
    vpc = account.vpc(record.network.id)
    if vpc is None:
        account.check_account(record.order, record.network)
        return []
    account.check_tags(record.order, vpc)
    return [vpc["VpcId"]]


def _remove_vpc(account: Account, record: NetworkRecord, vpc_id: str) -> None:
    what = f"delete VPC {vpc_id} of {record.order.vpc} in {account.region}"
    deadline = time.monotonic() + account.patience.settle
    asked = False
    while (vpc := account.vpc(vpc_id)) is not None:
        # What is pending becomes available, or is being deleted by an earlier attempt.
        if vpc["Status"] == "Available" and not asked:
            asked = _deleted(account, vpc_id, what, deadline)
        elif time.monotonic() > deadline:
            raise TrellisError(Code.BUSY, f"{what}: it is still {vpc['Status']}", "tried again by itself")
        time.sleep(account.patience.poll)


def _deleted(account: Account, vpc_id: str, what: str, deadline: float) -> bool:
    """Whether the deletion has begun. What was inside a moment ago still counts for a while: then it has not."""
    _refuse_if_used(account, vpc_id, what)
    try:
        account.delete_vpc(vpc_id, what)
    except TrellisError as error:
        if error.failure.code is not Code.BUSY:
            raise
        _refuse_if_used(account, vpc_id, what)  # something came in meanwhile: say what
        if time.monotonic() > deadline:
            raise
        return False
    return True


def _inventory(account: Account, vpc_id: str) -> Inventory:
    try:
        return take_inventory(account, vpc_id)
    except TrellisError as error:
        # The VPC went meanwhile.
        if error.failure.code is not Code.NOT_FOUND:
            raise
        return Inventory((), ())


def _refuse_if_used(account: Account, vpc_id: str, what: str) -> None:
    inventory = _inventory(account, vpc_id)
    if inventory.staying:
        raise TrellisError(
            Code.BLOCKED,
            f"{what}: in use by what Trellis did not make: {_listed(inventory.staying)}",
            "remove these, or have their owners do it; the deletion then goes on by itself",
        )
    if inventory.leaving:
        raise TrellisError(
            Code.BUSY, f"{what}: still on its way out: {_listed(inventory.leaving)}", "tried again by itself"
        )


def _listed(blockers: tuple[Blocker, ...]) -> str:
    shown = ", ".join(str(blocker) for blocker in blockers[:_SHOWN])
    return shown if len(blockers) <= _SHOWN else f"{shown} and {len(blockers) - _SHOWN} more"
