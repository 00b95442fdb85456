"""Tables of who holds arrays in Python: which snapshots count, which objects they name."""

import struct
from pathlib import Path

import numpy as np
import pytest
from support import writer

from tlmem.analysis import analyse
from tlmem.analysis.ledger.history import history
from tlmem.recording.format.chains import parse
from tlmem.recording.reader import Recording, read
from tlmem.recording.tables.chain_text import words
from tlmem.report import history as history_report

START, STEP = 1_000_000, 20_000_000
"""Ticks; a step is 10 ms."""
HEADS = [(1, "__main__", "heads"), (6, "list", "[]", 300), (14, "numpy.ndarray", "base")]
ROWS = [(2, "main\n/home/user/program.py\n12", "rows"), (6, "list", "[]", 5)]


def at(step: float) -> int:
    return START + int(step * STEP) // 4 * 4


def events() -> np.ndarray:
    """Object 0 at 4096 for ever, 1 at 8192 and then 2 in its place, 3 a tensor of that handle."""
    return writer.events(
        [
            (at(1), 4096, 1000, 2, 0, 1, 1),
            (at(2), 8192, 500, 2, 0, 1, 1),
            (at(4), 8192, 0, 2, 0, 2, 1),
            (at(5), 8192, 700, 2, 0, 1, 1),
            (at(6), 8192, 300, 2, 1, 1, 16),
        ]
    )


def names() -> list[bytes]:
    return [writer.code(1, "/home/user/program.py", "main"), writer.site(2, 0, 1, 3)]


