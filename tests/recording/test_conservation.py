"""What is allocated and not freed is alive: on every prefix, in every form of the file."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer
from support.oracle import FREE, Program

from tlmem.events import Kind
from tlmem.recording.format.pairing import live_memory
from tlmem.recording.reader import Recording, read

operations = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 9), st.integers(0, 1000), st.booleans()),
    min_size=1,
    max_size=80,
)
forms = st.sampled_from(["compact", "raw", "sealed"])
META = [writer.label(1, "step"), *(writer.site(n, n - 1, 1, n) for n in range(2, 12))]


def recorded(program: Program, form: str, per_slot: int, fold_at: int = 0) -> Recording:
    """The program's events, read back from a file; the first ``fold_at`` are in a checkpoint."""
    file = writer.RecordingWriter(
        form=form, per_slot=per_slot, codec=-1, meta=META, threads=program.events()
    )
    if fold_at:
        sections, file.consumed = program.fold(fold_at)
        file.fold = writer.fold_blocks(7, sections, entries_per_block=5)
        file.header.fold_number, file.header.folded_events = 7, fold_at
    with tempfile.TemporaryDirectory() as folder:
        recording = read(file.write(Path(folder) / "x.tlm"))
        assert recording.problems == []
    return recording


def assert_sums_agree(recording: Recording) -> None:
    """What every recording owes: each way to count gives the same."""
    totals, objects, sites = recording.totals, recording.objects, recording.site_totals
    alive = objects[objects.died_ns < 0]
    assert totals.total_count - totals.freed_count == totals.current_count == len(alive)
    assert totals.total_bytes - totals.freed_bytes == totals.current_bytes
    assert alive.size_bytes.sum() == totals.current_bytes
    assert sites.alloc_count.sum() == totals.total_count
    assert sites.live_bytes.sum() == totals.current_bytes
    assert (sites.live_count >= 0).all()
    assert (objects.died_ns[objects.died_ns >= 0] >= objects.born_ns[objects.died_ns >= 0]).all()


def assert_clock_agrees(recording: Recording) -> None:
    """The clock of events says what the table of events says."""
    events, clock = recording.events, recording.event_clock()
    born, died = {}, {}
    for at, (kind, number) in enumerate(zip(events["kind"], events["object"], strict=True)):
        if kind == Kind.FREE:
            died[number] = at
        elif kind in (Kind.ALLOC, Kind.REALLOC):
            born.setdefault(number, at)
    numbers = recording.objects.index
    assert clock.born.tolist() == [born.get(number, -1) for number in numbers]
    assert clock.died.tolist() == [died.get(number, -1) for number in numbers]
    assert clock.marks.tolist() == np.flatnonzero(events["kind"] == Kind.MARK).tolist()
    assert clock.kinds == set(events["kind"])


@given(operations, forms, st.integers(2, 9))
@settings(max_examples=150)
def test_every_prefix_of_a_trace_has_what_was_allocated_and_not_freed(
    ops: list, form: str, per_slot: int
) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    recording = recorded(program, form, per_slot)
    truth = program.steps

    events, balance = recording.events, live_memory(recording._pairing, recording._known, 0, 0)
    live_bytes, live_count = balance.at(recording._pairing, np.arange(len(events)))
    assert live_bytes.tolist() == [step.live_bytes for step in truth]
    assert live_count.tolist() == [step.live_count for step in truth]
    assert recording.unknown_frees == truth[-1].unknown
    assert recording.totals.peak_bytes == max(step.live_bytes for step in truth)
    assert_sums_agree(recording)


@given(operations, forms)
@settings(max_examples=100)
def test_objects_are_what_the_program_made(ops: list, form: str) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    objects = recorded(program, form, 4).objects

    assert objects.index.tolist() == list(range(len(program.lives)))
    assert objects.size_bytes.tolist() == [life.size for life in program.lives]
    assert objects.address.tolist() == [life.address for life in program.lives]
    assert objects.born_site.tolist() == [life.site for life in program.lives]
    assert objects.died_site.tolist() == [life.died_site for life in program.lives]
    assert objects.resized_from.tolist() == [life.resized_from for life in program.lives]
    assert (objects.died_ns < 0).tolist() == [life.died_step is None for life in program.lives]


