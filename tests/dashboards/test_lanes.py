"""The index over lifetimes, against a look at every object."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tlmem.dashboards.model.lanes import FINE, NEVER, Lanes
from tlmem.dashboards.model.line_areas import COLOURS, colour_of, line_areas
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.model.view import View

from tlmem.analysis.model import StackFrame
from tlmem.report.plots import style as plots

END = 100_000
LIVES = st.lists(
    st.tuples(
        st.integers(0, END),
        st.one_of(st.none(), st.integers(0, END)),
        st.integers(0, 1000),
        st.integers(0, 3),
    ),
    max_size=40,
)


def index_of(lives: list) -> tuple[Lanes, pd.DataFrame]:
    """An index over (born, age or None, size, line) rows, in order of birth as recordings are."""
    rows = sorted(lives, key=lambda life: life[0])
    objects = pd.DataFrame(
        {
            "born_ns": np.array([born for born, *_ in rows], np.int64),
            "died_ns": np.array(
                [-1 if age is None else born + age for born, age, *_ in rows], np.int64
            ),
            "size_bytes": np.array([row[2] for row in rows], np.int64),
            "born_site": np.array([row[3] for row in rows], np.int64),
            "born_thread": (np.arange(len(rows)) % 2 + 1).astype(np.int32),
        }
    )
    places = SimpleNamespace(
        count=4,
        group_of_site=np.arange(4, dtype=np.int32),
        frames=[StackFrame("a.py", line, "f") for line in range(4)],
    )
    return Lanes(SimpleNamespace(objects=objects), places), objects  # type: ignore[arg-type]


@given(LIVES, st.integers(0, END), st.integers(0, END), st.integers(1, 12))
def test_lanes_hold_what_every_object_adds_up_to(lives: list, a: int, b: int, width: int) -> None:
    lanes, objects = index_of(lives)
    view = View.whole(END).select(a, b)
    edges = np.linspace(view.start_ns, view.stop_ns, width + 1).astype(np.int64)
    died = objects["died_ns"].where(objects["died_ns"] >= 0, NEVER)

    found = {lane.line: lane for lane in lanes.lines(view, width)}
    for line in range(4):
        mine = objects["born_site"] == line
        for column, edge in enumerate(edges[1:]):
            alive = mine & (objects["born_ns"] <= edge) & (died > edge)
            made = mine & (objects["born_ns"] > edges[column]) & (objects["born_ns"] <= edge)
            lane = found.get(line)

            assert (lane.live_count[column] if lane else 0) == alive.sum()
            assert (lane.live_bytes[column] if lane else 0) == objects["size_bytes"][alive].sum()
            assert (lane.made[column] if lane else 0) == made.sum()
    total = sum((lane.live_bytes for lane in found.values()), np.zeros(width))
    assert lanes.total(view, width).tolist() == total.tolist()


@given(LIVES, st.integers(0, END), st.integers(0, END), st.integers(1, 12))
def test_the_most_alive_in_a_column_is_that_of_every_moment(
    lives: list, a: int, b: int, width: int
) -> None:
    lanes, objects = index_of(lives)
    view = View.whole(END).select(a, b)
    edges = np.linspace(view.start_ns, view.stop_ns, width + 1)
    died = objects["died_ns"].where(objects["died_ns"] >= 0, NEVER)
    step, _ = lanes._highest_kept
    kept = (edges[1] - edges[0]) >= FINE * step

    found = lanes.highest(view, width)
    for column, (first, last) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        if kept:
            first, last = int(first / step) * step, np.ceil(last / step) * step
        moments = [int(first), *(t for t in objects["born_ns"] if int(first) < t <= int(last))]
        levels = [
            int(objects["size_bytes"][(objects["born_ns"] <= at) & (died > at)].sum())
            for at in moments
        ]
        assert found[column] == max(levels)


def test_areas_add_up_to_the_most_that_was_alive(loaded: Loaded) -> None:
    view = View.whole(loaded.end_ns)
    areas = line_areas(loaded.lanes, view, 40)

    assert areas.values.sum(axis=0).tolist() == loaded.lanes.highest(view, 40).tolist()
    assert areas.values.sum(axis=0).max() == loaded.recording.totals.peak_bytes
    assert [layer.name for layer in areas.layers[:2]] == ["train.py:12", "train.py:16"]
    assert areas.columns(0, 1, 80).shape == (len(areas.layers), 80)


def test_a_line_has_the_colour_that_it_has_in_plots(loaded: Loaded) -> None:
    lanes = loaded.lanes
    colours = [colour_of(lanes, line) for line in lanes.coloured]

    assert colours == list(plots.COLOURS[: len(colours)])
    assert tuple(plots.COLOURS[: len(COLOURS)]) == COLOURS


@given(LIVES, st.integers(0, END), st.integers(0, END), st.sampled_from(["born", "size", "age"]))
def test_objects_of_a_stretch_are_those_that_lived_in_it(
    lives: list, a: int, b: int, sort: str
) -> None:
    lanes, objects = index_of(lives)
    view = View.whole(END).select(a, b)
    died = objects["died_ns"].where(objects["died_ns"] >= 0, NEVER)
    lived = (objects["born_ns"] <= view.stop_ns) & (died >= view.start_ns)

    everything = lanes.objects(view, None, sort)
    assert sorted(lanes.number[everything].tolist()) == objects.index[lived].tolist()
    for line in range(4):
        some = lanes.objects(view, line, sort)
        mine = objects.index[lived & (objects["born_site"] == line)]
        assert sorted(lanes.number[some].tolist()) == mine.tolist()
    if sort == "size":
        assert (np.diff(lanes.size[everything]) <= 0).all()
    elif sort == "born":
        assert (np.diff(lanes.born[everything]) >= 0).all()


@given(LIVES, st.integers(0, END), st.integers(0, END), st.sampled_from([None, 1, 2, 3]))
def test_sites_have_the_sums_of_what_was_made_in_a_stretch(
    lives: list, a: int, b: int, thread: int | None
) -> None:
    within = [
        (born, age if age is None else min(age, END - born), size, line)
        for born, age, size, line in lives
    ]
    lanes, objects = index_of(within)
    died = objects["died_ns"].where(objects["died_ns"] >= 0, NEVER)
    for part in (View.whole(END), View.whole(END).select(a, b)):
        view = replace(part, thread=thread)
        made = (objects["born_ns"] >= view.start_ns) & (objects["born_ns"] <= view.stop_ns)
        made &= (objects["born_thread"] == thread) | (thread is None)
        size, site = objects["size_bytes"], objects["born_site"]
        expected = []
        for line in sorted(set(site[made])):
            mine = made & (site == line)
            alive = int(size[mine & (died > view.stop_ns)].sum())
            expected.append([line, alive, size[mine].sum(), mine.sum(), size[mine].sum() - alive])
        sites, sums = lanes.sums(view)

        assert [[at, *row] for at, row in zip(sites, sums.tolist(), strict=True)] == expected


def test_the_line_with_most_bytes_comes_first(loaded: Loaded) -> None:
    lanes = loaded.lanes.lines(View.whole(loaded.end_ns), 20)

    assert str(lanes[0].frame) == "/home/ada/train.py:12"
    assert lanes[0].live_count[-1] == 360
    assert [lane.highest_bytes for lane in lanes] == sorted(
        (lane.highest_bytes for lane in lanes), reverse=True
    )


def test_an_object_is_found_by_its_number(loaded: Loaded) -> None:
    assert loaded.lanes.row_of(1) == 1
    assert loaded.lanes.row_of(10**9) is None


@pytest.mark.parametrize("width", [1, 3])
def test_an_empty_recording_of_objects_has_no_lanes(width: int) -> None:
    lanes, _ = index_of([])

    assert lanes.lines(View.whole(END), width) == []
    assert len(lanes.objects(View.whole(END), None)) == 0
    assert lanes.total(View.whole(END), width).tolist() == [0.0] * width
