"""Parts of a recording, put together again, are the recording, wherever it is cut."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import writer
from support.oracle import META, Program, operations, write

from tlmem.errors import TablesTooLarge
from tlmem.events import Device, Kind, Metric
from tlmem.recording import available_memory, reader
from tlmem.recording.format import limits
from tlmem.recording.reader import Recording, read

OPERATIONS = operations(80)
FORMS = st.sampled_from(["compact", "raw", "sealed"])
IN_TURN = ("events", "marks", "misuses")
ENDING = ("objects", "heap")
SUMS = ("site_totals", "threads", "sites")


@contextmanager
def recorded(program: Program, form: str = "sealed", fold_at: int = 0) -> Iterator[Path]:
    """The file of a program, the first ``fold_at`` events in a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        yield write(program, Path(folder) / "x.tlm", form, fold_at)


def together(whole: Recording, events: int, table: str) -> pd.DataFrame:
    """A table of the whole, from the parts, in the way that is promised."""
    parts = list(whole.parts(events))
    if table in SUMS:
        return getattr(parts[-1], table)
    rows = [getattr(part, table) for part in parts]
    if table in ENDING:
        rows = [of[of.died_ns >= 0] for of in rows[:-1]] + rows[-1:]
    return pd.concat(rows, ignore_index=table != "objects")


