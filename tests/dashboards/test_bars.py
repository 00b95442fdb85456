"""How lanes look, one character for each column."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tlmem.dashboards.model.bars import (
    count_bar,
    heights,
    line_bar,
    object_bar,
    stacked_cells,
    stacked_heights,
)
from tlmem.dashboards.model.lanes import NEVER, LineLane
from tlmem.dashboards.model.view import View

VIEW = View.whole(100_000)


def test_a_life_has_a_beginning_and_an_end() -> None:
    assert object_bar(VIEW, 10, 20_000, 69_000) == "  ├───┤   "


def test_what_is_alive_at_the_end_points_on() -> None:
    assert object_bar(VIEW, 10, 20_000, NEVER) == "  ├──────▶"


def test_what_began_before_the_stretch_points_back() -> None:
    view = VIEW.select(50_000, 100_000)

    assert object_bar(view, 10, 20_000, 69_000) == "◀──┤      "
    assert object_bar(view, 10, 20_000, 30_000) == " " * 10


def test_a_short_life_is_a_dot() -> None:
    assert object_bar(VIEW, 10, 20_000, 20_010) == "  •       "


@given(st.integers(0, 100_000), st.integers(0, 100_000), st.integers(0, 30))
def test_a_bar_is_always_as_wide_as_the_screen(born: int, age: int, width: int) -> None:
    view = VIEW.select(30_000, 60_000)

    assert len(object_bar(view, width, born, born + age)) == width
    assert len(count_bar(view, width, [(born, 1), (born + age, 0)], NEVER)) == width


def test_heights_are_full_at_the_highest_and_a_dot_where_all_was_freed() -> None:
    assert heights(np.array([0.0, 1.0, 8.0]), 8.0) == " ▁█"
    assert heights(np.array([0.0, 0.0]), 8.0, [0, 3]) == " •"
    assert heights(np.array([0.0, np.nan]), 0.0) == "  "


def test_a_line_without_bytes_is_drawn_by_its_objects() -> None:
    lane = LineLane(0, None, np.zeros(3), np.array([0.0, 1.0, 2.0]), np.ones(3))  # type: ignore[arg-type]

    assert line_bar(lane) == "•▄█"


def test_rows_stand_on_each_other() -> None:
    assert stacked_heights(np.array([0.0, 1.0, 2.0]), 2) == ["  █", " ██"]
    assert stacked_heights(np.zeros(2), 2) == ["  ", "  "]


def test_counts_are_digits_and_a_plus_beyond_nine() -> None:
    steps = [(10_000, 1), (30_000, 2), (40_000, None), (50_000, 12), (80_000, 1)]

    assert count_bar(VIEW, 10, steps, 95_000) == " 1122+++11"


def test_a_cell_of_stacked_areas_has_its_two_largest_layers_in_eighths() -> None:
    tops = np.array([[0.0, 4.0, 8.0, 1.0, np.nan], [6.0, 6.0, 8.0, 1.5, np.nan]])
    eighths, lower, upper = (
        part[0].tolist() for part in stacked_cells(tops, np.array([0.0, 8.0, 16.0]))
    )

    # nothing below the second layer; two layers and a rest; one layer; mostly empty; not known
    assert (lower[0], upper[0], eighths[0]) == (1, 2, 6)
    assert (lower[1], eighths[1]) == (0, 5)
    assert (lower[2], eighths[2]) == (0, 8)
    assert (lower[3], upper[3], eighths[3]) == (0, 2, 1)
    assert upper[4] == 2 and eighths[4] == 0
    whole = [part[1, 2:3].tolist() for part in stacked_cells(tops, np.array([0.0, 8.0, 16.0]))]
    assert whole[0] == [0] and whole[2] == [2]
