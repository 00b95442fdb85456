"""What ``tlmem plan`` says, in text, JSON and a picture, of programs that never ran."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from support.traces import Program

from tlmem.report import plan as plan_report
from tlmem.report.plan import NoSuchMemory, Placement, Planned
from tlmem.report.plots import plan as picture
from tlmem.report.plots.plot_data import NothingToDraw


def stacked(rows: np.ndarray) -> Placement:
    """The plainest plan: everything above everything before it."""
    size = rows[:, 2]
    tops = np.cumsum(size)
    load = [int(size[(rows[:, 0] <= at) & (rows[:, 1] >= at)].sum()) for at in set(rows[:, 0])]
    bound = max(load, default=0)
    return Placement((tops - size).astype(np.uint64), int(size.sum()), bound, proven=False)


def training(steps: int = 6) -> Program:
    """A model for ever; in each step a batch that outlives what is computed from it."""
    program = Program(slowdown=1, step_ns=1_000_000)
    program.alloc(3, size=64_000)
    for _ in range(steps):
        batch = program.alloc(12, size=32_000)
        program.temporary(20, size=4_000)
        program.temporary(21, size=16_000)
        program.free(batch)
    return program


def told(program: Program, memory: str | None = None, most: int = 1000, **about: Any) -> Planned:
    recording = program.recording()
    vars(recording).update({"sealed": True, "family": [], "horizon_ns": 0, **about})
    return plan_report.find(recording, stacked, memory, most)


def text_of(found: Planned) -> str:
    """The text without its line breaks and no-break spaces."""
    return " ".join(plan_report.render_text(found).split())


def test_the_first_sentence_says_what_was_needed() -> None:
    text = text_of(told(training()))

    assert text.startswith(
        "The program's objects needed at most 112 kB at once, 4.1 ms after the start; no plan "
        "needs less than 112 kB, and one of 376 kB was found; its own allocations took up to "
    )


def test_lines_are_told_with_the_peak_that_shorter_lives_leave() -> None:
    rows = [line.split() for line in plan_report.render_text(told(training())).splitlines()]
    peak = {row[-2]: row[-4:-2] for row in rows if row and row[-1] == "work"}

    assert peak["program.py:12"] == ["100", "kB"]
    assert peak["program.py:3"] == ["100", "kB"] and peak["program.py:21"] == ["112", "kB"]


def test_advice_names_the_best_line_and_the_best_that_is_freed() -> None:
    text = text_of(told(training()))

    assert "Shorter lives at program.py:3 would lower the peak most: by at most 12.0 kB" in text
    assert "most of what it makes is never freed" in text


def test_ways_are_told_as_multiples_of_the_least() -> None:
    rows = plan_report.render_text(told(training())).splitlines()
    table = {line[27:].split(":")[0].strip(): line.split()[2] for line in rows if "x  " in line}

    assert table["slot sharing"] == "1.000x"
    assert table["no reuse at all"] == "3.357x" and table["planned"] == "3.357x"


def test_everything_is_in_the_json() -> None:
    found = told(training())
    object = json.loads(plan_report.render_json(found))

    assert object["schema"] == 1 and object["memory"] == "host"
    assert object["peak_bytes"] == 112_000 == object["lower_bound_bytes"]
    assert object["plan_bytes"] == 376_000 and object["proven"] is False
    assert object["planned"] == {
        "objects": 19, "of": 19, "merged": 0, "from_seconds": 0.003, "to_seconds": 0.0206,
    }  # fmt: skip
    assert set(object["ways"]) == {f"{name.replace('-', '_')}_bytes" for name in found.ways}
    (model, *_) = object["at_peak"]
    assert model["site"]["line"] == 3 and model["stays_seconds"] is None
    assert model["known_by"] == "birth" and model["idle_seconds"] is None


def test_a_part_is_told_as_one() -> None:
    found = told(training(40), most=10)
    text = text_of(found)

    assert "was found for the 10 of 121 objects nearest to the peak" in text
    assert "Placed were the objects alive from" in text and "--objects" in text


def test_the_smallest_are_told_when_they_are_one_block() -> None:
    program = Program()
    for number in range(30):
        program.alloc(3, size=1000 + number)
    text = text_of(told(program, most=10))

    assert "the 21 smallest of them as one block" in text
    assert "the 30 of 30 objects" in text


def test_other_memories_are_named() -> None:
    program = training()
    program.alloc(30, size=900_000, device=18)
    found = told(program)

    assert found.lives.memory == "sim-metal" and found.others == {"host": 112_000}
    assert "--memory host plans it" in text_of(found)
    assert text_of(found).startswith("The program's objects of sim-metal needed at most 900 kB")
    assert told(program, "host").lives.peak_bytes == 112_000


def test_a_memory_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(NoSuchMemory, match="memory 'metal'; memories with objects: host"):
        told(training(), "metal")


def test_nothing_needs_no_plan() -> None:
    found = told(Program())

    assert "there is nothing to plan" in text_of(found)
    assert json.loads(plan_report.render_json(found))["plan_bytes"] == 0
    with pytest.raises(NothingToDraw):
        picture.picture(found, "svg")


def test_what_a_reader_has_to_know_is_said() -> None:
    program = training()
    recording = program.recording()
    totals = recording.totals
    totals.peak_bytes, totals.peak_ns = 5_000_000, 1_000_000
    family = [Path("/tmp/child.9.tlm")]
    text = text_of(
        told(
            program,
            sealed=False,
            family=family,
            fold={"live_stride": 1},
            horizon_ns=2_000_000,
            totals=totals,
            problems=["8 events are missing"],
        )
    )

    assert "there was a higher peak, 5.00 MB, 1 ms after the start" in text
    assert "The recording has no end" in text
    assert "planned from their own files: child.9.tlm" in text
    assert "problem: 8 events are missing" in text


def test_objects_of_the_runtime_are_told_by_their_last_use() -> None:
    program = Program(step_ns=1_000_000)
    idle = program.alloc(12, size=64_000, device=16)
    held = program.hold(idle, 2, "step", 12)
    for _ in range(3):
        program.free(program.alloc(20, size=1_000, device=16))
    program.alloc(21, size=8_000, device=16)
    program.let_go(held, 12)
    program.free(idle)
    text = text_of(told(program))

    assert "Shorter lives at program.py:12 would lower the peak most: by at most" in text
    assert "after their last use. Uses are known from ownership events" in text


def test_a_peak_that_no_line_lowers_gets_no_advice() -> None:
    program = Program()
    program.alloc(3, size=1000)

    assert "at no single line would lower the peak by 1%" in text_of(told(program))


def texts_of(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_names_its_lines_axes_and_bound() -> None:
    texts = texts_of(picture.picture(told(training()), "svg"))

    assert "offset (kB)" in texts and "peak" in texts
    assert "time since the start of the recording (ms)" in texts
    assert "A plan of 376 kB: offsets against time" in texts
    assert "lower bound, 112 kB" in texts
    assert {f"program.py:{line} work" for line in (3, 12, 21)} < set(texts)
    assert "other lines" in texts


def test_the_picture_is_the_same_each_time() -> None:
    assert len({picture.picture(told(training()), "svg") for _ in range(2)}) == 1


def test_rectangles_are_the_objects_where_they_were_placed() -> None:
    found = told(training(2))
    data = picture.rectangles(found)

    assert sorted(np.concatenate([block.rows for block in data.blocks])) == list(range(7))
    assert data.low.tolist() == found.placed.offsets.tolist()
    assert (data.high - data.low).tolist() == found.part.size.tolist()
    assert (data.begin_ns < data.end_ns).all()
    assert data.end_ns[0] == round(found.recording.seconds * 1e9)


def test_a_part_is_drawn_for_its_time_only() -> None:
    found = told(training(40), most=10)
    data = picture.rectangles(found)
    begin, end = data.span_ns

    assert begin == found.part.time_ns[0] and end < found.recording.seconds * 1e9
    assert (data.begin_ns >= begin).all() and (data.end_ns <= end).all()
