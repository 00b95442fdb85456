"""What memory consisted of at its peak: ``tlmem peak``, and a section of the report.

Covers: text and JSON, from a file to an exit code. Does not cover: the sums and replays; see
``analysis.peak``. See also: docs/reference/cli.md, docs/reference/json.md.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.analysis.heap_samples import held_heap
from tlmem.analysis.model import HeldHeap, Holder, StackFrame
from tlmem.analysis.peak.blocks import HOST
from tlmem.analysis.peak.explained import Explained, Lowered, Moment, RoleSum, explain
from tlmem.analysis.peak.lowering import BATCH, CHECKPOINT, CLEAR, Path
from tlmem.analysis.places import Places, place, with_function
from tlmem.errors import TlmemError
from tlmem.events import Device
from tlmem.output.stdio import fail
from tlmem.recording.reader import read_for_command
from tlmem.report.heap import HEAP_NOTE, held_rows
from tlmem.units import counted, format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SCHEMA = 1
BY = ("role", "module", "line")
WIDTH = 100
MOST_ROWS = 20
MOST_PARTS = 3
MOST_ROLES = 2
MOST_HOLDERS = 2
MOST_LOWERED = 4
MOST_IN_REPORT = 2
MOST_LINES_IN_REPORT = 5
MOST_MEMORIES = 8
LONGEST_SOURCE = 48
LONGEST_PATH = 60
LEAST_SHARE = 0.01
"""Of all bytes: a module with less is shown only in JSON."""
ALIKE = 0.05
"""Modules whose bytes differ by less than this share are said together."""
SAID_DEVICES = (Device.TORCH, Device.TORCH_ACCELERATOR)
"""With blocks of these a report has the section."""
SCALES = "where activations, inputs and what is computed from them halve"


def run_peak(
    path: str,
    by: str | None = None,
    at: str | None = None,
    memory: str | None = None,
    format: str = "text",
    out: str | None = None,
    source_roots: Sequence[str] = (),
    born: str | None = None,
) -> int:
    """Writes what memory consisted of at its peak, or at another moment; returns the exit code.

    Args:
        born: two moments with ``..`` between them: only what was allocated between them.
    Returns:
        0; 2 when the file is missing or no recording, has no such memory, mark or time, or the
        output cannot be written; 3 when the recording is empty or damaged beyond use.
    """
    from tlmem.report import write
    from tlmem.report.json import document, heap_dict

    try:
        recording = read_for_command(path, source_roots=source_roots)
        held = format == "json" or by != "role"
        found = explain(recording, at, memory, born=born, held=held)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    if format == "json":
        made = to_dict(found)
        heap, time_ns = heap_at(found)
        if heap:
            made["heap"] = [heap_dict(held) for held in heap]
            made["heap_seconds"] = round(time_ns / 1e9, 9)
        return write(document(made), out)
    return write(render_text(found, by), out)


# ---- text ----


def render_text(found: Explained, by: str | None = None) -> str:
    """The report for people, with a line feed at its end.

    Args:
        by: of ``BY``; by role where roles of PyTorch's blocks are known, else by line.
    """
    return "\n\n".join(_blocks(found, by or ("role" if found.phased else "line"))) + "\n"


def _blocks(found: Explained, by: str) -> Iterator[str]:
    if found.count == 0:
        when = (
            ""
            if found.is_peak
            else f" {format_seconds(found.moment.time_ns / 1e9)} after the start"
        )
        what = f"Nothing that was {born_words(found)}" if found.born else "Nothing"
        yield _wrap(f"{what} was alive in {found.recording.path}{when}.")
        yield from _heap_block(found)
        return
    yield _wrap(sentence(found))
    if by == "role":
        yield "\n".join(_role_rows(found))
    elif by == "module":
        yield "\n".join(_module_rows(found))
    else:
        yield "\n".join(_line_rows(found))
    if by == "line" and found.marks and not found.training:
        yield "\n".join(_mark_rows(found))
    yield from _heap_block(found)
    if found.lowered:
        yield "\n".join(
            [
                "What would lower it",
                *(_wrap(_gain(found, each), "  ") for each in found.lowered[:MOST_LOWERED]),
            ]
        )
    notes = list(_notes(found))
    if notes:
        yield "\n".join(_wrap(note) for note in notes)


def heap_at(found: Explained) -> tuple[tuple[HeldHeap, ...], int]:
    """The sampled heap at the same moment, and that moment in ns; nothing without samples.

    In a program without arrays and tensors the moment is that of most resident memory.
    """
    recording, time_ns = found.recording, found.moment.time_ns
    if not recording.heap_count:
        return (), time_ns
    if found.count == 0 and found.is_peak:
        resident = recording.samples["anon"].fillna(-1.0).to_numpy(np.float64)
        if not len(resident):
            return (), time_ns
        time_ns = int(recording.samples["time_ns"].to_numpy(np.int64)[np.argmax(resident)])
    return held_heap(recording, Places.of(recording), time_ns), time_ns


def _heap_block(found: Explained) -> Iterator[str]:
    """What was sampled of the heap at that moment; estimates are marked."""
    heap, time_ns = heap_at(found)
    if heap:
        most = " when most was resident," if found.count == 0 and found.is_peak else ""
        title = f"Sampled heap alive{most} after {format_seconds(time_ns / 1e9)}"
        yield "\n".join([title, _wrap(HEAP_NOTE, "  "), *held_rows(heap, "  ")])


def section(recording: Recording) -> str:
    """The section of the report: the peak by role, and what would lower it most.

    Empty where PyTorch has allocated nothing.
    """
    found = explained_for_report(recording)
    if found is None:
        return ""
    rows = [_wrap(sentence(found))]
    rows += _role_rows(found) if found.phased else _line_rows(found, MOST_LINES_IN_REPORT)
    rows += [_wrap(f"Lower: {_gain(found, each)}", "  ") for each in found.lowered[:MOST_IN_REPORT]]
    return "\n".join(rows)


def explained_for_report(recording: Recording) -> Explained | None:
    """What a report says of the peak; None where PyTorch has allocated nothing."""
    if recording.object_devices.isdisjoint(SAID_DEVICES):
        return None
    found = explain(recording)
    return found if found.count else None


def sentence(found: Explained) -> str:
    """How much, when, in which step and phase, at which line."""
    what = "Peak" if found.is_peak else "Alive"
    of = "" if found.memory == HOST else f" of {found.memory}"
    words = f"{what}{of} {format_bytes(found.bytes)}"
    words += f" in {format_count(found.count)} " + ("blocks" if found.count != 1 else "block")
    words += f" {born_words(found)}" if found.born else ""
    words += f", {when(found.moment)}"
    if not found.is_peak and found.peak_bytes:
        words += f"; the peak is {format_bytes(found.peak_bytes)}"
    return words


def born_words(found: Explained) -> str:
    """Between which moments everything was allocated that is shown; empty: whenever it was."""
    if found.born is None:
        return ""
    first, last = (format_seconds(each / 1e9) for each in found.born)
    return f"allocated after {first} and up to {last}"


def when(moment: Moment) -> str:
    """The time, and what the program was doing: ``1.20 s after the start, step 3 of 4, in ...``."""
    words = [f"{format_seconds(moment.time_ns / 1e9)} after the start"]
    if moment.mark is not None and moment.steps == 0:
        words.append(f"after mark {_mark_text(*moment.mark)}")
    words += _doing(moment)
    return ", ".join(words)


def _mark_text(label: str, index: int) -> str:
    return f"'{label}'" + (f" {index}" if index else "")


def _doing(moment: Moment) -> Iterator[str]:
    """The step, and the phase with its module and line."""
    if moment.steps > 1:
        yield f"step {format_count(moment.step)} of {format_count(moment.steps)}"
    doing = moment.phase
    if doing and moment.module:
        doing += f" of {_clipped(moment.module)}"
    if moment.site is not None:
        source = moment.site.text
        short = source if len(source) <= LONGEST_SOURCE else f"{source[: LONGEST_SOURCE - 3]}..."
        line = place(moment.site) + (f" {short}" if short else "")
        doing = f"{doing} ({line})" if doing else f"at {line}"
    if doing:
        yield doing


def _role_rows(found: Explained) -> Iterator[str]:
    """A row for each role, and their sum."""
    yield f"  {'bytes':>9} {'share':>6}  {'role':<15}  largest parts"
    for role in found.roles:
        share = f"{100 * role.bytes / found.bytes:.0f}%"
        parts = _parts(found, role)
        row = f"  {format_bytes(role.bytes):>9} {share:>6}  {role.role:<15}  {parts}"
        yield from (
            textwrap.wrap(row, WIDTH, subsequent_indent=" " * 38, drop_whitespace=True)
            if len(row) > WIDTH
            else [row.rstrip()]
        )
    yield f"  {format_bytes(found.bytes):>9} {'100%':>6}  total"


def _parts(found: Explained, role: RoleSum) -> str:
    """The modules, or else the lines, that a role mostly consists of."""
    if not role.bytes:
        return ""
    known = sum(size for _, size in role.modules)
    if 2 * known >= role.bytes:
        parts = [f"{name} {size}" for name, size in module_parts(found, role.modules)[:MOST_PARTS]]
        rest = role.bytes - known
        if rest >= LEAST_SHARE * role.bytes:
            parts.append(f"of no known module {format_bytes(rest)}")
        return ", ".join(parts)
    return ", ".join(
        f"{place(line) if line.file else 'no Python stack'} {format_bytes(size)}"
        for line, size in role.lines[:MOST_PARTS]
    )


def module_parts(found: Explained, modules: Iterable[tuple[Path, int]]) -> list[tuple[str, str]]:
    """Modules one level below the root, those that are alike as one: ``h.0 to h.3``, ``4 MB each``.

    Lists of modules are looked into.
    """
    below: dict[Path, int] = {}
    for path, size in modules:
        short = path[: 1 + (found.roots == 1)]
        while len(short) < len(path) and path[len(short)].isdigit():
            short = path[: len(short) + 1]
        below[short] = below.get(short, 0) + size
    alike: dict[Path, list[tuple[Path, int]]] = {}
    for path, size in below.items():
        key = (*path[:-1], "*") if path[-1].isdigit() else path
        alike.setdefault(key, []).append((path, size))
    rows: list[tuple[int, str, str]] = []
    for members in alike.values():
        sizes = [size for _, size in members]
        if len(members) > 1 and max(sizes) - min(sizes) <= ALIKE * max(sizes):
            ordered = sorted((path for path, _ in members), key=lambda path: int(path[-1]))
            first, last = (_clipped(found.module_text(path)) for path in (ordered[0], ordered[-1]))
            mean = format_bytes(sum(sizes) / len(sizes))
            rows.append((sum(sizes), f"{first} to {last}", f"{mean} each"))
        else:
            rows += [
                (size, _clipped(found.module_text(path)), format_bytes(size))
                for path, size in members
            ]
    rows.sort(key=lambda row: -row[0])
    return [(name, size) for _, name, size in rows]


def _module_rows(found: Explained) -> Iterator[str]:
    """The tree of modules, and what is of none of them, by role."""
    yield f"  {'bytes':>9} {'share':>6}  module"
    outside = next((each for each in found.modules if not each.path), None)
    single = _single_children(found)
    shown = [
        each
        for each in found.modules
        if each.path and each.path not in single and each.bytes >= LEAST_SHARE * found.bytes
    ]
    kept = {each.path for each in sorted(shown, key=lambda each: -each.bytes)[: 2 * MOST_ROWS]}
    for each in shown:
        if each.path in kept:
            name = _clipped(found.module_text(each.path))
            yield _share_row(found, each.bytes, f"{name:<28}  {role_list(each.roles, MOST_ROLES)}")
    hidden = len([each for each in found.modules if each.path]) - len(kept) - len(single)
    if hidden:
        yield f"  {'':>9} {'':>6}  {format_count(hidden)} smaller modules are in those above"
    for role, size in (outside.roles if outside else {}).items():
        yield _share_row(found, size, f"of no known module: {role}")
    yield _share_row(found, found.bytes, "total")


def _single_children(found: Explained) -> set[Path]:
    """Modules that only hold one other module, in which all of their bytes are."""
    sizes = {each.path: each.bytes for each in found.modules}
    return {path[:-1] for path, size in sizes.items() if len(path) > 1 and sizes[path[:-1]] == size}


def _line_rows(found: Explained, most: int = MOST_ROWS) -> Iterator[str]:
    """The lines whose blocks are alive, most bytes first."""
    yield f"  {'bytes':>9} {'share':>6} {'blocks':>8}  line"
    for each in found.lines[:most]:
        where = with_function(each.site)
        roles = f"  {role_list(each.roles, MOST_ROLES)}" if found.phased else ""
        yield _share_row(found, each.bytes, f"{where}{roles}", each.count)
        for holder in each.holders[:MOST_HOLDERS]:
            yield f"{'':29}{holder_words(holder)}"
    rest = found.lines[most:]
    if rest:
        size, count = sum(each.bytes for each in rest), sum(each.count for each in rest)
        yield _share_row(found, size, counted(len(rest), "other line"), count)
    yield _share_row(found, found.bytes, "total", found.count)


def holder_words(holder: Holder) -> str:
    """A holder with how many objects it holds, and where it took them or when it was seen."""
    words = f"held by {_clipped(holder.name)}: {format_count(holder.count)}"
    if holder.seen_ns is not None:
        return f"{words}, seen after {format_seconds(holder.seen_ns / 1e9)}"
    if holder.site is None or not holder.site.file:
        return words
    return f"{words}, acquired at {place(holder.site)}"


def _mark_rows(found: Explained) -> Iterator[str]:
    """What was alive by the mark that it was allocated after."""
    yield f"  {'bytes':>9} {'share':>6} {'blocks':>8}  allocated"
    for each in found.marks[:MOST_ROWS]:
        if not each.label:
            where = "before the first mark"
        elif each.first == each.last:
            where = f"after mark {_mark_text(each.label, each.first)}"
        else:
            where = f"after marks '{each.label}' {each.first} to {each.last}"
        yield _share_row(found, each.bytes, where, each.count)
    rest = found.marks[MOST_ROWS:]
    if rest:
        size, count = sum(each.bytes for each in rest), sum(each.count for each in rest)
        yield _share_row(found, size, "after other marks", count)
    yield _share_row(found, found.bytes, "total", found.count)


def _share_row(found: Explained, size: int, text: str, count: int | None = None) -> str:
    share = f"{100 * size / found.bytes:.0f}%"
    counted = "" if count is None else f" {format_count(count):>8}"
    return f"  {format_bytes(size):>9} {share:>6}{counted}  {text}"


def role_list(roles: dict[str, int], most: int) -> str:
    """``activations 4.6 MB, temporaries 1 kB``, of the largest; only the name of a single one."""
    if len(roles) == 1:
        return next(iter(roles))
    largest = sorted(roles.items(), key=lambda each: -each[1])[:most]
    return ", ".join(f"{role} {format_bytes(size)}" for role, size in largest)


def _gain(found: Explained, change: Lowered) -> str:
    """What one change would have led to, with its numbers."""
    share = 100 * change.saved / found.peak_bytes
    words = (
        f"{change_text(found, change)}: peak {format_bytes(change.bytes)}, "
        f"{format_bytes(change.saved)} ({share:.0f}%) lower"
    )
    step = f"step {format_count(change.moment.step)}" if change.moment.steps > 1 else ""
    where = ", ".join(each for each in (step, change.moment.phase) if each)
    at = "at " if step else ""
    return f"{words}; the peak is then {at}{where}." if where else f"{words}."


def change_text(found: Explained, change: Lowered) -> str:
    """The change in words: ``checkpoint h.* (4 modules, each by itself)``."""
    if change.kind == CHECKPOINT:
        name = _clipped(found.module_text(change.group))
        several = len(change.modules) > 1
        return f"checkpoint {name}" + (
            f" ({format_count(len(change.modules))} modules, each by itself)" if several else ""
        )
    if change.kind == CLEAR:
        return "clear gradients before forward, with zero_grad(set_to_none=True)"
    assert change.kind == BATCH
    return f"half the batch, {SCALES}"


def _notes(found: Explained) -> Iterator[str]:
    """What a reader has to know beside the numbers, a sentence each."""
    if found.others:
        several = sorted(found.others.items(), key=lambda each: -each[1])[:MOST_MEMORIES]
        told = ", ".join(f"{name} {format_bytes(size)}" for name, size in several)
        yield f"Peaks of other memories: {told} (--memory NAME)."
    if found.earlier is not None:
        size, time = found.earlier
        yield (
            f"A higher peak, {format_bytes(size)} {format_seconds(time / 1e9)} after the start, is "
            "among events of which only sums are known."
        )
    if found.estimated:
        yield (
            "Of the oldest objects only some are known, because of a size limit: each stands for "
            "several, and the sums are estimates."
        )
    children = found.recording.family
    if children:
        yield (
            "Memory of recorded processes that the program started is not in these figures; tlmem "
            f"peak {shlex.quote(str(children[0]))} shows it, one of {format_count(len(children))}."
        )
    yield from (f"problem: {problem}" for problem in found.recording.problems)


def _wrap(text: str, indent: str = "") -> str:
    """A sentence in lines of at most ``WIDTH`` columns."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _clipped(path: str) -> str:
    """The end of a long path, which says most."""
    return path if len(path) <= LONGEST_PATH else f"...{path[3 - LONGEST_PATH :]}"


