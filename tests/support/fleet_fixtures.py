"""Fixtures of a fleet, for the folders of tests that look at one."""

from pathlib import Path

import pytest
from support.fleets import write_fleet

from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.fleet import fleet


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight ranks on two nodes, of which rank 5 keeps 801 kB a step and frees all at its end."""
    return write_fleet(tmp_path_factory.mktemp("fleet") / "run", 8, [5])


@pytest.fixture(scope="session")
def found(run_folder: Path) -> FleetAnalysis:
    """The same, analysed."""
    return fleet(run_folder).analyse(jobs=1)
