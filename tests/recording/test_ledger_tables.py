"""The ledger says who held what; a recording whose counts do not add up says so."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer
from support.owners import ACQUIRE, ALLOC, CPU, FREE, REGISTER, RELEASE, Runtime, holder

from tlmem.recording.reader import Recording, read

operations = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 17), st.integers(0, 1000)), min_size=1, max_size=100
)
META = [writer.label(1, "step"), writer.label(2, "epoch"), writer.site(2, 0, 1, 3)]
SCOPE, HANDLE = holder(2, 1), holder(3, 1)
OBJECT = 1 << 28 | 5


def recorded(threads: dict[int, np.ndarray], form: str = "sealed", **limits: float) -> Recording:
    """The events read back from a file; every table asked for is built before the file is gone."""
    file = writer.RecordingWriter(form=form, per_slot=7, codec=-1, meta=META, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        recording = read(file.write(Path(folder) / "x.tlm"), **limits)
        assert len(recording.holders) >= 0
    return recording


def of_one_object(*rows: tuple[int, int, int, int]) -> Recording:
    """A recording of (kind, arg, count, step) events of one object, one after another."""
    events = [(1_000_000 + 4 * step, OBJECT, arg, 2, n, kind, CPU) for kind, arg, n, step in rows]
    return recorded({1: writer.events(events)})


def in_words(recording: Recording) -> list[tuple[int, int, int, int]]:
    """The ledger as the pretended runtime writes it: handle, holder, step of begin and end."""
    table = recording.holders
    holders = table["kind"].to_numpy(np.int64) << 56 | table["number"].to_numpy()
    # One tick is half a nanosecond, one step four ticks.
    begin, end = (table[name].to_numpy() // 2 for name in ("begin_ns", "end_ns"))
    return sorted(zip(table["address"].astype(int), holders, begin, end, strict=True))


@given(operations, st.sampled_from(["compact", "raw", "sealed"]))
@settings(max_examples=150, deadline=None)
def test_the_ledger_is_who_held_what(ops: list, form: str) -> None:
    runtime = Runtime().run(ops)
    if not runtime.steps:
        return
    recording = recorded(runtime.events(), form)

    assert in_words(recording) == runtime.whole_ledger()
    assert recording.problems == []


@given(operations)
@settings(max_examples=60, deadline=None)
def test_what_is_held_in_the_end_is_the_count_of_what_is_alive(ops: list) -> None:
    runtime = Runtime().run(ops)
    if not runtime.made:
        return
    recording = recorded(runtime.events())
    open_rows = recording.holders[recording.holders["end_ns"] < 0]
    alive = recording.objects[recording.objects["died_ns"] < 0]

    counts = open_rows.groupby("address").size().to_dict()
    assert counts == {thing.handle: thing.count for thing in runtime.things.values()}
    assert sorted(alive["address"]) == sorted(counts)
    totals = recording.totals
    assert totals.total_count - totals.freed_count == totals.current_count == len(counts)


def test_the_pretended_runtime_reaches_what_it_is_there_for() -> None:
    chance = np.random.default_rng(3)
    numbers = ((1, 4), (0, 18), (0, 999))
    ops = list(zip(*(chance.integers(*span, 3000).tolist() for span in numbers), strict=True))
    runtime = Runtime().run(ops)
    kinds = {row[5] for rows in runtime.rows.values() for row in rows}
    ends = {}
    for handle, who, begin, end in runtime.whole_ledger():
        ends.setdefault((handle, who), []).append((begin, end))

    assert {1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 16, 18, *range(24, 29)} <= kinds
    assert any(len(rows) > 1 for rows in ends.values()), "somebody held an object twice"
    assert in_words(recorded(runtime.events())) == runtime.whole_ledger()


def test_a_count_that_does_not_follow_is_told() -> None:
    recording = of_one_object(
        (ALLOC, 64, 1, 0), (ACQUIRE, HANDLE, 2, 1), (ACQUIRE, HANDLE, 2, 2), (ACQUIRE, HANDLE, 4, 3)
    )

    (problem,) = recording.problems
    assert "counts cannot be trusted" in problem
    assert f"object {OBJECT:#x}, whose acquire says 2 where 3 follows" in problem
    assert not recording.complete


def test_a_free_that_ends_other_counts_than_it_says_is_told() -> None:
    recording = of_one_object((ALLOC, 64, 1, 0), (ACQUIRE, HANDLE, 2, 1), (FREE, 1, 0, 2))

    (problem,) = recording.problems
    assert "free says 1 where 2 follows" in problem


def test_giving_up_what_was_not_held_is_told() -> None:
    recording = of_one_object((ALLOC, 64, 1, 0), (RELEASE, HANDLE, 0, 1))

    (problem,) = recording.problems
    assert "holders cannot be trusted: 1 events" in problem


def test_where_events_are_lost_counts_are_not_judged() -> None:
    file = writer.RecordingWriter(form="sealed", meta=META)
    file.threads = {1: writer.events([(1_000_000, OBJECT, 64, 2, 7, ALLOC, CPU)])}
    file.header.lost_events = 3
    with tempfile.TemporaryDirectory() as folder:
        problems = read(file.write(Path(folder) / "x.tlm")).problems

    assert problems == ["3 events could not be recorded"]


def test_a_count_too_large_for_its_field_is_no_problem() -> None:
    rows = [(ALLOC, 64, 1, 0)]
    rows += [(ACQUIRE, HANDLE, min(n, 65535), n) for n in range(2, 65540)]

    assert of_one_object(*rows).problems == []


def test_an_object_older_than_the_recording_is_unknown_and_no_problem() -> None:
    recording = of_one_object((ACQUIRE, HANDLE, 3, 0), (RELEASE, HANDLE, 2, 1), (FREE, 2, 0, 2))

    assert recording.holders["object"].tolist() == [-1]
    assert recording.unknown_frees == 1
    assert recording.problems == []


def test_a_part_of_a_recording_has_unknown_objects_and_no_problem() -> None:
    events = [
        (1_000_000, OBJECT, 64, 2, 1, ALLOC, CPU),
        (500_000_000, OBJECT, SCOPE, 2, 1, REGISTER, CPU),
        (600_000_000, OBJECT, SCOPE, 2, 0, RELEASE, CPU),
        (600_000_004, OBJECT, 0, 2, 0, FREE, CPU),
    ]
    recording = recorded({1: writer.events(events)}, start=0.2)

    assert recording.holders["object"].tolist() == [-1]
    assert recording.problems == []


def test_a_forced_free_ends_whoever_holds() -> None:
    recording = of_one_object(
        (ALLOC, 64, 1, 0), (REGISTER, SCOPE, 1, 1), (ACQUIRE, HANDLE, 2, 2), (FREE, 2, 0, 3)
    )

    assert (recording.holders["end_ns"] >= 0).all()
    assert recording.holders["ended_by"].tolist() == [REGISTER, FREE, FREE]


def test_an_address_in_use_again_is_another_object() -> None:
    owner, address = holder(11, 1), 4096
    rows = [
        *((ALLOC, 64, 1), (ACQUIRE, owner, 2), (FREE, 0, 0)),
        *((ALLOC, 32, 1), (ACQUIRE, owner, 2), (RELEASE, owner, 1)),
    ]
    events = [
        (1_000_000 + 4 * i, address, arg, 2, n, kind, 3) for i, (kind, arg, n) in enumerate(rows)
    ]
    table = recorded({1: writer.events(events)}).holders
    named = table[table["kind"] == 11]

    assert named["object"].tolist() == [0, 1]
    assert named["ended_by"].tolist() == [FREE, RELEASE]
    assert set(named["holder"]) == {"step"}


@pytest.mark.parametrize("device", [1, 2])
def test_arrays_have_no_holders(device: int) -> None:
    recording = recorded({1: writer.events([(1_000_000, 4096, 64, 2, 0, ALLOC, device)])})

    assert len(recording.holders) == 0
    assert len(recording.objects) == 1
