"""pytest hooks of tlmem: ``pytest --tlmem`` holds tests to what their markers allow.

Covers: options, markers, switching on. Does not cover: measuring and comparing; see
``tlmem.testing``, of which nothing is imported while the plugin is off.
May import: nothing. Inside functions: testing.
Third-party: pytest.
"""

from __future__ import annotations

import pytest

MARKERS = {
    "limit_tensors": "limit_tensors(amount): arrays and tensors alive at once, as '24 MB'",
    "limit_leaks_tensors": "limit_leaks_tensors(amount): arrays and tensors that are still alive "
    "after the test, of those it made; with --tlmem-loop for each run",
    "limit_rss": "limit_rss(amount): growth of resident memory during the test",
    "no_misuse": "no_misuse: no use after free, double free or other misuse of objects",
    "no_tlmem": "no_tlmem: not recorded under --tlmem, as the test records by itself",
}
INI = {
    "tlmem_loop": "runs before and under measurement, as 5:20 (--tlmem-loop)",
    "tlmem_dir": "folder for recordings of tests that failed (--tlmem-dir)",
    "tlmem_limit_tensors": "limit_tensors of every test that has no such marker",
    "tlmem_limit_leaks_tensors": "limit_leaks_tensors of every test that has no such marker",
    "tlmem_limit_rss": "limit_rss of every test that has no such marker",
}
FOLDER = ".tlmem"
MOST_SHOWN = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings, all of them off."""
    group = parser.getgroup("tlmem", "memory of arrays and tensors (tlmem)")
    group.addoption(
        "--tlmem", action="store_true", help="record each test and hold it to its limits"
    )
    group.addoption(
        "--tlmem-loop",
        metavar="WARMUP:RUNS",
        help="run each test function WARMUP times, then RUNS times under measurement",
    )
    group.addoption(
        "--tlmem-dir",
        metavar="FOLDER",
        help=f"where recordings of tests that failed are kept (default: {FOLDER})",
    )
    group.addoption("--tlmem-keep", action="store_true", help="keep the recordings of all tests")
    group.addoption(
        "--tlmem-most",
        metavar="N",
        type=int,
        default=MOST_SHOWN,
        help="tests with most memory shown at the end (default: %(default)s)",
    )
    parser.addini("tlmem", "the same as --tlmem", type="bool", default=False)
    parser.addini("tlmem_no_misuse", "no_misuse for every test", type="bool", default=False)
    parser.addini(
        "tlmem_suppressions", "files with known leaks (leak:PATTERN)", type="paths", default=[]
    )
    for name, meaning in INI.items():
        parser.addini(name, meaning, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the markers; brings in the rest when it is switched on."""
    for meaning in MARKERS.values():
        config.addinivalue_line("markers", meaning)
    if not (config.getoption("--tlmem") or config.getini("tlmem")):
        return
    from tlmem.testing.session import MemoryOfTests

    config.pluginmanager.register(MemoryOfTests(config), "tlmem-memory")
