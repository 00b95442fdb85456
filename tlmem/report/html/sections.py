"""The parts of a page about one recording: verdict, findings, where memory is, threads, lines.

Covers: their HTML. Does not cover: pictures (``figures``), the flame graph (``flame``),
single objects (``lives``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.ledger.misuse import EARLIER
from tlmem.analysis.lifetimes import is_imported
from tlmem.analysis.model import Cohorts, Finding, HeldHeap, Holder, StackFrame, Verdict
from tlmem.analysis.places import is_line
from tlmem.analysis.places import place as place_of
from tlmem.recording.identity import identity_of, lowered
from tlmem.recording.reader import Recording
from tlmem.report import heap as heap_words
from tlmem.report import text
from tlmem.report.cohorts import cohort_table
from tlmem.report.ending import ending_sentence
from tlmem.report.html.markup import Markup, element, joined
from tlmem.report.object_lives import Chosen
from tlmem.report.site_sums import LineTotals
from tlmem.report.summary import Process
from tlmem.report.thread_sums import ThreadTotals
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

SIGNS = {"stable": ("fine", "\u2713"), "retained": ("doubt", "\u25cb"),
         "cannot-judge": ("doubt", "?")}  # fmt: skip
"""Class and sign of outcomes; all others grow."""
GROWS = ("grows", "\u2717")
SEVERITY_SIGNS = {"error": "\u2717 error", "warning": "! warning", "info": "info"}
MOST_FINDINGS = 200


def verdict(found: Verdict, more: Markup | None = None) -> Markup:
    """The answer, by word and sign, not by colour alone.

    Args:
        more: what stands below it.
    """
    look, sign = SIGNS.get(found.outcome, GROWS)
    return element(
        "div",
        element("p", element("strong", f"{sign} {found.outcome}"), element("span", found.sentence)),
        more,
        class_=f"verdict {look}",
    )


def about(recording: Recording) -> Markup:
    """What was recorded, and whether all of it is there."""
    words = [
        f"{format_count(recording.event_count)} events in {format_seconds(recording.seconds)}",
        "imported" if is_imported(recording) else lowered(identity_of(recording).name),
        "complete" if recording.complete else "not complete",
    ]
    command = recording.info.get("command", "")
    return joined(
        element("p", ending) if (ending := ending_sentence(recording)) else None,
        element("p", ", ".join(words), element("br"), element("code", str(recording.path))),
        element("pre", command) if command else None,
        *(element("p", f"Problem: {problem}") for problem in recording.problems),
    )


def findings(found: Sequence[Finding], prefix: str, chosen: Sequence[Sequence[Chosen]]) -> Markup:
    """A table with a row for each finding, its details folded.

    Args:
        prefix: stands before each name in the page.
        chosen: objects of each finding whose lives are in the page.
    """
    if not found:
        return element("p", "None.")
    unfolded = [finding for finding in found if finding.cohorts][: text.MOST_COHORTS]
    rows = [
        finding_row(
            finding,
            any(finding is one for one in unfolded),
            f"{prefix}-finding-{number}",
            ways(finding, prefix, number, objects),
        )
        for number, (finding, objects) in enumerate(
            zip(found[:MOST_FINDINGS], chosen, strict=False)
        )
    ]
    more = len(found) - MOST_FINDINGS
    return joined(
        table(
            ("severity", "kind", "-bytes", "-objects", "-growth", "what"),
            rows,
            "findings",
        ),
        element("p", f"and {more} more, with fewer bytes") if more > 0 else None,
    )


def ways(
    finding: Finding,
    prefix: str,
    number: int,
    objects: Sequence[Chosen],
    with_place: bool = False,
) -> Markup:
    """What leads on from a finding: to its line in the flame graph, its holder, single objects.

    Args:
        with_place: the row of the finding is linked, too, by its line.
    """
    where = place_of(finding.site) if finding.site and finding.site.file else finding.kind
    held = finding.holders[0] if finding.holders else None
    return element(
        "p",
        link(f"{prefix}-finding-{number}", where) if with_place else None,
        seek(finding.site),
        link(f"{prefix}-holders-{number}", f"held by {held.name}") if held else None,
        *(
            link(f"{prefix}-object-{each.number}", f"{each.why}: object {each.number}")
            for each in objects
        ),
        class_="ways",
    )


def link(target: str, words: str) -> Markup:
    """A link to an element of the page."""
    return element("a", words, href=f"#{target}")


def finding_row(finding: Finding, with_cohorts: bool, name: str, onward: Markup) -> Markup:
    """One finding.

    Args:
        with_cohorts: they are to be seen at once, and not with the rest of the details.
        name: of the row, in the page.
        onward: what leads on from it.
    """
    rank = list(SEVERITY_SIGNS).index(finding.severity)
    rate = finding.slope_bytes_per_s
    return element(
        "tr",
        element("td", SEVERITY_SIGNS[finding.severity], data_value=-rank, class_="name"),
        element("td", finding.kind, class_="name"),
        number(finding.bytes, format_bytes(finding.bytes)),
        number(finding.count, format_count(finding.count)),
        number(rate or 0.0, format_rate(rate) if rate else ""),
        element(
            "td",
            finding.evidence,
            onward,
            cohorts(finding.cohorts) if with_cohorts else None,
            details(finding, with_cohorts, name.replace("finding", "holders")),
            class_="what",
        ),
        id=name,
    )


def seek(frame: StackFrame | None) -> Markup | None:
    """What finds a line in the flame graph; hidden until the script of the page makes it work."""
    if frame is None or not frame.file:
        return None
    return element(
        "button",
        "line in the flame graph",
        type="button",
        class_="seek",
        data_place=f"{frame.file}:{frame.line}",
        hidden=True,
    )


def details(finding: Finding, with_cohorts: bool, name: str) -> Markup | None:
    """What stands behind a finding: the fix, who holds, the stacks.

    Args:
        with_cohorts: they have been shown.
        name: of the part about holders, in the page.
    """
    fix = fix_of(finding)
    parts = [
        element("p", f"Fix: {fix}.") if fix else None,
        holders(finding.holders, name),
        None if with_cohorts else cohorts(finding.cohorts),
        stack("Stack", finding.stack, finding.site),
        stack("Allocated at", finding.allocated),
        stack("Freed at", finding.freed),
        stack(EARLIER.get(finding.kind, "Earlier").capitalize(), finding.earlier),
        element("p", f"Example: object {finding.object}") if finding.object is not None else None,
    ]
    if not any(parts):
        return None
    return element("details", element("summary", "details"), *parts)


def cohorts(found: Cohorts | None) -> Markup | None:
    """When objects were made, and how many of them lived on: the more of them, the darker."""
    if found is None:
        return None
    shown = cohort_table(found, with_units=False)
    head, *others = shown.heads
    rows = [
        element(
            "tr",
            element("th", cells[0], scope="row"),
            element("td", cells[1], class_="number"),
            *(cohort_cell(*cell) for cell in zip(cells[2:], shares, strict=True)),
        )
        for cells, shares in zip(shown.rows, shown.shares, strict=True)
    ]
    made = element(
        "table",
        element("caption", f"{shown.title[:1].upper()}{shown.title[1:]}"),
        element(
            "thead",
            element(
                "tr",
                element("th", head, scope="col"),
                *(element("th", name, scope="col", class_="number") for name in others),
            ),
        ),
        element("tbody", *rows),
        class_="cohorts",
    )
    notes = (element("p", note, class_="quiet") for note in shown.notes)
    return element("div", made, *notes, class_="wide")


def cohort_cell(words: str, share: float | None) -> Markup:
    """How many live, shaded by which share of their part that is."""
    shade = f"--lives: {share:.2f}" if share else None
    return element("td", words, class_="number", style=shade)


def holders(held: Sequence[Holder], name: str) -> Markup | None:
    """Who keeps the objects; ``name`` is that of the part, in the page."""
    if not held:
        return None
    rows = [
        element(
            "li",
            f"{holder.name}: {format_count(holder.count)}",
            circumstances(holder),
            element("div", holder.chain, class_="quiet") if holder.chain else None,
        )
        for holder in held
    ]
    return element("div", element("p", "Held by"), element("ul", *rows), id=name)


def circumstances(holder: Holder) -> Markup | str | None:
    """Where a holder took its objects; of one in Python when it was seen, and what it uses."""
    if holder.seen_ns is not None:
        return text.circumstances(holder)
    return joined(", acquired at ", place(holder.site)) if holder.site else None


def stack(
    title: str, frames: Sequence[StackFrame], blamed: StackFrame | None = None
) -> Markup | None:
    """A stack, innermost first, the blamed line marked and with its text where that can be read."""
    if not frames:
        return None
    rows = []
    for frame in frames:
        source = text.source_line(frame) if frame == blamed else []
        rows.append(
            element(
                "li",
                place(frame),
                f" {frame.function}",
                *(element("pre", line.strip()) for line in source),
                class_="blamed" if frame == blamed else None,
            )
        )
    return joined(element("p", title), element("ol", *rows, class_="stack"))


def place(frame: StackFrame | None) -> Markup:
    """A place in the program."""
    if frame is None or not frame.file:
        return element("span", "no Python stack", class_="quiet")
    where = str(frame) if is_line(frame) else place_of(frame)
    return element("span", where, class_="place")


def attribution(process: Process) -> Markup:
    """Where resident memory was when the program was judged, as the report for people says it."""
    found = process.analysis
    if not found.attribution.known:
        return element("p", "Resident memory was never sampled.")
    return element("pre", text.attribution_block(found.attribution, found.growth, found.peak))


def lines(rows: Sequence[LineTotals]) -> Markup:
    """Every line that made something, those that hold most first."""
    if not rows:
        return element("p", "None.")
    return table(
        ("line", "function", "-alive", "-objects alive", "-total", "-objects in total"),
        [
            element(
                "tr",
                element("td", place(row.frame)),
                element("td", row.frame.function),
                number(row.alive_bytes, format_bytes(row.alive_bytes)),
                number(row.alive_count, format_count(row.alive_count)),
                number(row.total_bytes, format_bytes(row.total_bytes)),
                number(row.total_count, format_count(row.total_count)),
            )
            for row in rows
        ],
    )


def threads(rows: Sequence[ThreadTotals], known_from_ns: int = 0) -> Markup:
    """What each thread allocated, with a bar for its share of all that is alive, and of all made.

    Args:
        known_from_ns: before this, which thread allocated is not known.
    """
    most_alive = max((row.alive_bytes for row in rows), default=0)
    most_made = max((row.made_bytes for row in rows), default=0)
    made = table(
        ("thread", "-alive", "-objects alive", "-allocated", "-objects allocated", "its main line"),
        [
            element(
                "tr",
                element("td", row.name, class_="name"),
                bar(row.alive_bytes, most_alive),
                number(row.alive_count, format_count(row.alive_count)),
                bar(row.made_bytes, most_made),
                number(row.made_count, format_count(row.made_count)),
                element("td", place(row.line)),
            )
            for row in rows
        ],
        "threads",
    )
    if not known_from_ns:
        return made
    since = f"Allocated: since {format_seconds(known_from_ns / 1e9)}; older events are folded."
    return joined(made, element("p", since, class_="quiet"))


def bar(value: int, most: int) -> Markup:
    """A cell with bytes, and a bar as long as their share of the most."""
    share = f"--share: {100 * value / most:.1f}%" if most else None
    return element("td", format_bytes(value), class_="number bar", data_value=value, style=share)


def heap(held: HeldHeap) -> Markup:
    """Lines that hold sampled heap of one kind of memory, most bytes first."""
    left_out = heap_words.lines_left_out(held, len(held.lines))
    rows = [
        element(
            "tr",
            element("td", place(line.site)),
            element("td", line.site.function),
            number(line.about.bytes, line.about.sign + format_bytes(line.about.bytes)),
            number(line.about.low, heap_words.range_of(line.about)),
            number(line.about.count, line.about.sign + format_count(line.about.count)),
        )
        for line in held.lines
    ]
    return joined(
        element("p", f"{heap_words.HEAP_NAMES[held.memory]}: {heap_words.amount(held.whole)}"),
        table(("line", "function", "-bytes", "-95% interval", "-blocks"), rows),
        element("p", f"and {left_out}") if left_out else None,
    )


def table(heads: Sequence[str], rows: Sequence[Markup], look: str = "") -> Markup:
    """A table that can be sorted by each column; ``-`` before a head: numbers, on the right."""
    cells = [
        element(
            "th",
            element("button", head.removeprefix("-"), type="button"),
            class_="number" if head.startswith("-") else None,
            aria_sort="none",
            scope="col",
        )
        for head in heads
    ]
    made = element(
        "table",
        element("thead", element("tr", *cells)),
        element("tbody", *rows),
        class_=f"sortable {look}".strip(),
    )
    return element("div", made, class_="wide")


def number(value: float, words: str) -> Markup:
    """A cell with a number: in words for people, as it is for sorting."""
    return element("td", words, class_="number", data_value=value)
