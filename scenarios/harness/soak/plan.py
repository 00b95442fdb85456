"""Which programs run how often, with which seed, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tlmem.scenarios.harness.catalog import SEEDED, Scenario, read_scenario, scenarios

LEAKS = (
    ("arrays", 100),
    ("arrays", 1000),
    ("arrays", 10_000),
    ("tensors", 100),
    ("tensors", 1000),
    ("tensors", 10_000),
    ("native", 4000),
    ("native", 10_000),
)
"""Leaks that must be found: program and bytes in each iteration."""
SMALL_LEAKS = (("native", 1000),)
"""Leaks too small to be promised; how often they are found is told."""
GROUPS = ("healthy", "seeded", "faulty", "small")


@dataclass(frozen=True)
class Job:
    """One run of one program; ``group`` is one of ``GROUPS``."""

    group: str
    scenario: Scenario
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all others."""
        return self.scenario.name, self.seed


def jobs(runs: Mapping[str, int], names: Iterable[str] = ()) -> Iterator[Job]:
    """Every run, by turns, so that what was done when time is up is spread over all programs.

    Programs that run often come first, scenarios with a fault when those are done.

    Args:
        runs: for each group how often each of its programs runs.
        names: only these programs; none means all.
    """
    wanted = set(names)
    programs = [
        (group, scenario)
        for group, scenario in all_programs()
        if not wanted or scenario.name in wanted
    ]
    for last in (False, True):
        for seed in range(max(runs.values(), default=0)):
            for group, scenario in programs:
                if seed < runs.get(group, 0) and (group == "faulty") is last:
                    yield Job(group, with_seed(group, scenario, seed), seed)


def all_programs() -> Iterator[tuple[str, Scenario]]:
    """Every program with its group."""
    for scenario in scenarios().values():
        yield "faulty" if scenario.faulty else "healthy", scenario
    for group, leaks in (("seeded", LEAKS), ("small", SMALL_LEAKS)):
        for kind, size in leaks:
            yield group, seeded(kind, size)


def seeded(kind: str, size: int) -> Scenario:
    """The program that keeps ``size`` bytes in each iteration.

    Raises:
        ValueError: there is no such program.
    """
    path = SEEDED / f"{kind}.py"
    scenario = read_scenario(path) if path.exists() else None
    if scenario is None:
        raise ValueError(f"there is no seeded program {path.name}; look into {SEEDED}")
    return replace(scenario, name=f"{kind}-{size}", words=(str(size),))


def with_seed(group: str, scenario: Scenario, seed: int) -> Scenario:
    """The scenario as it runs with a seed, which only seeded programs are told."""
    if group in ("seeded", "small"):
        return replace(scenario, words=(*scenario.words, str(seed)))
    return scenario
