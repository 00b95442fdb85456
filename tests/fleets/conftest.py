"""Fleets to look at."""

import pytest
from support.fleet_fixtures import found as found
from support.fleet_fixtures import run_folder as run_folder


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works out what it asks for; what is kept has tests of its own."""
    monkeypatch.setenv("TLMEM_SUMS", "off")
