"""Orders of many numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tlmem.dashboards.model.ordering import falling, rising

SMALL = st.lists(st.integers(-5, 5), max_size=50)
ANY = st.lists(st.integers(-(2**62), 2**62), max_size=50)


@given(SMALL | ANY)
def test_orders_are_stable_and_leave_the_values_alone(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    positions = range(len(numbers))

    assert rising(values).tolist() == sorted(positions, key=lambda at: numbers[at])
    assert falling(values).tolist() == sorted(positions, key=lambda at: -numbers[at])
    assert values.tolist() == numbers
