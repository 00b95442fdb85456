"""Hostile input and hostile programs. A share runs in CI; ``make hostile`` runs all of it."""

import os

import pytest

pytest.register_assert_rewrite("support.hostile")

LONG = os.environ.get("TLMEM_HOSTILE") == "long"
"""Whether the tests marked ``long`` run too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves the long tests out, and says so."""
    if LONG:
        return
    left_out = pytest.mark.skip(reason="long: make hostile runs it")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(left_out)
