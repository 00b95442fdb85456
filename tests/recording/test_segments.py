"""The file header, the walk over slots, the index."""

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from support import writer

from tlmem.errors import (
    DamagedRecording,
    EmptyRecording,
    MissingFile,
    NotARecording,
    TlmemError,
    UnsupportedVersion,
)
from tlmem.recording.format.segments import FileHeader, Scanner, Source, read_header
from tlmem.recording.reader import read

ROWS = writer.events([(1_000_004 + 4 * i, 64 * i, 100, 2, 0, 1, 1) for i in range(50)])


def header_of(path: Path) -> FileHeader:
    return read_header(Source(path))


def test_every_field_of_the_header_is_where_the_format_says(tmp_path: Path) -> None:
    names = [name for name in vars(writer.Header()) if name != "version"]
    given = writer.Header(**{name: number for number, name in enumerate(names, 2)})
    path = tmp_path / "x.tlm"
    path.write_bytes(given.pack())
    found = header_of(path)

    assert found.sound
    assert {name: getattr(found, name) for name in vars(given)} == vars(given)


@pytest.mark.parametrize(
    "content, error, code, words",
    [
        (b"", EmptyRecording, 3, "0 bytes"),
        (bytes(65536), EmptyRecording, 3, "65536 zero bytes"),
        (b"TLMEM", EmptyRecording, 3, "cut inside its header"),
        (b"#!/bin/sh\nexit", NotARecording, 2, "not a tlmem recording"),
        (writer.Header().pack(), EmptyRecording, 3, "no events"),
        (writer.Header(version=2).pack(), UnsupportedVersion, 3, "version 2"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(
    content: bytes, error: type[TlmemError], code: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.tlm"
    path.write_bytes(content)

    with pytest.raises(error, match=words) as caught:
        read(path)
    assert caught.value.exit_code == code
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_a_directory_and_a_pipe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="does not exist"):
        read(tmp_path / "none.tlm")
    with pytest.raises(NotARecording, match="not a file"):
        read(tmp_path)
    with pytest.raises(MissingFile):
        read("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotARecording, match="not a file"):
        read(tmp_path / "pipe")


def test_a_layout_that_the_version_does_not_have_is_refused(tmp_path: Path) -> None:
    data = bytearray(writer.Header().pack())
    struct.pack_into("<I", data, 16, 4096)
    struct.pack_into("<I", data, 52, zlib.crc32(data[:52]))
    path = tmp_path / "x.tlm"
    path.write_bytes(bytes(data))

    with pytest.raises(DamagedRecording, match="layout"):
        read(path)


def test_the_index_lists_what_the_walk_finds(tmp_path: Path) -> None:
    file = writer.RecordingWriter(form="sealed", per_slot=7, threads={1: ROWS, 2: ROWS})
    path = file.write(tmp_path / "x.tlm")
    source = Source(path)
    header = read_header(source)
    indexed = Scanner(source).scan(header)
    file.header.state = writer.OPEN
    path.write_bytes(file.header.pack() + path.read_bytes()[writer.HEADER_BYTES :])
    walked = Scanner(source).scan(read_header(source))

    assert indexed.from_index and not walked.from_index
    names = [name for name in indexed.pieces.dtype.names if name != "closed"]
    assert np.sort(indexed.pieces[names]).tolist() == np.sort(walked.pieces[names]).tolist()


def test_a_damaged_index_is_reported_and_not_needed(tmp_path: Path) -> None:
    file = writer.RecordingWriter(form="sealed", per_slot=7, threads={1: ROWS})
    data = bytearray(file.build())
    data[file.header.index_offset + 140] ^= 1
    path = tmp_path / "x.tlm"
    path.write_bytes(bytes(data))
    recording = read(path)

    assert recording.event_count == len(ROWS)
    assert not recording.complete
    assert [p for p in recording.problems if "index" in p and "walked" in p]


def test_a_block_and_the_slot_it_was_made_from_count_once(tmp_path: Path) -> None:
    about = {"thread": 1, "thread_first": 0, "seq": 1001}
    block = writer.slot(2, writer.events_block(ROWS, time_shift=2, **about), seq=5)
    slot = writer.events_slot(ROWS, closed=True, **about)
    path = tmp_path / "x.tlm"
    for slots in ([block, slot], [slot, block], [slot, slot]):
        path.write_bytes(writer.Header().pack() + b"".join(slots))
        recording = read(path)

        assert recording.event_count == len(ROWS)
        assert recording.problems == []


def test_the_slot_stands_in_for_a_block_that_is_damaged(tmp_path: Path) -> None:
    about = {"thread": 1, "thread_first": 0, "seq": 1001}
    block = bytearray(writer.events_block(ROWS, time_shift=2, **about))
    block[150] ^= 1
    slots = [writer.slot(2, bytes(block), seq=5), writer.events_slot(ROWS, closed=True, **about)]
    path = tmp_path / "x.tlm"
    path.write_bytes(writer.Header().pack() + b"".join(slots))
    recording = read(path)

    assert recording.event_count == len(ROWS)
    assert recording.problems == []


def test_a_gap_between_the_pieces_of_a_thread_is_damage(tmp_path: Path) -> None:
    slots = [
        writer.events_slot(ROWS[:10], thread=1, seq=1, closed=True),
        writer.events_slot(ROWS[20:], thread=1, thread_first=20, seq=2),
    ]
    path = tmp_path / "x.tlm"
    path.write_bytes(writer.Header().pack() + b"".join(slots))

    assert [p for p in read(path).problems if p.startswith("10 events are missing")]


def test_slots_that_were_never_used_or_are_free_are_passed_over(tmp_path: Path) -> None:
    old = writer.slot(0, ROWS.tobytes(), seq=3, thread=1, count=50, closed=True)
    never = bytes(writer.SLOT_BYTES)
    used = writer.events_slot(ROWS, thread=1, seq=9)
    path = tmp_path / "x.tlm"
    path.write_bytes(writer.Header().pack() + old + never + used)
    recording = read(path)

    assert recording.event_count == len(ROWS)
    assert recording.problems == []


def test_opening_a_sealed_file_reads_little_of_it(tmp_path: Path, monkeypatch) -> None:
    rows = np.concatenate([ROWS] * 2000)
    rows["ticks"] = 1_000_000 + 4 * np.arange(len(rows))
    file = writer.RecordingWriter(form="sealed", codec=0, threads={1: rows})
    path = file.write(tmp_path / "x.tlm")
    read_bytes = []
    plain_read = Source.read
    monkeypatch.setattr(
        Source,
        "read",
        lambda self, offset, count: read_bytes.append(count) or plain_read(self, offset, count),
    )
    recording = read(path)
    opened = sum(read_bytes)

    assert opened < path.stat().st_size / 100
    assert recording.event_count == len(rows)
