"""The table of findings, and all about one of them: evidence, cure, holders, stacks, a history.

Covers: sorting and filtering rows; the blocks that the detail beside the table shows, and the same
as Markdown for an issue.
Does not cover: how findings are made (``tlmem.analysis``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.ledger.history import History, HistoryStep
from tlmem.analysis.ledger.misuse import EARLIER
from tlmem.analysis.model import SEVERITIES, Finding, StackFrame
from tlmem.analysis.places import place
from tlmem.report.cohorts import cohort_lines
from tlmem.report.markdown import fenced, words
from tlmem.report.text import circumstances
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

MARKS = {"error": "‼ error", "warning": "! warning", "info": "· info"}
"""Severities in words and with a sign, so that colour says nothing alone."""
SORTS = ("severity", "place", "bytes", "objects", "growth", "kind")

MOST_FRAMES = 20
MOST_STEPS = 40
MOST_TAKEN = 2
WIDTH = 88
"""Of the table of cohorts, in letters, where nothing else is asked for."""


@dataclass(frozen=True)
class FindingRow:
    """One row, as it is shown; ``index`` is the place of the finding among all."""

    index: int
    severity: str
    kind: str
    bytes: str
    objects: str
    growth: str
    place: str
    function: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Under the heads of ``HEADS``."""
        return (self.severity, self.place, self.bytes, self.objects, self.growth, self.kind)


HEADS = ("severity", "place", "bytes", "objects", "growth", "kind")


def finding_rows(
    findings: Sequence[Finding],
    sort: str = "severity",
    search: str = "",
    severities: Sequence[str] = SEVERITIES,
) -> list[FindingRow]:
    """The rows of a table of findings.

    Args:
        sort: of ``SORTS``; numbers fall, words rise. ``severity`` is the order of the findings,
            most important first.
        search: text that must stand in the kind, place, function, holder or evidence, in any case.
        severities: those that are shown.
    """
    wanted = [
        (index, finding)
        for index, finding in enumerate(findings)
        if finding.severity in severities and _matches(finding, search.casefold())
    ]
    keys = {
        "severity": lambda pair: pair[0],
        "bytes": lambda pair: -pair[1].bytes,
        "objects": lambda pair: -pair[1].count,
        "growth": lambda pair: -(pair[1].slope_bytes_per_s or 0.0),
        "kind": lambda pair: pair[1].kind,
        "place": lambda pair: where(pair[1]),
    }
    wanted.sort(key=keys[sort])
    return [_row(index, finding) for index, finding in wanted]


def where(finding: Finding) -> str:
    """Base name and line, or a dash where there is none."""
    return place(finding.site) if finding.site is not None and finding.site.file else "–"


def _row(index: int, finding: Finding) -> FindingRow:
    slope = finding.slope_bytes_per_s
    return FindingRow(
        index=index,
        severity=MARKS[finding.severity],
        kind=finding.kind,
        bytes=format_bytes(finding.bytes) if finding.bytes else "",
        objects=format_count(finding.count) if finding.count else "",
        growth=format_rate(slope) if slope else "",
        place=where(finding),
        function=finding.site.function if finding.site else "",
    )


def _matches(finding: Finding, search: str) -> bool:
    if not search:
        return True
    site = finding.site
    texts = [finding.kind, finding.evidence, *(holder.name for holder in finding.holders)]
    texts += [str(site), site.function] if site else []
    return any(search in text.casefold() for text in texts)


@dataclass(frozen=True)
class Block:
    """A heading and lines below it; ``code`` says that the lines are set as they are."""

    heading: str
    lines: tuple[str, ...]
    code: bool = False


def finding_blocks(
    finding: Finding, life: History | None = None, width: int = WIDTH
) -> list[Block]:
    """Everything that is known of a finding.

    Args:
        life: the history of its example object.
        width: letters for which a line has room; tables that can be narrower are.
    """
    heading = f"{MARKS[finding.severity]}: {finding.kind} at {where(finding)}"
    blocks = [Block(heading, _head(finding))]
    if fix := fix_of(finding):
        blocks.append(Block("Fix", (f"{fix[:1].upper()}{fix[1:]}.",)))
    if finding.holders:
        blocks.append(Block("Held by", tuple(_holders(finding, life))))
    if finding.cohorts is not None:
        title, *lines = cohort_lines(finding.cohorts, width)
        blocks.append(Block(f"{title[:1].upper()}{title[1:]}", tuple(lines), code=True))
    stacks = (
        ("Stack", finding.stack),
        ("Allocated at", finding.allocated),
        ("Freed at", finding.freed),
        (EARLIER.get(finding.kind, "Before").capitalize(), finding.earlier),
    )
    for heading, stack in stacks:
        if stack:
            blocks.append(Block(heading, tuple(stack_lines(stack, finding.site)), code=True))
    if life is not None:
        blocks += _takings(finding, life)
        blocks.append(Block(f"History of object {life.object}", tuple(history_lines(life)), True))
    return blocks


