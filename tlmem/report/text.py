"""The report for people: the verdict first, then the lines, then where memory is.

Covers: plain text of at most 100 columns where names allow, readable without colour; the blocks
about growth per step and about the parts of resident memory, which other reports show too.
Does not cover: how numbers are found; see ``tlmem.analysis``.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tlmem.analysis.growth.per_scope import ScopeGrowth
from tlmem.analysis.leaks.cures import FIXES, fix_of
from tlmem.analysis.leaks.left_on import LEFT_ON
from tlmem.analysis.leaks.python_objects import SMALL_VIEW
from tlmem.analysis.ledger.misuse import EARLIER, WHAT
from tlmem.analysis.model import (
    Analysis,
    Attribution,
    Change,
    Finding,
    Holder,
    Peak,
    Rate,
    StackFrame,
    interval,
)
from tlmem.analysis.places import place
from tlmem.events import FIRST_RUNTIME_DEVICE
from tlmem.report.allocator import allocator_lines
from tlmem.report.cohorts import cohort_lines
from tlmem.report.ending import ending_sentence
from tlmem.report.explain import explain_block
from tlmem.report.heap import HEAP_NOTE, heap_folded, held_rows, named, resident_of
from tlmem.report.peak import section as peak_section
from tlmem.report.summary import Process, Summary
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

WIDTH = 100
MOST_GROWING = 5
MOST_COHORTS = 3
"""Growing lines of which a report shows the cohorts at once."""
MOST_ALIVE, LEAST_ALIVE = 10, 3
TRIVIAL_SHARE, MANY_ALIVE = 0.005, 20
"""A line with less of all bytes, and with fewer objects, is counted and not listed."""
MOST_FRAMES = 12
MOST_MISUSES = 5
MISUSES = (*WHAT, "misuse")
STEP_BYTES = (
    ("tracked_bytes", "bytes of arrays and objects"),
    ("resident_bytes", "resident memory"),
    ("native_bytes", "native memory"),
    ("python_bytes", "Python's heap"),
)
PARTS = (
    (" ", "tracked", "arrays, tracked"),
    ("-", "untouched", "of these never touched, so not resident"),
    ("+", "pool", "kept by devices, pools and arenas"),
    ("+", "python", "Python's heap"),
    ("+", "allocator_free", "freed, kept by the C allocator"),
    ("+", "tape", "records on tapes"),
    ("+", "recorder", "the recorder, including its file"),
    ("+", "library", "programs and libraries, code and data"),
    ("+", "native", "native code's allocations"),
    ("+", "mapped", "mapped by libraries and the program"),
    ("+", "file", "files mapped"),
    ("+", "shared", "shared memory"),
    ("+", "stack", "stacks of threads"),
    ("+", "residual", "not explained"),
    ("=", "resident", "resident"),
)
"""Sign, field and name of each row."""
ALWAYS = ("residual", "resident")
LARGEST = 3
MOST_REFUSED = 3
LEAST_OF_PEAK = 0.05
NO_HOLDER = "no holder"
AT_EXIT = "at exit"
HIGHER = 1.02
"""A peak that is less than this above the moment of judging is not shown."""


def render(summary: Summary, explain: bool = False) -> str:
    """The whole report, with a line feed at its end.

    Args:
        explain: whether each verdict is followed by the questions that led to it.
    """
    blocks = [wrap(summary.verdict.sentence)]
    if summary.is_family:
        together = f"{len(summary.processes)} processes together"
        blocks.append(totals_block(summary.totals, together))
        if summary.attribution.known:
            blocks.append(attribution_block(summary.attribution, summary.growth, summary.peak))
    for process in summary.processes:
        blocks.extend(process_part(process, explain, summary.is_family))
    return "\n\n".join(blocks) + "\n"


def process_part(process: Process, explain: bool, titled: bool) -> Iterable[str]:
    """One process of a report: under a title of its own where there are several."""
    if titled:
        script = process.recording.info.get("script", "")
        title = process.name + (f", {script}" if script else "")
        yield f"{title}\n{'=' * len(title)}"
        yield wrap(process.analysis.verdict.sentence)
    if explain:
        yield explain_block(process.analysis.verdict)
    yield from process_blocks(process)


def process_blocks(process: Process) -> Iterable[str]:
    """What is shown of one process below its verdict; no finding is in two blocks."""
    ending = ending_sentence(process.recording)
    if ending:
        yield wrap(ending)
    findings, verdict = process.analysis.findings, process.analysis.verdict.sentence
    growing = [f for f in findings if f.kind == "growing-site"]
    alive = [f for f in findings if f.kind == "live-at-end"]
    ours = process.recording.info.get("tlmem.path", "")
    if growing:
        yield growing_block(growing, ours)
    left_on = [f for f in findings if f.kind in LEFT_ON]
    classes = [f for f in findings if f.kind in FIXES and f.kind not in LEFT_ON]
    if classes:
        of_garbage = not growing and all(f.kind == "reference-cycle" for f in classes)
        yield classes_block(classes, "Garbage" if of_garbage else "Causes", verdict)
    if left_on:
        yield classes_block(left_on, "Left on", verdict)
    misused = [f for f in findings if f.kind in MISUSES]
    if misused:
        yield misuse_block(misused, ours)
    shown = [*growing, *classes, *left_on, *alive, *misused]
    others = [f for f in findings if f not in shown and not is_said(f, verdict)]
    if others:
        rows = [
            row
            for f in others
            for row in (wrap(f.evidence, "  "), *([wrap(f"Fix: {f.fix}.", " " * 12)] * bool(f.fix)))
        ]
        yield "\n".join(["Other findings", *rows])
    if growing or classes:
        yield next_block(process, [*growing, *classes])
    steps = steps_block(process.analysis)
    if steps:
        yield steps
    lines = {finding.site for finding in growing[:MOST_GROWING]}
    alive = [finding for finding in alive if finding.site not in lines]
    if alive:
        yield alive_block(alive, alive_title(process.analysis.judged_ns, bool(lines)))
    if process.analysis.heap:
        yield heap_block(process)
    if process.analysis.attribution.known:
        yield attribution_block(
            process.analysis.attribution, process.analysis.growth, process.analysis.peak
        )
    reserved = allocator_lines(process.recording)
    if reserved:
        yield "\n".join(["Caching allocator", *(wrap(line, "  ") for line in reserved)])
    peak = peak_section(process.recording)
    if peak:
        yield peak
    objects = max(process.recording.object_devices, default=0) >= FIRST_RUNTIME_DEVICE
    title = "Blocks" if reserved else "Arrays and objects" if objects else "Arrays"
    yield totals_block(process.totals, title)
    yield recording_block(process)


def growing_block(findings: list[Finding], ours: str = "") -> str:
    """Lines that grow, each with its source line and stack; ``ours`` is the folder of tlmem."""
    rows = ["Growing lines", f"  {'bytes':>9} {'alive':>9} {'growth':>13}  line"]
    for number, finding in enumerate(findings[:MOST_GROWING]):
        rate = format_rate(finding.slope_bytes_per_s or 0.0)
        rows.append(
            f"  {format_bytes(finding.bytes):>9} {format_count(finding.count):>9} {rate:>13}  "
            f"{named(finding.site)}"
        )
        rows.extend(source_line(finding.site))
        rows.extend(held_by(finding))
        if number < MOST_COHORTS:
            rows.extend(f"{'':12}{row}" for row in cohort_lines(finding.cohorts, WIDTH - 12))
        rows.extend(callers(finding, ours))
    if len(findings) > MOST_GROWING:
        rows.append(f"  and {len(findings) - MOST_GROWING} more lines")
    return "\n".join(rows)


def is_said(finding: Finding, sentence: str) -> bool:
    """Whether a sentence, such as that of the verdict, says all that a finding says."""
    evidence = finding.evidence.removesuffix(".")
    if finding.site is None:
        return evidence in sentence
    here = evidence.replace(f"allocated at {place(finding.site)}", "allocated here", 1)
    return evidence in sentence or here in sentence


def classes_block(findings: list[Finding], title: str = "Causes", verdict: str = "") -> str:
    """Why lines grow, and what to do about each; of one that the verdict describes only the fix."""
    rows = [title]
    for finding in findings[:MOST_GROWING]:
        evidence = "see the verdict." if is_said(finding, verdict) else finding.evidence
        rows.append(wrap(f"{finding.kind}: {evidence}", "  "))
        rows.append(wrap(f"Fix: {fix_of(finding)}.", " " * 12))
    if len(findings) > MOST_GROWING:
        rows.append(f"  and {len(findings) - MOST_GROWING} more")
    return "\n".join(rows)


def misuse_block(findings: list[Finding], ours: str = "") -> str:
    """What was done wrong, each with its source line and stack; ``ours`` is tlmem's folder."""
    rows = ["Misuse"]
    for finding in findings[:MOST_MISUSES]:
        rows.append(wrap(finding.evidence, "  "))
        rows.extend(source_line(finding.site))
        rows.extend(callers(finding, ours))
        for title, stack in (
            ("allocated at", finding.allocated),
            ("freed at", finding.freed),
            (EARLIER.get(finding.kind, ""), finding.earlier),
        ):
            rows.extend([f"{'':8}{title}", *frames(stack, ours=ours)] if stack else [])
    if len(findings) > MOST_MISUSES:
        rows.append(f"  and {len(findings) - MOST_MISUSES} more")
    return "\n".join(rows)


