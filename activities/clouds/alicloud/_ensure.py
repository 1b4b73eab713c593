"""Making a VPC, or finding what an earlier attempt made of it, and mending what is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network

from activities.clouds.alicloud._account import Account, Json
from domain.errors import Code, TrellisError
from domain.networks import Network, NetworkOrder, NetworkRecord, NetworkSeen

__all__ = ["ensure"]


def ensure(account: Account, record: NetworkRecord) -> NetworkSeen:
    """See `Cloud.ensure`."""
    with _visible_soon():
        order = record.order
        vpc = _awaited(account, order, record.network) if record.network else _found_or_made(account, order)
        account.check_tags(order, vpc)
        vpc = _with_ranges(account, order, vpc)
        ranges = [IPv4Network(vswitch["CidrBlock"]) for vswitch in account.vswitches(vpc["VpcId"])]
        return NetworkSeen(network=Network(id=vpc["VpcId"], account=str(vpc["OwnerId"])), ranges=tuple(sorted(ranges)))


@contextmanager
def _visible_soon() -> Iterator[None]:
    """While a network is being made, what is not found was made a moment ago: another look tells."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise
        raise TrellisError(Code.EVENTUAL, error.failure.message, "tried again by itself") from None


def _found_or_made(account: Account, order: NetworkOrder) -> Json:
    found = account.tagged(order)
    if len(found) > 1:
        # A token does not last for ever. Which one to keep cannot be told from here.
        raise TrellisError(
            Code.CONFLICT,
            f"several VPCs in {account.region} carry the tags of {order.vpc}: "
            f"{', '.join(vpc['VpcId'] for vpc in found)}",
            "delete all but one of them, or take the tags away, then retry",
        )
    # Where an answer is lost, the next attempt's look-up finds the VPC, or its token does.
    vpc_id = found[0]["VpcId"] if found else account.create_vpc(order)
    return _awaited(account, order, Network(id=vpc_id))


def _awaited(account: Account, order: NetworkOrder, network: Network) -> Json:
    """The VPC once it is available. Not found for the whole time means that somebody deleted it."""
    deadline = time.monotonic() + account.patience.settle
    while (vpc := account.vpc(network.id)) is None or vpc["Status"] != "Available":
        if time.monotonic() > deadline:
            raise _never_available(account, order, network, vpc)
        time.sleep(account.patience.poll)
    return vpc


def _never_available(account: Account, order: NetworkOrder, network: Network, vpc: Json | None) -> TrellisError:
    if vpc is not None:
        status = vpc["Status"]
        return TrellisError(
            Code.BUSY, f"VPC {network.id} in {account.region} is still {status}", "tried again by itself"
        )
    account.check_account(order, network)
    return TrellisError(
        Code.LOST,
        f"VPC {network.id} of {order.vpc} is not there any more in {account.region}: "
        f"not found for {account.patience.settle:.0f} s",
        "somebody else deleted it: delete its clusters, then the name is free again",
    )


def _with_ranges(account: Account, order: NetworkOrder, vpc: Json) -> Json:
    """The VPC once all ranges of the order are associated with it, one after the other."""
    vpc_id, wanted = vpc["VpcId"], [str(cidr) for cidr in order.cidrs]
    if vpc["CidrBlock"] != wanted[0]:
        raise TrellisError(
            Code.CONFLICT,
            f"VPC {vpc_id} of {order.vpc} has the primary range {vpc['CidrBlock']}, not {wanted[0]}",
            "a VPC's primary range cannot be changed: ask for the range it has",
        )
    for cidr in wanted[1:]:
        if cidr not in _further(vpc):
            account.add_range(vpc_id, cidr, f"add the range {cidr} to VPC {vpc_id} of {order.vpc}")
            vpc = _awaited(account, order, Network(id=vpc_id))
        if cidr not in _further(vpc):
            raise TrellisError(Code.BUSY, f"VPC {vpc_id}: {cidr} is not associated yet", "tried again by itself")
    return vpc


def _further(vpc: Json) -> list[str]:
    return list(vpc.get("SecondaryCidrBlocks", {}).get("SecondaryCidrBlock", []))
