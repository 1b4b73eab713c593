"""What a deletion does with a refusal: it waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from domain.errors import Code, TrellisError

__all__ = ["waiting_for_a_person"]


@contextmanager
def waiting_for_a_person() -> Iterator[None]:
    """Around a deletion: whatever only a person can mend is `blocked`, so that it goes on when that is mended.

    Given up, it would leave behind what nobody counts any more.
    """
    try:
        yield
    except TrellisError as error:
        failure = error.failure
        if failure.transient or failure.code is Code.BLOCKED:
            raise
        raise TrellisError(Code.BLOCKED, f"{failure.message} [{failure.code}]", failure.hint) from None
