"""``tlmem.report.site_sums``: what was allocated under each call stack."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from tlmem.report.site_sums import CUT_STACK, NO_STACK, StackTree, stack_tree


def recording_of(fold=None) -> SimpleNamespace:
    """main calls work at two places of one line; something has no stack, something a cut one."""
    sites = pd.DataFrame(
        [
            (0, 0, "", 0, "", 0, 0),
            (1, 0, "", 0, "", 0, 0),
            (2, 0, "main.py", 9, "<module>", 1, 2),
            (3, 2, "main.py", 5, "work", 2, 3),
            (4, 2, "main.py", 5, "work", 2, 4),
            (5, 4, "lib.py", 7, "ones", 3, 4),
            (6, 1, "deep.py", 1, "deep", 1, 6),
        ],
        columns=["site", "parent", "file", "line", "function", "depth", "blamed"],
    ).set_index("site")
    objects = pd.DataFrame(
        {
            "size_bytes": [10, 20, 40, 80, 160],
            "born_ns": [1, 2, 3, 4, 9],
            "died_ns": [-1, 5, -1, -1, -1],
            "born_site": [3, 4, 5, 0, 6],
            "folded": [False, False, True, False, False],
        }
    )
    totals = pd.DataFrame(
        {
            "alloc_bytes": [80, 10, 20, 400, 160],
            "alloc_count": [1, 1, 1, 10, 1],
        },
        index=pd.Index([0, 3, 4, 5, 6], name="site"),
    )
    return SimpleNamespace(sites=sites, objects=objects, site_totals=totals, fold=fold)


def test_equal_frames_of_one_caller_are_one_node() -> None:
    tree = stack_tree(recording_of(), moment_ns=6)
    names = [frame.function for frame in tree.frames]

    assert sorted(names) == sorted(
        [NO_STACK.function, CUT_STACK.function, "<module>", "work", "ones", "deep"]
    )
    assert np.all(tree.parent < np.arange(len(tree)))


def test_paths_go_from_the_outermost_frame() -> None:
    tree = stack_tree(recording_of(), moment_ns=6)
    functions = [frame.function for frame in tree.frames]

    def path(function: str) -> list[str]:
        return [functions[node] for node in tree.path(functions.index(function))]

    assert path("ones") == ["<module>", "work", "ones"]
    assert path("deep") == [CUT_STACK.function, "deep"]
    assert path(NO_STACK.function) == [NO_STACK.function]


def test_bytes_belong_to_the_frame_that_allocated_them() -> None:
    tree = stack_tree(recording_of(), moment_ns=4)
    functions = [frame.function for frame in tree.frames]
    own = dict(zip(functions, tree.values.T.tolist(), strict=True))
    whole = dict(zip(functions, tree.with_callees().T.tolist(), strict=True))

    assert own["work"] == [30, 2, 30, 2]
    assert own["ones"] == [40, 1, 400, 10]
    assert whole["<module>"] == [70, 3, 430, 12]
    assert own["deep"] == [0, 0, 160, 1]


def test_what_had_died_by_the_moment_is_not_alive() -> None:
    tree = stack_tree(recording_of(), moment_ns=9)

    assert int(tree.values[0].sum()) == 10 + 40 + 80 + 160


def test_thinned_survivors_of_folded_events_count_as_many() -> None:
    tree = stack_tree(recording_of({"live_stride": 4}), moment_ns=9)

    assert int(tree.values[0].sum()) == 10 + 4 * 40 + 80 + 160
    assert int(tree.values[1].sum()) == 7


def test_users_own_frames_are_known() -> None:
    tree = stack_tree(recording_of(), moment_ns=9)
    own = {frame.function for frame, is_own in zip(tree.frames, tree.own, strict=True) if is_own}

    assert own == {"<module>", "work", "deep"}


def test_small_frames_are_counted_for_their_callers() -> None:
    tree = stack_tree(recording_of(), moment_ns=4)
    small = tree.without_small(0.3)

    assert len(small) < len(tree)
    assert np.array_equal(small.values.sum(axis=1), tree.values.sum(axis=1))
    assert np.all(small.parent < np.arange(len(small)))


def test_nothing_makes_an_empty_tree() -> None:
    none = np.zeros(0, np.int64)
    tree = StackTree(none, (), np.zeros(0, bool), np.zeros((4, 0), np.int64), none)

    assert len(tree.without_small(0.1)) == 0