def assert_parts_are_the_whole(whole: Recording, events: int) -> None:
    for table in (*IN_TURN, *SUMS):
        pd.testing.assert_frame_equal(together(whole, events, table), getattr(whole, table))
    objects = together(whole, events, "objects").sort_index()
    pd.testing.assert_frame_equal(objects, whole.objects, check_index_type=False)
    samples = together(whole, events, "samples")
    samples = samples.sort_values("time_ns", kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(samples, whole.samples)
    last = list(whole.parts(events))[-1]
    assert last.totals == whole.totals
    assert last.problems == whole.problems
    assert last.is_last and last.folded_events == whole.folded_events


@given(OPERATIONS, FORMS, st.booleans(), st.integers(1, 40))
@example([(1, 0, 0, False)] * 2 + [(1, 7, 0, False)] + [(2, 0, 0, False)] * 2, "sealed", False, 2)
@settings(max_examples=40)
def test_any_cut_gives_the_tables_of_the_whole(
    ops: list, form: str, with_checkpoint: bool, events: int
) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    with recorded(program, form, len(program.steps) // 3 if with_checkpoint else 0) as path:
        assert_parts_are_the_whole(read(path), events)


@given(OPERATIONS, st.integers(1, 40), st.integers(0, 80), st.integers(0, 80))
@settings(max_examples=20)
def test_parts_of_a_range_of_time_are_the_range(
    ops: list, events: int, begin: int, length: int
) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    start, stop = begin / 1e9, (begin + length) / 1e9
    with recorded(program) as path:
        assert_parts_are_the_whole(read(path, start, stop), events)


def long_file(path: Path, count: int = 400) -> Path:
    """Samples of several values each, and objects that live from one to the next."""
    rows = []
    for step in range(count):
        ticks = 1_000_000 + 100 * step
        rows += [
            (ticks, Metric.ANON, 1000 + step, 0, 0, Kind.SAMPLE, 0),
            (ticks + 4, Metric.FILE, 10, 0, 0, Kind.SAMPLE, 0),
            (ticks + 8, Metric.MALLOC_USED, 5, 0, 0, Kind.SAMPLE, 0),
            (ticks + 12, 16 * (step + 1), 100, 2, 0, Kind.ALLOC, Device.NUMPY),
            (ticks + 16, 16 * (step + 1), 100, 2, 2, Kind.ALLOC, Device.HEAP),
        ]
        if step > 2:
            rows += [
                (ticks + 20, 16 * (step - 2), 0, 2, 0, Kind.FREE, Device.NUMPY),
                (ticks + 24, 16 * (step - 2), 0, 2, 0, Kind.FREE, Device.HEAP),
            ]
    file = writer.RecordingWriter(
        form="sealed", per_slot=7, codec=-1, meta=META, threads={1: writer.events(rows)}
    )
    return file.write(path)


@pytest.mark.parametrize("events", [3, 50, 1000])
def test_a_sample_and_a_block_of_the_heap_are_in_one_part(tmp_path: Path, events: int) -> None:
    whole = read(long_file(tmp_path / "x.tlm", 40 if events < 50 else 400))

    assert len(list(whole.parts(events))) > 1
    assert_parts_are_the_whole(whole, events)
    heap = together(whole, events, "heap").sort_values("born_ns", ignore_index=True)
    pd.testing.assert_frame_equal(heap, whole.heap)


def test_what_lives_on_is_in_every_part_with_its_number(tmp_path: Path) -> None:
    first, second, *_ = read(long_file(tmp_path / "x.tlm")).parts(50)

    alive = first.objects[first.objects.died_ns < 0]
    assert len(alive) and second.objects.index[: len(alive)].tolist() == alive.index.tolist()
    assert second.objects["born_ns"].iloc[: len(alive)].tolist() == alive["born_ns"].tolist()
    assert not second.objects["folded"].any()


@pytest.mark.parametrize("table", ["events", "objects", "samples", "site_totals", "holders"])
def test_arrow_batches_are_the_table(tmp_path: Path, table: str) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    whole = read(long_file(tmp_path / "x.tlm"))

    batches = whole.to_arrow(table, events=300)
    found = batches.read_pandas()
    expected = getattr(whole, table)
    expected = expected.reset_index() if expected.index.name else expected
    if table == "objects":
        found = found.sort_values("object", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=len(expected) > 0)
    assert batches.schema.field(0).metadata[b"meaning"]


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no table 'eventz'; there are events, objects"):
        read(long_file(tmp_path / "x.tlm", 3)).to_arrow("eventz")
    with pytest.raises(ValueError, match="at least 1 event, not 0"):
        read(long_file(tmp_path / "x.tlm", 3)).parts(0)


def test_tables_that_do_not_fit_are_an_error_that_names_the_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = long_file(tmp_path / "x.tlm")
    monkeypatch.setattr(limits, "EVENTS_OF_ANY_MEMORY", 1000)
    monkeypatch.setattr(reader, "available_memory", lambda: 100_000)

    with pytest.raises(TablesTooLarge, match=r"2,794 events .*start=.*parts\(\).*to_arrow\(\)"):
        _ = read(path).events
    assert TablesTooLarge.exit_code == 3
    assert sum(part.event_count for part in read(path).parts(500)) == 2794
    assert len(read(path, 0, 1e-6).events) < 500
    monkeypatch.setattr(reader, "available_memory", lambda: 10**9)
    assert read(path).event_count == 2794


GROUPS = {
    "0::/a/b\n": ("", "memory.max", "memory.current", "inactive_file"),
    "4:cpu,memory:/a/b\n": (
        *("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
}


@pytest.mark.parametrize("line", GROUPS)
def test_the_limit_of_a_control_group_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    below, most, used, cache = GROUPS[line]
    group = tmp_path / below / "a"
    (group / "b").mkdir(parents=True)
    (group / most).write_text("5000\n")
    (group / used).write_text("4500\n")
    (group / "memory.stat").write_text(f"anon 3\n{cache} 500\n")
    (group / "b" / most).write_text("max\n")
    (tmp_path / "own").write_text(line)
    monkeypatch.setattr(available_memory, "GROUPS", tmp_path)
    monkeypatch.setattr(available_memory, "OWN_GROUPS", tmp_path / "own")

    assert available_memory.available_memory() == 1000
    (group / used).write_text("9500\n")
    assert available_memory.available_memory() == 0
    (tmp_path / "own").write_text("nonsense\n")
    assert available_memory.available_memory() > 10**6


def test_memory_is_as_the_machine_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(available_memory, "OWN_GROUPS", tmp_path / "missing")

    assert 10**6 < available_memory.available_memory() < np.iinfo(np.int64).max
