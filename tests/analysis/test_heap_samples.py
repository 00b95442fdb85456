"""Estimates from sampled blocks: their intervals hold the truth as often as they say."""

import numpy as np
import pandas as pd
import pytest
from support.traces import Program

from tlmem.analysis.heap_samples import blocks_of, estimate
from tlmem.analysis.model import Estimate
from tlmem.analysis.places import Places
from tlmem.recording.tables.schema import SCHEMA

RATE = 256_000.0
MIXED = np.concatenate([np.full(5000, 500.0), np.full(30, 3e5), np.full(3, 4e6)])


PATTERNS = {
    "few-samples": np.full(2_000, 1_000.0),
    "small": np.full(20_000, 1_000.0),
    "half-the-rate": np.full(50, 1e5),
    "as-large-as-the-rate": np.full(100, 268_000.0),
    "mixed": MIXED,
    "two-sizes": np.concatenate([np.full(3_000, 200.0), np.full(40, 5e4)]),
    "ever-larger": 1_000 * 1.3 ** np.arange(28),
    "any-size": np.exp(np.random.default_rng(3).normal(9, 2, 2_000)),
}


def hits_of(found: list[Estimate], truth: float, times: float = 1.0) -> int:
    """How many intervals hold the truth, each made so many times as wide."""
    return sum(
        each.bytes - times * (each.bytes - each.low)
        <= truth
        <= each.bytes + times * (each.high - each.bytes)
        for each in found
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_an_interval_holds_the_truth_in_93_to_97_of_100_runs(name: str) -> None:
    chance, size = np.random.default_rng(7), PATTERNS[name]
    share = -np.expm1(-size / RATE)
    found = []
    for _ in range(1_000):
        seen = chance.random(len(size)) < share
        found.append(estimate(size[seen], 1 / share[seen]))

    assert 930 <= hits_of(found, size.sum()) <= 970
    assert hits_of(found, size.sum(), 0.75) < 930  # narrower and wider ones do not
    assert hits_of(found, size.sum(), 1.3) > 970
    assert np.mean([each.bytes for each in found]) == pytest.approx(size.sum(), rel=0.03)


def test_where_every_block_is_recorded_the_sum_is_exact() -> None:
    size = np.array([10.0, 200.0, 3_000.0])
    found = estimate(size, np.ones(3))

    assert (found.bytes, found.low, found.high, found.count) == (3_210, 3_210, 3_210, 3)


def test_a_site_that_the_recording_does_not_have_is_a_place_without_a_stack() -> None:
    program = Program()
    known = program.site_of(3)
    program.wait(10**9)
    recording = program.recording()
    usual = dict.fromkeys((column.name for column in SCHEMA["heap"].columns), 0)
    usual |= {"is_python": False, "died_ns": -1, "weight": 2.0}
    recording.heap = pd.DataFrame(
        [
            usual | {"born_site": 2**32 - 1, "size_bytes": 500},
            usual | {"born_site": known, "size_bytes": -(2**63)},
            usual | {"born_site": known, "size_bytes": 200},
        ]
    )
    places = Places.of(recording)
    blocks = blocks_of(recording, places, "native", recording.heap["born_ns"].max())
    (first, rows), (second, others) = blocks.by_line()

    assert (places.frames[first].file, places.frames[second].line) == ("", 3)
    assert (blocks.about(rows).bytes, blocks.about(others).bytes) == (1_000, 400)
    assert (blocks.main_site(rows), blocks.main_site(others)) == (0, known)