# ---- JSON ----


def to_dict(found: Explained) -> dict[str, Any]:
    """Everything as plain dicts, lists, texts and numbers; fields: docs/reference/json.md."""
    from tlmem.report.json import holder_dict

    recording = found.recording
    return {
        "schema": SCHEMA,
        "recording": {
            "path": str(recording.path),
            "complete": bool(recording.complete),
            "problems": list(recording.problems),
        },
        "other_memories": [
            {"memory": name, "peak_bytes": size} for name, size in found.others.items()
        ],
        "peak_before_detail": None
        if found.earlier is None
        else {"bytes": found.earlier[0], "seconds": round(found.earlier[1] / 1e9, 9)},
        **peak_dict(found),
        "modules": [
            {
                "path": ".".join(each.path) or None,
                "bytes": each.bytes,
                "own_bytes": each.own,
                "roles": each.roles,
            }
            for each in found.modules
        ],
        "lines": [
            {
                "site": _frame(each.site),
                "bytes": each.bytes,
                "count": each.count,
                "roles": each.roles,
                "since_seconds": round(each.since_ns / 1e9, 9),
                "holders": [holder_dict(holder) for holder in each.holders],
            }
            for each in found.lines
        ],
        "marks": [
            {
                "label": each.label or None,
                "first_index": each.first,
                "last_index": each.last,
                "bytes": each.bytes,
                "count": each.count,
            }
            for each in found.marks
        ],
    }


