"""``tlmem index`` keeps sums where that helps, and says what it did."""

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from support import writer
from support.oracle import Program

from tlmem import cli
from tlmem.recording import reader
from tlmem.recording.format import checkpoint, kept_sums, limits
from tlmem.report import indexing


def recording(path: Path, count: int) -> Path:
    program = Program().run([(1, 9, 5 * step, False) for step in range(count)])
    file = writer.RecordingWriter(form="sealed", per_slot=3, codec=-1, threads=program.events())
    return file.write(path)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A recording of more than 20 events is long, also where several are read at a time."""
    monkeypatch.setattr(indexing, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(limits, "DETAIL_OF_COMMANDS", 20)
    monkeypatch.setattr(checkpoint, "LEAST_CHUNK_EVENTS", 5)
    monkeypatch.setattr(kept_sums, "LEAST_EVENTS", 10)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_each_file_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    long, short = recording(tmp_path / "l.tlm", 90), recording(tmp_path / "s.tlm", 9)

    code = cli.main(["index", str(long), str(short), str(tmp_path / "none.tlm"), "--jobs", jobs])

    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert code == 2 and "none.tlm does not exist" in err
    assert first.startswith(f"{long}: sums of 7") and f"of 90 events in {long}.sums (" in first
    assert second == f"{short}: 9 events, read as fast without sums: none were kept"
    assert {"l.tlm", "l.tlm.sums", "s.tlm"} == set(os.listdir(tmp_path)) - {"cache"}


def test_reports_checks_and_statistics_need_no_events_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long, middling = recording(tmp_path / "l.tlm", 90), recording(tmp_path / "m.tlm", 15)
    assert cli.main(["index", str(long), str(middling), "--jobs", "1"]) == 0
    assert f"{middling}: answers about 15 events in" in capsys.readouterr().out

    monkeypatch.setattr(reader, "read_contents", None)
    for command in ("report", "stats", "peak"):
        for path in (long, middling):
            assert cli.main([command, str(path)]) == 0


def test_files_are_read_by_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "ProcessPoolExecutor", ProcessPoolExecutor)
    paths = [str(recording(tmp_path / f"{count}.tlm", count)) for count in (7, 8, 9)]

    found = list(indexing.index_all([*paths, str(tmp_path / "none")], 2))

    assert [one.events for one in found] == [7, 8, 9, 0]
    assert [one.exit_code for one in found] == [0, 0, 0, 2]


def test_a_number_of_jobs_is_at_least_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["index", "x.tlm", "--jobs", "0"])
    assert "--jobs needs a number from 1 on, not '0'" in capsys.readouterr().err
