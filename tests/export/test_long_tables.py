"""Tables of a long recording, written one part after another, are those of the whole."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import writer
from support.oracle import Program

import tlmem
from tlmem import export
from tlmem.errors import MissingFile
from tlmem.export import table_files
from tlmem.recording import parts, reader
from tlmem.recording.format import limits
from tlmem.recording.tables.schema import SCHEMA

META = [writer.label(1, "step"), *(writer.site(n, n - 1, 1, n) for n in range(2, 12))]


def long_recording(path: Path, most_action: int = 8) -> Path:
    """Some hundred operations of two threads; up to action 8 there is nothing but memory."""
    random = np.random.default_rng(7)
    operations = [
        (int(random.integers(1, 3)), int(random.integers(0, most_action)), int(number), False)
        for number in random.integers(0, 1000, 400)
    ]
    program = Program().run(operations)
    rows = {
        thread: of[(of["device"] < 16)] if most_action < 9 else of
        for thread, of in program.events().items()
    }
    file = writer.RecordingWriter(form="sealed", per_slot=7, codec=-1, meta=META, threads=rows)
    return file.write(path)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings of more than 50 events are long."""
    for module in (reader, parts):
        monkeypatch.setattr(module, "PART_EVENTS", 50)
    monkeypatch.setattr(tlmem.Recording.parts, "__defaults__", (50,))
    monkeypatch.setattr(table_files, "CHUNK_ROWS", 30)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("most_action", [8, 10])
@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_every_table_is_that_of_the_whole(
    tmp_path: Path, to: str, most_action: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if to == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    path = long_recording(tmp_path / "x.tlm", most_action)
    whole = tlmem.read(path)
    assert parts.is_long(whole) and len(list(whole.parts())) > 3

    assert export.run(str(path), to, str(tmp_path / "out")) == 0

    assert "wrote" in capsys.readouterr().err
    for name, table in SCHEMA.items():
        expected = getattr(whole, name)
        expected = expected.reset_index() if table.index else expected
        file = tmp_path / "out" / f"{name}.{to}"
        found = pd.read_parquet(file) if to == "parquet" else pd.read_csv(file)
        if name == "objects":
            found = found.sort_values("object", ignore_index=True)
        for column in SCHEMA[name].columns if len(expected) else ():
            same = found[column.name].astype(object), expected[column.name].astype(object)
            if to == "parquet" or column.dtype != "text":
                pd.testing.assert_series_equal(*same)
        assert list(found.columns) == list(expected.columns) and len(found) == len(expected)
    about = json.loads((tmp_path / "out" / "recording.json").read_text())
    assert about["tables"]["events"]["rows"] == len(whole.events)
    assert about["problems"] == whole.problems


@pytest.mark.usefixtures("small_parts")
def test_a_range_without_events_is_refused(tmp_path: Path) -> None:
    path = long_recording(tmp_path / "x.tlm")

    with pytest.raises(table_files.NothingToExport, match="no event in this time"):
        export.run(str(path), "csv", str(tmp_path / "out"), since=1e6)
    with pytest.raises(MissingFile):
        export.run(str(tmp_path / "none.tlm"), "csv", str(tmp_path / "out"))
    assert sorted(os.listdir(tmp_path)) == ["x.tlm"]


@pytest.mark.usefixtures("small_parts")
def test_more_events_than_such_a_file_can_have_are_not_written_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tlmem.read(long_recording(tmp_path / "x.tlm"))
    assert parts.is_long(recording)
    monkeypatch.setattr(limits, "DETAIL_OF_SMALL_FILES", 100)
    assert not parts.is_long(recording)
