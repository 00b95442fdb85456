"""Damaged and forged snapshots: a sentence, or a recording that every reader can open."""

import io
import pickle
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import cuda_snapshot, writer
from support.cuda_snapshot import training

import tlmem
from tlmem.errors import TlmemError
from tlmem.export import memory_viz
from tlmem.importing import convert, snapshot, unpickle
from tlmem.report.summary import summarise
from tlmem.report.text import render

COPIES = 1000
REPORTED = 40
"""One copy in so many is reported, too, which takes longer."""
WRONG = (
    None,
    -1,
    2**70,
    1.5,
    float("nan"),
    True,
    "x",
    b"\xff",
    [],
    {},
    (1,),
    [[]],
    "\x1b[2J",
    2**52,
)


def read(data: bytes, place: Path, report: bool) -> str:
    """Imports a file and reads what it makes; ``refused`` or ``made``."""
    place.write_bytes(data)
    try:
        value = unpickle.load(place)
        made = convert.recording_of(snapshot.parse(value, place), place.name)
    except TlmemError as error:
        said = str(error)
        assert said and "\n" not in said and len(said) < 600, said
        return "refused"
    out = place.with_suffix(".tlm")
    out.write_bytes(made.data)
    recording = tlmem.read(out)
    assert recording.sealed and recording.missing_events == 0
    assert sorted(recording.problems) == sorted(made.problems) or made.problems == ()
    sums = recording.segments.sum(numeric_only=True)
    parts = ("allocated_bytes", "waiting_bytes", "split_free_bytes", "whole_free_bytes")
    assert sums["total_bytes"] == sum(sums[name] for name in parts)
    assert sums["allocated_bytes"] == sums["requested_bytes"] + sums["rounding_bytes"]
    assert len(recording.blocks) == recording.segments["blocks"].sum()
    assert recording.totals.current_bytes >= 0
    assert len(recording.requests) == len(recording.objects)
    assert len(recording.phases) >= 0 and len(recording.events) == recording.event_count
    if report:
        text = render(summarise([str(out)]))
        assert "\x1b" not in text
    return "made"


def sources() -> list[Any]:
    """Snapshots of several forms."""
    one = training(steps=2, layers=2, ring=60, waits=True).snapshot()
    two = training(steps=1, layers=2, devices=2, expandable=True, cpp=True, oom=True).snapshot()
    return [
        one,
        cuda_snapshot.with_host(two),
        cuda_snapshot.bare_list(one),
    ]


def mutated_bytes(chance: random.Random, data: bytes) -> bytes:
    """A copy with some bytes changed, cut, doubled or moved."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 30))):
        at = chance.randrange(len(made))
        how = chance.randrange(5)
        if how == 0:
            made[at] = chance.randrange(256)
        elif how == 1:
            made[at] ^= 1 << chance.randrange(8)
        elif how == 2:
            made[at : at + 4] = bytes(chance.choice((0, 255, 127, 128)) for _ in range(4))
        elif how == 3:
            made[at:at] = made[chance.randrange(len(made)) :][:9]
        else:
            del made[at : at + chance.choice((1, 3, 40))]
    return bytes(made[: chance.randrange(len(made))] if chance.random() < 0.2 else made)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Containers in a value, each once for each of its keys; a value may be inside itself."""
    found: list[tuple[Any, Any]] = []
    seen = {id(value)}
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in list(holder) if type(holder) is dict else range(len(holder)):
            found.append((holder, key))
            inner = holder[key]
            if type(inner) in (dict, list) and id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return found


def mutated_values(chance: random.Random, value: Any) -> bytes:
    """A copy with some values of another type, size or place."""
    made = pickle.loads(pickle.dumps(value))
    for _ in range(chance.choice((1, 2, 4, 20))):
        holder, key = chance.choice(places(made))
        how = chance.randrange(4)
        if how == 0 and type(holder) is dict:
            holder.pop(key)
        elif how == 1 and type(holder[key]) is int:
            holder[key] += chance.choice((1, -1, 512, 2**40, -(2**40), 2**62))
        elif how == 2:
            holder[key] = chance.choice(places(made))[0]  # also itself, around a circle
        else:
            holder[key] = chance.choice(WRONG)
    buffer = io.BytesIO()
    pickle.Pickler(buffer, chance.choice((2, 4, 5))).dump(made)
    return buffer.getvalue()