def held_by(finding: Finding) -> list[str]:
    """Who keeps the objects, a line each; holders that are nearly the same are one line."""
    return [
        wrap(holder_line(holder, others), " " * 12) for holder, others in merged(finding.holders)
    ]


def holder_line(holder: Holder, others: int = 0) -> str:
    """One holder with how many objects it holds; ``others`` are as many more that are alike."""
    if holder.kind == "floating":
        since = f", since {place(holder.site)}" if holder.site and holder.site.file else ""
        return f"{NO_HOLDER}: {format_count(holder.count)}{since}"
    count = format_count(holder.count)
    if others:
        # An object may have several holders of a runtime, but is in one chain of Python's objects.
        count = f"at most {count} each" if holder.seen_ns is None else f"{count} together"
        count = f"{count} ({others + 1} similar holders)"
    return f"held by {holder.name}: {count}{circumstances(holder)}"


def merged(holders: Sequence[Holder]) -> list[tuple[Holder, int]]:
    """Holders that differ only in numbers (an index, a line) as one, with how many others it is.

    The name and place are those of the first; Python's are added up, of others the largest counts.
    """
    found: dict[tuple[object, ...], tuple[Holder, int]] = {}
    for holder in holders:
        site = holder.site
        where = (site.file, site.function) if site is not None else None
        key = (holder.kind, re.sub(r"\d+", "0", holder.name), where)
        if key not in found:
            found[key] = (holder, 0)
            continue
        first, others = found[key]
        if first.seen_ns is None:
            first = replace(first, count=max(first.count, holder.count))
        else:
            first = replace(
                first,
                count=first.count + holder.count,
                held_bytes=(first.held_bytes or 0) + (holder.held_bytes or 0),
                used_bytes=(first.used_bytes or 0) + (holder.used_bytes or 0),
            )
        found[key] = (first, others + 1)
    return list(found.values())


