"""Equal keys come together, in their own order, whatever their hashes are."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlmem.recording.format import grouping
from tlmem.recording.format.grouping import group_order, group_starts

numbers = st.lists(
    st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 5), st.integers(0, 2)), min_size=1
)


def assert_grouped(*columns: np.ndarray) -> None:
    order, same = group_order(*columns)
    assert sorted(order.tolist()) == list(range(len(columns[0])))
    keys = list(zip(*(column[order].tolist() for column in columns), strict=True))
    starts = group_starts(same).tolist()
    groups = [order[a:b].tolist() for a, b in zip(starts, [*starts[1:], len(order)], strict=True)]
    assert all(members == sorted(members) for members in groups)
    assert len({keys[start] for start in starts}) == len(starts), "no key has two groups"
    assert all(
        len({keys[i] for i in range(a, a + len(g))}) == 1
        for a, g in zip(starts, groups, strict=True)
    )


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([row[0] for row in rows], np.uint64),
        np.array([row[1] for row in rows], np.uint8),
    )


@given(numbers, st.sampled_from([1, 3, grouping._PIECE]))
def test_equal_keys_stand_together_in_order(rows: list, piece: int) -> None:
    with patch.object(grouping, "_PIECE", piece):
        assert_grouped(*columns(rows))


@given(
    st.lists(st.integers(0, 40), min_size=2),
    st.integers(0, 2**64 - 1),
    st.integers(0, 63),
    st.sampled_from([1, 3, grouping._PIECE]),
)
def test_keys_that_differ_in_few_bits_need_no_hash(
    keys: list, base: int, shift: int, piece: int
) -> None:
    column = np.array([(base & ~(63 << shift) | key << shift) % 2**64 for key in keys], np.uint64)
    with (
        patch.object(grouping, "_PIECE", piece),
        patch.object(grouping, "_hash", side_effect=AssertionError),
    ):
        assert_grouped(column)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), min_size=1))
def test_one_column_of_any_numbers(keys: list) -> None:
    assert_grouped(np.array(keys, np.uint64))


@given(numbers, st.sampled_from([0, 32, 60]), st.sampled_from([1, 3, grouping._PIECE]))
def test_keys_of_one_hash_are_set_apart(rows: list, shift: int, piece: int) -> None:
    """All of one hash (shift 0), or of a few hashes."""
    with (
        patch.object(grouping, "_PIECE", piece),
        patch.object(grouping, "MULTIPLIER", np.uint64(1 << shift if shift else 0)),
    ):
        assert_grouped(*columns(rows))


@pytest.mark.parametrize("shift", [0, 4, 28, 40])
def test_handles_and_addresses_rarely_share_a_hash(shift: int) -> None:
    keys = np.arange(200_000, dtype=np.uint64).repeat(2) << np.uint64(shift)
    with patch.object(grouping, "_set_apart", wraps=grouping._set_apart) as repairs:
        order, same = group_order(keys, np.zeros(len(keys), np.uint8))

    assert not repairs.called or repairs.call_args.args[2].sum() < 100
    assert same.sum() == 200_000
    assert (np.diff(keys[order])[same] == 0).all()
