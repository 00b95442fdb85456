"""Folding while reading gives the sums, the live set and the samples of reading everything."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.oracle import Program, write

from tlmem.events import RESIZE_FREE, Kind
from tlmem.recording.format import checkpoint, pairing, timeline
from tlmem.recording.format.timeline import Timeline
from tlmem.recording.reader import Recording, read
from tlmem.recording.tables import memory

operations = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 9), st.integers(0, 1000), st.booleans()),
    min_size=1,
    max_size=80,
)
RESIZE_OF_A_THREAD_THAT_ENDS = [(1, 0, 0, False)] * 2 + [(1, 7, 0, False)] + [(2, 0, 0, False)] * 2
"""Cut by the other thread's piece, between the halves."""


def read_both(program: Program, form: str, fold_at: int, detail: int) -> tuple[Recording, ...]:
    """The program's recording read whole, and read with older events folded in small chunks."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(checkpoint, "CHUNK_EVENTS", 5),
    ):
        path = write(program, Path(folder) / "x.tlm", form, fold_at)
        whole = read(path)
        assert whole.problems == []
        # Else what is for many objects and long runs is not reached by so few events.
        with (
            patch.multiple(pairing, _FEW_KNOWN=0, _PIECE=3),
            patch.object(timeline, "_SHORT_RUN", 0),
            patch.object(memory, "_PIECE", 3),
            patch.object(checkpoint, "LONG_LIFE", 0.0),
        ):
            folded = read(path, detail_events=detail)
            assert folded.problems == []
    return whole, folded


@given(operations, st.sampled_from(["compact", "raw", "sealed"]), st.booleans(), st.integers(0, 30))
@example(RESIZE_OF_A_THREAD_THAT_ENDS, "sealed", False, 0)
@example(RESIZE_OF_A_THREAD_THAT_ENDS, "sealed", False, 1)
@example(RESIZE_OF_A_THREAD_THAT_ENDS, "sealed", False, 2)
@settings(max_examples=200)
def test_folded_reading_agrees_with_reading_everything(
    ops: list, form: str, with_checkpoint: bool, detail: int
) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    fold_at = len(program.steps) // 3 if with_checkpoint else 0
    whole, folded = read_both(program, form, fold_at, detail)

    assert folded.event_count == whole.event_count
    assert folded.totals == whole.totals
    pd.testing.assert_frame_equal(folded.site_totals, whole.site_totals)
    pd.testing.assert_frame_equal(folded.samples, whole.samples)
    kept = ["time_ns", "label", "index", "site"]  # a checkpoint does not say which thread it was
    pd.testing.assert_frame_equal(folded.marks[kept], whole.marks[kept])
    told = ["time_ns", "misuse", "address", "device", "holder", "site"]
    pd.testing.assert_frame_equal(folded.misuses[told], whole.misuses[told])
    pd.testing.assert_frame_equal(folded.threads, whole.threads)
    alive = [r.objects[r.objects["died_ns"] < 0] for r in (folded, whole)]
    columns = [name for name in alive[0].columns if name not in ("folded", "resized_from")]
    pd.testing.assert_frame_equal(alive[0][columns], alive[1][columns])
    died = folded.objects[folded.objects["died_ns"] >= 0]
    pd.testing.assert_frame_equal(died[columns], whole.objects.loc[died.index, columns])
    told = ["device", "size_bytes", "born_ns", "died_ns", "born_site", "died_site"]
    every = pd.concat([folded.passed[told], folded.objects[told]]).sort_index()
    expected = whole.objects.loc[every.index if with_checkpoint else whole.objects.index, told]
    pd.testing.assert_frame_equal(every, expected, check_dtype=False, check_index_type=False)
    assert (folded.passed["weight"] == 1).all()


def test_nothing_is_folded_when_all_fits() -> None:
    pieces = np.zeros(
        3, [("count", int), ("closed", int), ("ticks_begin", "u8"), ("ticks_end", "u8")]
    )
    pieces["count"], pieces["closed"], pieces["ticks_end"] = 100, 1, [10, 20, 30]

    assert checkpoint.horizons(pieces, 300) == []
    assert checkpoint.horizons(pieces, 299) != []


def test_no_cut_lies_in_a_piece_whose_end_is_the_moment_of_its_middle() -> None:
    """A resize may begin in its last event; by ticks that are cleared that was its middle, too."""
    pieces = np.zeros(
        2, [("count", int), ("closed", int), ("ticks_begin", "u8"), ("ticks_end", "u8")]
    )
    pieces["count"], pieces["closed"] = 100, 1
    pieces["ticks_begin"], pieces["ticks_end"] = [1000, 1025], [1024, 1031]

    assert checkpoint.horizons(pieces, 0, time_shift=0) == [1028]
    assert checkpoint.horizons(pieces, 0, time_shift=2) == [1012]
    assert checkpoint.horizons(pieces[1:], 0, time_shift=2) == []


def test_a_thread_that_was_killed_within_a_resize_does_not_stop_folding() -> None:
    pieces = np.zeros(2, [("thread", "u4"), ("ticks_end", "u8")])
    pieces["thread"], pieces["ticks_end"] = [1, 2], [50, 200]
    halves = events_of([(1, 50, Kind.FREE, RESIZE_FREE), (2, 100, Kind.FREE, RESIZE_FREE)])
    goes_on = checkpoint.last_moments(pieces)

    assert checkpoint.divides_a_resize(halves, 100, goes_on)
    assert not checkpoint.divides_a_resize(halves, 200, goes_on)
    assert not checkpoint.divides_a_resize(events_of([(2, 100, Kind.FREE, 0)]), 100, goes_on)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_left_stand_for_as_many_whether_old_or_new(seed: int) -> None:
    """40 parts of 16 blocks each, of which 200 are kept at most: 50 to 200, so 14 % at most."""
    chance = np.random.default_rng(seed)
    with patch.object(checkpoint, "MOST_HEAP", 200):
        alive = events_of([])
        for part in range(40):
            ticks = np.sort(part * 10**7 + chance.integers(0, 10**7, 16))
            addresses = 2**46 + chance.integers(0, 2**20, 16).astype("u8") * 16
            rows = [(1, when, Kind.ALLOC, 64) for when in ticks.tolist()]
            alive = timeline.in_turn(alive, events_of(rows, addresses))
            if len(alive) > checkpoint.MOST_HEAP:
                alive = checkpoint._with_fewer_blocks(alive)
    stands_for = np.exp2(alive.count // checkpoint.HALVING)

    assert 50 <= len(alive) <= 200
    assert abs(stands_for.sum() - 640) < 0.7 * 640
    assert stands_for.max() <= 32


def events_of(rows: list[tuple[int, int, int, int]], objects: np.ndarray | None = None) -> Timeline:
    """Of threads, ticks, kinds and arguments, and of objects; all else is 0."""
    thread, ticks, kind, arg = np.array(rows, "u8").reshape(-1, 4).T
    nothing = np.zeros(len(rows), "u8")
    which = nothing if objects is None else objects
    return Timeline(ticks, which, arg, nothing, nothing, kind, nothing, thread, nothing)
