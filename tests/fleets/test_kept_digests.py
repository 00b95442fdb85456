"""A digest that was kept is the one that would be made, and of the very bytes of its recording."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleets import write_fleet, write_rank

import tlmem
from tlmem.errors import TlmemError
from tlmem.fleets import engine, kept_digests
from tlmem.recording.format.segments import OPEN

STATE_AT = 104  # docs/format.md, "File header"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TLMEM_SUMS", raising=False)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of recordings that were analysed, in order."""
    names: list[str] = []
    digest_file = kept_digests.digest_file

    def watched(path):
        names.append(Path(path).name)
        return digest_file(path)

    monkeypatch.setattr(kept_digests, "digest_file", watched)
    yield names


def test_the_second_look_analyses_nothing_and_finds_the_same(tmp_path: Path, made) -> None:
    folder = write_fleet(tmp_path / "run", 3, [1], steps=40)

    first = tlmem.fleet(folder).analyse(jobs=1)
    assert len(made) == 3
    assert tlmem.fleet(folder).analyse(jobs=1) == first
    assert len(made) == 3


def test_a_process_of_the_engine_finds_what_is_kept(tmp_path: Path, made) -> None:
    path = write_rank(tmp_path / "a.tlm", 0, steps=40)

    assert engine.analyse_files([str(path)]) == engine.analyse_files([str(path)])
    assert made == ["a.tlm"]


def test_a_recording_that_was_written_anew_is_analysed_anew(tmp_path: Path, made) -> None:
    path = write_rank(tmp_path / "a.tlm", 0, steps=40)
    before = kept_digests.digest_and_keep(path)
    write_rank(path, 0, steps=40, kept_bytes=801_000)

    after = kept_digests.digest_and_keep(path)
    assert made == ["a.tlm", "a.tlm"]
    assert after.peak_bytes > before.peak_bytes


def test_one_that_may_go_on_is_not_kept_until_it_rests(tmp_path: Path, made) -> None:
    path = write_rank(tmp_path / "a.tlm", 0, steps=40)
    with path.open("r+b") as file:
        file.seek(STATE_AT)
        file.write(OPEN.to_bytes(4, "little"))

    for _ in range(2):
        kept_digests.digest_and_keep(path)
    assert made == ["a.tlm"] * 2
    long_ago = os.stat(path).st_mtime - 2 * kept_digests.REST_S
    os.utime(path, (long_ago, long_ago))
    for _ in range(2):
        kept_digests.digest_and_keep(path)
    assert made == ["a.tlm"] * 3


def test_nothing_is_kept_where_it_is_switched_off(tmp_path: Path, made, monkeypatch) -> None:
    monkeypatch.setenv("TLMEM_SUMS", "off")
    folder = write_fleet(tmp_path / "run", 2, steps=40)

    for _ in range(2):
        tlmem.fleet(folder).analyse(jobs=1)
    assert len(made) == 4
    assert sorted(each.name for each in folder.iterdir()) == ["r0000.tlm", "r0001.tlm"]


def test_what_cannot_be_read_says_so_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.tlm"
    path.write_text("no recording")

    assert kept_digests.kept_digest(path) is None
    for _ in range(2):
        with pytest.raises(TlmemError):
            kept_digests.digest_and_keep(path)
