"""How a cluster's block is cut into the subnets that its shoot asks the provider for."""

from __future__ import annotations

from ipaddress import IPv4Network

from domain.errors import Code, TrellisError
from domain.networks import Layout, Zone
from domain.rules import MAX_ZONES, RULES, Provider, longest_block_prefix

__all__ = ["cut"]


def cut(
    provider: Provider,
    block: IPv4Network,
    zones: tuple[str, ...],
    nodes: IPv4Network | None = None,
    infra: IPv4Network | None = None,
) -> Layout:
    """Cut `block` into `nodes` (its lower half) and `infra` (its upper half), and these into the subnets of `zones`.

    AWS: every zone has its part of `nodes` for workers, and its part of `infra`, halved into public and internal.
    Alicloud: every zone has its part of `nodes`; `infra` stays free for load balancers.
    Azure, GCP, OpenStack: one worker subnet spans the zones, so every zone names all of `nodes`; on GCP all of `infra`
    is the internal subnet likewise.

    A half is used to its last address, in the order of `zones`: three zones get a half and two quarters of it.

    Args:
        provider: Whose rules hold.
        block: The cluster's block, say a /22.
        zones: One to eight zones, by the provider's names.
        nodes: Where the workers go instead of the lower half; `infra` must be given too.
        infra: Where everything else goes instead of the upper half.

    Raises:
        TrellisError: `invalid` with what to change: bad zones, parts that overlap or leave the block, or a subnet
            that is smaller or larger than the provider takes.
    """
    _check_zones(zones)
    _check_parts(block, nodes, infra)
    rules = RULES[provider]
    count = len(zones) if rules.zonal else 1
    half = block.prefixlen + 1
    _check_sizes(provider, block, zones, nodes.prefixlen if nodes else half, count)
    _check_sizes(provider, block, zones, infra.prefixlen if infra else half, count * max(1, rules.infra_parts))
    if nodes is None or infra is None:
        nodes, infra = block.subnets()
    workers, rest = _shares(nodes, count), _shares(infra, count)
    if not rules.zonal:
        workers, rest = workers * len(zones), rest * len(zones)
    cuts = zip(zones, workers, rest, strict=True)
    return Layout(block=block, nodes=nodes, infra=infra, zones=tuple(_zone(*cut, rules.infra_parts) for cut in cuts))


def _zone(name: str, workers: IPv4Network, rest: IPv4Network, infra_parts: int) -> Zone:
    match infra_parts:
        case 0:
            return Zone(name=name, workers=workers)
        case 1:
            return Zone(name=name, workers=workers, internal=rest)
        case _:
            public, internal = rest.subnets()
            return Zone(name=name, workers=workers, public=public, internal=internal)


def _shares(network: IPv4Network, count: int) -> list[IPv4Network]:
    """`network` in `count` parts as equal as powers of two allow, by address: the larger ones first."""
    shares = [network]
    while len(shares) < count:
        largest = min(share.prefixlen for share in shares)
        index = max(i for i, share in enumerate(shares) if share.prefixlen == largest)
        shares[index : index + 1] = shares[index].subnets()
    return shares


def _check_zones(zones: tuple[str, ...]) -> None:
    if not 1 <= len(zones) <= MAX_ZONES:
        raise TrellisError(Code.INVALID, f"{len(zones)} zones are given", f"name one to {MAX_ZONES} zones")
    if not all(zones) or len(set(zones)) != len(zones):
        listed = ", ".join(repr(zone) for zone in zones)
        raise TrellisError(Code.INVALID, f"zones {listed}: a name is empty or there twice", "name each zone once")


def _check_parts(block: IPv4Network, nodes: IPv4Network | None, infra: IPv4Network | None) -> None:
    if nodes is None and infra is None:
        return
    if nodes is None or infra is None:
        raise TrellisError(Code.INVALID, f"block {block}: nodes and infra belong together", "give both or neither")
    for field, part in (("nodes", nodes), ("infra", infra)):
        if not part.subnet_of(block):
            raise TrellisError(Code.INVALID, f"{field} {part} is not inside block {block}", f"use a part of {block}")
    if nodes.overlaps(infra):
        raise TrellisError(Code.INVALID, f"nodes {nodes} and infra {infra} overlap", "use separate parts of the block")


def _check_sizes(provider: Provider, block: IPv4Network, zones: tuple[str, ...], prefix: int, count: int) -> None:
    """Check the largest and the smallest of `count` shares of a network of this prefix length."""
    sizes = RULES[provider].subnet
    largest, smallest = prefix + count.bit_length() - 1, prefix + (count - 1).bit_length()
    if smallest > sizes.smallest:
        raise TrellisError(
            Code.INVALID,
            f"block {block} is too small for {len(zones)} zone(s): a subnet would be a /{smallest}, "
            f"smaller than the provider minimum /{sizes.smallest} of {provider}",
            f"use a block of /{longest_block_prefix(provider, len(zones))} or larger, or fewer zones",
        )
    if largest < sizes.largest:
        raise TrellisError(
            Code.INVALID,
            f"block {block} is too large: a subnet would be a /{largest}, "
            f"larger than the provider maximum /{sizes.largest} of {provider}",
            f"use a block of /{sizes.largest - 1} or smaller",
        )
