"""A file that changes between any two reads is read as it was at one moment.

The program's file is replaced by a later state of itself at the reader's every n-th read: segments
fill, are compacted and used again, and in the end the file is sealed.
"""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest
from support import writer
from support.oracle import Program

from tlmem.recording.format.segments import Source
from tlmem.recording.reader import read

META = [writer.label(1, "step"), *(writer.site(n, n - 1, 1, n) for n in range(2, 12))]
PER_SLOT = 6


def make_program(seed: int, length: int = 260) -> Program:
    chance = random.Random(seed)
    return Program().run(
        [
            (chance.randrange(1, 4), chance.randrange(10), chance.randrange(999), False)
            for _ in range(length)
        ]
    )


def image(program: Program, steps: int, sealed: bool = False) -> bytes:
    """The file after this many events."""
    counts = Counter(step.thread for step in program.steps[:steps])
    threads = {thread: rows[: counts[thread]] for thread, rows in program.events().items()}
    now = program.steps[steps - 1].ticks
    header = writer.Header(last_ticks=now, last_ns=5_000_000 + (now - 1_000_000) // 2)
    form = "sealed" if sealed else "compact"
    file = writer.RecordingWriter(header, form, PER_SLOT, meta=META)
    file.threads = {thread: rows for thread, rows in threads.items() if len(rows)}
    return file.build()


class ChangingFile:
    """Replaces the file by its next state at every n-th read of the reader."""

    def __init__(self, path: Path, states: Iterable[bytes], every: int, monkeypatch) -> None:
        self.states, self.reads, self.every = iter(states), 0, every
        path.write_bytes(next(self.states))
        plain = Source.read

        def read_and_change(source: Source, offset: int, count: int) -> bytes:
            self.reads += 1
            if self.reads % self.every == 0:
                state = next(self.states, None)
                if state is not None:
                    path.write_bytes(state)
            return plain(source, offset, count)

        monkeypatch.setattr(Source, "read", read_and_change)


@pytest.mark.parametrize("sealed", [False, True], ids=["goes on", "is sealed"])
@pytest.mark.parametrize("every", [1, 3, 7, 20])
@pytest.mark.parametrize("seed", range(4))
def test_a_growing_file_is_read_as_it_was_at_one_moment(
    seed: int, every: int, sealed: bool, tmp_path: Path, monkeypatch
) -> None:
    program = make_program(seed)
    start, stride = 30 + 17 * seed, (1, 2, 11)[seed % 3]
    ends = range(start, min(len(program.steps), start + 60 * stride), stride)
    states = [image(program, steps) for steps in ends]
    if sealed:
        states.append(image(program, ends[-1], sealed=True))
    path = tmp_path / "x.tlm"
    ChangingFile(path, states, every, monkeypatch)
    recording = read(path)
    totals = recording.totals

    assert recording.problems == []
    assert start <= recording.event_count <= ends[-1]
    truth = program.steps[recording.event_count - 1]
    if truth.quiet:
        assert totals.current_bytes == truth.live_bytes
        assert totals.current_count == truth.live_count
        assert totals.unknown_frees == truth.unknown
    assert totals.total_count - totals.freed_count == len(
        recording.objects[recording.objects.died_ns < 0]
    )


def folded_image(program: Program, fold_at: int, steps: int, number: int) -> bytes:
    """The file after this many events, the first of them folded into a checkpoint."""
    counts = Counter(step.thread for step in program.steps[:steps])
    sections, consumed = program.fold(fold_at)
    now = program.steps[steps - 1].ticks
    header = writer.Header(last_ticks=now, last_ns=5_000_000 + (now - 1_000_000) // 2)
    header.fold_number, header.folded_events = number, fold_at
    threads = {thread: rows[: counts[thread]] for thread, rows in program.events().items()}
    file = writer.RecordingWriter(header, "compact", PER_SLOT, meta=META, consumed=consumed)
    file.threads = {thread: rows for thread, rows in threads.items() if len(rows)}
    blocks, slots = file._pieces()
    checkpoint = writer.packed(writer.fold_blocks(number, sections), 2, 7000 + number)
    names = writer.packed(META, 3, 1)
    events = writer.packed(blocks, 2, 8000 + number)
    return header.pack() + b"".join([*names, *checkpoint, *events, *slots])


@pytest.mark.parametrize("every", [2, 10, 40])
def test_a_file_that_is_folded_meanwhile_is_read_again(
    every: int, tmp_path: Path, monkeypatch
) -> None:
    program = make_program(9)
    steps = program.steps
    places = [
        k for k in range(100, 180) if steps[k - 1].quiet and steps[k].ticks > steps[k - 1].ticks
    ]
    states = [
        folded_image(program, fold_at, 200, number) for number, fold_at in enumerate(places[:5], 1)
    ]
    path = tmp_path / "x.tlm"
    ChangingFile(path, states, every, monkeypatch)
    recording = read(path)

    assert recording.problems == []
    assert recording.event_count == 200
    assert recording.totals.current_bytes == steps[199].live_bytes
    assert recording.totals.unknown_frees == steps[199].unknown


def test_a_file_that_never_rests_is_read_with_a_warning(tmp_path: Path, monkeypatch) -> None:
    program = make_program(9)
    steps = program.steps
    at = next(
        k for k in range(100, 180) if steps[k - 1].quiet and steps[k].ticks > steps[k - 1].ticks
    )
    states = (folded_image(program, at, 200, number) for number in count(1))
    path = tmp_path / "x.tlm"
    ChangingFile(path, states, 15, monkeypatch)
    recording = read(path)

    assert any("faster than it could be read" in problem for problem in recording.problems)
    assert not recording.complete


def test_a_file_that_shrinks_while_it_is_read_does_not_end_the_reader(
    tmp_path: Path, monkeypatch
) -> None:
    program = make_program(3)
    whole = image(program, 200)
    path = tmp_path / "x.tlm"
    states = [whole, *(whole[: len(whole) * part // 10] for part in range(9, 0, -1))]
    ChangingFile(path, states, 25, monkeypatch)
    recording = read(path)

    assert 0 <= recording.event_count <= 200
