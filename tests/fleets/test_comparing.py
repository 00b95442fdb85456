"""Groups, outliers and the odd one out, of digests that no recording is behind."""

from dataclasses import replace

import pytest

from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.digest import Digest, Line

STABLE = Digest(
    path="r0.tlm", pid=100, parent_pid=0, host="a", rank=0, local_rank=None, world_size=None,
    worker="", script="train.py", seconds=10.0, events=1000, lost=0, complete=True, exit="0",
    outcome="stable", sentence="No leak found.", slope_bytes_per_s=0.0, grown_bytes=0, step="step",
    steps=100, step_bytes=0.0, peak_bytes=50_000_000, resident_peak_bytes=200_000_000,
    untracked_bytes=30_000_000, errors=0, warnings=0, lines=(), tracked_curve=(), resident_curve=(),
)  # fmt: skip


def ranks(count: int, **changes: dict[int, object]) -> FleetAnalysis:
    """Alike ranks; ``outcome={3: "leak"}`` changes that of rank 3."""
    made = []
    for rank in range(count):
        own = {name: values[rank] for name, values in changes.items() if rank in values}
        made.append(replace(STABLE, rank=rank, pid=100 + rank, path=f"r{rank}.tlm", **own))
    return FleetAnalysis(tuple(made))


def line(number: int = 12, step_bytes: float = 801_000.0) -> tuple[Line, ...]:
    where = Line(
        "/home/ada/train.py", number, "step", "", "growing-site", 100, 80_100_000, 1e6, 1.0
    )
    return (replace(where, step_bytes=step_bytes),)


def grown(*which: int, at: int = 12) -> dict[str, dict[int, object]]:
    return {
        "outcome": dict.fromkeys(which, "leak"),
        "lines": dict.fromkeys(which, line(at)),
        "step_bytes": dict.fromkeys(which, 801_000.0),
    }


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            ranks(64, **grown(37)),
            "rank 37 (node a, pid 137) grows 801 kB per step at train.py:12; the other 63 do not "
            "grow.",
        ),
        (
            ranks(6, **grown(1, 2)),
            "rank 1 (node a, pid 101) grows 801 kB per step at train.py:12; rank 2 (node a, pid "
            "102) grows 801 kB per step at train.py:12; the other 4 do not grow.",
        ),
        (
            ranks(6, **grown(*range(6))),
            "All 6 processes grow at train.py:12; rank 0 (node a, pid 100) grows most, 801 kB per "
            "step at train.py:12.",
        ),
        (
            ranks(8, **grown(0, 1, 2, 3)),
            "4 of 8 processes grow at train.py:12; rank 0 (node a, pid 100) grows most, 801 kB per "
            "step at train.py:12.",
        ),
        (ranks(6), "None of 6 processes grows."),
        (
            ranks(6, outcome={1: "cannot-judge"}),
            "None of 6 processes grows, 1 cannot be judged.",
        ),
        (
            ranks(6, outcome=dict.fromkeys(range(6), "cannot-judge")),
            "None of 6 processes can be judged.",
        ),
        (
            ranks(6, outcome={0: "native", 1: "cannot-judge"}, step_bytes={0: 5e3}),
            "rank 0 (node a, pid 100) grows 5.00 kB per step (native); of the other 5, 4 do not "
            "grow and 1 cannot be judged.",
        ),
        (
            ranks(6, resident_peak_bytes={4: 600_000_000}),
            "None of 6 processes grows; rank 4 (node a, pid 104) has 600 MB as its resident peak, "
            "3.0 times the median.",
        ),
    ],
)
def test_the_odd_one_out_is_said_in_a_sentence(found: FleetAnalysis, sentence: str) -> None:
    assert found.sentence == sentence


def test_alike_processes_are_groups_and_those_that_grow_come_first() -> None:
    found = ranks(10, **grown(3, 4))
    found = replace(
        found, processes=(*found.processes, replace(found.processes[3], rank=10, lines=line(13)))
    )

    assert [(g.outcome, g.place, len(g.processes)) for g in found.groups] == [
        ("leak", "train.py:12", 2),
        ("leak", "train.py:13", 1),
        ("stable", "", 8),
    ]


def test_a_group_has_its_smallest_median_and_largest_values_and_whose_they_are() -> None:
    growth = {1: 700.0, 2: 800.0, 3: 1000.0}
    found = ranks(
        4,
        outcome=dict.fromkeys(growth, "leak"),
        lines={rank: line(step_bytes=value) for rank, value in growth.items()},
    )
    spread = found.groups[0].growth

    assert spread is not None
    assert (spread.low, spread.median, spread.high) == (700.0, 800.0, 1000.0)
    assert spread.highest.rank == 3


def test_a_process_unlike_the_others_is_an_outlier_by_each_value_that_is_odd() -> None:
    found = ranks(
        20,
        step_bytes={7: 40_000.0},
        resident_peak_bytes={8: 900_000_000},
        untracked_bytes={9: 300_000_000},
    )

    assert {(each.process.rank, each.metric) for each in found.outliers} == {
        (7, "growth per step"),
        (8, "resident peak"),
        (9, "untracked memory"),
    }


def test_what_differs_by_little_or_is_small_is_no_outlier() -> None:
    found = ranks(
        20,
        step_bytes={7: 90.0},
        resident_peak_bytes={8: 215_000_000},
        untracked_bytes={9: 30_900_000},
    )

    assert found.outliers == ()


def test_a_wide_spread_has_no_outliers() -> None:
    found = ranks(20, resident_peak_bytes={rank: 10_000_000 * (rank + 1) for rank in range(20)})

    assert found.outliers == ()


def test_of_four_processes_none_is_called_odd() -> None:
    assert ranks(4, resident_peak_bytes={0: 9_000_000_000}).outliers == ()


def test_a_process_that_has_less_than_the_others_is_no_outlier() -> None:
    assert ranks(20, resident_peak_bytes={0: 1_000_000}).outliers == ()


def test_growth_is_compared_by_seconds_where_most_have_no_steps() -> None:
    found = ranks(
        6,
        step=dict.fromkeys(range(4), ""),
        outcome={0: "leak"},
        lines={0: line()},
        slope_bytes_per_s={0: 2_000_000.0},
    )

    assert found.step == ""
    assert "grows 2.00 MB/s at train.py:12" in found.sentence


def test_the_worst_process_is_the_one_that_grows_most() -> None:
    assert ranks(9, **grown(2, 6)).worst.rank == 2
    assert ranks(9, resident_peak_bytes={8: 900_000_000}).worst.rank == 8
    assert ranks(9, outcome={4: "cannot-judge"}).worst.rank == 4
