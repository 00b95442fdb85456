"""The arrays behind pictures: what is drawn, before it is drawn."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support.traces import Program, Ring

from tlmem.analysis.lifetimes import alive_at, alive_by_group
from tlmem.analysis.memory import attribution
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.model import Finding
from tlmem.report.plots import growth, memory, objects, pools, sites
from tlmem.report.plots.plot_data import (
    NEVER,
    NothingToDraw,
    PlotView,
    label_of,
    mean_alive,
    peak_alive,
)


def view_of(program: Program, since: float | None = None, until: float | None = None) -> PlotView:
    return PlotView.of(program.recording(), None, since, until)


def leak(count: int = 2000) -> Program:
    """A line that keeps all it makes, one that makes temporaries, and a bounded cache."""
    program = Program(step_ns=100_000)
    ring = Ring(program, 30, 20)
    for _ in range(count):
        program.temporary(10)
        program.alloc(20)
        ring.add()
    return program


# ---- alive_at ----


def test_bytes_are_alive_from_birth_until_just_before_death() -> None:
    times = np.array([0, 10, 20, 30])
    born, died = np.array([10, 11, 5]), np.array([20, NEVER, 9])
    held = alive_at(times, born, died, np.array([8, 16, 4]))

    assert held.tolist() == [0, 8, 16, 16]


def test_alive_at_agrees_with_counting_one_by_one() -> None:
    rng = np.random.default_rng(7)
    born = rng.integers(0, 1000, 500)
    died = np.where(rng.random(500) < 0.3, NEVER, born + rng.integers(1, 300, 500))
    size, group = rng.integers(1, 100, 500), rng.integers(0, 5, 500).astype(np.int32)
    times = np.arange(0, 1200, 37)

    held = alive_by_group(times, born, died, size, group, 5)

    expected = [
        [size[(group == g) & (born <= t) & (died > t)].sum() for t in times] for g in range(5)
    ]
    assert held.tolist() == expected


# ---- the view ----


def test_a_range_beyond_the_recording_is_refused_with_its_length() -> None:
    with pytest.raises(NothingToDraw, match="lasts .* --since or --until"):
        view_of(leak(50), since=1e6)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(NothingToDraw):
        view_of(leak(50), since=0.001, until=0.001)


def test_lines_are_named_by_base_name_line_and_function() -> None:
    frame = SimpleNamespace(file="/a/b/train.py", line=7, function="Model.forward")

    assert label_of(frame) == "train.py:7 forward"
    assert label_of(SimpleNamespace(file="", line=0, function="")) == "no Python stack"


# ---- memory ----


def test_areas_add_up_to_resident_memory() -> None:
    program = leak()
    view = view_of(program)
    data = memory.memory_over_time(with_devices(view.recording), view)

    # Only the first of these samples has no resident memory to be divided.
    assert np.allclose(sum(data.bands.values())[1:], data.resident[1:])
    assert data.time_ns[0] == 0
    assert np.all(np.diff(data.time_ns) > 0)
    assert data.bands["tracked arrays and objects"][-1] == pytest.approx(program.live_bytes)


def test_areas_are_those_of_the_attribution() -> None:
    view = view_of(leak())
    samples = with_devices(view.recording)
    data = memory.memory_over_time(samples, view)
    parts = attribution.attribute(samples, int(data.time_ns[5]))

    assert data.bands["Python's heap"][5] == parts.python_bytes
    assert data.bands["libraries, files, stacks"][5] == parts.other_bytes - parts.native_bytes
    assert data.resident[5] == parts.resident_bytes


def test_the_highest_of_samples_that_are_close_together_is_shown() -> None:
    samples = pd.DataFrame(
        {"time_ns": np.arange(1000), "anon": np.zeros(1000), "file": np.zeros(1000)}
    )
    samples.loc[[3, 501], "anon"] = [7.0, 9.0]
    chosen = memory.highest_samples(samples, 0, 999, 10)

    assert len(chosen) == 10
    assert chosen["anon"].nlargest(2).tolist() == [9.0, 7.0]


def test_memory_without_samples_is_the_tracked_one() -> None:
    view = view_of(leak(100))
    samples = view.recording.samples.drop(columns=["anon", "file"]).assign(anon=np.nan, file=np.nan)
    data = memory.memory_over_time(samples, view)

    assert data.bands == {}
    assert data.tracked[-1] == (100 + 20) * 8_000


def test_memory_of_nothing_is_refused() -> None:
    view = view_of(Program(now_ns=10))
    samples = view.recording.samples.iloc[:0]

    with pytest.raises(NothingToDraw):
        memory.memory_over_time(samples, view)


# ---- sites ----


def test_the_mean_over_a_time_counts_each_object_for_as_long_as_it_lived() -> None:
    edges = np.array([0, 10, 20, 40])
    born, died = np.array([5, 10, 0]), np.array([10, NEVER, 40])
    held = mean_alive(edges, born, died, np.array([8, 4, 2]), np.array([0, 0, 1], np.int32), 2)

    assert held.tolist() == [[4, 4, 4], [2, 2, 2]]


def test_the_mean_agrees_with_counting_one_by_one() -> None:
    rng = np.random.default_rng(11)
    born = rng.integers(0, 1000, 300)
    died = np.where(rng.random(300) < 0.3, NEVER, born + rng.integers(0, 200, 300))
    size, group = rng.integers(1, 100, 300), rng.integers(0, 4, 300).astype(np.int32)
    edges = np.array([100, 150, 400, 401, 900])

    held = mean_alive(edges, born, died, size, group, 4)

    each = np.arange(1000)
    curve = np.array(
        [[size[(group == g) & (born <= t) & (died > t)].sum() for t in each] for g in range(4)]
    )
    expected = [curve[:, a:b].mean(axis=1) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    assert np.allclose(held, np.array(expected).T)


def test_the_peak_is_seen_wherever_it_is() -> None:
    born, died = np.array([1, 3, 30]), np.array([4, 5, NEVER])
    peaks = peak_alive(np.array([0, 10, 20, 40]), born, died, np.array([8, 16, 2]))

    assert peaks.tolist() == [24, 0, 2]


def test_peaks_agree_with_looking_at_every_moment() -> None:
    rng = np.random.default_rng(13)
    born = np.sort(rng.integers(0, 500, 200))
    died = np.where(rng.random(200) < 0.3, NEVER, born + rng.integers(0, 100, 200))
    size = rng.integers(1, 100, 200)
    edges = np.array([50, 60, 200, 450])
    whole = np.array([size[(born <= t) & (died > t)].sum() for t in range(500)])

    assert peak_alive(edges, born, died, size).tolist() == [
        whole[a : b + 1].max() for a, b in zip(edges[:-1], edges[1:], strict=True)
    ]


def test_lines_come_in_the_order_of_their_means_and_others_are_added_up() -> None:
    program = Program()
    for line in range(1, 13):
        for _ in range(line):
            program.alloc(line, 1000)
    program.wait(10_000_000)
    data = sites.sites_over_time(view_of(program), most=3)

    assert list(data.bytes) == ["program.py:12 work", "program.py:11 work", "program.py:10 work",
                                sites.REST]  # fmt: skip
    assert data.bytes[sites.REST][-1] == sum(range(1, 10)) * 1000
    assert data.lines == 12


def test_bytes_by_line_are_those_alive() -> None:
    program = leak(500)
    data = sites.sites_over_time(view_of(program))
    last = data.bytes["program.py:20 work"][-1]

    assert 495 * 8_000 < last <= 500 * 8_000
    assert data.bytes["program.py:30 work"].max() <= 21 * 8_000
    assert data.peak.max() == (500 + 21) * 8_000
    assert np.all(data.peak >= sum(data.bytes.values()) - 1)


# ---- lifetimes ----


def test_every_bar_is_an_object_and_survivors_are_marked() -> None:
    program = leak(500)
    data = objects.object_lives(view_of(program), most=60)
    first = data.blocks[0]
    mine = slice(0, first.shown)

    assert first.name == "program.py:20 work"
    assert (first.count, data.count) == (500, 1500)
    assert data.alive[mine].all()
    assert set(data.begin_ns[mine]) <= set(program.born)
    assert np.all(data.end_ns >= data.begin_ns)
    assert len(data.row) == len(set(data.row.tolist())) <= 2 * 60


def test_few_objects_are_all_shown() -> None:
    program = Program()
    kept = [program.alloc(1), program.alloc(2)]
    program.free(kept[0])
    program.wait(1_000_000)
    data = objects.object_lives(view_of(program))

    assert len(data.row) == data.count == 2
    assert sorted(data.alive.tolist()) == [False, True]


def test_objects_are_chosen_in_proportion_to_their_lives() -> None:
    weight = np.ones(1000)
    weight[500] = 1e9

    assert objects.in_proportion(weight, 10).tolist() == [500]
    assert len(objects.in_proportion(np.ones(1000), 10)) == 10
    assert objects.in_proportion(np.ones(3), 10).tolist() == [0, 1, 2]


# ---- pools ----


def test_a_recording_without_pools_says_so() -> None:
    with pytest.raises(NothingToDraw, match="--kind"):
        pools.pools_over_time(view_of(leak(50)))


def test_kept_buffers_follow_their_events() -> None:
    events = pd.DataFrame(
        {"time_ns": [1, 2, 3, 4], "kind": [18, 18, 16, 20], "arg": [100, 50, 100, 50]}
    )

    assert pools.kept_buffers(events, np.array([0, 1, 2, 3, 4])).tolist() == [0, 100, 150, 50, 0]


# ---- growth ----


def test_a_growing_line_has_its_curve_and_its_slope() -> None:
    view = view_of(leak())
    (curve,) = growth.growth_curves(view)
    finding = view.analysis.findings[0]

    assert curve.name == "program.py:20 work"
    assert curve.slope == finding.slope_bytes_per_s
    assert curve.bytes[-1] == 2000 * 8_000
    # The line lies on the curve within a twentieth of its rise.
    fit = np.interp(curve.time_ns, curve.fit_ns, curve.fit_bytes)
    assert np.max(np.abs(fit - curve.bytes)) < curve.bytes[-1] / 20


def test_the_line_is_laid_through_the_time_that_the_slope_is_about() -> None:
    times = np.arange(0, 1001, 100)
    held = np.where(times < 600, 0.0, (times - 600) / 1e9 * 5e9)
    finding = Finding(
        "growing-site", "error", 1, 1, "", slope_bytes_per_s=5e9, grew_from_ns=600,
        grew_until_ns=900,
    )  # fmt: skip
    curve = growth.fitted("line", times, held, finding)

    assert curve.fit_ns == (600, 900)
    assert curve.fit_bytes == pytest.approx((0.0, 1500.0))


def test_a_slope_about_another_time_is_not_drawn() -> None:
    finding = Finding(
        "growing-site", "error", 1, 1, "", slope_bytes_per_s=1.0, grew_from_ns=5_000,
        grew_until_ns=9_000,
    )  # fmt: skip

    assert growth.fitted("line", np.arange(10), np.ones(10), finding).slope is None


def test_native_growth_is_drawn_from_its_samples() -> None:
    program = Program()
    for _ in range(3000):
        program.native += 4_000
        program.temporary(10)
        program.wait(300_000)
    view = view_of(program)
    (curve,) = growth.growth_curves(view)

    assert curve.name == "native memory"
    assert curve.slope == pytest.approx(curve_rate(program), rel=0.1)
    assert curve.bytes[-1] - curve.bytes[0] == pytest.approx(3000 * 4_000, rel=0.01)


def curve_rate(program: Program) -> float:
    return program.native / (program.now_ns / 1e9)


def test_a_healthy_program_has_no_slope() -> None:
    program = Program()
    for _ in range(3000):
        program.temporary(10)
        program.wait(300_000)
    view = view_of(program)
    (curve,) = growth.growth_curves(view)

    assert curve.slope is None
    assert growth.title_of(view, [curve]) == "Tracked memory; nothing grows"


def test_what_cannot_be_judged_is_not_said_to_be_fine() -> None:
    program = Program()
    program.temporary(10)
    view = view_of(program)

    assert view.analysis.verdict.outcome == "cannot-judge"
    assert "cannot be judged" in growth.title_of(view, growth.growth_curves(view))


def test_the_band_turns_around_the_middle_of_the_fit() -> None:
    curve = growth.GrowthCurve(
        "line", np.array([0, 10**9]), np.zeros(2), 10.0, 8.0, 13.0, (0, 2 * 10**9), (0.0, 20.0)
    )
    low, high = curve.band(np.array([0, 10**9, 2 * 10**9]))

    assert low.tolist() == [10 - 13, 10, 10 + 8]
    assert high.tolist() == [10 - 8, 10, 10 + 13]
