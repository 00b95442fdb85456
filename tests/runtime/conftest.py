"""What holds after every test of the runtime: nothing is left, and the counters agree exactly."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from runtime.trace import Tracer, described, live_objects, statistics

from tlmem.runtime.core import lib


@pytest.fixture
def trace(tmp_path: Path) -> Tracer:
    """``with trace() as t:`` records the block; see ``trace.py`` for what ``t`` tells."""
    return Tracer(tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Fails a test that leaves an object, a count or a scope behind."""
    before, at_first = live_objects(), statistics()
    depth = lib.tlm_scope_depth()
    yield
    if live_objects() != before:
        gc.collect()
    after = statistics()
    assert lib.tlm_scope_depth() == depth, "the test left a scope entered"
    assert described(live_objects() - before) == []
    assert before - live_objects() == set(), "the test freed what is not its own"
    assert after.total_count - after.freed_count == after.current_count == at_first.current_count
    assert after.total_bytes - after.freed_bytes == after.current_bytes == at_first.current_bytes
    assert after.floating == at_first.floating
