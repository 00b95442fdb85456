"""What one test took: its recording, read back into a few numbers and the lines behind them.

Covers: the peak, what is left after the test, growth of resident memory, misuse.
Does not cover: limits (``limits``); verdicts about growth over time, for which a test is too short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.rates import rate_of
from tlmem.analysis.growth.robust import theil_sen
from tlmem.analysis.ledger.misuse import misuse_findings
from tlmem.analysis.model import Finding, Frame
from tlmem.analysis.places import Places
from tlmem.gate.suppressions import Suppression
from tlmem.recording.reader import Recording, read

RUN = "run"
"""Label of the marks that the runs of a loop begin with."""
MOST_LINES = 3


@dataclass(frozen=True)
class Share:
    """What one line holds at some moment."""

    site: Frame
    stack: tuple[Frame, ...]
    count: int
    bytes: int


@dataclass(frozen=True)
class Measured:
    """Bytes that a test took.

    ``left`` is what it made and did not give back, for each run of a loop; ``resident`` is the
    growth of resident memory over all measured runs, surely at least ``resident_low``. The lines
    with most bytes come first. Objects that are suppressed are in none of these. ``lost`` events
    make all of it unknown.
    """

    peak: int
    left: float
    resident: float
    resident_low: float
    peak_lines: tuple[Share, ...]
    left_lines: tuple[Share, ...]
    misuses: tuple[Finding, ...]
    runs: int
    lost: int


def measured(path: Path, suppressions: Sequence[Suppression] = ()) -> Measured:
    """The numbers of a test's recording."""
    recording = read(path)
    places = Places.of(recording)
    table = recording.objects
    born = table["born_ns"].to_numpy(np.int64)
    died = table["died_ns"].to_numpy(np.int64)
    size = table["size_bytes"].to_numpy(np.int64)
    site = table["born_site"].to_numpy(np.int64)
    site = np.where(site < len(places.group_of_site), site, 0)
    kept = _without(suppressions, places, site)
    runs = recording.marks.loc[recording.marks["label"] == RUN, "time_ns"].to_numpy(np.int64)
    moment = _peak_moment(born, died, size)
    at_peak = (born <= moment) & ((died < 0) | (died > moment))
    left = kept & (died < 0) & ~places.importing[site]
    resident, low = _resident(recording, runs)
    return Measured(
        peak=int(recording.totals.peak_bytes),
        left=_left(born[kept], died[kept], size[kept], runs)
        if len(runs) > 1
        else int(size[left].sum()),
        resident=resident,
        resident_low=low,
        peak_lines=_lines(places, site[at_peak], size[at_peak]),
        left_lines=_lines(places, site[left], size[left]),
        misuses=tuple(misuse_findings(recording, places)),
        runs=max(1, len(runs) - 1),
        lost=int(recording.lost_events + recording.missing_events),
    )


def _without(
    suppressions: Sequence[Suppression], places: Places, site: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The objects that no suppression names."""
    kept = np.ones(len(site), bool)
    if suppressions:
        for number in np.unique(site).tolist():
            frame = places.frames[places.group_of_site[number]]
            leak = Finding("leak", "error", 0, 0, "", site=frame, stack=places.stack(number))
            if any(one.matches(leak) for one in suppressions):
                kept[site == number] = False
    return kept


def _peak_moment(born: NDArray[np.int64], died: NDArray[np.int64], size: NDArray[np.int64]) -> int:
    """When most bytes were alive, in ns."""
    if len(born) == 0:
        return 0
    gone = died >= 0
    times = np.concatenate((born, died[gone]))
    change = np.concatenate((size, -size[gone]))
    order = np.argsort(times, kind="stable")
    return int(times[order][np.argmax(np.cumsum(change[order]))])


def _left(
    born: NDArray[np.int64],
    died: NDArray[np.int64],
    size: NDArray[np.int64],
    runs: NDArray[np.int64],
) -> float:
    """Bytes that a run leaves behind: the median slope of what is alive between runs."""
    alive = [
        int(size[(born <= moment) & ((died < 0) | (died > moment))].sum())
        for moment in runs.tolist()
    ]
    return max(0.0, theil_sen(np.arange(len(alive), dtype=np.float64), np.array(alive, np.float64)))


def _resident(recording: Recording, runs: NDArray[np.int64]) -> tuple[float, float]:
    """Growth of anonymous memory without the recorder's own: the value, and what it surely is."""
    samples = recording.samples
    own = (samples["anon"] - samples["recorder"].ffill()).to_numpy(np.float64)
    known = ~np.isnan(own)
    times, own = samples["time_ns"].to_numpy(np.int64)[known], own[known]
    if len(own) < 2:
        return 0.0, 0.0
    if len(runs) < 6:
        grown = float(own[-1] - own[0])
        return grown, grown
    at = np.maximum(np.searchsorted(times, runs, side="right") - 1, 0)
    rate = rate_of(np.arange(len(runs), dtype=np.float64), own[at])
    count = len(runs) - 1
    return (rate.value * count, rate.low * count) if rate else (0.0, 0.0)


def _lines(places: Places, site: NDArray[np.int64], size: NDArray[np.int64]) -> tuple[Share, ...]:
    """The lines with most bytes."""
    group = places.group_of_site[site]
    held = np.bincount(group, weights=size, minlength=places.count)
    counts = np.bincount(group, minlength=places.count)
    found = []
    for number in np.lexsort((-counts, -held))[:MOST_LINES].tolist():
        if counts[number]:
            sites, times = np.unique(site[group == number], return_counts=True)
            stack = places.stack(int(sites[np.argmax(times)]))
            found.append(
                Share(places.frames[number], stack, int(counts[number]), int(held[number]))
            )
    return tuple(found)
