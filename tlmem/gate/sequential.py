"""When to stop repeating, and how often the answer is wrong: two rules with stated error rates.

``Runs`` weighs how many runs were over their budgets: Wald's sequential probability ratio test.
``PerCall`` looks at what runs with more and more calls kept: Kendall's rank test, whose exact
distribution needs no assumption about noise but that it has nothing to do with the calls.

Covers: the mathematics, on plain numbers. Does not cover: running anything (``repeat``).
Source: A. Wald, "Sequential Tests of Statistical Hypotheses", 1945; M. Kendall, "A New Measure of
Rank Correlation", 1938. See also: docs/how-to/gate.md, "Repeated runs".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FAIL, PASS = "fail", "pass"
HEALTHY, FAULTY = 0.05, 0.8
"""A healthy program is over its budgets in at most so many runs, a faulty one in at least so
many."""
ERROR = 0.01
"""Wrong answers that each rule aims at, of both kinds."""
FEWEST_RUNS = 3
FEWEST_LEVELS = 5
"""Runs with different numbers of calls that are needed to see that growth goes on."""


@dataclass(frozen=True)
class Rates:
    """How often a rule is wrong: ``false_alarms`` of healthy programs, ``misses`` of faulty ones,
    and how often it has no answer after all runs, of either."""

    false_alarms: float
    misses: float
    undecided: float


@dataclass(frozen=True)
class Runs:
    """The test on runs that are over or not; at most ``most`` of them."""

    most: int

    def decide(self, over: int, kept: int) -> str:
        """``fail``, ``pass``, or nothing yet."""
        ratio = over * math.log(FAULTY / HEALTHY)
        ratio += kept * math.log((1 - FAULTY) / (1 - HEALTHY))
        bound = math.log((1 - ERROR) / ERROR)
        return FAIL if ratio >= bound else PASS if ratio <= -bound else ""

    def rates(self) -> Rates:
        """Exact, by following every order of runs that is possible."""
        healthy, faulty = self._ends(HEALTHY), self._ends(FAULTY)
        return Rates(healthy[FAIL], faulty[PASS], max(healthy[""], faulty[""]))

    def _ends(self, chance: float) -> dict[str, float]:
        """How likely each answer is when runs are over with some chance."""
        ends = {FAIL: 0.0, PASS: 0.0, "": 0.0}
        open_ = {(0, 0): 1.0}
        for _ in range(self.most):
            after: dict[tuple[int, int], float] = {}
            for (over, kept), weight in open_.items():
                for new, part in (((over + 1, kept), chance), ((over, kept + 1), 1 - chance)):
                    answer = self.decide(*new)
                    if answer:
                        ends[answer] += weight * part
                    else:
                        after[new] = after.get(new, 0.0) + weight * part
            open_ = after
        ends[""] = sum(open_.values())
        return ends


@dataclass(frozen=True)
class PerCall:
    """The test on what runs kept, each with more calls than the one before.

    It is asked after every run from the fifth on, and of several kinds of memory: the chance of a
    false alarm is divided among all these questions, so that ``ERROR`` holds for all together.
    """

    most: int
    kinds: int = 1

    @property
    def level(self) -> float:
        """False alarms that one question may give."""
        return ERROR / (self.kinds * max(1, self.most - FEWEST_LEVELS + 1))

    @property
    def able(self) -> bool:
        """Whether ``most`` runs can fail at all: when each keeps more than the one before."""
        return 1 / math.factorial(self.most) <= self.level

    def decide(self, calls: Sequence[float], kept: Sequence[float], tolerance: float) -> str:
        """``fail``, ``pass``, or nothing yet; nothing after the last run is within noise.

        Args:
            calls: of each run so far.
            kept: bytes that it kept.
            tolerance: bytes per call that are not a leak.
        """
        if len(calls) < FEWEST_LEVELS:
            return ""
        if per_call(calls, kept) <= tolerance:
            return PASS
        from scipy.stats import kendalltau

        beyond = [level - tolerance * count for count, level in zip(calls, kept, strict=True)]
        method = "exact" if len(set(beyond)) == len(beyond) else "auto"
        found = kendalltau(calls, beyond, alternative="greater", method=method)
        return FAIL if found.pvalue <= self.level else ""


def per_call(calls: Sequence[float], kept: Sequence[float]) -> float:
    """Bytes kept per call: the median slope between all pairs of runs."""
    import numpy as np

    from tlmem.analysis.growth.robust import theil_sen

    return theil_sen(np.asarray(calls, np.float64), np.asarray(kept, np.float64))
