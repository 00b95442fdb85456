"""The life of one object: ``tlmem history``, as text and as JSON.

Covers: from a file to an exit code; how a ``History`` is written, in at most 100 columns where
names allow. Does not cover: what is in it; see ``analysis.ledger.history``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlmem.analysis.ledger.history import History, HistoryStep, history
from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import place
from tlmem.errors import TlmemError
from tlmem.output.stdio import fail
from tlmem.recording.reader import read_for_command
from tlmem.report import write
from tlmem.report.heap import named
from tlmem.report.json import document, frame_dict
from tlmem.report.text import NO_HOLDER, clipped, source_line, wrap
from tlmem.units import format_bytes, format_count

SCHEMA = 1
MOST_STEPS = 60
"""Steps shown at first and at last of a longer life; those without a pair are always shown."""
MOST_STACKS = 5
HOLDER_WIDTH = 27
HEAD = ("", "step", "seconds", "event", "count", "holder", "pair", "place")
NUMBERS = ("step", "seconds", "count")


def run_history(
    path: str,
    which: str,
    format: str = "text",
    out: str | None = None,
    every: bool = False,
    source_roots: Sequence[str] = (),
) -> int:
    """Writes the life of one object and returns the exit code.

    Returns:
        0; 2 when the file is missing or no recording, knows no such object, or the output cannot be
        written; 3 when the recording is empty or damaged beyond use.
    """
    try:
        recording = read_for_command(path, source_roots=source_roots)
        life = history(recording, which)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    render = render_json if format == "json" else render_text
    return write(render(life, every), out)


def render_text(life: History, every: bool = False) -> str:
    """The head in words, a line for each step, the stacks of acquires without a release.

    Args:
        every: all steps of a long life, and not only its two ends and what has no pair.
    """
    blocks = ["\n".join(_head(life))]
    if life.steps:
        blocks.append("\n".join(_rows(life, every)))
    blocks.extend(_stack_of(step) for step in life.held[:MOST_STACKS])
    if life.problems:
        blocks.append("\n".join(wrap(f"problem: {problem}") for problem in life.problems))
    return "\n\n".join(blocks) + "\n"


def render_json(life: History, every: bool = True) -> str:
    """One JSON object, with a line feed at its end; every step is in it."""
    return document(to_dict(life))


def to_dict(life: History) -> dict[str, Any]:
    """A history as plain dicts, lists, texts and numbers."""
    return {
        "schema": SCHEMA,
        "object": life.object,
        "address": life.address,
        "device": life.device,
        "bytes": life.bytes,
        "born_seconds": round(life.born_ns / 1e9, 9),
        "died_seconds": None if life.died_ns < 0 else round(life.died_ns / 1e9, 9),
        "made": frame_dict(life.made if life.made.file else None),
        "folded": life.folded,
        "resized_from": None if life.resized_from < 0 else life.resized_from,
        "resized_to": None if life.resized_to < 0 else life.resized_to,
        "others_at_address": list(life.others),
        "problems": list(life.problems),
        "python": [
            {
                "seconds": round(seen.time_ns / 1e9, 9),
                "trigger": seen.trigger,
                "holder": seen.holder,
                "chain": seen.chain,
            }
            for seen in life.python
        ],
        "unpaired": [step.number for step in life.held],
        "steps": [_step_dict(step) for step in life.steps],
    }


def _step_dict(step: HistoryStep) -> dict[str, Any]:
    return {
        "step": step.number,
        "seconds": round(step.time_ns / 1e9, 9),
        "thread": step.thread,
        "event": step.event,
        "holder": step.holder,
        "count": step.count,
        "bytes": step.bytes,
        "ended_by": step.ended_by or None,
        "began_at": step.began_at or None,
        "unpaired": step.unpaired,
        "site": frame_dict(step.site if step.site.file else None),
        "stack": [frame_dict(frame) for frame in step.stack],
    }


def _head(life: History) -> list[str]:
    known_as = f"{'handle' if life.runtime else 'address'} {life.address:#x}"
    size = format_bytes(life.bytes) if life.bytes else "no bytes of its own"
    lines = [
        wrap(
            f"Object {life.object}, {known_as}: {size}, device {life.device}, allocated at "
            f"{place(life.made)}{f' in {life.made.function}' if life.made.function else ''}."
        ),
        wrap(_end(life)),
    ]
    lines.extend(_in_python(life))
    if life.folded:
        lines.append("Its first events are folded: its holders then are unknown.")
    if life.resized_from >= 0:
        lines.append(f"It was resized from object {life.resized_from}.")
    if life.resized_to >= 0:
        lines.append(f"It was resized to object {life.resized_to}.")
    if life.others:
        shown = ", ".join(map(str, life.others[-5:]))
        lines.append(
            wrap(
                f"{format_count(len(life.others))} others lay at this address at other times; the "
                f"last of them: {shown}."
            )
        )
    return lines


def _end(life: History) -> str:
    if life.died_ns >= 0:
        return f"Freed {_seconds(life.died_ns)} s after the start of the recording."
    if not life.held:
        known = life.owned or life.folded or life.python
        reason = "" if known else "; its holders were not recorded"
        return f"Alive at the end of the recording{reason}."
    held = [
        f"{_holding(step)} {place(step.site)} (step {step.number})"
        for step in life.held[:MOST_STACKS]
    ]
    more = len(life.held) - len(held)
    return f"Alive at the end of the recording; {'; '.join(held)}" + (
        f"; and {format_count(more)} more." if more else "."
    )


def _in_python(life: History) -> list[str]:
    """Who held it in Python when a snapshot last named it."""
    if not life.python:
        return []
    last = life.python[-1]
    before = {seen.time_ns for seen in life.python} - {last.time_ns}
    often = f", and in {format_count(len(before))} before" if before else ""
    when = f"as the snapshot after {_seconds(last.time_ns)} s ({last.trigger}{often}) saw it"
    return [
        wrap(f"Held in Python by {last.holder}, {when}:"),
        wrap(last.chain, " " * 4),
    ]


def _taker(step: HistoryStep) -> str:
    """Who holds what a step acquired; events without a holder leave the object without one."""
    left_floating = step.event in ("alloc", "unregister", "promote", "resize")
    return NO_HOLDER if left_floating or not step.holder else step.holder


def _holding(step: HistoryStep) -> str:
    """Who holds the object since a step, up to the place of that step."""
    holder = _taker(step)
    return "no holder since" if holder == NO_HOLDER else f"held by {holder}, acquired at"


def _rows(life: History, every: bool) -> list[str]:
    shown: list[HistoryStep | int] = []
    for step in life.steps:
        edge = step.number <= MOST_STEPS or step.number > len(life.steps) - MOST_STEPS
        if every or edge or step.unpaired:
            shown.append(step)
        elif shown and isinstance(shown[-1], int):
            shown[-1] += 1
        else:
            shown.append(1)
    cells = [HEAD, *(_cells(step) for step in shown if isinstance(step, HistoryStep))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [_row(HEAD, widths)]
    for row in shown:
        if isinstance(row, int):
            rows.append(f"{'':8}... {format_count(row)} more steps (--all shows them)")
        else:
            rows.append(_row(_cells(row), widths))
    return rows


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    """Cells under each other; numbers to the right."""
    return "  ".join(
        cell.rjust(width) if head in NUMBERS else cell.ljust(width)
        for cell, width, head in zip(cells, widths, HEAD, strict=True)
    ).rstrip()


def _cells(step: HistoryStep) -> tuple[str, ...]:
    pair = f"<{step.began_at}" if step.began_at else f">{step.ended_by}" if step.ended_by else ""
    return (
        "!" if step.unpaired else "",
        str(step.number),
        _seconds(step.time_ns),
        step.event,
        "" if step.count is None else str(step.count),
        clipped(step.holder, HOLDER_WIDTH),
        "none" if step.unpaired else pair,
        _where(step.site),
    )


def _seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.6f}"


def _where(frame: StackFrame) -> str:
    return f"{place(frame)} {frame.function}" if frame.file else ""


def _stack_of(step: HistoryStep) -> str:
    rows = [f"Step {step.number}, never released: {_taker(step)}"]
    rows.extend(source_line(step.site))
    for frame in step.stack:
        rows.append(f"{'':10}{'>' if frame == step.site else ' '} {named(frame)}")
    if not step.stack:
        rows.append(f"{'':12}no Python stack")
    return "\n".join(rows)
