"""Tables have the columns, dtypes and units that are written down."""

from pathlib import Path

import numpy as np
import pytest
from support import writer

from tlmem.events import Metric
from tlmem.recording.reader import read
from tlmem.recording.tables.schema import SCHEMA, TEXT, describe, frame

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/tables.md"
UNITS = {"_ns": "ns", "_bytes": "bytes"}


@pytest.fixture(params=["full", "sealed", "marks only"])
def recording(request: pytest.FixtureRequest, tmp_path: Path):
    rows = writer.events(
        [
            (1_000_004, 1, 5, 0, 0, 32, 0),
            (1_000_008, 64, 8, 2, 0, 1, 1),
            (1_000_012, 64, 0, 2, 0, 2, 1),
            (1_000_016, 1, 4096, 0, 0, 33, 0),
        ]
    )
    meta = [writer.code(1, "/a.py", "f"), writer.site(2, 0, 1, 3), writer.thread(1, "main", True)]
    rows = rows[:1] if request.param == "marks only" else rows
    form = "sealed" if request.param == "sealed" else "compact"
    return read(
        writer.RecordingWriter(form=form, meta=meta, threads={1: rows}).write(tmp_path / "x.tlm")
    )


def test_columns_dtypes_and_index_are_those_of_the_schema(recording) -> None:
    wrong = []
    for name, table in SCHEMA.items():
        found = getattr(recording, name)
        expected = {column.name: column.dtype for column in table.columns}
        index = expected.pop(table.index, None)
        if index is not None and found.index.name != table.index:
            wrong.append(f"{name}: the index is {found.index.name}, not {table.index}")
        if index is not None and len(found.index) and found.index.dtype != np.dtype(index):
            wrong.append(f"{name}: the index is of {found.index.dtype}, not {index}")
        if list(found.columns) != list(expected):
            wrong.append(f"{name}: has {list(found.columns)}, not {list(expected)}")
            continue
        for column, dtype in expected.items():
            if dtype == TEXT:
                fits = all(isinstance(text, str) for text in found[column])
            else:
                fits = str(found[column].dtype) == dtype
            if not fits:
                wrong.append(f"{name}.{column}: is {found[column].dtype}, not {dtype}")

    assert wrong == []


def test_every_column_says_its_unit_and_meaning() -> None:
    wrong = []
    for name, table in SCHEMA.items():
        for column in table.columns:
            if not column.meaning:
                wrong.append(f"{name}.{column.name}: no meaning")
            for ending, unit in UNITS.items():
                if column.name.endswith(ending) and column.unit != unit:
                    wrong.append(f"{name}.{column.name}: in {column.unit}, not {unit}")

    assert wrong == []


def test_the_reference_page_is_what_the_schema_says() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert describe() in page, (
        "write docs/reference/tables.md again: python -m tlmem.recording.tables.schema"
    )


def test_a_frame_shares_the_arrays_it_is_made_of() -> None:
    given = {
        column.name: np.zeros(3, column.dtype)
        for column in SCHEMA["events"].columns
        if column.dtype != TEXT
    }
    made = frame("events", given)

    assert all(np.shares_memory(made[name].to_numpy(), given[name]) for name in given)


def test_tables_stay_the_same_object(recording) -> None:
    assert recording.events is recording.events
    assert recording.objects is recording.objects


def test_tracked_memory_is_counted_when_the_allocator_was_asked(tmp_path: Path) -> None:
    anon, used = Metric.ANON, Metric.MALLOC_USED
    events = writer.events(
        [
            (1_000_004, anon, 50_000, 0, 0, 33, 0),
            (1_000_008, 64, 8_000, 2, 0, 1, 1),
            (1_000_012, used, 9_000, 0, 0, 33, 0),
            (1_000_016, 64, 0, 2, 0, 2, 1),
        ]
    )
    meta, threads = [writer.site(2, 0, 1, 3)], {1: events}
    file = writer.RecordingWriter(form="sealed", meta=meta, threads=threads)
    recording = read(file.write(tmp_path / "x.tlm"))
    (sample,) = recording.samples.reset_index().to_dict("records")

    assert recording.objects["born_ns"].iloc[0] < sample["time_ns"]
    assert sample["time_ns"] < recording.objects["died_ns"].iloc[0]
    assert (sample["anon"], sample["malloc_used"]) == (50_000, 9_000)
    assert (sample["tracked"], sample["tracked_count"]) == (8_000, 1)
