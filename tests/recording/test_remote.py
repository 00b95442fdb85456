"""Recordings in object storage, of fsspec's own in memory and of a server that speaks S3."""

import uuid
from pathlib import Path

import pytest
from support.fleets import write_fleet, write_rank

import tlmem
from tlmem import cli
from tlmem.errors import DamagedRecording, EmptyRecording, MissingFile
from tlmem.fleets.members import files_of
from tlmem.recording.format import remote
from tlmem.recording.format.segments import Source

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (tlmem[remote])")


@pytest.fixture
def storage() -> str:
    """An empty folder in memory."""
    return f"memory://{uuid.uuid4().hex}"


def put(url: str, data: bytes) -> str:
    with fsspec.open(url, "wb") as file:
        file.write(data)
    return url


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("s3://bucket/run/a.tlm", "s3://bucket/run/a.tlm"),
        (Path("s3://bucket/run/a.tlm"), "s3://bucket/run/a.tlm"),
        (Path("file:///run/a.tlm"), "file:///run/a.tlm"),
        ("run/a.tlm", ""),
        ("/run/a:/b.tlm", ""),
        ("C:/run/a.tlm", ""),
        ("a:b.tlm", ""),
    ],
)
def test_a_path_with_a_scheme_is_a_url(path: object, url: str) -> None:
    assert remote.url_of(path) == url


def test_a_recording_in_storage_has_the_tables_of_the_file(tmp_path: Path, storage: str) -> None:
    file = write_rank(tmp_path / "a.tlm", 3)
    here = tlmem.read(file)
    there = tlmem.read(put(f"{storage}/a.tlm", file.read_bytes()))

    assert there.complete
    assert there.events.equals(here.events)
    assert there.sites.equals(here.sites)
    assert there.info == here.info


def test_any_range_is_what_the_file_has(tmp_path: Path, storage: str) -> None:
    data = bytes(number * 7 % 251 for number in range(3 * remote.CHUNK_BYTES + 5))
    ranges = remote.Ranges(put(f"{storage}/a.tlm", data))
    chunk = remote.CHUNK_BYTES
    asked = [(0, 10), (chunk - 3, 6), (2 * chunk, 2 * chunk), (len(data) - 1, 9), (len(data), 1)]
    asked += [(5, 3 * chunk), (0, len(data) + 1)]

    assert [ranges.read(*each) == data[each[0] : each[0] + each[1]] for each in asked] == [True] * 7


def test_reading_in_order_takes_few_requests_and_looking_in_one_place_takes_one(
    storage: str,
) -> None:
    url = put(f"{storage}/a.tlm", bytes(200 * remote.CHUNK_BYTES))
    ranges = remote.Ranges(url)
    for offset in range(0, ranges.size, 10_000):
        ranges.read(offset, 10_000)
    in_order = ranges.requests
    ranges = remote.Ranges(url)
    for _ in range(100):
        ranges.read(50 * remote.CHUNK_BYTES + 5, 100)

    assert in_order <= 12
    assert ranges.requests == 1


def test_what_is_kept_is_bounded(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "CHUNK_BYTES", 16)
    data = bytes(range(256)) * 16
    ranges = remote.Ranges(put(f"{storage}/a.tlm", data))

    assert ranges.read(0, 1_000) == data[:1_000]
    for offset in range(0, len(data), 16):
        assert ranges.read(offset, 16) == data[offset : offset + 16]
    assert len(ranges._chunks) <= remote.MOST_CHUNKS


def test_folders_and_patterns_in_storage_are_listed(storage: str) -> None:
    for name in ("b.tlm", "a.tlm", "deep/c.tlm", "notes.txt"):
        put(f"{storage}/run/{name}", b"x")

    assert [file.name for file in files_of(f"{storage}/run/")] == ["a.tlm", "b.tlm", "c.tlm"]
    assert [file.name for file in files_of(f"{storage}/run/*.tlm")] == ["a.tlm", "b.tlm"]
    with pytest.raises(MissingFile, match="has no recordings"):
        files_of(f"{storage}/nothing/")
    with pytest.raises(MissingFile, match="matches no file"):
        files_of(f"{storage}/run/*.x")


def test_the_report_takes_a_url_and_a_folder_of_them(
    tmp_path: Path, storage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in write_fleet(tmp_path / "run", 5, [2]).iterdir():
        put(f"{storage}/{file.name}", file.read_bytes())
    codes = [
        cli.main(["report", f"{storage}/", "--jobs", "1"]),
        cli.main(["report", f"{storage}/r0002.tlm"]),
    ]
    out = capsys.readouterr().out

    assert codes == [0, 0]
    assert out.startswith("rank 2 (node a, pid 20002) grows 801 kB per step at ranks.py:12")
    assert "Leak at ranks.py:12: 120 of 120 arrays" in out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing.tlm", "does not exist; check the URL"),
        ("", "is a folder; end it in /"),
    ],
)
def test_what_is_not_there_is_refused(storage: str, name: str, sentence: str) -> None:
    put(f"{storage}/deep/a.tlm", b"x")
    with pytest.raises(MissingFile, match=sentence):
        tlmem.read(f"{storage}/{name}".rstrip("/"))


def test_an_empty_file_in_storage_is_refused_as_one_here(storage: str) -> None:
    with pytest.raises(EmptyRecording, match="is empty"):
        tlmem.read(put(f"{storage}/a.tlm", b""))


def test_a_scheme_that_is_not_known_or_not_installed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(MissingFile, match="nosuch://a/b.tlm cannot be opened: .*nosuch"):
        tlmem.read("nosuch://a/b.tlm")
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(MissingFile, match=r"pip install 'tlmem\[remote\]'"):
        tlmem.read("s3://a/b.tlm")


def test_a_storage_that_fails_in_the_middle_is_said(
    tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(Path(put(f"{storage}/a.tlm", bytes(1_000))))

    def fail(*_: object, **__: object) -> bytes:
        raise OSError("connection lost")

    monkeypatch.setattr(type(source._ranges._system), "cat_file", fail)  # type: ignore[attr-defined]
    with pytest.raises(DamagedRecording, match="cannot be read: connection lost"):
        source.read(0, 10)
