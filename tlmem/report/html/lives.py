"""The lives of single objects: when each was made, who held it from when to when, how it ended.

Covers: their part of a page, drawn as bars over the time of the recording. Does not cover: which
objects (``report.object_lives``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tlmem.analysis.ledger.history import History, HistoryStep
from tlmem.analysis.model import Finding
from tlmem.analysis.places import place as place_of
from tlmem.report.history import render_text
from tlmem.report.html import sections
from tlmem.report.html.markup import Markup, element, joined
from tlmem.report.object_lives import Chosen
from tlmem.units import format_bytes, format_count, format_seconds

MOST_LANES = 12
MOST_FINDINGS = 6
"""Of one object that more findings name, only the first are linked."""
LEAST_WIDTH = 0.4
"""Per cent of the time that a bar is wide at least."""


@dataclass(frozen=True)
class Lane:
    """A bar: what it stands for, from when to when, and whether that had an end."""

    name: str
    begin_ns: int
    end_ns: int
    open: bool


def lives(
    found: dict[int, History],
    findings: Sequence[Finding],
    chosen: Sequence[Sequence[Chosen]],
    prefix: str,
    seconds: float,
) -> Markup:
    """The lives of objects, one below the other, each linked from its findings and back.

    Args:
        found: the objects by number.
        findings, chosen: which findings they are of, and why.
        prefix: stands before each name in the page.
        seconds: how long the recording is.
    """
    return joined(
        *(
            _life(
                life,
                [
                    (number, finding, each.why)
                    for number, (finding, some) in enumerate(zip(findings, chosen, strict=False))
                    for each in some
                    if each.number == life.object
                ],
                prefix,
                seconds,
            )
            for life in found.values()
        )
    )


def _life(
    life: History, reasons: Sequence[tuple[int, Finding, str]], prefix: str, seconds: float
) -> Markup:
    size = format_bytes(life.bytes) if life.bytes else "no bytes of its own"
    backward = (
        element(
            "li",
            f"{why[:1].upper()}{why[1:]} of ",
            sections.link(f"{prefix}-finding-{number}", _name_of(finding)),
        )
        for number, finding, why in reasons[:MOST_FINDINGS]
    )
    return element(
        "section",
        element("h3", f"Object {life.object}: {size}, allocated at {place_of(life.made)}"),
        _bars(lanes(life, seconds), seconds),
        element("ul", *backward, *(element("li", words) for words in facts(life))),
        element(
            "details",
            element("summary", f"All events: {format_count(len(life.steps))}"),
            element("pre", render_text(life)),
        ),
        class_="life",
        id=f"{prefix}-object-{life.object}",
    )


def _name_of(finding: Finding) -> str:
    where = f" at {place_of(finding.site)}" if finding.site and finding.site.file else ""
    return f"{finding.kind}{where}"


def facts(life: History) -> list[str]:
    """Its birth, its holders, its last event and its end, a sentence each."""
    function = f" in {life.made.function}" if life.made.function else ""
    said = [f"Allocated after {_after(life.born_ns)} at {place_of(life.made)}{function}."]
    if life.folded:
        said.append("Its first events are folded: its holders then are unknown.")
    for step in life.held[:MOST_LANES]:
        said.append(
            f"Held by {step.holder or 'no holder'} since {_after(step.time_ns)}, acquired at "
            f"{place_of(step.site)}."
        )
    if life.python:
        last = life.python[-1]
        said.append(f"Held in Python after {_after(last.time_ns)}: {last.chain or last.holder}.")
    touched = [step for step in life.steps if step.time_ns > life.born_ns]
    if touched and life.died_ns < 0:
        step = touched[-1]
        whom = f" by {step.holder}" if step.holder else ""
        said.append(
            f"Last touched after {_after(step.time_ns)}: {step.event}{whom} at "
            f"{place_of(step.site)}."
        )
    elif life.died_ns < 0 and not life.runtime:
        said.append("Not resized or freed since; reads and writes are not recorded.")
    if life.died_ns < 0:
        said.append("Alive at the end of the recording.")
    else:
        freed = f" at {place_of(life.steps[-1].site)}" if life.steps else ""
        said.append(f"Freed after {_after(life.died_ns)}{freed}.")
    return said


def lanes(life: History, seconds: float) -> list[Lane]:
    """What is drawn: the life itself, then who held it, in order of time.

    Holders in Python are drawn from the first snapshot that saw them to the last.
    """
    end_ns = round(seconds * 1e9)
    whole = Lane("alive", life.born_ns, life.died_ns if life.died_ns >= 0 else end_ns,
                 life.died_ns < 0)  # fmt: skip
    found = []
    ends = {step.number: step.time_ns for step in life.steps}
    for step in life.steps:
        if step.holder and (step.ended_by or step.unpaired):
            found.append(_lane_of(step, ends, end_ns))
    seen: dict[str, Lane] = {}
    for each in life.python:
        # One list has a number of items in its name that differs from snapshot to snapshot.
        key = re.sub(r"\d[\d,.]*( items?)?", "0", each.holder)
        begin_ns = seen[key].begin_ns if key in seen else each.time_ns
        seen[key] = Lane(each.holder, begin_ns, each.time_ns, False)
    found += seen.values()
    found.sort(key=lambda lane: lane.begin_ns)
    # Of many the last are shown: they are those that hold it still.
    return [whole, *found[-MOST_LANES:]]


def _lane_of(step: HistoryStep, ends: dict[int, int], end_ns: int) -> Lane:
    return Lane(step.holder, step.time_ns, ends.get(step.ended_by, end_ns), step.unpaired)


def _bars(shown: Sequence[Lane], seconds: float) -> Markup:
    whole = max(seconds * 1e9, 1.0)
    rows = []
    for number, lane in enumerate(shown):
        left = min(100 * lane.begin_ns / whole, 100 - LEAST_WIDTH)
        width = min(max(100 * (lane.end_ns - lane.begin_ns) / whole, LEAST_WIDTH), 100 - left)
        when = f"{_after(lane.begin_ns)} to {'the end' if lane.open else _after(lane.end_ns)}"
        span = element(
            "i",
            class_=f"span{' whole' if number == 0 else ''}{' open' if lane.open else ''}",
            style=f"left: {left:.2f}%; width: {width:.2f}%",
        )
        rows.append(
            element(
                "div",
                element("span", lane.name, class_="of", title=lane.name),
                element("span", span, class_="track", title=when),
                element("span", when, class_="when quiet"),
                class_="lane",
            )
        )
    return element("div", *rows, class_="lanes", role="group", aria_label="its life over time")


def _after(time_ns: int) -> str:
    return format_seconds(time_ns / 1e9)
