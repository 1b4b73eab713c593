"""How the suite is spread over processes: a file at a time, so that servers are started once and not in each."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep a file's tests together, unless the file shares a server with others and says so."""
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(str(item.path)))
