"""Processes beside each other: verdicts counted, groups of alike ones, outliers, the odd one out.

Processes are compared by growth, peak and untracked memory, never by what is left at exit: one that
frees everything as it ends has grown all the same.

Covers: the numbers, and the sentence that a page begins with. Does not cover: how a page looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tlmem.analysis.compare import GROWING
from tlmem.analysis.model import OUTCOMES
from tlmem.fleets.digest import Digest, Line
from tlmem.units import format_bytes, format_count

FEWEST_COMPARED = 5
"""Of fewer values a median says too little to call one of them odd."""
OUTLIER_Z = 3.5
"""From this robust z on a value is an outlier: Iglewicz and Hoaglin, How to Detect and Handle
Outliers, 1993."""
MAD_TO_DEVIATION = 1.4826
"""The median absolute deviation of normal values, times this, is their standard deviation."""
LEAST_SHARE = 0.1
"""What is less than this share above the median is not an outlier, however alike the others are."""
LEAST_DEVIATION_SHARE = 0.02
"""A spread of less than this share of the median counts as this: alike processes differ so much."""
LEAST_BYTES = 1_000_000
"""A peak or untracked memory less than this above the median is not an outlier; growth has to come
to as much in the whole run."""
STEADY_BYTES_PER_STEP = 64.0
"""Growth spreads by this at least: noise of samples and of small objects."""
MOST_OUTLIERS = 100
FEW_ODD = 3
"""So many growing processes at most are named one by one beside those that do not grow."""
PER_STEP, PER_SECOND = "step", "s"
NOT_GROWING = frozenset(OUTCOMES) - set(GROWING)


@dataclass(frozen=True)
class Spread:
    """Smallest, median and largest value of some processes, and whose the largest is."""

    low: float
    median: float
    high: float
    highest: Digest

    @classmethod
    def of(
        cls, processes: Sequence[Digest], value: Callable[[Digest], float | None]
    ) -> Spread | None:
        """Of those that have a value; None where none has."""
        known = [(found, one) for one in processes if (found := value(one)) is not None]
        if not known:
            return None
        values = [found for found, _ in known]
        high, highest = max(known, key=lambda pair: pair[0])
        return cls(min(values), float(np.median(values)), high, highest)


@dataclass(frozen=True)
class Group:
    """Processes with the same verdict whose memory grows at the same line, most serious first."""

    outcome: str
    line: Line | None
    processes: tuple[Digest, ...]
    growth: Spread | None
    peak: Spread | None
    alive: Spread | None
    """Bytes that the line keeps when judged."""

    @property
    def place(self) -> str:
        """``ranks.py:12``; empty without a line."""
        return self.line.place if self.line else ""


@dataclass(frozen=True)
class Outlier:
    """A process whose value lies ``z`` robust deviations above the median of all."""

    process: Digest
    metric: str
    value: float
    median: float
    z: float


@dataclass(frozen=True)
class Unreadable:
    """A recording that could not be read, the sentence that says why, and its exit code."""

    path: str
    sentence: str
    exit_code: int


@dataclass(frozen=True)
class FleetAnalysis:
    """What was found in any number of recordings: ``processes`` by rank, and what is not readable.

    ``verdicts``, ``groups``, ``outliers`` and ``sentence`` follow from the processes.
    """

    processes: tuple[Digest, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @cached_property
    def verdicts(self) -> dict[str, int]:
        """How many processes have each outcome; the most serious outcome first."""
        counted = Counter(process.outcome for process in self.processes)
        order = (*GROWING, "cannot-judge", "retained", "stable")
        return {outcome: counted[outcome] for outcome in order if counted[outcome]}

    @cached_property
    def nodes(self) -> int:
        """How many nodes the processes ran on; 0 where that was not recorded."""
        return len({process.host for process in self.processes if process.host})

    @cached_property
    def step(self) -> str:
        """The label of the marks by which growth is compared; empty: by seconds.

        The one that most processes have, if that is more than half of them.
        """
        counted = Counter(process.step for process in self.processes if process.step)
        if not counted:
            return ""
        label, count = counted.most_common(1)[0]
        return label if 2 * count > len(self.processes) else ""

    def growth_of(self, process: Digest) -> float | None:
        """Bytes per step, or per second where steps are not comparable; None: not known."""
        if self.step:
            return process.step_bytes if process.step == self.step else None
        return process.slope_bytes_per_s

    def format_growth(self, value: float) -> str:
        """``801 kB per step``, ``801 kB/s``."""
        unit = f" per {self.step}" if self.step else "/s"
        return f"{format_bytes(value)}{unit}"

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Alike processes: same outcome, same growing line. Those that grow come first."""
        alike: dict[tuple[object, ...], list[Digest]] = {}
        for process in self.processes:
            line = process.line
            key = (line.file, line.line, line.function) if line and line.place else None
            alike.setdefault((process.outcome, key), []).append(process)
        found = [self._group(members) for members in alike.values()]
        order = list(self.verdicts)
        return tuple(
            sorted(found, key=lambda group: (order.index(group.outcome), -len(group.processes)))
        )

    def _group(self, members: Sequence[Digest]) -> Group:
        def growth(process: Digest) -> float | None:
            line = process.line
            if line is None or not self.step:
                return self.growth_of(process) if line is None else line.slope_bytes_per_s
            return line.step_bytes if process.step == self.step else None

        first = members[0]
        return Group(
            first.outcome,
            first.line,
            tuple(members),
            Spread.of(members, growth),
            Spread.of(members, self._peak),
            Spread.of(members, lambda one: one.line.bytes if one.line else None),
        )

    @cached_property
    def has_resident(self) -> bool:
        """Whether resident memory is known of every process, so that peaks are of it."""
        return all(process.resident_peak_bytes is not None for process in self.processes)

    def _peak(self, process: Digest) -> float | None:
        return process.resident_peak_bytes if self.has_resident else process.peak_bytes

    @property
    def peak_name(self) -> str:
        """What a peak is of."""
        return "resident peak" if self.has_resident else "peak of arrays"

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """Processes unlike the others in growth, peak or untracked memory, the oddest first.

        Only upwards: a process with less memory than the others harms nothing.
        """
        found = [
            *self._outliers(f"growth per {self.step or PER_SECOND}", self.growth_of, self._in_all),
            *self._outliers(self.peak_name, self._peak),
            *self._outliers("untracked memory", lambda process: process.untracked_bytes),
        ]
        return tuple(sorted(found, key=lambda each: -each.z)[:MOST_OUTLIERS])

    def _in_all(self, process: Digest, growth: float) -> float:
        """What growth comes to in the whole run."""
        return growth * (process.steps if self.step else process.seconds)

    def _outliers(
        self,
        metric: str,
        value: Callable[[Digest], float | None],
        in_all: Callable[[Digest, float], float] = lambda process, value: value,
    ) -> list[Outlier]:
        known = [(one, found) for one in self.processes if (found := value(one)) is not None]
        if len(known) < FEWEST_COMPARED:
            return []
        values = np.array([found for _, found in known], np.float64)
        median = float(np.median(values))
        deviation = MAD_TO_DEVIATION * float(np.median(np.abs(values - median)))
        deviation = max(deviation, LEAST_DEVIATION_SHARE * abs(median), STEADY_BYTES_PER_STEP)
        found_all = []
        for process, found in known:
            above = found - median
            z = above / deviation
            large = in_all(process, above) >= LEAST_BYTES and above >= LEAST_SHARE * abs(median)
            if z >= OUTLIER_Z and large:
                found_all.append(Outlier(process, metric, found, median, round(z, 1)))
        return found_all

    # ---- the most serious one, and the sentence ----

    @cached_property
    def growing(self) -> tuple[Digest, ...]:
        """Processes that grow, by their verdict; those that grow most first."""
        found = [process for process in self.processes if process.grows]
        return tuple(sorted(found, key=lambda process: -(self.growth_of(process) or 0.0)))

    @cached_property
    def worst(self) -> Digest:
        """The process that should be looked at first."""
        if self.growing:
            return self.growing[0]
        if self.outliers:
            return self.outliers[0].process
        order = list(self.verdicts)
        return min(
            self.processes,
            key=lambda one: (order.index(one.outcome), -one.errors, -(self._peak(one) or 0)),
        )

    @cached_property
    def sentence(self) -> str:
        """What a page begins with: who grows, where and how fast; else who is odd."""
        count, growing = len(self.processes), self.growing
        if not growing:
            return self._nothing_grows()
        others = count - len(growing)
        if others and len(growing) <= FEW_ODD:
            named = "; ".join(self._grows(process) for process in growing)
            return f"{named}; {self._rest(others)}."
        most = f"{growing[0].name} grows most, {self._how(growing[0])}"
        share = f"All {format_count(count)}" if not others else (
            f"{format_count(len(growing))} of {format_count(count)}"
        )  # fmt: skip
        places = {process.line.place for process in growing if process.line}
        where = f" at {places.pop()}" if len(places) == 1 and all(p.line for p in growing) else ""
        return f"{share} processes grow{where}; {most}."

    def _nothing_grows(self) -> str:
        count, doubtful = len(self.processes), self.verdicts.get("cannot-judge", 0)
        if doubtful == count:
            start = f"None of {format_count(count)} processes can be judged"
        else:
            of_them = f", {format_count(doubtful)} cannot be judged" if doubtful else ""
            start = f"None of {format_count(count)} processes grows{of_them}"
        if not self.outliers:
            return f"{start}."
        odd = self.outliers[0]
        if odd.metric.startswith("growth"):
            how = f"adds {self.format_growth(odd.value)}, the median is {format_bytes(odd.median)}"
        else:
            times = f", {odd.value / odd.median:.1f} times the median" if odd.median > 0 else ""
            how = f"has {format_bytes(odd.value)} as its {odd.metric}{times}"
            how = how.replace("as its untracked memory", "of untracked memory")
        return f"{start}; {odd.process.name} {how}."

    def _grows(self, process: Digest) -> str:
        return f"{process.name} grows {self._how(process)}"

    def _how(self, process: Digest) -> str:
        """``801 kB per step at ranks.py:12``, ``32 MB/s (native)``."""
        growth = self.growth_of(process)
        if growth is None:
            rate = process.slope_bytes_per_s
            amount = f"{format_bytes(rate)}/s" if rate else format_bytes(process.grown_bytes or 0)
        else:
            amount = self.format_growth(growth)
        where = f" at {process.line.place}" if process.line and process.line.place else ""
        return amount + (where or f" ({process.outcome})")

    def _rest(self, others: int) -> str:
        doubtful = self.verdicts.get("cannot-judge", 0)
        one = others == 1
        if doubtful == others:
            return f"the other {format_count(others)} cannot be judged" if not one else (
                "the other one cannot be judged"
            )  # fmt: skip
        rest = f"the other {format_count(others)} do not grow" if not one else (
            "the other one does not grow"
        )  # fmt: skip
        if doubtful:
            rest = (
                f"of the other {format_count(others)}, {format_count(others - doubtful)} do not "
                f"grow and {format_count(doubtful)} cannot be judged"
            )
        return rest

    # ---- for programs ----

    def find(self, word: str) -> list[Digest]:
        """Processes of a rank; where there are none of a worker's name, else of a process id."""
        if word.isdecimal():
            of_rank = [one for one in self.processes if one.rank == int(word)]
            if of_rank:
                return of_rank
        return [one for one in self.processes if word in (one.worker, str(one.pid))]

    def to_dict(self) -> dict[str, Any]:
        """The fleet as plain values, the keys of docs/reference/json.md; processes are last."""
        return {
            "sentence": self.sentence,
            "verdicts": self.verdicts,
            "nodes": self.nodes,
            "growth_per": self.step or PER_SECOND,
            "peak": self.peak_name,
            "groups": [self._group_dict(group) for group in self.groups],
            "outliers": [
                {
                    "process": each.process.name,
                    "path": each.process.path,
                    "metric": each.metric,
                    "value": each.value,
                    "median": each.median,
                    "z": each.z,
                }
                for each in self.outliers
            ],
            "worst": self.worst.path,
            "unreadable": [vars(each) for each in self.unreadable],
            "processes": [process.to_dict() for process in self.processes],
        }

    def _group_dict(self, group: Group) -> dict[str, Any]:
        line = group.line
        return {
            "outcome": group.outcome,
            "site": line and {"file": line.file, "line": line.line, "function": line.function},
            "processes": len(group.processes),
            "growth": _spread_dict(group.growth),
            "peak": _spread_dict(group.peak),
            "alive": _spread_dict(group.alive),
            "paths": [process.path for process in group.processes],
        }


def _spread_dict(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {
        "min": spread.low,
        "median": spread.median,
        "max": spread.high,
        "max_process": spread.highest.name,
        "max_path": spread.highest.path,
    }
