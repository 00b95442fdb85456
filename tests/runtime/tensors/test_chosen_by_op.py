"""take and gather without a gradient are computed by the core, too, when the index is a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime.trace import Tracer

import tlmem
from tlmem.runtime.dtypes import NAMES

INDEX = np.array([[2, -1, 0], [1, 1, -3]])


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize(
    "lay", [lambda x: x, lambda x: x.T, lambda x: x[::2]], ids=["whole", "turned", "every second"]
)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_what_is_chosen_is_what_numpy_chooses(dtype: str, lay: Any, axis: int) -> None:
    x = lay(tlmem.tensor(np.arange(36).reshape(6, 6), dtype))
    index = tlmem.tensor(INDEX, "int64")
    values = x.numpy()
    found = tlmem.take(x, index, axis)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.numpy(), np.take(values, INDEX, axis))
    found = tlmem.gather(x, axis, index)
    low = values[: len(INDEX) if axis != 0 else None, : 3 if axis == 0 else None]
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(low, INDEX, axis))


def test_nothing_is_made_beside_the_result(trace: Tracer) -> None:
    x, index = tlmem.randn((6, 6), seed=1), tlmem.tensor(INDEX, "int64")
    with trace() as t:
        kept = [tlmem.gather(x, 0, index), tlmem.take(x, index)]
    assert t.count("ALLOC") == 2
    del kept


def test_more_axes_than_the_core_has_and_a_wrong_index() -> None:
    x = tlmem.ones((1,) * 8)
    assert tlmem.take(x, tlmem.zeros((1, 1), "int64")).shape == (1,) * 9
    with pytest.raises(IndexError, match="index 9 is out of range for an axis of length 6"):
        tlmem.take(tlmem.ones((6, 2)), tlmem.tensor([0, 9], "int64"))
