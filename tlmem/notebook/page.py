"""What stands below a recorded cell: HTML in a notebook, text in a terminal.

Covers: the verdict or what was kept, by line and holder; the peak; a picture; the report, folded.
Does not cover: how any of it is found or drawn; see ``report``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import Finding, StackFrame
from tlmem.analysis.places import Places, place
from tlmem.report import text
from tlmem.report.html.figures import embedded
from tlmem.report.html.markup import Markup, element
from tlmem.report.html.sections import GROWS, SIGNS
from tlmem.report.plots import NothingToDraw, PlotView, picture
from tlmem.report.site_sums import LineTotals, line_totals
from tlmem.report.summary import Process, Summary
from tlmem.units import format_bytes, format_count

MOST_LINES = 10
MOST_HOLDERS = 3
UNJUDGED = "cannot-judge"
STYLE = """
.tlmem-cell table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.tlmem-cell th, .tlmem-cell td { text-align: left; padding: .2em .8em; vertical-align: top; }
.tlmem-cell .number { text-align: right; white-space: nowrap; }
.tlmem-cell figure { max-width: 52em; margin: .6em 0; }
.tlmem-cell figure svg { width: 100%; height: auto; color: inherit; }
.tlmem-cell pre { white-space: pre-wrap; }
.tlmem-cell .grows { color: #b3261e; } .tlmem-cell .fine { color: #00694a; }
"""


RESULT = "local variable 'result' of TlmemMagics.tlmem()"
"""Who holds the value of the cell's last expression before IPython shows it."""


@dataclass(frozen=True)
class Cell:
    """The file name that the cell's code has, and its number."""

    name: str
    number: int

    def place(self, frame: StackFrame) -> str:
        """Where something was allocated: a line of this cell, or of a module."""
        if frame.file == self.name:
            return f"line {frame.line}"
        function = frame.function if frame.function != "<module>" else ""
        return f"{place(frame)} {function}".rstrip()

    def holder(self, name: str) -> str:
        """A holder in the words of a notebook."""
        return f"the cell's result, Out[{self.number}]" if name.startswith(RESULT) else name


@dataclass(frozen=True)
class Kept:
    """What one line made that is still alive, its text, and who holds it."""

    line: LineTotals
    place: str
    text: str
    holders: tuple[str, ...]


@dataclass(frozen=True)
class CellReport:
    """The report of one cell; notebooks show it as HTML, terminals as text."""

    summary: Summary
    kept: tuple[Kept, ...]
    path: str | None

    @classmethod
    def of(cls, summary: Summary, cell: Cell, path: str | None = None) -> CellReport:
        """Of a recording, which stands in the file ``path`` where it was asked for."""
        return cls(summary, tuple(_kept(summary.processes[0], cell)), path)

    def sentences(self) -> list[str]:
        """The verdict where there is one, what the cell kept, and the most it had at once."""
        process = self.summary.processes[0]
        judged = self.summary.verdict
        said = [] if judged.outcome == UNJUDGED else [judged.sentence]
        totals = process.totals
        count, size = totals["current_count"], totals["current_bytes"]
        if not totals["total_count"]:
            return [*said, "The cell allocated no arrays or tensors."]
        left = f"{_objects(count)} of {format_bytes(size)} {'are' if count > 1 else 'is'} alive."
        said.append(
            f"The cell allocated {_objects(totals['total_count'])} of "
            f"{format_bytes(totals['total_bytes'])}, at most {format_bytes(totals['peak_bytes'])} "
            f"at once. {left if count else 'All of them are freed.'}"
        )
        return said

    def __repr__(self) -> str:
        rows = [text.wrap(sentence) for sentence in self.sentences()]
        for kept in self.kept:
            rows.append(
                f"  {format_bytes(kept.line.alive_bytes):>9}  "
                f"{format_count(kept.line.alive_count):>9}  "
                f"{kept.place}"
            )
            rows += [f"{'':24}{kept.text}"] if kept.text else []
            rows += [f"{'':24}held by {holder}" for holder in kept.holders]
        if self.path:
            rows.append(f"Recording: {self.path}")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        judged = self.summary.verdict.outcome
        look, sign = SIGNS.get(judged, GROWS) if judged != UNJUDGED else ("", "")
        first, *others = self.sentences()
        said = [
            element("p", f"{sign} {first}".strip(), class_=look or None),
            *(element("p", sentence) for sentence in others),
        ]
        return element(
            "div",
            element("style", Markup(STYLE)),
            *said,
            self._table(),
            self._picture(),
            self._details(),
            element("p", "Recording: ", element("code", self.path)) if self.path else None,
            class_="tlmem-cell",
        )

    def _table(self) -> Markup | None:
        if not self.kept:
            return None
        heads = [
            element("th", head, class_="number" if head in ("alive", "objects") else None)
            for head in ("alive", "objects", "line", "held by")
        ]
        rows = [
            element(
                "tr",
                element("td", format_bytes(kept.line.alive_bytes), class_="number"),
                element("td", format_count(kept.line.alive_count), class_="number"),
                element(
                    "td",
                    kept.place,
                    *((element("br"), element("code", kept.text)) if kept.text else ()),
                ),
                element("td", *_with_breaks(kept.holders)),
            )
            for kept in self.kept
        ]
        return element("table", element("thead", element("tr", *heads)), element("tbody", *rows))

    def _picture(self) -> Markup | None:
        process = self.summary.processes[0]
        try:
            svg = picture(
                PlotView.of(process.recording, process.analysis), "sites", "svg", transparent=True
            )
        except NothingToDraw:
            return None
        label = "Memory of the cell over time, by line"
        prefix = f"tlmem-{process.recording.created_unix_ns}-"
        return element("figure", Markup(embedded(svg.decode(), prefix, label)))

    def _details(self) -> Markup:
        blocks = "\n\n".join(text.process_blocks(self.summary.processes[0]))
        return element("details", element("summary", "The report"), element("pre", blocks))


def _objects(count: int) -> str:
    return f"{format_count(count)} object{'s' if count != 1 else ''}"


def _with_breaks(lines: tuple[str, ...]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number:
            yield element("br")
        yield line


def _kept(process: Process, cell: Cell) -> Iterator[Kept]:
    """Lines with objects that were alive when the cell ended, most bytes first."""
    recording, found = process.recording, process.analysis
    judged_ns = lifetimes(recording, Places.of(recording)).judged_ns
    for line in line_totals(recording, MOST_LINES, judged_ns):
        if line.alive_count:
            names = dict.fromkeys(map(cell.holder, _holders(found.findings, line)))
            source = " ".join(text.source_line(line.frame)).strip()
            yield Kept(line, cell.place(line.frame), source, tuple(names))


def _holders(findings: tuple[Finding, ...], line: LineTotals) -> list[str]:
    for finding in findings:
        if finding.site == line.frame and finding.holders:
            return [holder.name for holder in finding.holders[:MOST_HOLDERS]]
    return []
