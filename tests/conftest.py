"""What holds for every test: no time limits by accident, and no recording left running."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# The machine may be shared and slow; a test that fails for that is a test of the machine.
# Examples are the same each time, so that a test fails for what was changed and not by chance;
# ``TLMEM_FUZZ=n`` asks for new ones.
settings.register_profile(
    "tlmem",
    deadline=None,
    derandomize=not os.environ.get("TLMEM_FUZZ"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tlmem")


def pytest_report_header() -> str:
    """Which extension module is tested, or that there is none."""
    try:
        from tlmem._native import ffi, lib
    except ImportError as error:
        return f"tlmem: no extension module ({error})"
    method = ffi.string(lib.tlm_site_method()).decode()
    zlib = "found" if lib.tlm_zlib_available() else "not found"
    return f"tlmem: stacks by {method}, zlib {zlib}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slow tests first: at the end one worker would run them while the others are idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Keeps what is imported by now out of later collections.

    Many tests collect garbage to show that nothing is left. Modules and tests are 300,000 objects,
    and looking at them took 0.2 s each time.
    """
    gc.collect()
    gc.freeze()
    # Python counts what is frozen one by one: 0.1 s for a million, at the begin and at the end of
    # each recording of this process. tests/recorder/test_collector.py has a process of its own.
    session = sys.modules.get("tlmem.recorder.session")
    if session is not None:
        session.get_freeze_count = lambda: 0


@pytest.fixture(autouse=True, scope="module")
def what_earlier_modules_left_is_not_looked_at() -> None:
    """The same for what tests of other modules imported: each collection of one that makes hundreds
    took a tenth of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_recording_left_running() -> Iterator[None]:
    """Fails a test of this process that leaves a recording behind; the next one could not start."""
    yield
    native = sys.modules.get("tlmem._native")
    if native is not None:
        now = native.ffi.new("tlm_recording_statistics *")
        native.lib.tlm_recording_stats(now)
        assert not now.running, "the test left a recording running; stop it in the test"
