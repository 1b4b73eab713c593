"""How the suite is spread over processes: a file at a time, so that servers are started once and not in each."""

from __future__ import annotations

import pytest

# Whole sandboxes with many clusters: one at a time, and beside them the ones that mostly wait.
_CROWDS = {"test_crowd.py", "test_fault_matrix.py", "test_providers.py"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep a file's tests together, unless the file shares a server with others and says so."""
    if item.get_closest_marker("xdist_group") is not None:
        return
    group = str(item.path)
    if item.path.parent.name == "e2e":
        group = "crowds" if item.path.name in _CROWDS else "e2e"
    item.add_marker(pytest.mark.xdist_group(group))
