"""The report as a comment on an issue or a pull request: the verdict, the numbers, the worst lines.

Covers: Markdown as GitHub and GitLab show it, of fewer than ``MOST_LETTERS`` letters whatever was
recorded; what has no room is left out from the end, and it is said. Names from the program cannot
become links, mentions or HTML.
Does not cover: pictures; see ``plots`` and ``html``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.lifetimes import is_imported
from tlmem.analysis.model import Finding, StackFrame
from tlmem.analysis.places import with_function
from tlmem.recording.identity import lowered
from tlmem.report import text
from tlmem.report.ending import ending_sentence
from tlmem.report.heap import named
from tlmem.report.summary import Process, Summary
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

MOST_LETTERS = 65_536
"""GitHub refuses a comment of so many letters; bytes are counted, so that others agree."""
LEFT_OUT = "\n*More did not fit into a comment; `tlmem report` says all of it.*\n"
MOST_FINDINGS = 5
MOST_PROCESSES = 20
MOST_FRAMES = 12
MOST_HOLDERS = 5
LONGEST_NAME = 120
LONGEST_SENTENCE = 600
SIGNS = {"stable": "\u2705", "retained": "\u26aa", "cannot-judge": "\u2753"}
GROWS = "\u274c"
SEVERITIES = {"error": "\u274c error", "warning": "\u26a0\ufe0f warning", "info": "info"}


MEANT = {letter: f"&#{ord(letter)};" for letter in "\\`*_{}[]()|~$^<>&"} | {
    "@": "@&#8203;",
    "#": "#&#8203;",
    "://": ":&#8203;//",
    "www.": "www&#8203;.",
}
"""What could begin markup, as entities; what could begin a mention, a reference to an issue or a
link, with a space of no width in it: for these GitHub looks when entities are letters again."""


def render(summary: Summary) -> str:
    """The comment, with a line feed at its end."""
    first = summary.processes[0].recording
    name = first.info.get("script", "").rpartition("/")[2]
    outcome = summary.verdict.outcome
    blocks = [
        f"### {SIGNS.get(outcome, GROWS)} tlmem: {outcome}" + (f", {code(name)}" if name else ""),
        words(summary.verdict.sentence),
        *([words(ending)] if (ending := ending_sentence(first)) else []),
        numbers(summary),
    ]
    worth = [finding for finding in summary.findings if finding.severity != "info"]
    if worth:
        blocks.append(findings_table(worth))
    if summary.is_family:
        blocks.append(processes_table(summary))
    blocks += [folded_finding(finding) for finding in worth[:MOST_FINDINGS]]
    for process in summary.processes[:MOST_PROCESSES]:
        blocks.append(folded_report(process))
    return fitted(blocks)


def fitted(blocks: Sequence[str], most: int = MOST_LETTERS) -> str:
    """Blocks behind each other, as many of the first as have room."""
    made, left_out = "", False
    room = most - 1 - len(LEFT_OUT.encode())
    for block in blocks:
        longer = f"{made}\n{block}\n" if made else f"{block}\n"
        if len(longer.encode("utf-8", "backslashreplace")) > room:
            left_out = True
            continue
        made = longer
    return made + LEFT_OUT if left_out else made


def numbers(summary: Summary) -> str:
    """Totals and growth in one small table."""
    totals, verdict = summary.totals, summary.verdict
    rows = [
        ("tracked at exit", totals["current_bytes"], totals["current_count"]),
        ("tracked at peak", totals["peak_bytes"], totals["peak_count"]),
        ("tracked in total", totals["total_bytes"], totals["total_count"]),
    ]
    lines = ["| | bytes | objects |", "|---|--:|--:|"]
    lines += [f"| {name} | {format_bytes(size)} | {format_count(n)} |" for name, size, n in rows]
    resident = summary.attribution
    if resident.known:
        lines.append(f"| resident when judged | {format_bytes(resident.resident_bytes)} | |")
    if verdict.grown_bytes:
        rate = format_rate(verdict.slope_bytes_per_s or 0.0)
        lines.append(f"| **grown** | **{format_bytes(verdict.grown_bytes)}, {rate}** | |")
    first = summary.processes[0].recording
    lines.append(f"| recorded | {format_seconds(first.seconds)} | "
                 f"{format_count(first.event_count)} events |")  # fmt: skip
    return "\n".join(lines)


def findings_table(found: Sequence[Finding]) -> str:
    """The most important findings, a row each."""
    lines = ["| | finding | line | bytes | objects | growth |", "|---|---|---|--:|--:|--:|"]
    for finding in found[:MOST_FINDINGS]:
        rate = finding.slope_bytes_per_s
        lines.append(
            f"| {SEVERITIES[finding.severity]} | {finding.kind} | {cell(place(finding.site))} | "
            f"{format_bytes(finding.bytes)} | {format_count(finding.count)} | "
            f"{format_rate(rate) if rate else ''} |"
        )
    more = len(found) - MOST_FINDINGS
    return "\n".join(lines) + (f"\n\nand {more} more" if more > 0 else "")


def processes_table(summary: Summary) -> str:
    """The processes of a family, a row each."""
    lines = ["| process | script | verdict | at peak |", "|--:|---|---|--:|"]
    for process in summary.processes[:MOST_PROCESSES]:
        name = process.worker or process.recording.info.get("script", "").rpartition("/")[2]
        lines.append(
            f"| {cell(row_name(process))} | {cell(code(name)) if name else ''} | "
            f"{process.analysis.verdict.outcome} | {format_bytes(process.totals['peak_bytes'])} |"
        )
    more = len(summary.processes) - MOST_PROCESSES
    return "\n".join(lines) + (f"\n\nand {more} more" if more > 0 else "")


def folded_finding(finding: Finding) -> str:
    """One finding with what stands behind it, folded."""
    title = f"{finding.kind}: {named(finding.site) if finding.site else 'no line'}"
    lines = [
        "<details>",
        f"<summary>{words(clipped(title))}</summary>",
        "",
        words(finding.evidence),
        "",
    ]
    if fix := fix_of(finding):
        lines += [f"Fix: {words(fix)}.", ""]
    for holder, others in text.merged(finding.holders[:MOST_HOLDERS]):
        lines.append(f"- {words(text.holder_line(holder, others))}")
    if finding.stack:
        lines += ["", fenced([named(frame) for frame in finding.stack[:MOST_FRAMES]])]
    return "\n".join([*lines, "", "</details>"])


def row_name(process: Process) -> str:
    """What a process is called in a column of processes: its number alone where it has no rank."""
    return process.identity.name.removeprefix("Process ")


def folded_report(process: Process) -> str:
    """The whole report for people about one process, folded."""
    recording = process.recording
    title = "Report" if is_imported(recording) else f"Report of {lowered(process.identity.name)}"
    body = "\n\n".join(text.process_blocks(process)).split("\n")
    return "\n".join(
        ["<details>", f"<summary>{title}</summary>", "", fenced(body), "", "</details>"]
    )


# ---- texts that stay texts ----


def words(sentence: str) -> str:
    """A sentence in which nothing is markup, a link or a mention."""
    line = " ".join(clipped(sentence, LONGEST_SENTENCE).split())
    return re.sub(r"://|www\.|\W|_", lambda found: MEANT.get(found[0], found[0]), line)


def code(name: str) -> str:
    """A name as code: nothing in it means anything but, in a table, ``|``; see ``cell``."""
    line = re.sub(r"\s+", " ", clipped(name))
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def cell(content: str) -> str:
    """A part of a row of a table."""
    return content.replace("|", "\\|")


def fenced(lines: Sequence[str]) -> str:
    """Lines as they are, in a fence that none of them can end."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *(line.replace("\r", " ") for line in lines), fence])


def place(frame: StackFrame | None) -> str:
    """A line of the program: base name and line, with its function."""
    if frame is None or not frame.file:
        return ""
    return code(with_function(frame))


def clipped(line: str, most: int = LONGEST_NAME) -> str:
    """At most so many letters, the middle left out."""
    if len(line) <= most:
        return line
    half = (most - 1) // 2
    return f"{line[:half]}\u2026{line[len(line) - half :]}"
