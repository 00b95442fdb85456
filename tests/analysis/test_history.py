"""The life of one object: its steps, their pairs, what has no pair, and how it is asked for."""

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer
from support.owners import (
    ACQUIRE,
    ALLOC,
    CPU,
    ESCAPE,
    FREE,
    MISUSE,
    REGISTER,
    RELEASE,
    SCOPE_ENTER,
    Runtime,
    holder,
)

from tlmem.analysis.ledger.history import NoSuchObject, history
from tlmem.events import Kind
from tlmem.recording.reader import Recording, read
from tlmem.report import history as history_report

A, B = 1 << 28 | 5, 1 << 28 | 6
SCOPE, READER, OTHER, VIEW = holder(2, 1), holder(11, 2), holder(11, 3), holder(5, B)
NUMPY, ADDRESS = 1, 0x7F00
META = [
    *(writer.label(1, "step"), writer.label(2, "reader"), writer.label(3, "writer")),
    *(writer.code(1, "/home/user/a.py", "work"), writer.site(2, 0, 1, 7)),
]


@pytest.fixture
def recorded(tmp_path: Path):
    """Writes (kind, object, arg, count, device) events and reads them back."""

    def write(*rows: tuple) -> Recording:
        events = [
            (1_000_000 + 4000 * step, obj, arg, 2, count, kind, device)
            for step, (kind, obj, arg, count, device) in enumerate(rows)
        ]
        file = writer.RecordingWriter(form="sealed", meta=META, threads={1: writer.events(events)})
        return read(file.write(tmp_path / "x.tlm"))

    return write


@pytest.fixture
def kept(recorded) -> Recording:
    """An object that its scope gives back and its reader keeps, after one fair taking."""
    return recorded(
        (SCOPE_ENTER, 1, 1, 1, 0),
        (ALLOC, A, 800, 1, CPU),
        (REGISTER, A, SCOPE, 1, CPU),
        (ACQUIRE, A, READER, 2, CPU),
        (RELEASE, A, READER, 1, CPU),
        (ACQUIRE, A, READER, 2, CPU),
        (RELEASE, A, SCOPE, 1, CPU),
    )


def pairs(recording: Recording, which: str = "0") -> list[tuple[str, int, int, bool]]:
    steps = history(recording, which).steps
    return [(step.event, step.ended_by, step.began_at, step.unpaired) for step in steps]


def test_takings_are_paired_by_holder_and_the_one_without_a_pair_is_marked(kept) -> None:
    assert pairs(kept) == [
        ("alloc", 0, 0, False),
        ("register", 6, 0, False),
        ("acquire", 4, 0, False),
        ("release", 0, 3, False),
        ("acquire", 0, 0, True),
        ("release", 0, 2, False),
    ]


def test_counts_holders_and_bytes_are_those_of_the_events(kept) -> None:
    life = history(kept, "0")

    assert [step.count for step in life.steps] == [1, 1, 2, 1, 2, 1]
    assert [step.holder for step in life.held] == ["reader"]
    assert (life.bytes, life.died_ns, life.runtime, life.device) == (800, -1, True, "cpu")
    assert str(life.made) == "/home/user/a.py:7"


def test_an_escape_ends_the_scope_and_begins_the_next_holder(recorded) -> None:
    recording = recorded(
        (SCOPE_ENTER, 1, 1, 1, 0),
        (ALLOC, A, 800, 1, CPU),
        (REGISTER, A, SCOPE, 1, CPU),
        (ESCAPE, A, OTHER, 1, CPU),
        (RELEASE, A, OTHER, 0, CPU),
        (FREE, A, 0, 0, CPU),
    )

    assert pairs(recording)[1:] == [
        ("register", 3, 0, False),
        ("escape", 4, 2, False),
        ("release", 0, 3, False),
        ("free", 0, 0, False),
    ]


def test_a_free_ends_what_is_still_held(recorded) -> None:
    recording = recorded(
        (ALLOC, A, 800, 1, CPU), (ACQUIRE, A, READER, 2, CPU), (FREE, A, 2, 0, CPU)
    )

    assert pairs(recording)[1] == ("acquire", 3, 0, False)
    assert history(recording, "0").died_ns > 0


def test_an_object_that_nobody_took_is_held_by_nobody(recorded) -> None:
    life = history(recorded((ALLOC, A, 800, 1, CPU)), "0")

    assert [step.event for step in life.held] == ["alloc"]
    assert "no holder since a.py:7 (step 1)" in history_report.render_text(life)


def test_a_view_is_named_by_its_number(recorded) -> None:
    recording = recorded((ALLOC, A, 800, 1, CPU), (ACQUIRE, A, VIEW, 2, CPU), (ALLOC, B, 0, 1, CPU))

    assert history(recording, "0").steps[1].holder == "view, object 1"


def test_a_misuse_is_a_step_and_takes_nothing(recorded) -> None:
    recording = recorded((ALLOC, A, 800, 1, CPU), (FREE, A, 1, 0, CPU), (MISUSE, A, 0, 1, CPU))

    assert pairs(recording)[2] == ("use-after-free", 0, 0, False)


def test_arrays_at_one_address_have_lives_of_their_own(recorded) -> None:
    rows = [
        (ALLOC, ADDRESS, 100 + i, 1, NUMPY) if i % 2 == 0 else (FREE, ADDRESS, 0, 0, NUMPY)
        for i in range(6)
    ]
    recording = recorded(*rows)

    for number in range(3):
        life = history(recording, str(number))
        assert [step.event for step in life.steps] == ["alloc", "free"]
        assert (life.bytes, life.others) == (100 + 2 * number, ())