def circumstances(holder: Holder) -> str:
    """Where a holder took its objects; of one in Python when it was seen, and what it uses."""
    if holder.seen_ns is None:
        return f", acquired at {place(holder.site)}" if holder.site and holder.site.file else ""
    seen = f", seen after {format_seconds(holder.seen_ns / 1e9)}"
    used, held = holder.used_bytes or 0, holder.held_bytes or 0
    if used < SMALL_VIEW * held:
        seen += f", uses {format_bytes(used)} of {format_bytes(held)} held"
    return seen


def alive_title(judged_ns: int, others: bool = False) -> str:
    """What the block is called of lines with live objects; ``others`` are shown before it."""
    when = when_judged(judged_ns)
    return f"Other lines with objects alive {when}" if others else f"Alive {when}"


def when_judged(judged_ns: int) -> str:
    """The moment at which the report looks at what is alive."""
    return f"when judged, after {format_seconds(judged_ns / 1e9)}"


def weighty(findings: list[Finding]) -> list[Finding]:
    """Lines worth a row: the first ones, and those that have a share of the bytes, or many objects.

    A few bytes in many objects may be what keeps much else alive.
    """
    enough = TRIVIAL_SHARE * sum(finding.bytes for finding in findings)
    return [
        finding
        for at, finding in enumerate(findings)
        if at < LEAST_ALIVE or finding.bytes >= enough or finding.count >= MANY_ALIVE
    ][:MOST_ALIVE]


