"""Cut, flipped and random files: what is intact is read, what is not is said, memory is bounded.

Thousands of cases, each made from a seed that a failure names.
"""

import random
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import writer
from support.oracle import Program

from tlmem.errors import TlmemError
from tlmem.recording.reader import Recording, read

TABLES = ("events", "objects", "samples", "sites", "site_totals", "marks", "threads")
FORMS = ("compact", "raw", "sealed", "folded")
BATCHES, CASES = 8, 80


@cache
def program() -> Program:
    """One program for all cases."""
    chance = random.Random(11)
    ops = [
        (chance.randrange(1, 4), chance.randrange(10), chance.randrange(999), chance.random() < 0.5)
        for _ in range(240)
    ]
    return Program().run(ops)


@cache
def sound_file(form: str) -> bytes:
    """A file with everything a file can hold."""
    truth = program()
    meta = [
        writer.code(1, "/home/user/train.py", "train", 3),
        writer.thread(1, "main", main=True),
        writer.note("command", "train.py"),
        writer.label(100, "step"),
        *(writer.site(n, n - 1, 1, n) for n in range(2, 12)),
    ]
    file = writer.RecordingWriter(
        form="sealed" if form == "folded" else form,
        per_slot=30,
        codec=-1,
        meta=meta,
        threads=truth.events(),
    )
    if form == "folded":
        steps = truth.steps
        at = next(
            k
            for k in range(100, len(steps))
            if steps[k - 1].quiet and steps[k].ticks > steps[k - 1].ticks
        )
        sections, file.consumed = truth.fold(at)
        file.fold = writer.fold_blocks(7, sections, entries_per_block=5)
        file.header.fold_number = 7
    return file.build().rstrip(b"\0")


def use_everything(recording: Recording) -> None:
    """Builds each table and checks what must hold in any file."""
    for table in TABLES:
        getattr(recording, table)
    totals = recording.totals
    assert totals.total_count - totals.freed_count == totals.current_count
    assert recording.seconds >= 0
    assert all(isinstance(problem, str) and problem for problem in recording.problems)
    for site in recording.sites.index[:20].tolist():
        recording.stack(site)
        recording.blame(site)


def read_or_refuse(path: Path) -> Recording | None:
    """The recording, or None when it was refused as it should be: one sentence, a known code."""
    try:
        recording = read(path)
        use_everything(recording)
    except TlmemError as error:
        assert error.exit_code in (2, 3)
        assert str(error).strip() and "\n" not in str(error)
        return None
    return recording


