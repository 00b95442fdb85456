"""A report that was kept is the report, and only that of the very same recordings and words."""

from pathlib import Path

import pytest
from support import writer
from support.oracle import Program

from tlmem import report
from tlmem.recording.format import checkpoint, kept_sums, limits
from tlmem.report import kept_reports


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A recording of more than 20 events is long."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(limits, "DETAIL_OF_COMMANDS", 20)
    monkeypatch.setattr(checkpoint, "LEAST_CHUNK_EVENTS", 5)
    monkeypatch.setattr(kept_sums, "LEAST_EVENTS", 1)


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list:
    """What was analysed, in order: nothing where a kept report is given."""
    found: list = []
    summarise = report.summarise

    def watched(paths, source_roots=()):
        found.append(paths)
        return summarise(paths, source_roots)

    monkeypatch.setattr(report, "summarise", watched)
    return found


def recording(path: Path, form: str = "sealed", count: int = 60) -> Path:
    ops = [(1, 5 if step % 3 == 2 else 1, step, False) for step in range(count)]
    file = writer.RecordingWriter(
        form=form, per_slot=3, codec=-1, threads=Program().run(ops).events()
    )
    return file.write(path)


def said(path: Path, capsys: pytest.CaptureFixture[str], *words, **options) -> str:
    assert report.run([str(path)], *words, **options) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("format", ["text", "json", "markdown"])
def test_the_second_report_is_the_first_one(
    tmp_path: Path, analysed: list, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    path = recording(tmp_path / "x.tlm")

    first = said(path, capsys, format)
    assert said(path, capsys, format) == first
    assert len(analysed) == 1
    explained = said(path, capsys, "text", explain=True)
    assert len(analysed) == 2 and said(path, capsys, "text", explain=True) == explained


def test_another_recording_or_other_code_is_looked_at(
    tmp_path: Path,
    analysed: list,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = recording(tmp_path / "x.tlm")
    said(path, capsys)
    recording(path, count=63)
    said(path, capsys)
    assert len(analysed) == 2
    recording(tmp_path / "x.7.tlm")  # no child of it, by its header
    said(path, capsys)
    assert len(analysed) == 2
    said(path, capsys, source_roots=[str(tmp_path)])
    monkeypatch.setattr(kept_reports, "_made_by", lambda: ("other code",))
    said(path, capsys)
    assert len(analysed) == 4
    monkeypatch.setenv(kept_sums.SWITCH, "off")
    said(path, capsys)
    assert len(analysed) == 5


def test_a_recording_that_may_go_on_and_a_short_one_are_looked_at_each_time(
    tmp_path: Path, analysed: list, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (recording(tmp_path / "o.tlm", "compact"), recording(tmp_path / "s.tlm", count=9)):
        assert said(path, capsys) == said(path, capsys)

    assert len(analysed) == 4


def test_only_the_latest_reports_and_short_ones_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recording(tmp_path / "x.tlm")
    said(path, capsys)
    sums = kept_sums.KeptSums(path, path.stat().st_size)
    for number in range(20):
        sums.keep_text(f"key {number}", "text")
    assert list(sums.texts() or {}) == [f"key {number}" for number in range(12, 20)]
    monkeypatch.setattr(kept_sums, "LONGEST_TEXT", 3)
    sums.keep_text("long", "text")
    assert "long" not in (sums.texts() or {})
