"""A fleet as one page for a browser: the odd one out, a heat map, groups, outliers, every process.

The process that should be looked at first follows in full. Covers: HTML that loads nothing.
Does not cover: what is shown of a single process (``report.html``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tlmem.analysis.model import StackFrame, Verdict
from tlmem.fleets.comparing import FleetAnalysis, Group, Spread
from tlmem.fleets.digest import Digest
from tlmem.report.fleet import words
from tlmem.report.fleet.text import MISSING
from tlmem.report.html import page, process_parts, sections
from tlmem.report.html.heat import heat_figure
from tlmem.report.html.markup import Markup, element
from tlmem.report.plots.processes import RESIDENT, TRACKED, ProcessRow
from tlmem.report.summary import summarise
from tlmem.units import format_bytes, format_count, format_seconds

MOST_PROCESSES = 2_000
MOST_UNFOLDED = 16
MOST_GROUPS = 200
MOST_OUTLIERS = 50
MOST_UNREADABLE = 200


def render(found: FleetAnalysis, paths: Sequence[str]) -> str:
    """The whole page, with a line feed at its end.

    Raises:
        TlmemError: the recording of the worst process is gone.
    """
    return page(f"tlmem: {words.processes(len(found.processes))}", parts(found, paths))


def parts(found: FleetAnalysis, paths: Sequence[str]) -> list[Markup]:
    """What stands in the page, from above."""
    title = f"tlmem: {words.processes(len(found.processes))}"
    verdict = Verdict(next(iter(found.verdicts)), found.sentence)
    made = [
        element("h1", title),
        sections.verdict(verdict),
        element("p", words.counts(found)),
    ]
    if missing := words.unreadable(found):
        made += [element("p", missing, class_="doubt")]
    made += [element("h2", "Groups of alike processes"), groups_table(found)]
    if found.outliers:
        made += [element("h2", "Outliers"), outliers_table(found)]
    if (figure := memory_of_each(found)) is not None:
        made += [element("h2", "Memory over time"), figure]
    every = f"All {words.processes(len(found.processes))}"
    made += [
        element("h2", "Processes"),
        element(
            "details",
            element("summary", every),
            processes_table(found),
            open=len(found.processes) <= MOST_UNFOLDED,
        ),
    ]
    if found.unreadable:
        listed = [element("li", each.sentence) for each in found.unreadable[:MOST_UNREADABLE]]
        made += [element("h2", MISSING), element("ul", *listed)]
    worst = summarise([found.worst.path], alone=True).processes[0]
    return [
        *made,
        element("h2", f"In full: {found.worst.name}"),
        *process_parts(worst, "p0"),
    ]


def memory_of_each(found: FleetAnalysis) -> Markup | None:
    """The heat map of all processes, each from its own begin on."""
    rows = [
        ProcessRow(
            process.identity.short,
            0.0,
            process.seconds,
            process.resident_curve if found.has_resident else process.tracked_curve,
        )
        for process in found.processes
    ]
    targets = [f"process-{number}" for number in range(len(rows))]
    what = RESIDENT if found.has_resident else TRACKED
    return heat_figure(rows, targets, what, "the start of each process")


def groups_table(found: FleetAnalysis) -> Markup:
    """Alike processes, a row for each group."""
    growth = f"-growth per {found.step or 's'}"
    rows = []
    for group in found.groups[:MOST_GROUPS]:
        grows = group.processes[0].grows or group.outcome == "cannot-judge"
        one = len(group.processes) == 1
        rows.append(
            element(
                "tr",
                outcome_cell(group.outcome),
                element(
                    "td", sections.place(_frame(group)) if group.place else "", *_source(group)
                ),
                sections.number(len(group.processes), format_count(len(group.processes))),
                spread_cell(group.growth if grows else None),
                spread_cell(group.peak),
                element(
                    "td",
                    group.processes[0].name if one else words.members(group.processes),
                    class_="what",
                ),
            )
        )
    return sections.table(
        ("verdict", "line", "-processes", growth, f"-{found.peak_name}", "who"), rows
    )


def outliers_table(found: FleetAnalysis) -> Markup:
    """Processes unlike the others, a row for each value that is odd."""
    rows = [
        element(
            "tr",
            element("td", each.process.name, class_="name"),
            element("td", each.metric, class_="name"),
            sections.number(each.value, format_bytes(each.value)),
            sections.number(each.median, format_bytes(each.median)),
            sections.number(each.z, words.z_of(each.z)),
        )
        for each in found.outliers[:MOST_OUTLIERS]
    ]
    return sections.table(("process", "of", "-value", "-median of all", "-robust z"), rows)


def processes_table(found: FleetAnalysis) -> Markup:
    """Every process, by rank."""
    growth = f"-growth per {found.step or 's'}"
    heads = ("process", "verdict", growth, "-resident peak", "-arrays at peak", "-untracked",
             "-ran for", "line", "recording")  # fmt: skip
    rows = [
        process_row(found, process, f"process-{number}")
        for number, process in enumerate(found.processes[:MOST_PROCESSES])
    ]
    made = sections.table(heads, rows)
    more = len(found.processes) - MOST_PROCESSES
    note = element("p", f"and {format_count(more)} more (JSON has them)") if more > 0 else ""
    return Markup(made + note)


def process_row(found: FleetAnalysis, process: Digest, name: str) -> Markup:
    """One process; what is not known is an empty cell. ``name`` is that of the row, in the page."""
    amounts = (
        found.growth_of(process),
        process.resident_peak_bytes,
        process.peak_bytes,
        process.untracked_bytes,
    )
    line = process.line
    return element(
        "tr",
        element("td", process.name, class_="name"),
        outcome_cell(process.outcome),
        *(sections.number(n or 0.0, "" if n is None else format_bytes(n)) for n in amounts),
        sections.number(process.seconds, format_seconds(process.seconds)),
        element("td", line.place if line else "", class_="place"),
        element("td", process.path.rpartition("/")[2], title=process.path, class_="place"),
        id=name,
    )


def outcome_cell(outcome: str) -> Markup:
    """A verdict by word, sign and colour."""
    look, sign = sections.SIGNS.get(outcome, sections.GROWS)
    return element("td", f"{sign} {outcome}", class_=f"name {look}")


def spread_cell(spread: Spread | None) -> Markup:
    """The median, and from where to where where they differ."""
    if spread is None:
        return element("td", "", class_="number", data_value=0)
    low, high = format_bytes(spread.low), format_bytes(spread.high)
    text = format_bytes(spread.median)
    return sections.number(spread.median, text if low == high else f"{text} ({low} to {high})")


def _frame(group: Group) -> StackFrame | None:
    line = group.line
    return StackFrame(line.file, line.line, line.function) if line else None


def _source(group: Group) -> list[Markup]:
    source = group.line.source if group.line else ""
    return [element("pre", source)] if source else []
