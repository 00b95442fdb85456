"""What many runs say, in Markdown: rates with their bounds, and each program.

A rate of 0 in ``n`` runs is no proof of never: the bound is the end of the exact interval of
Clopper and Pearson that holds the true rate with 95 % confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tlmem.units import format_count

from .judging import CANNOT_JUDGE, FINDINGS, GATE, JUDGES, PASS
from .state import RunRow

CONFIDENCE = 0.95
MOST_WRONG = 30
HEAD = """\
## Over many runs

Written by `make soak`. Each run records a program in a process of its own; the recording is then
read once and judged twice, by its findings, as `tlmem report` does, and by the gate, as
`tlmem check` does. A verdict is *false* when a healthy program is said to grow, a finding when it
is an error or a warning about a healthy program. The gate judges each healthy program without
budgets and with budgets of no growth at all (`verdict=stable`, and `tracked-`, `native-`, `python-`
and `resident-growth` of `0 B/s`), and must pass it both times; a seeded leak must fail without any
budget, with its line in the message. A run that is *not judged* says why, which is no pass, and
exit code 3 for the gate. `preallocated-result` touches memory that it has had from the start, so it
has no budget of resident growth; `early-exit` ends by `os._exit`, so its job says
`--allow incomplete`. Bounds are those of the exact (Clopper and Pearson) interval, with 95 %
confidence."""


@dataclass(frozen=True)
class Origin:
    """Where the rows come from: the command, how many runs it asks for, rows of other code."""

    command: str
    planned: int
    older: int


def page_part(rows: Sequence[RunRow], origin: Origin) -> str:
    """All of it."""
    parts = [HEAD, origin_text(rows, origin)]
    if rows:
        parts += [summary(rows), seeded_part(rows), programs_part(rows, "healthy")]
        parts += [programs_part(rows, "faulty"), wrong_part(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def origin_text(rows: Sequence[RunRow], origin: Origin) -> str:
    """Which command, on what, of which code."""
    codes = sorted(
        {
            f"commit {row.commit or 'unknown'} (digest {row.code}, recorder {row.recorder})"
            for row in rows
        }
    )
    where = sorted({f"{row.machine}; {row.load}" for row in rows})
    made = f"{format_count(len({row.run for row in rows}))} of {format_count(origin.planned)} runs"
    older = f", {format_count(origin.older)} runs of other code not counted" * (origin.older > 0)
    whole = f"`{origin.command}`: {made}{older}."
    whole += "".join(f" Code: {code}." for code in codes) + "".join(f" {w}." for w in where)
    return whole + busy_text(rows)


def busy_text(rows: Sequence[RunRow]) -> str:
    """How busy the machine was."""
    loads = sorted(row.load_average for row in rows if row.load_average > 0)
    if not loads:
        return ""
    low, middle, high = loads[0], loads[len(loads) // 2], loads[-1]
    return (
        " Programs that run at a time keep each other's cores busy: the load average (processes "
        f"that run or wait for a core, over a minute) was {middle:.1f} in the middle run, "
        f"{low:.1f} to {high:.1f} in all."
    )


def summary(rows: Sequence[RunRow]) -> str:
    """One line for each promise."""
    found, gate = of_judge(rows, FINDINGS), of_judge(rows, GATE)
    healthy, gated = of_group(found, "healthy"), of_group(gate, "healthy")
    lines = [
        rare("healthy programs: false verdict", healthy, is_false),
        rare("healthy programs: false error or warning", healthy, lambda row: bool(row.wolves)),
        rare("healthy programs: not judged", healthy, is_open),
        rare("healthy programs: failed by the gate", gated, is_false),
        rare("healthy programs: not judged by the gate", gated, is_open),
        often("seeded leaks: found at the right line", of_group(found, "seeded")),
        often("seeded leaks: failed by the gate, with the line", of_group(gate, "seeded")),
        often("smaller seeded leaks, not promised: found", of_group(found, "small")),
        often("smaller seeded leaks, not promised: failed by the gate", of_group(gate, "small")),
        often("scenarios with a fault: found as the truth says", of_group(found, "faulty")),
        often("scenarios with a fault: decided rightly by the gate", of_group(gate, "faulty")),
    ]
    head = "| what | programs | runs | so many | the true rate is |\n|---|--:|--:|--:|---|"
    return "\n".join([head, *(line for line in lines if line)])


def rare(what: str, rows: Sequence[RunRow], happened: Callable[[RunRow], bool]) -> str:
    """A line about what ought not to happen."""
    if not rows:
        return ""
    seen = sum(map(happened, rows))
    return line(what, rows, seen, f"below {percent(bounds(seen, len(rows))[1])}")


def often(what: str, rows: Sequence[RunRow]) -> str:
    """A line about what ought to happen always."""
    if not rows:
        return ""
    seen = sum(row.right for row in rows)
    return line(what, rows, seen, f"above {percent(bounds(seen, len(rows))[0])}")


def line(what: str, rows: Sequence[RunRow], seen: int, bound: str) -> str:
    """One line of the summary."""
    programs = len({row.name for row in rows})
    return f"| {what} | {programs} | {format_count(len(rows))} | {format_count(seen)} | {bound} |"


def bounds(seen: int, runs: int) -> tuple[float, float]:
    """Between which rates the true one is, with ``CONFIDENCE``.

    Source: Clopper and Pearson (1934), by ``scipy.stats.binomtest``.
    """
    from scipy.stats import binomtest

    found = binomtest(seen, runs).proportion_ci(confidence_level=CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def percent(rate: float) -> str:
    """With two significant digits, and as many as there are near 100 %."""
    if rate > 0.99:
        return f"{100 * rate:.2f} %"
    return f"{100 * rate:.2g} %" if rate < 0.1 else f"{100 * rate:.1f} %"


def seeded_part(rows: Sequence[RunRow]) -> str:
    """How often each seeded leak was found, and failed by the gate."""
    lines = [
        f"| `{name}` | {' | '.join(share(of_judge(own, judge)) for judge in JUDGES)} |"
        for group in ("seeded", "small")
        for name, own in by_name(of_group(rows, group))
    ]
    head = (
        "### Seeded leaks\n\nOne object of so many bytes is kept in each of 2000 noisy "
        "iterations; the seed decides the noise. `native-1000` is not promised.\n\n"
        "| program and bytes in each iteration | runs | found | the true rate is "
        "| runs | failed by the gate | the true rate is |\n"
        "|---|--:|--:|---|--:|--:|---|"
    )
    return "\n".join([head, *lines]) if lines else ""


def share(rows: Sequence[RunRow]) -> str:
    """Cells: runs, how many of them were right, and between which rates the true one is."""
    if not rows:
        return "0 | 0 | "
    right = sum(row.right for row in rows)
    return f"{len(rows)} | {right} | above {percent(bounds(right, len(rows))[0])}"


def programs_part(rows: Sequence[RunRow], group: str) -> str:
    """Each program of a group."""
    healthy = group == "healthy"
    lines = [
        healthy_line(name, own) if healthy else faulty_line(name, own)
        for name, own in by_name(of_group(rows, group))
    ]
    head = (
        "### Healthy programs\n\n"
        "| program | runs | false verdicts | runs with false findings | not judged "
        "| failed by the gate | not judged by the gate |\n"
        "|---|--:|--:|--:|--:|--:|--:|"
        if healthy
        else "### Scenarios with a fault\n\nA gate without budgets must not pass growth, one with "
        "budgets no misuse.\n\n"
        "| program | runs | found | decided rightly by the gate |\n|---|--:|--:|--:|"
    )
    return "\n".join([head, *lines]) if lines else ""


def healthy_line(name: str, rows: Sequence[RunRow]) -> str:
    """What was said of a healthy program."""
    found, gate = of_judge(rows, FINDINGS), of_judge(rows, GATE)
    cells = [len({row.run for row in rows}), sum(map(is_false, found))]
    cells += [sum(bool(row.wolves) for row in found), sum(map(is_open, found))]
    cells += [sum(map(is_false, gate)), sum(map(is_open, gate))]
    return f"| `{name}` | {' | '.join(map(str, cells))} |"


def faulty_line(name: str, rows: Sequence[RunRow]) -> str:
    """How often a scenario with a fault was found."""
    cells = [len({row.run for row in rows})]
    cells += [sum(row.right for row in of_judge(rows, judge)) for judge in (FINDINGS, GATE)]
    return f"| `{name}` | {' | '.join(map(str, cells))} |"


def wrong_part(rows: Sequence[RunRow]) -> str:
    """What was said in runs that were not right, without those that are not promised."""
    wrong = [row for row in rows if not row.right and row.group != "small"]
    lines = [
        f"- `{row.name}`, seed {row.seed}, by the {row.judge}: {row.said}"
        + (f" ({', '.join(map(short, row.wolves))})" if row.wolves else "")
        for row in wrong[:MOST_WRONG]
    ]
    more = len(wrong) - len(lines)
    lines += [f"- and {format_count(more)} more"] if more else []
    return "\n".join(["### Runs that were not right", "", *lines]) if lines else ""


def short(wolf: str) -> str:
    """A finding without the folder of its file."""
    kind, at, site = wolf.partition(" at ")
    return kind + at + site.rpartition("/")[2]


def of_judge(rows: Iterable[RunRow], judge: str) -> list[RunRow]:
    """The rows of one judge."""
    return [row for row in rows if row.judge == judge]


def of_group(rows: Iterable[RunRow], group: str) -> list[RunRow]:
    """The rows of one group."""
    return [row for row in rows if row.group == group]


def by_name(rows: Iterable[RunRow]) -> list[tuple[str, list[RunRow]]]:
    """The rows of each program, in the order in which programs come first."""
    found: dict[str, list[RunRow]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row)
    return list(found.items())


def is_false(row: RunRow) -> bool:
    """Whether a healthy program is said to grow, or nothing could be said at all."""
    return row.outcome not in (PASS if row.judge == GATE else "stable", CANNOT_JUDGE)


def is_open(row: RunRow) -> bool:
    """Whether there was no verdict, or no decision."""
    return row.outcome == CANNOT_JUDGE
