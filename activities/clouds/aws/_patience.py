"""How long EC2 may take. It is eventually consistent: what was just made may be unknown for a while."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Patience"]


@dataclass(frozen=True)
class Patience:
    """Seconds.

    Attributes:
        settle: Until what was just made counts as lost.
        look: How long something is looked for before it counts as not there: what a create whose answer was lost may
            have made, and what is on record and not to be seen.
        poll: Between two looks.
    """

    settle: float = 60.0
    look: float = 10.0
    poll: float = 1.0
