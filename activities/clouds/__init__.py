"""The providers: one file each behind `Cloud`. A sixth provider is one more file and one more line in `worker.clouds`.

Every adapter is made as `Adapter(region, secret, installation=…)`: `secret` is the data of the Secret behind the
garden's CredentialsBinding, and `installation` tells what this Trellis made from what another one did.
"""

from __future__ import annotations

from typing import Protocol

from domain.networks import Blocker, NetworkRecord, NetworkSeen, Owned

__all__ = ["Cloud"]


class Cloud(Protocol):
    """One account in one region. Every method blocks, may be repeated at any time, and raises `TrellisError`.

    The region is part of every identity: an order for another one is refused with code `invalid`, so that what is not
    found in the wrong region is never taken for deleted. Where the record names another account than the one that the
    credentials belong to, what is not found there is a `conflict`.
    """

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """Make the network, or adopt what an earlier attempt of the same incarnation made, and mend what is missing.

        A network on record is never made anew: where it is gone, the error is `lost`. May take a few minutes.
        """
        ...

    def remove(self, record: NetworkRecord) -> None:
        """Remove what `ensure` made, in order. Gone already is success.

        That is what is on record *and* carries the tags of this incarnation; without a record, what a half-made
        `ensure` left, by its tags alone. Raises `busy` while something is still on its way out, and `blocked`, with
        everything named and before anything is touched, where something that is not ours is inside.
        """
        ...

    def blockers(self, record: NetworkRecord) -> tuple[Blocker, ...]:
        """What is inside the network that Trellis did not make with it; nothing where there is no network."""
        ...

    def owned(self) -> tuple[Owned, ...]:
        """Everything in this account and region that carries this installation's tags, in a stable order."""
        ...
