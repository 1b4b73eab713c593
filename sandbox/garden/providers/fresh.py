"""Answers of a cloud, shared by those who ask at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

__all__ = ["Fresh"]

T = TypeVar("T")
_MOST_QUESTIONS = 100


class _Fresh:
    """The answers to one question."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._begun = 0
        self._answer: tuple[int, Any] = (0, None)

    def get(self, load: Callable[[], Any]) -> Any:
        ticket = self._begun
        with self._loading:
            if self._answer[0] <= ticket:
                self._begun += 1
                self._answer = (self._begun, load())
            return self._answer[1]


class Fresh(Generic[T]):
    """Shares answers between threads: everybody gets one that was asked for after they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: OrderedDict[Hashable, _Fresh] = OrderedDict()

    def get(self, question: Hashable, load: Callable[[], T]) -> T:
        """The answer of the next load to begin; waits for it, or loads."""
        with self._lock:
            fresh = self._questions.setdefault(question, _Fresh())
            self._questions.move_to_end(question)
            if len(self._questions) > _MOST_QUESTIONS:
                # Whoever waits for that one still gets an answer; it is only shared no more.
                self._questions.popitem(last=False)
        return cast("T", fresh.get(load))
