"""Which objects stand behind a finding, what each thread allocated, and what is drawn of a life."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.summaries import process_of
from support.traces import Program

from tlmem.analysis.ledger.history import HistoryStep, Seen, life_of
from tlmem.analysis.model import Finding, StackFrame
from tlmem.report.html.lives import facts, lanes
from tlmem.report.object_lives import MOST_OBJECTS, chosen_objects, lives
from tlmem.report.summary import Process
from tlmem.report.thread_sums import FOLDED, thread_totals

MS = 1_000_000
LINE = StackFrame("/home/user/program.py", 20, "work")


@pytest.fixture
def process() -> Process:
    """Line 20 keeps objects of 10, 30, 20 and 50 bytes, and lets one of 90 go."""
    program = Program()
    for size in (10, 30, 20):
        program.alloc(20, size)
    program.free(program.alloc(20, 90))
    program.alloc(20, 50)
    program.alloc(30, 70)
    return process_of(program)


def finding(site: StackFrame | None = LINE, object: int | None = None) -> Finding:
    return Finding("growing-site", "error", 4, 110, "It grows.", site=site, object=object)


def chosen(process: Process, *findings: Finding) -> list[list[tuple[int, str]]]:
    moment_ns = int(process.recording.seconds * 1e9)
    found = chosen_objects(process.recording, findings, moment_ns)
    return [[(each.number, each.why) for each in some] for some in found]


def test_the_largest_and_the_oldest_that_a_line_keeps_are_chosen(process: Process) -> None:
    nowhere = StackFrame("", 0, "")

    assert chosen(process, finding(), finding(nowhere, 5), finding(None)) == [
        [(4, "largest kept"), (0, "oldest kept")],
        [(5, "example")],
        [],
    ]


def test_an_object_whose_holder_was_seen_is_among_them(process: Process) -> None:
    process.recording.holding_objects = pd.DataFrame({"object": [1, 2, 3]})

    assert chosen(process, finding())[0][-1] == (1, "largest with a known holder")

    process.recording.holding_objects = pd.DataFrame({"object": [0]})

    assert [number for number, _ in chosen(process, finding())[0]] == [4, 0]


def test_many_findings_have_no_more_objects_than_can_be_looked_at() -> None:
    program = Program()
    for line in range(MOST_OBJECTS + 9):
        program.alloc(line + 1)
    findings = [finding(replace(LINE, line=line + 1)) for line in range(MOST_OBJECTS + 9)]
    found = chosen(process_of(program), *findings)

    assert found[0] == [(0, "largest and oldest kept")]
    assert sum(map(len, found)) == MOST_OBJECTS


def test_lives_are_those_of_the_objects_chosen(process: Process) -> None:
    end_ns = int(process.recording.seconds * 1e9)
    found = lives(process.recording, chosen_objects(process.recording, [finding()], end_ns))

    assert list(found) == [4, 0]
    assert (found[4].bytes, found[4].died_ns) == (50, -1)
    assert facts(found[4])[-1] == "Alive at the end of the recording."


def test_what_was_freed_says_when(process: Process) -> None:
    life = life_of(process.recording, "3")

    assert facts(life)[-1].startswith("Freed after ")
    assert not lanes(life, process.recording.seconds)[0].open


def test_a_life_is_drawn_with_its_holders_from_when_to_when(process: Process) -> None:
    def step(number: int, time_ns: int, event: str, holder: str, **pair: int) -> HistoryStep:
        ends = {"ended_by": 0, "began_at": 0, "unpaired": 0} | pair
        return HistoryStep(number, time_ns, 1, event, holder, 1, 0, LINE, (), **ends)

    steps = (
        step(1, 100 * MS, "acquire", "scope a", ended_by=3),
        step(2, 200 * MS, "acquire", "reader", unpaired=1),
        step(3, 300 * MS, "release", "scope a", began_at=1),
    )
    python = (
        Seen(150 * MS, "time", "list 'kept' (1 item)", "kept -> array"),
        Seen(400 * MS, "end", "list 'kept' (1,200 items)", "kept -> array"),
    )
    life = replace(life_of(process.recording, "0"), born_ns=50 * MS, steps=steps, python=python)
    drawn = [(lane.name, lane.begin_ns, lane.end_ns, lane.open) for lane in lanes(life, 1.0)]

    assert drawn == [
        ("alive", 50 * MS, 1000 * MS, True),
        ("scope a", 100 * MS, 300 * MS, False),
        ("list 'kept' (1,200 items)", 150 * MS, 400 * MS, False),
        ("reader", 200 * MS, 1000 * MS, True),
    ]
    assert "Held by reader since 200 ms, acquired at program.py:20." in facts(life)
    assert "Last touched after 300 ms: release by scope a at program.py:20." in facts(life)


def test_each_thread_has_what_it_allocated_and_its_line(process: Process) -> None:
    recording = process.recording
    recording.objects["born_thread"] = np.array([1, 1, 2, 2, 2, 3], np.int32)
    recording.objects.loc[0, "folded"] = True
    recording.fold = {"live_stride": 4}
    recording.threads = pd.DataFrame(
        {"name": ["", "loader"], "main": [True, False]}, index=pd.Index([1, 2], name="thread")
    )
    found = {
        each.name: (each.alive_bytes, each.alive_count, each.made_bytes, each.made_count,
                    each.line.line)
        for each in thread_totals(recording, int(recording.seconds * 1e9))
    }  # fmt: skip

    assert found == {
        "thread 3": (70, 1, 70, 1, 30),
        "loader (thread 2)": (70, 2, 160, 3, 20),
        FOLDED: (40, 4, 40, 4, 20),
        "main thread (thread 1)": (30, 1, 30, 1, 20),
    }
