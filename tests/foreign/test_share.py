"""A share of CPython's, NumPy's, SciPy's and pandas' own tests: the same outcomes when recorded.

All of them, on each Python, are run by ``make foreign``; docs/foreign.md has the counts.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreign import suites
from foreign.comparing import compare
from foreign.running import Run, run
from foreign.suites import Part

CPYTHON = "code gc weakref frame generators atexit sys_setprofile monitoring"
PACKAGES = {
    "numpy": "_core/tests/test_nditer.py lib/tests/test_arraypad.py",
    "scipy": "linalg/tests/test_blas.py",
    "pandas": "tests/copy_view/test_methods.py",
}


def parts() -> Iterator[Part]:
    """A process of CPython's tests, and one for each package."""
    here = [name for part in suites.parts("cpython") for name in part.files]
    yield Part("cpython", "share", tuple(name for name in CPYTHON.split() if name in here))
    for suite, names in PACKAGES.items():
        yield Part(suite, "share", tuple(f"{suite}/{name}" for name in names.split()))


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.suite)
def test_a_foreign_test_has_the_same_outcome_when_recorded(part: Part, tmp_path: Path) -> None:
    if part.suite == "cpython" and not part.files:
        pytest.skip("this Python came without its own tests (the package 'test')")
    if part.suite != "cpython" and not all((suites.site() / name).exists() for name in part.files):
        pytest.skip(f"{part.suite} {suites.version(part.suite)} has not all of {part.files}")
    numbers = iter(range(100))

    def run_one(chosen: Part, recorded: bool) -> Run:
        return run(chosen, tmp_path / str(next(numbers)), recorded)

    result = compare(part, run_one)

    assert result.tests > 10
    assert result.different == []
    assert result.recordings.faults == []
    assert result.recordings.files >= 1
