"""Where resident memory is over time."""

import numpy as np
import pandas as pd
import pytest
from tlmem.dashboards.model.layers import PARTS, Layers, combined, layers_of
from tlmem.dashboards.model.loading import Loaded

from tlmem.analysis.memory.attribution import attribute
from tlmem.analysis.memory.devices import with_devices

METRICS = ("anon", "file", "tracked", "malloc_used", "malloc_free", "python_arena", "recorder")
ARRAYS, POOLS, PYTHON, FREED, RECORDER, OTHER, RESIDUAL = range(len(PARTS))


def simple(*values: float, times: tuple[int, ...]) -> Layers:
    rows = np.zeros((len(PARTS), len(values)))
    rows[ARRAYS] = values
    return Layers(PARTS, np.array(times, np.int64), rows)


def test_layers_are_the_attribution_at_every_sample(loaded: Loaded) -> None:
    samples = with_devices(loaded.recording)
    layers = layers_of(samples)
    for at in (0, 20, len(layers.time_ns) - 1):
        parts = attribute(samples, int(layers.time_ns[at]))
        column = layers.values[:, at]

        assert column[ARRAYS] == parts.tracked_bytes - parts.untouched_bytes
        assert column[POOLS] == parts.pool_bytes
        assert column[PYTHON] == parts.python_bytes
        assert column[FREED] == parts.allocator_free_bytes
        assert column[RECORDER] == parts.recorder_bytes + parts.tape_bytes
        assert column[OTHER] == parts.other_bytes
        assert column[RESIDUAL] == max(parts.residual_bytes, 0)
        assert column.sum() == pytest.approx(parts.resident_bytes)


def test_layers_show_what_the_kernel_says_where_it_was_asked() -> None:
    """In a picture, of what is kept free only what is resident counts, not all that there is."""
    row = dict.fromkeys(METRICS, 0.0)
    row |= {"anon": 50e6, "file": 10e6, "tracked": 20e6, "malloc_used": 20e6, "malloc_free": 30e6}
    samples = pd.DataFrame([{"time_ns": 10} | row]).astype({"time_ns": np.int64})
    with_mappings = samples.assign(mappings_ns=10.0, listed=50e6, allocator_kept=4e6)
    freed = [layers_of(table).values[FREED, 0] for table in (samples, with_mappings)]

    assert freed == [30e6, 4e6]
    assert layers_of(with_mappings).values[:, 0].sum() == 60e6


def test_without_events_there_is_anonymous_and_file_backed_memory(loaded: Loaded) -> None:
    samples = loaded.recording.samples.assign(tracked=np.nan)
    layers = layers_of(samples)

    assert [layer.name for layer in layers.layers] == ["anonymous", "files"]
    assert layers.values[0].tolist() == samples["anon"].tolist()


def test_a_column_shows_the_highest_sample_in_it() -> None:
    layers = simple(5, 9, 1, 2, times=(10, 20, 30, 90))
    columns = layers.columns(0, 100, 4)[ARRAYS]

    assert columns.tolist() == [9, 1, 1, 2]


def test_a_column_before_the_first_sample_is_empty_and_one_after_carries_on() -> None:
    columns = simple(5, times=(50,)).columns(0, 100, 4)[ARRAYS]

    assert np.isnan(columns[:2]).all()
    assert columns[2:].tolist() == [5, 5]


def test_nothing_is_drawn_without_samples_or_columns() -> None:
    nothing = layers_of(pd.DataFrame({"time_ns": np.array([], np.int64), "anon": []}))

    assert not nothing.known
    assert np.isnan(nothing.columns(0, 100, 3)).all()
    assert simple(5, times=(1,)).columns(0, 100, 0).shape == (len(PARTS), 0)


def test_processes_add_up_while_they_live() -> None:
    first, second = simple(10, 20, times=(0, 100)), simple(1, 2, times=(0, 30))
    both = combined([(0, first, False), (50, second, True)])

    assert both.time_ns.tolist() == [0, 50, 80, 100]
    assert both.values[ARRAYS].tolist() == [10, 11, 12, 20]


def test_a_process_that_runs_on_counts_beyond_its_last_sample() -> None:
    both = combined([(0, simple(10, times=(0,)), False), (0, simple(1, 2, times=(0, 30)), False)])

    assert both.values[ARRAYS].tolist() == [11, 12]
