"""The providers: one file each behind `Cloud`. A sixth provider is one more file and one more line in `worker.clouds`."""

from __future__ import annotations

from typing import Protocol

from domain.networks import Blocker, Network, NetworkOrder

__all__ = ["Cloud"]


class Cloud(Protocol):
    """One account in one region. Every method blocks, may be repeated at any time, and raises `TrellisError`.

    An instance is made for one credential and region; the region is part of every identity: what is not found in the
    wrong region is never taken for deleted.
    """

    def ensure(self, order: NetworkOrder) -> Network:
        """Make the network, or adopt what an earlier attempt of the same incarnation made, and mend what is missing."""
        ...

    def remove(self, order: NetworkOrder, network: Network | None) -> None:
        """Remove what `ensure` made (our record and our tag), in order. Gone already is success.

        Raises `TrellisError` with code `busy` while something is still on its way out, and `blocked` with every blocker
        named where something that is not ours is inside.
        """
        ...

    def blockers(self, order: NetworkOrder, network: Network) -> list[Blocker]:
        """What is inside the network that Trellis did not make."""
        ...

    def foreign_ranges(self, order: NetworkOrder, network: Network) -> list[str]:
        """The CIDRs of subnets inside the network that exist already, whoever made them."""
        ...