def copies() -> Iterator[tuple[int, bytes]]:
    """All damaged copies; the same in each run."""
    values = sources()
    data = [pickle.dumps(value, protocol) for value in values for protocol in (2, 4)]
    for seed in range(COPIES):
        chance = random.Random(seed)
        if seed % 2:
            yield seed, mutated_bytes(chance, chance.choice(data))
        else:
            yield seed, mutated_values(chance, chance.choice(values))


def test_no_damaged_copy_ends_in_anything_but_a_sentence_or_a_recording(tmp_path: Path) -> None:
    found = {"made": 0, "refused": 0}
    for seed, data in copies():
        try:
            found[read(data, tmp_path / "x.pickle", seed % REPORTED == 0)] += 1
        except Exception as error:
            raise AssertionError(f"copy {seed}") from error

    assert sum(found.values()) == COPIES
    assert min(found.values()) > COPIES / 10, found


def test_damage_in_an_imported_recording_is_reported(tmp_path: Path) -> None:
    place = tmp_path / "x.tlm"
    source = training(steps=2).write(tmp_path / "x.pickle")
    whole = convert.recording_of(snapshot.parse(unpickle.load(source), source), "x").data
    chance = random.Random(1)
    refused = 0
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(3):
            data[chance.randrange(60_000)] ^= 255
        place.write_bytes(data)
        try:
            recording = tlmem.read(place)
            assert len(recording.segments) >= 0 and len(recording.blocks) >= 0
            assert len(recording.phases) >= 0 and len(recording.requests) >= 0
        except TlmemError:
            refused += 1
    assert refused < 60


def test_forged_states_are_read_and_reported(tmp_path: Path) -> None:
    """Rows of any content, and records that lie about their size."""
    rows = writer.events([(1_000_004, 5 << 56 | 64, 8, 0, 0, 1, 5), (1_000_008, 1, 0, 0, 0, 32, 0)])
    widths = {1: 72, 2: 40, 3: 32, 4: 8, 5: 16}
    for seed in range(60):
        chance = random.Random(seed)
        meta = [
            writer.note("importer", "torch-snapshot"),
            writer.note("snapshot.5", "peak=9 base=x entries=77777777777777777777 =1"),
            writer.note("accelerator.5", "\x1b]0;cuda"),
            writer.label(1, "out of memory on \x1b[2J"),
        ]
        for table, width in widths.items():
            count = chance.randrange(4)
            claimed = count + (chance.random() < 0.2)
            small = bytes(chance.choice((0, 0, 0, 1, 255)) for _ in range(width * count))
            wild = bytes(chance.randrange(256) for _ in range(width * count))
            head = struct.pack("<4I", table, 0, width, claimed)
            meta.append(writer.record(9, head + chance.choice((small, wild))))
        made = writer.RecordingWriter(form="sealed", meta=meta, threads={1: rows})
        path = made.write(tmp_path / f"{seed}.tlm")
        text = render(summarise([str(path)]))
        assert "\x1b" not in text and "Caching allocator" in text
        recording = tlmem.read(path)
        assert len(recording.phases) <= 4 and len(recording.requests) <= 4
        memory_viz.snapshot(recording)


@pytest.mark.parametrize("most", [1, 3])
def test_states_with_missing_records_give_the_rows_before(most: int) -> None:
    import numpy as np

    from tlmem.recording.format.allocator_state import REQUESTED, REQUESTED_DTYPE, rows_of, unpack
    from tlmem.recording.format.allocator_state import pack as packed

    rows = np.arange(10, dtype=np.uint64).view(REQUESTED_DTYPE)
    parts = {}
    for first in range(0, 10, 2):
        if first != 2 * most:
            table, at, data = unpack(packed(REQUESTED, first, rows[first : first + 2]))
            parts[table, at] = data

    assert rows_of(parts, REQUESTED)["requested"].tolist() == list(range(2 * most))
