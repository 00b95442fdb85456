"""Why a verdict is what it is: the questions that were asked, each with figures and thresholds.

Covers: text of at most 100 columns; the same for other programs. Does not cover: the questions
(``analysis.judge``), the thresholds (``analysis.rules``).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from tlmem.analysis.model import Asked, Check, Question, Verdict
from tlmem.analysis.rules import RULES, Rule
from tlmem.analysis.sentences import MANNERS
from tlmem.units import format_bytes, format_figure

WIDTH = 100
MOST_ASKED = 6
"""Curves of one question that are printed."""


def explain_block(verdict: Verdict) -> str:
    """The questions in order; behind each the curves that were asked for it."""
    rows = ["Why this verdict"]
    for number, question in enumerate(verdict.trace, 1):
        rows.append(f"  {number:>2}. {question.text:<60} {question.answer}")
        rows += curves(question)
    return "\n".join(rows)


def curves(question: Question) -> Iterator[str]:
    """What each curve was asked; of those that do not grow only what they failed."""
    for asked in question.asked[:MOST_ASKED]:
        if asked.manner:
            state = "grows" if asked.held else "stopped growing"
            yield from textwrap.wrap(
                f"{asked.subject}: {state}{MANNERS[asked.manner]}",
                WIDTH,
                initial_indent=" " * 6,
                subsequent_indent=" " * 8,
            )
            continue
        if not asked.checks:
            yield f"      {asked.subject}: not judged, there are too few samples"
            continue
        yield f"      {asked.subject}: {'grows' if asked.held else 'does not grow'}"
        for check in asked.checks:
            yield row(check)
        if not asked.held:
            yield from textwrap.wrap(
                f"{asked.checks[-1].rule}: {rule_of(asked.checks[-1]).reason}",
                WIDTH,
                initial_indent=" " * 10,
                subsequent_indent=" " * 10,
            )
    if len(question.asked) > MOST_ASKED:
        yield f"      and {len(question.asked) - MOST_ASKED} more"


def row(check: Check) -> str:
    """One condition: what is looked at, its figure, the threshold and whether it holds."""
    rule = rule_of(check)
    figure, threshold = worded(check.figure, rule.unit), worded(check.threshold, rule.unit)
    mark = "yes" if check.held else "no"
    return f"        {check.rule:<20} {figure:>12}  {check.how} {threshold:<10} {mark}"


def worded(figure: float, unit: str) -> str:
    """A figure in the unit of its rule."""
    if unit == "bytes":
        return format_bytes(figure)
    return format_figure(figure)


def rule_of(check: Check) -> Rule:
    """The rule that a condition was made from."""
    rule: Rule = getattr(RULES, check.rule)
    return rule


def trace_list(verdict: Verdict) -> list[dict[str, Any]]:
    """The questions as plain dicts."""
    return [
        {
            "question": question.text,
            "answer": question.answer,
            "asked": [asked_dict(asked) for asked in question.asked],
        }
        for question in verdict.trace
    ]


def asked_dict(asked: Asked) -> dict[str, Any]:
    """The conditions of one curve."""
    return {
        "subject": asked.subject,
        "grows": asked.held,
        "manner": asked.manner,
        "checks": [
            {
                "rule": check.rule,
                "figure": float(f"{check.figure:.6g}"),
                "how": check.how,
                "threshold": float(f"{check.threshold:.6g}"),
                "unit": rule_of(check).unit,
                "held": check.held,
                "reason": rule_of(check).reason,
            }
            for check in asked.checks
        ],
    }