def measured(path: Path) -> tuple[Recording | None, int]:
    """The recording, or None, and the most memory that reading took."""
    tracemalloc.start()
    try:
        return read_or_refuse(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def damaged(form: str, how: str, chance: random.Random) -> bytes:
    """A sound file with one kind of damage, more often where there is something."""
    data = bytearray(sound_file(form))
    used = np.flatnonzero(np.frombuffer(data, np.uint8))

    def somewhere() -> int:
        return int(used[chance.randrange(len(used))])

    if how == "cut":
        return bytes(data[: somewhere()])
    if how == "bits":
        for _ in range(chance.choice((1, 1, 1, 2, 20))):
            data[somewhere()] ^= 1 << chance.randrange(8)
    elif how == "bytes":
        for _ in range(chance.choice((1, 2, 20))):
            data[somewhere()] = chance.choice((0, 255, chance.randrange(256)))
    else:
        at = somewhere()
        count = chance.choice((8, 100, 4096, 300_000))
        data[at : at + count] = chance.randbytes(min(count, len(data) - at))
    return bytes(data)


@pytest.mark.parametrize("how", ["cut", "bits", "bytes", "garbage"])
@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_files_are_read_as_far_as_they_are_intact(
    how: str, batch: int, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.tlm"
    for case in range(CASES):
        seed = f"{how} {batch} {case}"
        chance = random.Random(seed)
        data = damaged(FORMS[case % len(FORMS)], how, chance)
        path.write_bytes(data)
        try:
            recording, peak = measured(path) if case % 8 == 0 else (read_or_refuse(path), 0)
        except Exception as error:
            raise AssertionError(f"case {seed!r} was not survived") from error
        assert peak < 8_000_000 + 6 * len(data), seed
        if recording is not None:
            assert recording.event_count <= len(program().steps), seed


@pytest.mark.parametrize("batch", range(4))
def test_a_flipped_bit_in_a_sealed_file_is_reported_or_changes_nothing(
    batch: int, tmp_path: Path
) -> None:
    path = tmp_path / "flipped.tlm"
    data = sound_file("sealed")
    path.write_bytes(data)
    sound = read(path)
    expected = sound.events.drop(columns="time_ns")
    used = [at for at, byte in enumerate(data) if byte and at >= writer.HEADER_BYTES]
    chance = random.Random(batch)
    for _ in range(100):
        at, bit = chance.choice(used), chance.randrange(8)
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
        recording = read(path)
        if recording.problems:
            assert not recording.complete
            continue
        assert recording.events.drop(columns="time_ns").equals(expected), f"bit {bit} of byte {at}"
        assert recording.sites.equals(sound.sites)
        assert recording.info == sound.info


@pytest.mark.parametrize("form", ["raw", "compact", "sealed"])
def test_a_file_cut_anywhere_holds_a_part_of_the_truth(form: str, tmp_path: Path) -> None:
    data = sound_file(form)
    path = tmp_path / "cut.tlm"
    path.write_bytes(data)
    whole = {tuple(row) for row in read(path).events[["time_ns", "thread", "arg"]].to_numpy()}
    lengths = sorted(random.Random(form).sample(range(len(data)), 40))
    counts = []
    for length in lengths:
        path.write_bytes(data[:length])
        recording = read_or_refuse(path)
        counts.append(0 if recording is None else recording.event_count)
        if recording is not None:
            rows = recording.events[["time_ns", "thread", "arg"]].to_numpy()
            assert {tuple(row) for row in rows} <= whole
            assert not recording.complete

    assert counts == sorted(counts)
    assert counts[-1] > 0


def noise() -> Iterator[bytes]:
    """Files that never were recordings, and some that pretend to be."""
    chance = random.Random(3)
    header = sound_file("raw")[: writer.HEADER_BYTES]
    for _ in range(150):
        yield chance.randbytes(chance.choice((1, 7, 8, 100, 5000, 40_000)))
        yield header[: chance.choice((8, 60, 200, len(header)))] + chance.randbytes(20_000)
        yield header + bytes(chance.randrange(300_000)) + chance.randbytes(300)


def test_noise_is_refused_or_read_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "noise.tlm"
    for data in noise():
        path.write_bytes(data)
        recording = read_or_refuse(path)

        assert recording is None or recording.event_count <= 1


def bombs() -> Iterator[tuple[str, bytes]]:
    """Blocks whose checksums are right and whose sizes are lies."""
    zeros = bytes(30_000_000)
    rows = writer.events([(1_000_004 + 4 * i, 64, 8, 2, 0, 1, 1) for i in range(20)])
    yield "a plain block", writer.block(1, [zeros], seq=1, thread=1, count=8184)
    yield (
        "a columnar block",
        writer.block(1, [zeros[:5_000_000]] * 7, codec=1, seq=1, thread=1, count=8184),
    )
    yield "names", writer.block(2, [zeros])
    yield "a checkpoint", writer.block(3, [zeros], seq=7, count=30_000_000 // 8, thread_first=1)
    many = writer.events_block(rows, thread=1, seq=1)
    yield "a count", many[:20] + (2**32 - 1).to_bytes(4, "little") + many[24:]


@pytest.mark.parametrize("name, block", list(bombs()), ids=lambda value: str(value)[:16])
def test_a_block_that_lies_about_its_size_costs_no_memory(
    name: str, block: bytes, tmp_path: Path
) -> None:
    rows = writer.events([(1_000_004, 64, 8, 2, 0, 1, 1)])
    file = writer.RecordingWriter(threads={2: rows}, fold=[block])
    file.header.fold_number = 7 if name == "a checkpoint" else 0
    path = file.write(tmp_path / "bomb.tlm")
    recording, peak = measured(path)

    assert recording is not None and recording.problems
    assert peak < 8_000_000
    assert recording.totals.total_bytes == 8


def test_a_file_with_more_problems_than_blocks_does_not_drown_in_sentences(tmp_path: Path) -> None:
    data = bytearray(sound_file("raw"))
    for at in range(writer.HEADER_BYTES + 128, len(data), 32):
        data[at + 30 : at + 31] = b"\xff"
    path = tmp_path / "rotten.tlm"
    path.write_bytes(bytes(data))
    recording = read_or_refuse(path)

    assert recording is not None
    assert 0 < len(recording.problems) < 100
