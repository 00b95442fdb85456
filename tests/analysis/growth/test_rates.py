"""Slopes with intervals: they hold the true slope as often as they say, and change points."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2, theilslopes

from tlmem.analysis.growth.change_points import (
    SHORTEST,
    change_points,
    cheapest_cuts,
    last_regime,
    left_over,
    risen_and_fallen,
)
from tlmem.analysis.growth.rates import autocorrelation, doubt_about, rate_of, theil_sen_interval
from tlmem.analysis.growth.robust import low_in_bins
from tlmem.analysis.heap_samples import gamma_end
from tlmem.analysis.model import CONFIDENCE, Rate, interval
from tlmem.units import format_bytes


def noise(chance: np.random.Generator, count: int, memory: float) -> np.ndarray:
    """Noise of which each value keeps a share of the one before."""
    fresh, values = chance.normal(size=count), np.zeros(count)
    for at in range(1, count):
        values[at] = memory * values[at - 1] + fresh[at]
    return values


@pytest.mark.parametrize("memory", [0.0, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("count", [60, 120, 400])
def test_an_interval_holds_the_true_slope_as_often_as_it_says(count: int, memory: float) -> None:
    chance, x = np.random.default_rng(count), np.linspace(0, 1, count)
    rates = [rate_of(x, 7 * x + noise(chance, count, memory)) for _ in range(200)]
    hits = sum(rate is not None and rate.low <= 7 <= rate.high for rate in rates)

    assert hits >= (CONFIDENCE - 0.1) * 200


def test_a_rate_is_in_doubt_by_its_range_where_times_repeat() -> None:
    """Samples of a damaged recording may all lie at two moments."""
    x, y = np.repeat([0.0, 1.0], 30), np.repeat([0.0, 5.0], 30)

    with np.errstate(all="raise"):
        assert doubt_about(x, y, 0.0) >= 5.0
        middles, lows = low_in_bins(np.full(10, 0.2), np.arange(10.0), 6, 0.3)

    assert len(middles) == len(lows) == 1


def test_of_independent_noise_it_is_the_interval_of_sen() -> None:
    chance, x = np.random.default_rng(1), np.linspace(0, 1, 100)
    y = 3 * x + chance.normal(size=100)
    slope, _, low, high = theilslopes(y, x, CONFIDENCE)
    found = rate_of(x, y)

    assert found is not None
    assert found.value == pytest.approx(slope)
    assert found.high - found.low == pytest.approx(high - low, rel=0.4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(40))
def test_slope_and_interval_are_those_of_scipy(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count = int(chance.integers(5, 121))
    x = np.sort(chance.integers(0, count if seed % 2 else 1000, count).astype(float))
    y = chance.integers(0, 4, count).astype(float) if seed % 3 else chance.normal(size=count)
    expected = theilslopes(y, x, CONFIDENCE)

    found = theil_sen_interval(x, y)
    assert found == pytest.approx((expected[0], *expected[2:]), rel=0, abs=0, nan_ok=True)
    degrees = seed + 0.5
    assert gamma_end(0.975, degrees, 2 * degrees) == pytest.approx(chi2.ppf(0.975, degrees))


@pytest.mark.parametrize("seed", range(8))
def test_no_other_cuts_are_cheaper(seed: int) -> None:
    """Against a search through all cuts, without leaving any out."""
    chance = np.random.default_rng(seed)
    y = np.cumsum(chance.normal(size=26)) + 4.0 * (np.arange(26) > 3 * seed)
    line, penalty = np.column_stack((np.arange(26.0), np.ones(26))), 2.0

    def cost(cuts: list[int], end: int) -> float:
        pieces = zip(cuts, [*cuts[1:], end], strict=True)
        return sum(left_over(line[a:b], y[a:b]) + penalty for a, b in pieces)

    best: dict[int, list[int]] = {0: []}
    for end in range(SHORTEST, 27):
        ways = [[*best[begin], begin] for begin in best if end - begin >= SHORTEST]
        best[end] = min(ways, key=partial(cost, end=end))

    found = cheapest_cuts(line, y, penalty)
    assert cost(found, 26) == pytest.approx(cost(best[26], 26))


def test_a_straight_line_leaves_no_doubt() -> None:
    found = rate_of(np.arange(50), 100.0 * np.arange(50))

    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((100, 100, 100))
    assert interval(found, format_bytes) == "95% CI 100\N{EN DASH}100"


def test_a_walk_without_direction_has_no_slope() -> None:
    chance = np.random.default_rng(4)
    rates = [rate_of(np.arange(200), np.cumsum(chance.normal(size=200))) for _ in range(100)]

    assert sum(rate is not None and rate.low <= 0 <= rate.high for rate in rates) >= 85


def test_too_few_points_have_no_interval() -> None:
    assert rate_of(np.arange(4), np.arange(4)) is None
    assert rate_of(np.zeros(20), np.arange(20)) is None


def test_words_say_the_unit_once_or_twice() -> None:
    assert Rate(4.1e6, 4.0e6, 4.2e6).per_second() == "4.10 MB/s (95% CI 4.00\N{EN DASH}4.20)"
    assert Rate(4.1e6, 0.0, 9.2e6).per_second() == "4.10 MB/s on average"
    assert interval(Rate(900, 800, 1200), format_bytes) == "95% CI 800 B\N{EN DASH}1.20 kB"


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_autocorrelation_is_found(memory: float) -> None:
    found = autocorrelation(noise(np.random.default_rng(3), 2000, memory))

    assert found == pytest.approx(memory, abs=0.07)


def test_the_quick_doubt_is_about_half_of_the_interval() -> None:
    chance, x = np.random.default_rng(8), np.linspace(0, 10, 100)
    y = x + noise(chance, 100, 0.5)
    rate = rate_of(x, y)

    assert rate is not None
    assert doubt_about(x, y, rate.value) == pytest.approx((rate.high - rate.low) / 2, rel=0.4)


@pytest.mark.parametrize("at", [0.4, 0.5, 0.65])
def test_a_rise_that_begins_late_is_a_regime(at: float) -> None:
    x = np.linspace(0, 1, 200)
    y = 1e6 * np.maximum(0, x - at) + 1e3 * noise(np.random.default_rng(2), 200, 0.3)

    assert last_regime(x, y, 5e4) == pytest.approx(at, abs=0.06)


def test_a_step_is_a_change_point_and_no_rise() -> None:
    x = np.linspace(0, 1, 60)
    y = 1e6 * (x > 0.5) + 1e3 * noise(np.random.default_rng(2), 60, 0.0)

    assert change_points(x, y, 1e4) == [0, 30]
    assert last_regime(x, y, 5e4) is None


@pytest.mark.parametrize("teeth", [2, 3, 5])
def test_the_last_tooth_of_a_saw_is_no_regime_to_judge(teeth: int) -> None:
    x = np.linspace(0, 1, 200)

    assert last_regime(x, 1e6 * ((x * teeth) % 1), 5e4) is None


def test_a_rise_that_slows_down_is_no_regime_to_judge() -> None:
    x = np.linspace(0, 1, 200)
    y = np.where(x < 0.5, 4e6 * x, 2e6 + 1e6 * (x - 0.5))

    assert last_regime(x, y, 5e4) is None


def test_what_rises_and_falls_is_the_highest_hump() -> None:
    assert risen_and_fallen(np.array([0.0, 5.0, 1.0, 9.0])) == 4.0
    assert risen_and_fallen(np.array([0.0, 5.0])) == 0.0
    assert risen_and_fallen(np.array([3.0, 2.0, 1.0])) == 0.0


REPEATED = {
    "all values": (np.arange(20.0), np.ones(20)),
    "values, and half the positions": (np.r_[np.zeros(10), np.arange(10.0)], np.ones(20)),
    "most of both": (np.r_[np.zeros(10), np.arange(10.0)], np.r_[np.ones(18), 2, 3]),
    "both in blocks": (np.repeat(np.arange(5.0), 10), np.repeat([0, 0, 0, 0, 1.0], 10)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", REPEATED)
def test_what_repeats_has_an_interval_and_no_warning(name: str) -> None:
    x, y = REPEATED[name]
    found = rate_of(x, y)

    assert found is not None
    assert np.isfinite((found.value, found.low, found.high)).all()
    assert found.low <= found.value <= found.high
