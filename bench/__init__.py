"""What Trellis costs, against what it may cost: `python -m bench [name ...]`.

Each module here has `run()`, which yields `Measure`s. A measure above its budget fails the run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One number: what it counts, in which unit, and the most that it may be (None: only to be seen)."""

    what: str
    value: float
    unit: str
    budget: float | None = None

    @property
    def within(self) -> bool:
        """Whether the budget holds."""
        return self.budget is None or self.value <= self.budget