def alive_block(findings: list[Finding], title: str) -> str:
    """Lines that hold most bytes when judged; beside them what is left at exit, if that is less."""
    shown = weighty(findings)
    less = any(f.exit_bytes is not None and f.exit_bytes < f.bytes for f in shown)
    rows = [title, f"  {'bytes':>9} {'alive':>9}{f' {AT_EXIT:>9}' if less else ''}  line"]
    for finding in shown:
        left = finding.bytes if finding.exit_bytes is None else finding.exit_bytes
        at_exit = f" {format_bytes(left):>9}" if less else ""
        rows.append(
            f"  {format_bytes(finding.bytes):>9} {format_count(finding.count):>9}{at_exit}  "
            f"{named(finding.site)}{', temporary' if finding.passing else ''}"
        )
        rows.extend(held_by(finding))
    rest = [finding for finding in findings if finding not in shown]
    if rest:
        many = "lines with" if len(rest) > 1 else "line with"
        rows.append(f"  and {len(rest)} more {many} {format_bytes(sum(f.bytes for f in rest))}")
    return "\n".join(rows)


def heap_block(process: Process) -> str:
    """Lines that hold most of the sampled heap when judged, native memory and Python's apart."""
    rows = [f"Sampled heap {when_judged(process.analysis.judged_ns)}", wrap(HEAP_NOTE, "  ")]
    resident = resident_of(process.analysis.attribution)
    rows += held_rows(process.analysis.heap, "  ", resident)
    if folded := heap_folded(process.recording):
        rows.append(wrap(folded, "  "))
    return "\n".join(rows)


def next_block(process: Process, findings: list[Finding]) -> str:
    """The commands that show more: one object's history, and acquires without a release."""
    path = shlex.quote(str(process.recording.path))
    rows = ["Next steps"]
    example = next((f.object for f in findings if f.object is not None), None)
    if example is not None:
        rows.append(f"  tlmem history {path} {example}\n      the history of one of these objects")
    rows.append(f"  tlmem balance {path}\n      acquires without a release, by call stack")
    return "\n".join(rows)


def totals_block(totals: dict[str, int], title: str) -> str:
    """Counters from the start of the recording."""
    return "\n".join(
        [
            title,
            f"  {'':8} {'bytes':>9} {'count':>13}",
            *(
                f"  {name:8} {format_bytes(totals[f'{key}_bytes']):>9} "
                f"{format_count(totals[f'{key}_count']):>13}"
                for name, key in ((AT_EXIT, "current"), ("at peak", "peak"), ("total", "total"))
            ),
        ]
    )


def recording_block(process: Process) -> str:
    """What was recorded, and whether the file is whole."""
    recording = process.recording
    rows = [
        "Recording",
        f"  {recording.path}",
        f"  {format_count(recording.event_count)} events in {format_seconds(recording.seconds)}"
        + (", complete" if recording.complete else ", not complete"),
    ]
    command = recording.info.get("command", "")
    if command:
        rows.insert(2, f"  {clipped(' '.join(command.split()), WIDTH - 2)}")
    if "attached" in recording.info:
        rows.append("  attached to a running process: what it allocated before is not counted")
    rows.extend(wrap(f"problem: {problem}", "  ") for problem in recording.problems)
    lines = recording.source_lines
    if lines.is_missing and recording.totals.total_count:
        rows.append(wrap("It has no source lines; --source-root DIR reads files below DIR.", "  "))
    for file, why in list(lines.refused.items())[:MOST_REFUSED]:
        rows.append(wrap(f"The lines of {file} are not shown: {why}.", "  "))
    return "\n".join(rows)


def source_line(frame: StackFrame | None) -> list[str]:
    """The text of a line, where it is known."""
    text = frame.text if frame is not None else ""
    return [f"{'':12}{clipped(text, WIDTH - 12)}"] if text else []


def clipped(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4]} ..."


def callers(finding: Finding, ours: str = "") -> list[str]:
    """The stack around the blamed line, innermost first."""
    return frames(finding.stack, finding.site, ours)


def frames(
    stack: tuple[StackFrame, ...], site: StackFrame | None = None, ours: str = ""
) -> list[str]:
    """A stack, innermost first, a line each; that of the blamed line is marked.

    The frames that begin it and are of tlmem, whose folder is ``ours``, are one line.
    """
    rows = []
    inner = own_frames(stack, site, ours)
    if inner > 1:
        rows.append(f"{'':12}... {inner} frames of tlmem")
        stack = stack[inner:]
    for frame in stack[:MOST_FRAMES]:
        mark = ">" if site is not None and frame == site else " "
        rows.append(f"{'':10}{mark} {named(frame)}")
    if len(stack) > MOST_FRAMES:
        rows.append(f"{'':12}and {len(stack) - MOST_FRAMES} more frames")
    return rows


