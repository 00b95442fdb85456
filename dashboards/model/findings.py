"""The table of findings, and all about one of them: evidence, cure, holders, stacks, a history.

Covers: one row for each line, with all that was found of it, sorted and filtered; the blocks that
the detail beside the table shows, and the same as Markdown for an issue.
Does not cover: how findings are made (``tlmem.analysis``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.ledger.history import History, HistoryStep
from tlmem.analysis.ledger.misuse import EARLIER, WHAT
from tlmem.analysis.model import SEVERITIES, Finding, StackFrame
from tlmem.analysis.places import in_full, place
from tlmem.report.cohorts import cohort_lines
from tlmem.report.kinds import kind_name
from tlmem.report.markdown import fenced, words
from tlmem.report.text import circumstances
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

MARKS = {"error": "‼ error", "warning": "! warning", "info": "· info"}
"""Severities in words and with a sign, so that colour says nothing alone."""
SORTS = ("severity", "place", "bytes", "objects", "growth", "kind")

MOST_FRAMES = 20
SOURCE = " " * 6
"""Before the text of a line below its frame."""
MOST_STEPS = 40
MOST_TAKEN = 2
WIDTH = 88
"""Of the table of cohorts, in letters, where nothing else is asked for."""


@dataclass(frozen=True)
class FindingRow:
    """One row, as it is shown; ``index`` is the place of its finding among all.

    ``others`` are those of less important findings of the same line.
    """

    index: int
    others: tuple[int, ...]
    severity: str
    name: str
    holder: str
    kind: str
    bytes: str
    objects: str
    growth: str
    place: str
    function: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Under the heads of ``HEADS``."""
        return (
            self.severity,
            self.place,
            self.name,
            self.holder,
            self.bytes,
            self.growth,
            self.objects,
            self.kind,
        )


HEADS = ("severity", "place", "what", "held by", "bytes", "growth", "objects", "code")
APART = (*WHAT, "misuse")
"""Findings that are not about what a line keeps have rows of their own."""


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
        (group[0], findings[group[0]], group[1:])
        for group in _by_line(findings)
        if findings[group[0]].severity in severities
        and any(_matches(findings[index], search.casefold()) for index in group)
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
    return [_row(index, finding, tuple(others)) for index, finding, others in wanted]


def _by_line(findings: Sequence[Finding]) -> list[list[int]]:
    """The places of findings; those about what one line keeps together, most important first."""
    groups: list[list[int]] = []
    of_line: dict[StackFrame, list[int]] = {}
    for index, finding in enumerate(findings):
        site = finding.site
        if site is None or not site.file or finding.kind in APART:
            groups.append([index])
        elif site in of_line:
            of_line[site].append(index)
        else:
            of_line[site] = [index]
            groups.append(of_line[site])
    return groups


def where(finding: Finding) -> str:
    """Base name and line, or a dash where there is none."""
    return place(finding.site) if finding.site is not None and finding.site.file else "–"


def holder_of(finding: Finding) -> str:
    """Who holds most of the objects; empty where that is not known."""
    named = [holder.name for holder in finding.holders if holder.kind != "none"]
    return named[0] if named else ""


def _row(index: int, finding: Finding, others: tuple[int, ...]) -> FindingRow:
    slope = finding.slope_bytes_per_s
    return FindingRow(
        index=index,
        others=others,
        severity=MARKS[finding.severity],
        name=kind_name(finding.kind),
        holder=holder_of(finding),
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
    texts = [finding.kind, kind_name(finding.kind), finding.evidence]
    texts += [holder.name for holder in finding.holders]
    texts += [str(site), site.function] if site else []
    return any(search in text.casefold() for text in texts)


@dataclass(frozen=True)
class Block:
    """A heading and lines below it; ``code`` says that the lines are set as they are.

    Of a stack, ``frames`` has a place for each line; source lines have that of their frame.
    """

    heading: str
    lines: tuple[str, ...]
    code: bool = False
    frames: tuple[StackFrame | None, ...] = ()


def finding_blocks(
    finding: Finding,
    life: History | None = None,
    width: int = WIDTH,
    others: Sequence[Finding] = (),
) -> list[Block]:
    """Everything that is known of a finding.

    Args:
        life: the history of its example object.
        width: letters for which a line has room; tables that can be narrower are.
        others: less important findings of the same line.
    """
    blocks = [Block(_heading(finding), _head(finding)), *_fix(finding)]
    for other in others:
        if other.kind != "live-at-end":
            blocks += [Block(_heading(other), (other.evidence,)), *_fix(other)]
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
            blocks.append(stack_block(heading, stack, finding.site))
    alive = next((other for other in others if other.kind == "live-at-end"), None)
    if alive is not None:
        blocks.append(Block(kind_name(alive.kind).capitalize(), (alive.evidence,)))
    if life is not None:
        blocks += _takings(finding, life)
        blocks.append(Block(f"History of object {life.object}", tuple(history_lines(life)), True))
    return blocks


def _heading(finding: Finding) -> str:
    """Severity, plain name, place, code: ``· info: alive when judged at a.py:3 · live-at-end``."""
    at = f" at {where(finding)}" if finding.site is not None and finding.site.file else ""
    return f"{MARKS[finding.severity]}: {kind_name(finding.kind)}{at} · {finding.kind}"


def _fix(finding: Finding) -> list[Block]:
    fix = fix_of(finding)
    return [Block("Fix", (f"{fix[:1].upper()}{fix[1:]}.",))] if fix else []


def markdown(
    finding: Finding, life: History | None, origin: str, others: Sequence[Finding] = ()
) -> str:
    """The blocks as Markdown for an issue; ``origin`` says which recording they are from.

    Names cannot become links, mentions or HTML there, nor end a fence.
    """
    parts = []
    for number, block in enumerate(finding_blocks(finding, life, others=others)):
        level = "###" if number == 0 else "####"
        lines = "\n".join(f"{words(line)}  " for line in block.lines)
        body = fenced(block.lines) if block.code else lines
        parts.append(f"{level} {words(block.heading)}\n\n{body}")
    return "\n\n".join([*parts, f"From {words(origin)}."]) + "\n"


def stack_block(
    heading: str, stack: Sequence[StackFrame], blamed: StackFrame | None = None
) -> Block:
    """A stack, innermost first, each frame with its source line; the blamed one is marked ``>``."""
    lines: list[tuple[str, StackFrame | None]] = []
    for frame in stack[:MOST_FRAMES]:
        mark = ">" if blamed is not None and frame == blamed else " "
        lines.append((f"{mark} {in_full(frame)}", frame))
        if frame.text:
            lines.append((f"{SOURCE}{frame.text}", frame))
    if len(stack) > MOST_FRAMES:
        lines.append((f"  and {len(stack) - MOST_FRAMES} more frames", None))
    texts, frames = zip(*lines, strict=True)
    return Block(heading, texts, code=True, frames=frames)


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
            yield stack_block(heading, step.stack, step.site)


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
