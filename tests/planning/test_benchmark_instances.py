"""Instances for the benchmark of the planner: what is known of them, and the check of plans."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


def load() -> ModuleType:
    """The module, which is not installed."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "instances.py"
    spec = importlib.util.spec_from_file_location("planning_instances", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


instances = load()
CAPACITY, generated, is_valid = instances.CAPACITY, instances.generated, instances.is_valid


def test_what_is_cut_out_of_a_rectangle_never_needs_more_than_it() -> None:
    for seed, (count, empty) in enumerate(instances.KINDS):
        made = generated(seed, count, empty)

        assert len(made.rows) == count and made.capacity == CAPACITY
        assert 0.8 * CAPACITY < made.lower_bound <= CAPACITY
        assert (made.rows[:, 0] <= made.rows[:, 1]).all() and (made.rows[:, 2] > 0).all()


def test_nothing_left_out_fills_the_rectangle_at_every_moment() -> None:
    made = generated(5, 60, 0.0)
    first, last, size = made.rows.T

    assert {int(size[(first <= at) & (last >= at)].sum()) for at in first} == {CAPACITY}


def test_the_same_seed_makes_the_same_buffers() -> None:
    one, again, other = (generated(seed, 50, 0.1).rows for seed in (3, 3, 4))

    assert (one == again).all() and one.shape == other.shape and (one != other).any()


@pytest.mark.parametrize("way", instances.TWINS)
def test_twins_are_somewhat_smaller_with_the_same_lives(way: str) -> None:
    made = generated(1, 200, 0.1)
    small = instances.twin(made, way)
    less = made.rows[:, 2] - small.rows[:, 2]

    assert (made.rows[:, :2] == small.rows[:, :2]).all()
    assert less.min() >= 0 and 0 < less.max() <= 1536 and small.capacity == CAPACITY


def test_a_file_gives_what_was_written(tmp_path: Path) -> None:
    made = generated(1, 20, 0.1, "X")
    path = tmp_path / f"X.{CAPACITY}.csv"
    instances.to_csv(made, path)
    read = instances.from_csv(path)

    assert (read.name, read.capacity) == ("X", CAPACITY)
    assert (read.rows == made.rows).all()


def test_files_of_folders_are_found_with_and_without_a_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances.to_csv(generated(1, 20, 0.1), tmp_path / "B.1048576.csv")
    instances.to_csv(generated(2, 30, 0.1), tmp_path / "graph.csv")
    monkeypatch.setenv(instances.INPUTS, str(tmp_path))

    assert [each.name for each in instances.hard()] == ["B"]
    assert [(each.name, each.capacity) for each in instances.graphs()] == [("graph", None)]
    monkeypatch.delenv(instances.INPUTS)
    assert len(instances.hard()) == 11 and instances.graphs() == []


@pytest.mark.parametrize(
    ("offsets", "valid"),
    [([0, 8, 0], True), ([0, 7, 0], False), ([8, 0, 0], False), ([0, 8, 12], True)],
)
def test_the_check_of_a_plan_sees_overlaps(offsets: list[int], valid: bool) -> None:
    rows = np.array([(0, 5, 8), (3, 9, 4), (6, 7, 8)], np.int64)

    assert is_valid(rows, offsets) is valid


def test_the_lower_bound_is_what_lives_at_once() -> None:
    rows = np.array([(0, 1, 5), (1, 2, 7), (2, 3, 6)], np.int64)

    assert instances.Instance("", rows, None).lower_bound == 13