def own_frames(stack: tuple[StackFrame, ...], site: StackFrame | None, ours: str) -> int:
    """How many of the innermost frames are tlmem's own, and not the blamed one."""
    folders = (ours.rstrip("/\\") + "/", ours + "\\")
    for count, frame in enumerate(stack):
        if not ours or frame == site or not frame.file.startswith(folders):
            return count
    return 0


def wrap(sentence: str, indent: str = "") -> str:
    return textwrap.fill(
        sentence,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def attribution_block(
    parts: Attribution, growth: Change | None = None, peak: Peak | None = None
) -> str:
    """The parts that add up, beside each what it grew by in the steady state, then the peak."""
    title = "Resident memory"
    if growth is not None and growth.begin_s is not None and growth.end_s is not None:
        title += (
            f" after {format_seconds(growth.end_s)}, "
            f"and its growth since {format_seconds(growth.begin_s)}"
        )
    rows = [title]
    for sign, name, text in PARTS:
        size = bytes_of(parts, name)
        grown = bytes_of(growth.parts, name) if growth is not None else 0
        if not (size or grown or name in ALWAYS):
            continue
        change = f" {with_sign(grown):>9}" if growth is not None else ""
        rows.append(f"  {sign} {format_bytes(size):>9}{change}  {text}")
    if peak is not None and peak.parts.resident_bytes > HIGHER * parts.resident_bytes:
        rows.append(
            textwrap.fill(
                peak_sentence(peak),
                WIDTH,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
        )
    return "\n".join(rows)


def bytes_of(parts: Attribution, name: str) -> int:
    """One part, by the name of its row."""
    return int(getattr(parts, f"{name}_bytes"))


def with_sign(size: int) -> str:
    """A change, with a sign unless it is nothing."""
    return f"+{format_bytes(size)}" if size > 0 else format_bytes(size) if size else "0 B"


def peak_sentence(peak: Peak) -> str:
    """How much it was at the peak, and the largest parts of that."""
    parts = peak.parts
    sizes = [
        (bytes_of(parts, name) - (parts.untouched_bytes if name == "tracked" else 0), text)
        for sign, name, text in PARTS
        if sign != "=" and name != "untouched"
    ]
    largest = sorted(sizes, reverse=True)[:LARGEST]
    shares = ", ".join(
        f"{text} {format_bytes(size)}"
        for size, text in largest
        if size > LEAST_OF_PEAK * parts.resident_bytes
    )
    when = f" after {format_seconds(peak.at_s)}" if peak.at_s is not None else ""
    return f"at the peak{when}: {format_bytes(parts.resident_bytes)} ({shares})"


def steps_block(analysis: Analysis) -> str:
    """Growth of each label of marks and of scopes; empty without any."""
    rows = []
    for growth in analysis.per_mark:
        rows.append(
            f"  per {growth.label}, {format_count(growth.count)} of {format_count(growth.marks)} "
            "marks in steady state"
        )
        for name, words in STEP_BYTES:
            rate = getattr(growth, name)
            if rate is not None:
                rows.append(f"    {step_text(rate, format_bytes):>9}  {words}{sure(rate)}")
        if growth.tracked_objects is not None:
            text = step_text(growth.tracked_objects, number)
            doubt = interval(growth.tracked_objects, number)
            rows.append(f"    {text:>9}  arrays and objects alive ({doubt})")
    rows.extend(scope_row(growth) for growth in analysis.per_scope)
    return "\n".join(["Growth per step", *rows]) if rows else ""


def step_text(rate: Rate, form: Any) -> str:
    """``+4.10 kB``; ``none`` when the interval has 0 in it."""
    if rate.low <= 0 <= rate.high:
        return "none"
    return ("+" if rate.value > 0 else "") + form(rate.value)


def sure(rate: Rate) -> str:
    """The interval, in brackets."""
    return f" ({interval(rate, format_bytes)})"


def number(value: float) -> str:
    """A number of objects for each step: ``2``, ``0.25``."""
    rounded = round(value)
    close = abs(value - rounded) < 0.005
    return format_count(rounded) if close or abs(value) >= 100 else f"{value:.2f}"


def scope_row(growth: ScopeGrowth) -> str:
    """What outlives the scopes of a label, in one line."""
    return (
        f"  per scope '{growth.label}', {format_count(growth.scopes)} ended: "
        f"{number(growth.made / growth.scopes)} allocated, "
        f"{number(growth.outlived / growth.scopes)} outlive it, "
        f"{number(growth.kept_per_scope)} kept, {format_bytes(growth.bytes_per_scope)}"
    )
