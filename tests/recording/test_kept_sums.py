"""Sums that are kept beside a recording change no answer, and are used where they fit."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracle import Program, operations, write

from tlmem.recording.format import checkpoint, kept_sums
from tlmem.recording.format.kept_sums import Kept, KeptSums
from tlmem.recording.reader import Recording
from tlmem.recording.tables.schema import SCHEMA

OPERATIONS = operations()


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Few events are folded at a time, and the sums of few are kept; the cache is a new one."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(checkpoint, "CHUNK_EVENTS", 5),
        patch.object(checkpoint, "LEAST_CHUNK_EVENTS", 5),
        patch.object(kept_sums, "LEAST_EVENTS", 1),
        patch.dict(os.environ, {"XDG_CACHE_HOME": folder}),
    ):
        yield


def steady(count: int = 60) -> Program:
    """Operations of one thread: arrays of which every third stays."""
    return Program().run([(1, 5 if step % 3 == 2 else 1, step, False) for step in range(count)])


def sums_of(path: Path) -> Path:
    return path.with_name(path.name + ".sums")


def everything(path: Path, detail: int = 4, sums: str = "on") -> dict[str, object]:
    """All that a command reads."""
    with patch.dict(os.environ, {kept_sums.SWITCH: sums}):
        recording = Recording(path, detail_events=detail)
        tables = {name: getattr(recording, name) for name in SCHEMA}
    rest = (recording.totals, recording.problems, recording.fold, recording.horizon_ns)
    return {**tables, "rest": (*rest, recording.event_count, recording.missing_events)}


def assert_same(found: dict[str, object], expected: dict[str, object]) -> None:
    for name, one in expected.items():
        if isinstance(one, pd.DataFrame):
            pd.testing.assert_frame_equal(found[name], one, obj=name)
        else:
            assert found[name] == one


@pytest.fixture
def hits(monkeypatch: pytest.MonkeyPatch) -> list[Kept]:
    """What was found and fits, in the order in which it was."""
    found: list[Kept] = []
    find = KeptSums.find

    def watched(*words) -> Kept | None:
        kept = find(*words)
        found.extend([kept] if kept else [])
        return kept

    monkeypatch.setattr(KeptSums, "find", watched)
    return found


@given(OPERATIONS, st.sampled_from(["compact", "raw", "sealed"]), st.booleans(), st.integers(0, 30))
@settings(max_examples=30)
def test_a_recording_is_the_same_with_and_without_them(
    ops: list, form: str, with_checkpoint: bool, detail: int
) -> None:
    program = Program().run(ops)
    if not program.steps:
        return
    with tempfile.TemporaryDirectory() as folder:
        fold_at = len(program.steps) // 3 if with_checkpoint else 0
        path = write(program, Path(folder) / "x.tlm", form, fold_at)
        expected = everything(path, detail, "off")
        assert os.listdir(folder) == ["x.tlm"]
        assert_same(everything(path, detail), expected)
        assert_same(everything(path, detail), expected)


@given(OPERATIONS, st.sampled_from(["compact", "raw"]), st.integers(1, 59))
@settings(max_examples=20)
def test_those_of_a_file_that_has_grown_change_nothing(ops: list, form: str, until: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.tlm"
        for some in (ops[:until], ops):
            program = Program().run(some)
            if program.steps:
                write(program, path, form)
                assert_same(everything(path), everything(path, sums="off"))


def test_they_are_used_and_only_their_owner_can_read_them(tmp_path: Path, hits: list) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    first = everything(path)
    assert hits == []

    second = everything(path)

    assert len(hits) == 1 and hits[0].checkpoint.totals.events > 40
    assert_same(second, first)
    assert sums_of(path).stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["x.tlm", "x.tlm.sums"]


def test_a_file_that_grows_adds_to_them(tmp_path: Path, hits: list) -> None:
    path = write(steady(60), tmp_path / "x.tlm", "compact")
    everything(path)

    write(steady(90), path, "compact")
    found = everything(path)

    assert len(hits) == 1 and 0 < hits[0].checkpoint.totals.events < 60
    assert_same(found, everything(path, sums="off"))


def test_what_is_not_ours_is_thrown_away(tmp_path: Path, hits: list) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    expected = everything(path)
    whole = sums_of(path).read_bytes()
    dice = random.Random(1)
    other = write(steady(75), tmp_path / "y.tlm")
    everything(other)

    flipped = [bytearray(whole) for _ in range(12)]
    for data in flipped:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    bad = [*map(bytes, flipped), *(whole[:cut] for cut in (0, 7, 8, 40, 47, 48, len(whole) - 1))]
    bad += [sums_of(other).read_bytes(), whole + b"more", kept_sums.MAGIC + bytes(200)]
    for data in bad:
        sums_of(path).write_bytes(data)
        with patch.object(KeptSums, "keep", lambda *_: None):
            assert_same(everything(path), expected)

    assert hits == []


def test_forged_ones_are_thrown_away(tmp_path: Path, hits: list) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    expected = everything(path)
    kept, digest, _ = kept_sums._parsed(sums_of(path).read_bytes(), kept_sums._secret(False))
    kept.checkpoint.sites["alloc_bytes"] += 1_000_000
    forged = kept_sums._packed(kept, bytes.fromhex(digest), {}, b"a guess".ljust(32))
    sums_of(path).write_bytes(forged)

    assert_same(everything(path), expected)
    assert hits == []


def test_a_byte_of_the_recording_that_changes_is_seen(tmp_path: Path, hits: list) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    everything(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"tlmblk", 17_000) + 130 if b"tlmblk" in data else 17_000
    changed = 0
    for place in range(at, len(data), max((len(data) - at) // 12, 1)):
        data[place] ^= 0x55
        path.write_bytes(data)
        data[place] ^= 0x55
        shown = everything(path)
        assert_same(shown, everything(path, sums="off"))
        changed += bool(shown["rest"][1])

    assert changed > 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_what_is_in_their_place_is_left_alone(tmp_path: Path) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    expected = everything(path, sums="off")
    os.mkfifo(sums_of(path))
    assert_same(everything(path), expected)
    assert sums_of(path).is_fifo()

    os.unlink(sums_of(path))
    sums_of(path).mkdir()
    assert_same(everything(path), expected)
    assert sums_of(path).is_dir()


def test_where_nothing_can_be_written_beside_it_they_are_in_the_cache(
    tmp_path: Path, hits: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_file = kept_sums._write

    def refuse(place: Path, data: bytes) -> None:
        if place.parent == tmp_path:
            raise PermissionError(13, "read-only")
        write_file(place, data)

    monkeypatch.setattr(kept_sums, "_write", refuse)
    expected = everything(path)
    assert_same(everything(path), expected)

    assert len(hits) == 1
    assert sorted(os.listdir(tmp_path)) == ["cache", "x.tlm"]
    assert len(list((tmp_path / "cache" / "tlmem").glob("*.sums"))) == 1


@pytest.mark.parametrize("how", ["too open", "short", "a folder", "none can be made", "no home"])
def test_without_a_secret_of_the_user_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hits: list, how: str
) -> None:
    path = write(steady(), tmp_path / "run" / "x.tlm") if (tmp_path / "run").mkdir() is None else 0
    cache = tmp_path / "cache" / "tlmem"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if how == "no home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    elif how == "none can be made":
        (tmp_path / "cache").write_text("")
    elif how == "a folder":
        (cache / "sums.key").mkdir(parents=True)
    else:
        cache.mkdir(parents=True)
        (cache / "sums.key").write_bytes(bytes(32 if how == "too open" else 31))
        os.chmod(cache / "sums.key", 0o644 if how == "too open" else 0o600)

    everything(path)
    everything(path)

    assert os.listdir(tmp_path / "run") == ["x.tlm"] and hits == []


def test_they_do_not_follow_a_recording_to_other_code(
    tmp_path: Path, hits: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(steady(), tmp_path / "x.tlm")
    everything(path)
    monkeypatch.setattr("tlmem.recording.format.live_file.code_digest", lambda: "of other code")

    everything(path)
    assert hits == []
    copy = shutil.copytree(tmp_path, tmp_path.with_name(tmp_path.name + "-copy"))
    everything(copy / "x.tlm")
    assert len(hits) == 1, "a copy of both is as good as they are"
