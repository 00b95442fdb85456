"""An answer that was kept is the answer, and that to no other question."""

from __future__ import annotations

import os
import pickle
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer
from support.oracle import Program, operations, write

from tlmem.analysis import analyse
from tlmem.cli import main
from tlmem.recording import kept_answers, reader
from tlmem.recording.format import checkpoint, kept_sums, limits
from tlmem.recording.format.kept_sums import KeptSums
from tlmem.recording.reader import Recording, read_for_command

COMMANDS = (
    ("check", "--no-config"),  # which cannot judge a program of so few events
    ("report",),
    ("report", "--format=json"),
    ("report", "--format=markdown"),
    ("report", "--explain"),
    ("peak",),
    ("plan",),
    ("stats",),
    ("balance",),
)
OPERATIONS = operations()


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """A recording of more than 20 events is long; the cache is a new one."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(limits, "DETAIL_OF_COMMANDS", 20),
        patch.object(checkpoint, "LEAST_CHUNK_EVENTS", 5),
        patch.object(kept_sums, "LEAST_EVENTS", 1),
        patch.dict(os.environ, {"XDG_CACHE_HOME": folder}),
    ):
        yield


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files whose events were read, in order: none where an answer is kept."""
    found: list[Path] = []
    read_contents = reader.read_contents

    def watched(source, *words):
        found.append(source.path)
        return read_contents(source, *words)

    monkeypatch.setattr(reader, "read_contents", watched)
    return found