def markdown(finding: Finding, life: History | None, origin: str) -> str:
    """The blocks as Markdown for an issue; ``origin`` says which recording they are from.

    Names cannot become links, mentions or HTML there, nor end a fence.
    """
    parts = []
    for number, block in enumerate(finding_blocks(finding, life)):
        level = "###" if number == 0 else "####"
        lines = "\n".join(f"{words(line)}  " for line in block.lines)
        body = fenced(block.lines) if block.code else lines
        parts.append(f"{level} {words(block.heading)}\n\n{body}")
    return "\n\n".join([*parts, f"From {words(origin)}."]) + "\n"


def stack_lines(stack: Sequence[StackFrame], blamed: StackFrame | None = None) -> Iterator[str]:
    """A stack, innermost first, each frame with its source line; the blamed one is marked ``>``."""
    for frame in stack[:MOST_FRAMES]:
        mark = ">" if blamed is not None and frame == blamed else " "
        yield f"{mark} {frame.file}:{frame.line} in {frame.function}"
        if frame.text:
            yield f"      {frame.text}"
    if len(stack) > MOST_FRAMES:
        yield f"  and {len(stack) - MOST_FRAMES} more frames"


def history_lines(life: History) -> Iterator[str]:
    """A line for each step of an object's life, ``!`` before an acquire without a release."""
    size = format_bytes(life.bytes) if life.bytes else "no bytes of its own"
    end = "alive at the end" if life.died_ns < 0 else f"freed at {life.died_ns / 1e9:.6f} s"
    yield f"{size}, device {life.device}, {end}"
    shown = life.steps[:MOST_STEPS]
    for step in shown:
        yield step_line(step)
    if len(life.steps) > len(shown):
        yield f"  and {format_count(len(life.steps) - len(shown))} more steps"


def step_line(step: HistoryStep) -> str:
    """One step of a life: when, what, the count after it, by whom, where, and its pair."""
    count = "" if step.count is None else str(step.count)
    pair = f"<{step.began_at}" if step.began_at else f">{step.ended_by}" if step.ended_by else ""
    by = f"by {step.holder}" if step.holder else ""
    words = [
        f"{'!' if step.unpaired else ' '} {step.number:>3} {step.time_ns / 1e9:>9.6f} s",
        f"{step.event:<10} {count:>2} {pair:<4}",
        place(step.site) if step.site.file else "",
        by,
        "never released" if step.unpaired else "",
    ]
    return "  ".join(word for word in words if word).rstrip()


def _takings(finding: Finding, life: History) -> Iterator[Block]:
    """The stacks of those who took the example object and never gave it back."""
    for step in life.held[:MOST_TAKEN]:
        if step.stack and step.stack != finding.stack:
            heading = f"{step.holder or 'no holder'} acquired object {life.object}, never released"
            yield Block(heading, tuple(stack_lines(step.stack, step.site)), code=True)


def _head(finding: Finding) -> tuple[str, ...]:
    lines = [finding.evidence]
    numbers = []
    if finding.count:
        many = "s" if finding.count != 1 else ""
        numbers.append(f"{format_count(finding.count)} object{many}")
    if finding.bytes:
        numbers.append(format_bytes(finding.bytes))
    if finding.slope_bytes_per_s:
        numbers.append(f"growing by {format_rate(finding.slope_bytes_per_s)}")
    if numbers:
        lines.append(", ".join(numbers))
    source = finding.site.text if finding.site else ""
    if source and finding.site:
        lines.append(f"{place(finding.site)}:  {source}")
    return tuple(lines)


def _holders(finding: Finding, life: History | None) -> Iterator[str]:
    """Who holds the objects, from where, and of the example since when."""
    since = {step.holder: step.time_ns for step in life.held} if life is not None else {}
    for holder in finding.holders:
        text = f"{holder.name}: {format_count(holder.count)}"
        if holder.seen_ns is not None:
            text += circumstances(holder)
        elif holder.site is not None and holder.site.file:
            text += f", acquired at {place(holder.site)} in {holder.site.function}"
        if life is not None and holder.name in since:
            text += f"; object {life.object} since {format_seconds(since[holder.name] / 1e9)}"
        yield text
        if holder.chain:
            yield f"  {holder.chain}"
