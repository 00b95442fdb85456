"""Zooming, panning and selecting, which never leave the recording."""

from hypothesis import given
from hypothesis import strategies as st
from tlmem.dashboards.model.view import SHORTEST_NS, View

SECOND = 1_000_000_000
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("zoom"), st.floats(0.01, 100)),
        st.tuples(st.just("pan"), st.floats(-5, 5)),
        st.tuples(st.just("move_cursor"), st.floats(-2e9, 2e10)),
        st.tuples(st.just("show"), st.integers(-(10**9), 2 * 10**10)),
    ),
    max_size=30,
)


@given(st.integers(0, 10**10), MOVES)
def test_no_move_leaves_the_recording_or_loses_the_cursor(end_ns: int, moves: list) -> None:
    view = View.whole(end_ns)
    for name, argument in moves:
        view = getattr(view, name)(argument)

        assert 0 <= view.start_ns < view.stop_ns <= view.end_ns
        assert view.length_ns >= min(SHORTEST_NS, view.end_ns)
        assert view.start_ns <= view.cursor_ns <= view.stop_ns


def test_zooming_keeps_the_cursor_where_it_is_on_screen() -> None:
    view = View.whole(10 * SECOND).move_cursor(2 * SECOND).zoom(0.5)

    assert (view.start_ns, view.stop_ns) == (SECOND, 6 * SECOND)
    assert view.zoom(2.0).is_whole


@given(st.integers(100_000, 10**12), st.floats(0, 1))
def test_zooming_out_again_ends_with_everything(end_ns: int, share: float) -> None:
    view = View.whole(end_ns).move_cursor(share * end_ns)

    assert view.zoom(0.5).pan(0.25).zoom(2.0).is_whole


def test_panning_stops_at_the_ends() -> None:
    view = View.whole(10 * SECOND).select(2 * SECOND, 4 * SECOND)

    assert view.pan(0.5).start_ns == 3 * SECOND
    assert view.pan(-9).start_ns == 0
    assert view.pan(9).stop_ns == 10 * SECOND
    assert view.pan(9).length_ns == view.length_ns


def test_a_selection_may_be_made_from_its_end() -> None:
    view = View.whole(10 * SECOND).select(5 * SECOND, 3 * SECOND)

    assert (view.start_ns, view.stop_ns) == (3 * SECOND, 5 * SECOND)


def test_a_cursor_beyond_the_edge_takes_the_stretch_along() -> None:
    view = View.whole(10 * SECOND).select(2 * SECOND, 4 * SECOND).move_cursor(5 * SECOND)

    assert (view.start_ns, view.stop_ns, view.cursor_ns) == (3 * SECOND, 5 * SECOND, 5 * SECOND)


def test_a_view_of_everything_grows_with_the_recording_and_another_does_not() -> None:
    whole, part = View.whole(SECOND), View.whole(SECOND).select(0, SECOND // 2)

    assert whole.grown(2 * SECOND).stop_ns == 2 * SECOND
    assert (part.grown(2 * SECOND).stop_ns, part.grown(2 * SECOND).end_ns) == (
        SECOND // 2,
        2 * SECOND,
    )
