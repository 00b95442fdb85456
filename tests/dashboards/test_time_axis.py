"""Ticks, marks and scopes below a picture."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tlmem.dashboards.model.time_axis import (
    column_of,
    epochs_of,
    mark_line,
    moment,
    scope_line,
    shaded,
    span,
    tick_line,
    ticks,
    time_of,
)
from tlmem.dashboards.model.view import View

SECOND = 1_000_000_000


def marks(*rows: tuple[float, str, int]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["time_ns", "label", "index"])
    return table.assign(time_ns=(table["time_ns"] * SECOND).astype(np.int64))


def scopes(*rows: tuple[float, float, str, int]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["enter_ns", "exit_ns", "label", "depth"])
    for name in ("enter_ns", "exit_ns"):
        times = (table[name] * SECOND).astype(np.int64)
        table[name] = times.where(table[name] >= 0, -1)
    return table


@given(st.integers(1_000, 10**13), st.integers(0, 200), st.floats(0, 1), st.floats(0, 1))
def test_ticks_never_run_into_each_other(end_ns: int, width: int, a: float, b: float) -> None:
    view = View.whole(end_ns).select(a * end_ns, b * end_ns)
    found = ticks(view, width)
    line = tick_line(view, width)

    assert len(line) == width
    for (left, label), (right, _) in zip(found, found[1:], strict=False):
        assert left + 1 + len(label) < right


def test_a_column_and_its_moment_belong_together() -> None:
    view = View.whole(10 * SECOND).select(2 * SECOND, 4 * SECOND)

    for column in range(37):
        assert column_of(view, time_of(view, column, 37), 37) == column


def test_ticks_are_round_moments() -> None:
    labels = [label for _, label in ticks(View.whole(10 * SECOND), 60)]

    assert labels == [f"{second} s" for second in range(0, 10, 2)]
    assert moment(1_500_000, 100_000) == "0.0015 s"


def test_marks_have_their_label_where_there_is_room() -> None:
    view = View.whole(10 * SECOND)
    line = mark_line(view, 40, marks((0, "epoch", 0), (5, "epoch", 1), (5.5, "epoch", 2)))

    assert line.startswith("◆epoch 0")
    assert line[20:24] == "◆1◆e" or line[20:23] == "◆ ◆"
    assert line[22:].startswith("◆epoch 2")


def test_labels_of_marks_are_shortened_before_they_are_dropped() -> None:
    every = [(second, "epoch", second) for second in range(10)]
    view, table = View.whole(10 * SECOND), marks(*every)

    assert mark_line(view, 100, table).startswith("◆epoch 0  ◆epoch 1  ")
    assert mark_line(view, 80, table).startswith("◆epoc 0 ◆epoc 1 ")
    assert mark_line(view, 40, table).startswith("◆0  ◆1  ")
    assert mark_line(view, 20, table).startswith("◆ ◆ ◆ ")


def test_every_second_epoch_is_shaded() -> None:
    rows = [(0, "load", 0), *((second, "epoch", second) for second in (2, 4, 6))]
    steps = [(second / 10, "step", second) for second in range(100)]
    view, table = View.whole(10 * SECOND), epochs_of(marks(*sorted([*rows, *steps])))

    assert shaded(view, 50, table) == ((10, 20), (30, 50))
    assert shaded(view.select(3 * SECOND, 5 * SECOND), 40, table) != ()
    assert shaded(view, 3, table) == shaded(view, 0, table) == ()
    assert shaded(view, 50, epochs_of(marks((1, "end", 0)))) == ()


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.5, ["0 ms", "100 ms", "200 ms"]),
        (30, ["0 s", "5 s", "10 s"]),
        (130, ["0 s", "15 s", "30 s", "45 s", "1:00"]),
        (4_000, ["0 s", "15:00", "30:00", "45:00"]),
        (90_000, ["0 s", "12:00:00"]),
    ],
)
def test_an_axis_says_time_as_people_do(seconds: float, labels: list[str]) -> None:
    found = [label for _, label in ticks(View.whole(int(seconds * SECOND)), 70)]

    assert found[: len(labels)] == labels


def test_a_short_stretch_of_a_long_run_has_seconds_with_their_digits() -> None:
    view = View.whole(600 * SECOND).select(125 * SECOND, 125 * SECOND + 1_000_000)

    assert [label for _, label in ticks(view, 70)][:2] == ["2:05.0000", "2:05.0002"]


def test_a_million_marks_are_one_sign_for_each_column() -> None:
    times = np.linspace(0, 10 * SECOND, 1_000_000).astype(np.int64)
    many = pd.DataFrame({"time_ns": times, "label": "m", "index": 0})

    assert mark_line(View.whole(10 * SECOND), 20, many) == "◆" * 20


def test_scopes_are_brackets_with_a_name_and_many_are_a_pattern() -> None:
    view = View.whole(10 * SECOND)
    line = scope_line(view, 40, scopes((1, 5, "load", 1), (2, 3, "inner", 2), (6, -1, "train", 1)))

    assert line == "    [load═══════════]   [train═════════]"
    many = scopes(*((5 + step * 0.001, 5 + step * 0.001, "step", 1) for step in range(900)))
    assert scope_line(view, 20, many).strip() == "≡≡"


@pytest.mark.parametrize("width", [0, 1, 2])
def test_hardly_any_room_is_no_error(width: int) -> None:
    view = View.whole(SECOND)

    assert len(tick_line(view, width)) == width
    assert len(mark_line(view, width, marks((0.5, "a", 1)))) == width
    assert len(scope_line(view, width, scopes((0, 1, "a", 1)))) == width


def test_the_stretch_is_told_in_words() -> None:
    view = View.whole(10 * SECOND)

    assert span(view) == "all 10.0 s"
    assert span(view.select(SECOND, 2 * SECOND)) == "1.00 s to 2.00 s"
