"""What will happen later: states that end by themselves.

Each region has a list of steps with their time. `settle` takes the steps that are due, whenever anybody looks. Nothing
runs in the background, so a cloud that is replayed goes through the same states.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

__all__ = ["later", "settle", "step"]

_STEPS: dict[str, Callable[[Any, str, float], None]] = {}


def step(function: Callable[[Any, str, float], None]) -> Callable[[Any, str, float], None]:
    """Make a function (cloud, resource id, due time) known by its name."""
    _STEPS[function.__name__] = function
    return function


def later(cloud: Any, due: float, function: Callable[[Any, str, float], None], resource_id: str) -> None:
    """Take this step at the time `due` (seconds since 1970)."""
    agenda = cloud.__dict__.setdefault("sandbox_agenda", [])
    heapq.heappush(agenda, (due, function.__name__, resource_id))


def settle(cloud: Any, now: float) -> None:
    """Take every step that is due."""
    agenda = cloud.__dict__.get("sandbox_agenda", [])
    while agenda and agenda[0][0] <= now:
        due, name, resource_id = heapq.heappop(agenda)
        _STEPS[name](cloud, resource_id, due)