def test_an_address_means_what_is_alive_there_or_was_last(recorded) -> None:
    first = [(ALLOC, ADDRESS, 100, 1, NUMPY), (FREE, ADDRESS, 0, 0, NUMPY)]

    assert history(recorded(*first * 2), hex(ADDRESS)).object == 1
    assert history(recorded(*first, *first[:1]), hex(ADDRESS)).others == (0,)


def test_a_resize_leads_to_the_next_object(recorded) -> None:
    recording = recorded(
        (ALLOC, ADDRESS, 100, 1, NUMPY),
        (FREE, ADDRESS, 1, 0, NUMPY),
        (Kind.REALLOC, ADDRESS + 64, 200, 1, NUMPY),
    )
    old, new = history(recording, "0"), history(recording, "1")

    assert [step.event for step in old.steps + new.steps] == ["alloc", "resize", "resize"]
    assert (old.resized_to, new.resized_from, new.bytes) == (1, 0, 200)


def test_a_resize_that_failed_changes_nothing(recorded) -> None:
    recording = recorded(
        (ALLOC, ADDRESS, 100, 1, NUMPY),
        (FREE, ADDRESS, 1, 0, NUMPY),
        (Kind.REALLOC, ADDRESS, 2**64 - 1, 0, NUMPY),
    )
    life = history(recording, "0")

    assert [step.event for step in life.steps] == ["alloc", "failed resize", "failed resize"]
    assert (life.died_ns, life.bytes, life.steps[2].bytes) == (-1, 100, 0)


@pytest.mark.parametrize("which", ["7", "-1", "0x99", "nothing", "0xzz", ""])
def test_an_object_that_is_not_there_is_answered_with_those_that_are(kept, which: str) -> None:
    with pytest.raises(NoSuchObject) as error:
        history(kept, which)

    assert "numbers go from 0 to 0; the largest that are alive at the end: 0 (800 B" in str(
        error.value
    )


@pytest.mark.parametrize("which", ["0", "#0", hex(A), hex(A).upper().replace("X", "x"), str(A)])
def test_an_object_is_found_by_number_and_by_handle(kept, which: str) -> None:
    assert history(kept, which).object == 0


def test_the_text_marks_the_step_without_a_pair_and_shows_its_stack(kept) -> None:
    text = history_report.render_text(history(kept, "0"))
    marked = [line for line in text.splitlines() if line.startswith("!")]

    assert len(marked) == 1 and "acquire" in marked[0] and "none" in marked[0]
    assert "held by reader, acquired at a.py:7 (step 5)" in text
    assert "> /home/user/a.py:7 in work" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_long_life_shows_its_ends_and_every_step_without_a_pair(recorded) -> None:
    fair = [(ACQUIRE, A, OTHER, 2, CPU), (RELEASE, A, OTHER, 1, CPU)]
    rows = [*fair * 100, (ACQUIRE, A, READER, 2, CPU), *fair * 100]
    life = history(recorded((ALLOC, A, 800, 1, CPU), *rows), "0")
    short, whole = history_report.render_text(life), history_report.render_text(life, True)

    assert re.search(r"^! +202 ", short, re.MULTILINE) and "(--all shows them)" in short
    assert len(short.splitlines()) < 140 < len(life.steps) < len(whole.splitlines())
    assert "--all" not in whole


def test_json_has_every_step_with_its_pair(kept) -> None:
    told = json.loads(history_report.render_json(history(kept, "0")))

    assert (told["schema"], told["object"], told["unpaired"]) == (1, 0, [5])
    assert [step["ended_by"] for step in told["steps"]] == [None, 6, 4, None, None, None]
    assert told["steps"][4]["site"] == {"file": "/home/user/a.py", "line": 7, "function": "work"}


operations = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 17), st.integers(0, 1000)), min_size=1, max_size=80
)


@given(operations)
@settings(max_examples=60, deadline=None)
def test_the_pairs_of_every_life_are_the_rows_of_the_ledger(ops: list) -> None:
    runtime = Runtime().run(ops)
    if not runtime.made:
        return
    file = writer.RecordingWriter(form="sealed", meta=META, threads=runtime.events())
    with tempfile.TemporaryDirectory() as folder:
        recording = read(file.write(Path(folder) / "x.tlm"))
        lives = [history(recording, str(number)) for number in recording.objects.index]
        ledger = recording.holders
    for life in lives:
        time = {step.number: step.time_ns for step in life.steps}
        found = [
            (step.time_ns, time.get(step.ended_by, -1))
            for step in life.steps
            if step.ended_by or step.unpaired
        ]
        # Who only floated for a while was nobody's.
        mine = ledger[(ledger["object"] == life.object)]
        mine = mine[(mine["kind"] != 1) | (mine["end_ns"] < 0)]
        assert sorted(found) == sorted(zip(mine["begin_ns"], mine["end_ns"], strict=True))
        assert [step.number for step in life.steps] == list(range(1, len(life.steps) + 1))
        for step in life.steps:
            if step.began_at:
                assert life.steps[step.began_at - 1].ended_by == step.number


def test_what_was_lost_is_told_since_a_pair_may_be_among_it(kept, monkeypatch) -> None:
    monkeypatch.setattr(Recording, "problems", ["one block was dropped"])
    life = history(kept, "0")

    assert "\n\nproblem: one block was dropped\n" in history_report.render_text(life)
    assert len(json.loads(history_report.render_json(life))["problems"]) == 1
