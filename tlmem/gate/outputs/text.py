"""A decision for people: a line for each budget, reasons, lines to blame, the next command."""

from __future__ import annotations

import shlex

from tlmem.analysis.model import Finding, StackFrame
from tlmem.gate.decision import (
    EXIT_OVER,
    EXIT_PASS,
    EXIT_UNKNOWN,
    OVER,
    PASS,
    UNKNOWN,
    UNSURE,
    BudgetResult,
    Checked,
    Result,
    reasons,
)
from tlmem.gate.outputs.locations import path_of
from tlmem.report.text import is_said, named, source_line
from tlmem.report.text import wrap as wrapped
from tlmem.units import format_bytes, format_count

WORDS = {PASS: "pass", OVER: "OVER", UNSURE: "noise", UNKNOWN: "?"}
"""State of a row -> the word in front of it."""
MOST_FINDINGS = 3
MOST_CALLERS = 3
MOST_FAILED = 5
MOST_NAMED = 20


def render(checked: Checked) -> str:
    """All programs, one after the other, with a line feed at the end."""
    blocks = fleet(checked) if checked.is_fleet else [program(result) for result in checked.results]
    blocks += [f"{file.path}\n{wrap(file.sentence)}" for file in checked.unreadable]
    return "\n\n".join(blocks) + "\n"


def fleet(checked: Checked) -> list[str]:
    """How many processes passed, and each of the first that did not."""
    failed = [result for result in checked.results if result.exit_code != EXIT_PASS]
    count = len(checked.results)
    counts = [f"{format_count(count - len(failed))} passed"]
    for code, meaning in ((EXIT_OVER, "failed"), (EXIT_UNKNOWN, "cannot be judged")):
        of_code = sum(result.exit_code == code for result in failed)
        counts += [f"{format_count(of_code)} {meaning}"] if of_code else []
    blocks = [f"{format_count(count)} process{'es' * (count != 1)}: {', '.join(counts)}"]
    failed.sort(key=lambda result: result.exit_code)
    blocks += [program(result) for result in failed[:MOST_FAILED]]
    more = [result.process for result in failed[MOST_FAILED:]]
    if more:
        names = ", ".join(more[:MOST_NAMED])
        blocks.append(wrapped(f"and {len(more)} more: {names}{', ...' * (len(more) > MOST_NAMED)}"))
    return blocks


def program(result: Result) -> str:
    """One program."""
    lines = [result.title or path_of(result)]
    name_width = max((len(row.name) for row in result.rows), default=0)
    for row in result.rows:
        lines.append(f"  {WORDS[row.state]:<5} {row.name:<{name_width}}  {row.measured}")
        lines[-1] += f", limit {row.limit}"
        if row.state != PASS:
            lines += [wrap(row.sentence), *blame(row)]
    lines += doubts_of(result) + suppressions_of(result)
    lines += [wrap(note) for note in result.notes]
    lines.append(conclusion(result))
    if result.exit_code != EXIT_PASS:
        lines.append(f"next: tlmem report {shlex.quote(path_of(result))}")
    return "\n".join(lines)


def blame(row: BudgetResult) -> list[str]:
    """The worst lines, with their text and their callers."""
    lines: list[str] = []
    shown: set[StackFrame] = set()
    for finding in [f for f in row.findings if f.site][:MOST_FINDINGS]:
        if finding.site in shown:  # its class: the same line, and why it grows
            lines.append(wrap(finding.evidence, 12))
            continue
        shown |= {finding.site} if finding.site else set()
        lines.append(f"{'':8}{named(finding.site)}")
        lines += source_line(finding.site)
        if not is_said(finding, row.sentence):
            lines.append(wrap(finding.evidence, 12))
        lines += callers(finding)
    return lines


def callers(finding: Finding) -> list[str]:
    """Who called the line to blame, nearest first."""
    stack = list(finding.stack)
    if finding.site in stack:
        stack = stack[stack.index(finding.site) + 1 :]
    return [f"{'':12}called from {named(frame)}" for frame in stack[:MOST_CALLERS]]


def doubts_of(result: Result) -> list[str]:
    """Why it cannot be judged, and what was allowed all the same."""
    lines = [wrap(f"refused: {doubt.sentence} (--allow {doubt.kind})") for doubt in result.refused]
    return lines + [wrap(f"allowed ({doubt.kind}): {doubt.sentence}") for doubt in result.allowed]


def suppressions_of(result: Result) -> list[str]:
    """What was suppressed, and which suppressions were of no use."""
    lines = []
    for used in result.used:
        text = f"leak:{used.suppression.pattern} ({used.suppression.origin})"
        if used.findings:
            amount = f"{format_count(used.objects)} objects, {format_bytes(used.bytes)}"
            lines.append(f"  suppressed by {text}: {amount}")
        else:
            lines.append(f"  unused suppression {text}; remove it")
    return lines


def conclusion(result: Result) -> str:
    """The decision in one line."""
    count = len(result.rows)
    if result.exit_code == EXIT_PASS:
        noise = len(result.of_state(UNSURE))
        more = f", {noise} of them within noise" if noise else ""
        return f"Passed: {budgets(count)} kept{more}."
    if result.exit_code == EXIT_OVER:
        over = len(result.of_state(OVER))
        return f"Failed: {over} of {budgets(count)} {'is' if over == 1 else 'are'} over."
    return f"Cannot judge: {len(reasons(result))} reason{'s' * (len(reasons(result)) != 1)}."


def budgets(count: int) -> str:
    """``1 budget``, ``3 budgets``."""
    return f"{count} budget{'' if count == 1 else 's'}"


def wrap(sentence: str, indent: int = 8) -> str:
    """A sentence on lines of at most ``WIDTH`` columns."""
    return wrapped(sentence, " " * indent)