def recording(path: Path, form: str = "sealed", count: int = 60) -> Path:
    ops = [(1, 5 if step % 3 == 2 else 1, step, False) for step in range(count)]
    file = writer.RecordingWriter(
        form=form, per_slot=3, codec=-1, threads=Program().run(ops).events()
    )
    return file.write(path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """What a command answers: exit code, stdout, stderr."""
    code = main(list(words))
    return (code, *capsys.readouterr())


def sums_of(path: Path) -> Path:
    return path.with_name(path.name + ".sums")


def test_the_second_command_answers_the_same_without_reading_events(
    tmp_path: Path,
    readings: list,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = str(recording(tmp_path / "x.tlm"))
    monkeypatch.setenv(kept_sums.SWITCH, "off")
    last = str(read_for_command(Path(path)).objects.index[-1])
    commands = (*COMMANDS, ("history", last))
    expected = [said(capsys, name, path, *more) for name, *more in commands]
    assert [code for code, *_ in expected] == [3, *[0] * len(COMMANDS)]
    monkeypatch.delenv(kept_sums.SWITCH)
    first = [said(capsys, name, path, *more) for name, *more in commands]
    readings.clear()

    second = [said(capsys, name, path, *more) for name, *more in commands]

    assert first == expected
    assert second == expected
    assert readings == []


def test_after_a_report_a_check_and_a_comparison_are_quick_too(
    tmp_path: Path, readings: list, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(recording(tmp_path / "x.tlm"))
    said(capsys, "report", path)
    assert len(readings) == 1

    said(capsys, "check", "--no-config", path)
    said(capsys, "diff", path, path)
    said(capsys, "report", path, "--format=json")
    assert len(readings) == 1


@given(OPERATIONS, st.sampled_from(["compact", "raw", "sealed"]), st.booleans())
@settings(max_examples=8)
def test_what_is_kept_of_any_recording_is_what_is_computed(
    ops: list, form: str, with_checkpoint: bool
) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    with tempfile.TemporaryDirectory() as folder:
        fold_at = len(program.steps) // 3 if with_checkpoint else 0
        path = write(program, Path(folder) / "x.tlm", form, fold_at)
        with patch.dict(os.environ, {kept_sums.SWITCH: "off"}):
            expected = everything(path)
        for _ in range(2):
            assert_same(everything(path), expected)


def everything(path: Path) -> dict[str, object]:
    """All that may be kept: the analysis, and each small attribute."""
    read = read_for_command(path)
    return {"analysis": analyse(read)} | {name: getattr(read, name) for name in reader.small.names}


def assert_same(found: dict[str, object], expected: dict[str, object]) -> None:
    for name, one in expected.items():
        if isinstance(one, pd.DataFrame):
            pd.testing.assert_frame_equal(found[name], one, obj=name)
        elif name == "_marks":
            pd.testing.assert_frame_equal(found[name][0], one[0])
            assert found[name][1:] == one[1:]
        else:
            assert found[name] == one, name


def changed_recording(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording(path, count=63)


def changed_code(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "_made_by", lambda: ("other code",))


def switched_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept_sums.SWITCH, "off")


def other_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)


def other_detail(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DETAIL_OF_COMMANDS", 25)


@pytest.mark.parametrize(
    "change", [changed_recording, changed_code, switched_off, other_folder, other_detail]
)
def test_what_an_answer_depends_on_is_looked_at(
    tmp_path: Path,
    readings: list,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    path = recording(tmp_path / "x.tlm")
    analyse(read_for_command(path))
    change(path, monkeypatch)

    analyse(read_for_command(path))
    assert len(readings) == 2


def test_a_recording_that_goes_on_a_range_and_other_sources_are_read_each_time(
    tmp_path: Path, readings: list
) -> None:
    for form in ("compact", "sealed"):
        path = recording(tmp_path / f"{form}.tlm", form)
        options = {} if form == "compact" else {"source_roots": [tmp_path]}
        for _ in range(2):
            analyse(read_for_command(path, **options))
            analyse(read_for_command(path, 0.0, 1e6))

    assert len(readings) == 8


def test_a_recording_that_changes_while_it_is_analysed_keeps_nothing(
    tmp_path: Path, readings: list
) -> None:
    path = recording(tmp_path / "x.tlm")
    read = read_for_command(path)

    def answer() -> int:
        _ = read.event_count
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        return 1

    read.kept(("a question",), answer)
    assert KeptSums(path, path.stat().st_size).answers() == {}


def test_what_is_not_ours_is_never_loaded(tmp_path: Path, readings: list) -> None:
    path = recording(tmp_path / "x.tlm")
    expected = analyse(read_for_command(path))
    whole = sums_of(path).read_bytes()
    dice = random.Random(1)
    flipped = [bytearray(whole) for _ in range(20)]
    for data in flipped:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    kept, digest, answers = kept_sums._parsed(whole, kept_sums._secret(False))
    forged = {key: pickle.dumps(Spoiled()) for key in answers}
    by_a_guess = kept_sums._packed(kept, bytes.fromhex(digest), forged, b"a guess".ljust(32))
    readings.clear()

    for data in (*map(bytes, flipped), by_a_guess, whole[:-1], whole + b"more"):
        sums_of(path).write_bytes(data)
        with patch.object(KeptSums, "keep_answers", lambda *_: None):
            assert analyse(read_for_command(path)) == expected
    assert len(readings) == 23


def test_an_answer_that_cannot_be_loaded_is_given_anew(tmp_path: Path, readings: list) -> None:
    path = recording(tmp_path / "x.tlm")
    expected = analyse(read_for_command(path))
    sums = KeptSums(path, path.stat().st_size)
    sums.keep_answers({key: pickle.dumps(Spoiled()) for key in sums.answers()})

    assert analyse(read_for_command(path)) == expected
    assert len(readings) == 2


class Spoiled:
    """What cannot be read again."""

    def __reduce__(self) -> tuple:
        return (int, ("no number",))


def test_only_the_latest_answers_and_short_ones_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recording(tmp_path / "x.tlm")
    sums = KeptSums(path, path.stat().st_size)
    for number in range(kept_sums.MOST_ANSWERS + 4):
        sums.keep_answers({f"key {number}": b"answer"})
    assert list(sums.answers()) == [f"key {n}" for n in range(4, kept_sums.MOST_ANSWERS + 4)]
    monkeypatch.setattr(kept_sums, "LONGEST_ANSWER", 3)
    sums.keep_answers({"long": b"answer"})
    assert "long" not in sums.answers()


def test_a_short_recording_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recording(tmp_path / "x.tlm", count=9)
    monkeypatch.setattr(kept_sums, "LEAST_EVENTS", 100)
    analyse(read_for_command(path))
    analyse(Recording(path))

    assert os.listdir(tmp_path) == ["x.tlm"]