def peak_dict(found: Explained) -> dict[str, Any]:
    """The moment, the roles and what would lower the peak; also a part of the report."""
    return {
        "memory": found.memory,
        "at": moment_dict(found.moment),
        "born": None
        if found.born is None
        else {
            "after_seconds": round(found.born[0] / 1e9, 9),
            "until_seconds": round(found.born[1] / 1e9, 9),
        },
        "is_peak": found.is_peak,
        "bytes": found.bytes,
        "count": found.count,
        "peak_bytes": found.peak_bytes,
        "estimated": found.estimated,
        "roles": [
            {
                "role": each.role,
                "bytes": each.bytes,
                "count": each.count,
                "modules": [{"path": ".".join(path), "bytes": size} for path, size in each.modules],
                "lines": [{"site": _frame(line), "bytes": size} for line, size in each.lines],
                "names": list(each.names),
            }
            for each in found.roles
        ],
        "lower": [
            {
                "kind": each.kind,
                "group": ".".join(each.group) or None,
                "modules": [".".join(path) for path in each.modules],
                "peak_bytes": each.bytes,
                "saved_bytes": each.saved,
                "at": moment_dict(each.moment),
            }
            for each in found.lowered
        ],
    }


def moment_dict(moment: Moment) -> dict[str, Any]:
    """A moment: when, and what the program was doing."""
    return {
        "seconds": round(moment.time_ns / 1e9, 9),
        "phase": moment.phase or None,
        "module": moment.module or None,
        "site": _frame(moment.site),
        "step": moment.step or None,
        "steps": moment.steps or None,
        "mark": None if moment.mark is None else {"label": moment.mark[0], "index": moment.mark[1]},
    }


def _frame(frame: StackFrame | None) -> dict[str, Any] | None:
    if frame is None or not frame.file:
        return None
    return {"file": frame.file, "line": frame.line, "function": frame.function}