def recording(
    path: Path, *records: bytes, form: str = "sealed", rows: np.ndarray | None = None
) -> Recording:
    rows = events() if rows is None else rows
    meta = [*names(), *records]
    return read(writer.RecordingWriter(form=form, meta=meta, threads={1: rows}).write(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.tlm"


def whole(number: int, step: float, **about: int) -> list[bytes]:
    """A snapshot with two chains."""
    return [
        writer.holding(
            number, 0, at(step), HEADS, [4096, 8192], held_bytes=1500, used_bytes=15, **about
        ),
        writer.holding(number, 1, at(step), ROWS, [12288], arrays=9, held_bytes=90_000, **about),
        writer.holding_totals(number, at(step), **about),
    ]


def test_a_chain_is_a_row_with_its_numbers_and_words(path: Path) -> None:
    table = recording(path, *whole(1, 3, trigger=3)).holdings

    assert list(table["group"]) == [1, 0], "most bytes first"
    row = table.iloc[1].to_dict()
    assert row["words"] == "list 'heads' (module __main__, 300 items) through the view's base"
    assert row["chain"] == "module __main__: heads -> list of 300[] -> view.base -> array"
    assert (row["trigger"], row["root"], row["container"]) == ("doubled", "module", "list")
    assert (row["arrays"], row["held_bytes"], row["used_bytes"]) == (2, 1500, 15)
    assert (row["items"], row["device"], row["complete"]) == (300, 1, True)
    assert row["time_ns"] == 30_000_000


def test_every_step_of_a_chain_is_a_row(path: Path) -> None:
    steps = recording(path, *whole(1, 3)).holding_steps
    heads = steps[steps["group"] == 0]

    assert list(heads["kind"]) == ["module", "list", "view"]
    assert list(heads["edge"]) == ["heads", "[]", "base"]
    assert list(heads["step"]) == [0, 1, 2]


@pytest.mark.parametrize("step, object_at_8192", [(3, 1), (4.5, -1), (5.5, 2), (90, 2)])
def test_an_address_means_the_object_that_was_alive_then(
    path: Path, step: float, object_at_8192: int
) -> None:
    found = recording(path, *whole(1, step)).holding_objects
    by_address = dict(zip(found["address"], found["object"], strict=True))
    assert by_address == {4096: 0, 8192: object_at_8192, 12288: -1}


def test_a_handle_is_no_address(path: Path) -> None:
    chain = writer.holding(1, 0, at(7), ROWS, [8192], device=16)
    found = recording(path, chain, writer.holding_totals(1, at(7))).holding_objects

    assert list(found["object"]) == [3]


def test_a_snapshot_that_a_kill_cut_off_is_nothing(path: Path) -> None:
    found = recording(path, *whole(1, 3), *whole(2, 4)[:2], form="compact")

    assert set(found.holdings["snapshot"]) == {1}
    assert set(found.holding_objects["snapshot"]) == {1}


def test_a_walk_that_was_given_up_is_told_of_the_whole_snapshot(path: Path) -> None:
    cut = [*whole(1, 3)[:2], writer.holding_totals(1, at(3), flags=1)]

    assert not recording(path, *cut).holdings["complete"].any()


def test_the_same_record_twice_counts_once(path: Path) -> None:
    assert len(recording(path, *whole(1, 3), *whole(1, 3)).holdings) == 2


def test_no_snapshot_gives_empty_tables(path: Path) -> None:
    found = recording(path)

    assert [len(found.holdings), len(found.holding_steps), len(found.holding_objects)] == [0, 0, 0]


def test_a_time_range_has_only_its_own_snapshots(path: Path) -> None:
    recording(path, *whole(1, 3), *whole(2, 5.5))

    assert set(read(path, 0.04, 0.07).holdings["snapshot"]) == {2}


@pytest.mark.parametrize("form", ["raw", "compact", "sealed"])
def test_every_form_of_the_file_tells_the_same(path: Path, form: str) -> None:
    expected = recording(path, *whole(1, 3), *whole(2, 5.5))
    other = recording(path.with_name("y.tlm"), *whole(1, 3), *whole(2, 5.5), form=form)

    for name in ("holdings", "holding_steps", "holding_objects"):
        assert getattr(expected, name).equals(getattr(other, name))


def payload(record: bytes) -> bytes:
    return record[16 : 16 + struct.unpack_from("<I", record, 4)[0]]


def test_a_record_cut_short_is_damaged_and_the_rest_is_read(path: Path) -> None:
    first = whole(1, 3)
    cut = writer.record(6, payload(first[0])[:-4])
    found = recording(path, first[1], cut, first[2])

    assert list(found.holdings["group"]) == [1]
    assert "1 names are damaged; some lines may be unknown" in found.problems


@pytest.mark.parametrize("end", range(0, 160, 7))
def test_no_cut_of_a_record_gives_nonsense(end: int) -> None:
    data = payload(whole(1, 3)[0])
    assert parse(data).steps[0].edge == "heads"

    with pytest.raises((ValueError, struct.error)):
        parse(data[: min(end, len(data) - 1)])


def test_records_of_types_to_come_are_no_damage(path: Path) -> None:
    found = recording(path, writer.record(250, b"new"), *whole(1, 3))

    assert found.problems == []
    assert len(found.holdings) == 2


def test_numbers_of_kinds_and_triggers_to_come_are_told_as_numbers(path: Path) -> None:
    chain = writer.holding(1, 0, at(3), [(77, "new.Thing", "door")], [4096], trigger=9)
    table = recording(path, chain, writer.holding_totals(1, at(3))).holdings

    assert (table["trigger"][0], table["root"][0]) == ("trigger 9", "kind 77")


def test_texts_that_are_not_utf_8_are_shown() -> None:
    steps = writer.holding(1, 0, 5, [(1, "__main__", "caf\u00e9")], [4096])
    data = payload(steps).replace("\u00e9".encode(), b"\xff\xfe")

    assert words(parse(data).steps) == "variable 'caf\\xff\\xfe', module __main__"


def test_the_history_of_an_object_names_its_python_holders(path: Path) -> None:
    life = history(recording(path, *whole(1, 3, trigger=3), *whole(2, 5.5)), "0")
    text = history_report.render_text(life)

    assert "Alive at the end of the recording.\n" in text
    assert [seen.trigger for seen in life.python] == ["doubled", "end"]
    assert (
        "Held in Python by list 'heads' (module __main__, 300 items) through the view's base, as "
        "the snapshot after 0.055000 s (end, and in 1 before) saw it:" in " ".join(text.split())
    )
    assert "\n    module __main__: heads -> list of 300[] -> view.base -> array\n" in text
    assert history_report.to_dict(life)["python"][0]["seconds"] == 0.03


def test_the_history_of_an_object_that_no_snapshot_names_says_nothing_of_python(path: Path) -> None:
    life = history(recording(path, *whole(1, 3)), "2")

    assert life.python == ()
    assert "Python" not in history_report.render_text(life)


def leaking_rows(steps: int = 400) -> np.ndarray:
    """Each step keeps an array of line 3 and makes a temporary."""
    rows = []
    for step in range(steps):
        kept, passing = 2**20 + 4096 * step, 2**30
        rows += [
            (at(step / 4.1), kept, 8000, 2, 0, 1, 1),
            (at(step / 4.1 + 0.03), passing, 800, 2, 0, 1, 1),
            (at(step / 4.1 + 0.06), passing, 0, 2, 0, 2, 1),
        ]
    return writer.events(rows)


def seen_in_list(number: int, step: int) -> list[bytes]:
    """A snapshot after a step names a few of the arrays, which small views hold."""
    heads = [HEADS[0], (6, "list", "[]", step), HEADS[2]]
    addresses = [2**20 + 4096 * n for n in range(0, step, max(1, step // 60))]
    held = writer.holding(
        *(number, 0, at(step / 4.1), heads, addresses),
        **{"arrays": step, "held_bytes": 8000 * step, "used_bytes": 80 * step, "trigger": 3},
    )
    return [held, writer.holding_totals(number, at(step / 4.1), trigger=3)]


@pytest.mark.parametrize("form", ["raw", "compact", "sealed"])
def test_findings_with_holders_are_the_same_of_a_live_a_killed_and_a_sealed_file(
    path: Path, form: str
) -> None:
    """The killed one was cut while it wrote its third snapshot: the one before it speaks."""
    snapshots = [*seen_in_list(1, 100), *seen_in_list(2, 300)]
    cut = seen_in_list(3, 390)[:1] if form == "raw" else []
    expected = analyse(recording(path, *snapshots, rows=leaking_rows()))
    other = path.with_name("y.tlm")
    found = analyse(recording(other, *snapshots, *cut, form=form, rows=leaking_rows()))

    assert found.findings == expected.findings
    assert [finding.kind for finding in found.findings[:2]] == ["growing-site", "view-pins-base"]
    assert "use 24.0 kB of 2.40 MB" in found.findings[1].evidence
    assert {holder.name for finding in found.findings for holder in finding.holders} == {
        "list 'heads' (module __main__, 300 items) through the view's base"
    }


def test_a_later_snapshot_of_a_file_that_is_read_again_speaks_for_itself(path: Path) -> None:
    early = analyse(recording(path, *seen_in_list(1, 100), form="compact", rows=leaking_rows()))
    both = [*seen_in_list(1, 100), *seen_in_list(2, 300)]
    late = analyse(recording(path, *both, form="compact", rows=leaking_rows()))

    assert [early.findings[0].holders[0].count, late.findings[0].holders[0].count] == [100, 300]