@given(operations, forms, st.integers(0, 1000))
@settings(max_examples=100)
def test_a_checkpoint_and_the_rest_give_the_whole(ops: list, form: str, where: int) -> None:
    program = Program().run(ops)
    steps = program.steps
    places = [
        k
        for k in range(1, len(steps))
        if steps[k - 1].quiet and steps[k].ticks > steps[k - 1].ticks
    ]
    if not places:
        return
    fold_at = places[where % len(places)]
    whole, folded = recorded(program, form, 4), recorded(program, form, 4, fold_at)

    assert folded.totals == whole.totals
    assert folded.event_count == whole.event_count
    assert folded.folded_events == fold_at
    assert folded.site_totals.equals(whole.site_totals)
    alive = whole.objects[whole.objects.died_ns < 0]
    rest = folded.objects[folded.objects.died_ns < 0].drop(columns="folded")
    assert rest.drop(columns="resized_from").equals(alive.drop(columns=["folded", "resized_from"]))
    assert folded.events.object.tolist() == whole.events.object.tolist()[fold_at:]
    assert folded.threads.events.to_dict() == whole.threads.events.to_dict()
    assert_sums_agree(folded)
    assert_clock_agrees(whole)
    assert_clock_agrees(folded)


@given(operations, st.integers(0, 1000))
@settings(max_examples=60)
def test_a_file_that_ends_early_holds_the_truth_of_that_moment(ops: list, where: int) -> None:
    program = Program().run(ops)
    steps = program.steps
    ends = [k for k in range(1, len(steps)) if steps[k].ticks > steps[k - 1].ticks]
    ends = [k for k in ends if steps[k - 1].quiet]
    if not ends:
        return
    end = ends[where % len(ends)]
    kept = {}
    for thread, rows in program.events().items():
        count = sum(step.thread == thread for step in steps[:end])
        if count:
            kept[thread] = rows[:count]
    file = writer.RecordingWriter(per_slot=6, meta=META, threads=kept)
    with tempfile.TemporaryDirectory() as folder:
        recording = read(file.write(Path(folder) / "x.tlm"))
        totals = recording.totals

    assert totals.current_bytes == steps[end - 1].live_bytes
    assert totals.current_count == steps[end - 1].live_count
    assert totals.unknown_frees == steps[end - 1].unknown
    assert_sums_agree(recording)


def test_the_oracle_reaches_what_it_is_there_for() -> None:
    generator = np.random.default_rng(1)
    ops = [
        (int(t), int(a), int(c), bool(b))
        for t, a, c, b in zip(
            generator.integers(1, 4, 3000),
            generator.integers(0, 10, 3000),
            generator.integers(0, 999, 3000),
            generator.integers(0, 2, 3000),
            strict=True,
        )
    ]
    program = Program().run(ops)
    rows = [row for thread in program.rows.values() for row in thread]
    ties = [a.ticks == b.ticks for a, b in zip(program.steps, program.steps[1:], strict=False)]

    assert any(life.resized_from >= 0 for life in program.lives)
    assert any(row[2] == 2**64 - 1 for row in rows)
    assert len({life.address for life in program.lives}) < len(program.lives)
    assert any(ties)
    assert program.unknown > 0
    assert sum(step.kind == FREE for step in program.steps) > 100


@pytest.mark.parametrize("form", ["compact", "raw", "sealed"])
def test_a_long_trace_agrees_in_every_form(form: str) -> None:
    generator = np.random.default_rng(5)
    columns = (
        generator.integers(low, high, 4000) for low, high in ((1, 9), (0, 10), (0, 999), (0, 2))
    )
    program = Program().run([tuple(map(int, row)) for row in zip(*columns, strict=True)])
    recording = recorded(program, form, 100)

    assert recording.totals.current_bytes == program.steps[-1].live_bytes
    assert_sums_agree(recording)
