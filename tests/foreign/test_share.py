"""A share of CPython's, NumPy's, SciPy's and pandas' own tests: the same outcomes when recorded.

All of them, on each Python, are run by ``make foreign``; docs/foreign.md has the counts.
"""

from pathlib import Path

import pytest

from foreign import suites
from foreign.comparing import Result, compare
from foreign.running import Run, run
from foreign.suites import Part

CPYTHON = "code gc frame generators atexit sys_setprofile monitoring"
PACKAGES = """
    numpy/_core/tests/test_nditer.py numpy/lib/tests/test_arraypad.py
    scipy/linalg/tests/test_blas.py pandas/tests/copy_view/test_methods.py
    """


def compared(part: Part, folder: Path, *options: str) -> Result:
    """The part plain and recorded with options, in new folders below ``folder``."""
    numbers = iter(range(100))

    def run_one(chosen: Part, recorded: bool) -> Run:
        return run(chosen, folder / str(next(numbers)), recorded, options)

    return compare(part, run_one)


def test_cpython_tests_have_the_same_outcome_when_recorded(tmp_path: Path) -> None:
    here = [name for part in suites.parts("cpython") for name in part.files]
    if not here:
        pytest.skip("this Python came without its own tests (the package 'test')")
    names = tuple(name for name in CPYTHON.split() if name in here)
    result = compared(Part("cpython", "share", names), tmp_path)

    assert result.tests > 100
    assert result.different == []
    assert result.recordings.faults == []


def test_tests_of_packages_have_the_same_outcome_when_recorded_with_the_heap(
    tmp_path: Path,
) -> None:
    names = PACKAGES.split()
    missing = [name for name in names if not (suites.site() / name).exists()]
    result = compared(Part("numpy", "share", tuple(names)), tmp_path, "--heap")

    assert missing == []
    assert result.tests > 1000
    assert result.different == []
    assert result.recordings.faults == []
    assert result.recordings.events > 10_000
