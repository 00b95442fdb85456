"""Acquires and releases under each call stack: ``tlmem balance``, as text and as JSON.

Covers: from a file to an exit code; which branches are shown, and how. Does not cover: the sums;
see ``analysis.ledger.balance``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tlmem.analysis.ledger.balance import Balance, Node, balance
from tlmem.errors import TlmemError
from tlmem.output.stdio import fail
from tlmem.recording.reader import read_for_command
from tlmem.report import write
from tlmem.report.json import frame_dict, pieces
from tlmem.report.text import WIDTH, clipped, wrap
from tlmem.units import format_bytes, format_count, format_seconds

SCHEMA = 1
MOST_LINES = 60
DEEPEST = 20
"""Steps to the right at most; deeper forks stand under each other."""


def run_balance(
    path: str,
    site: str | None = None,
    format: str = "text",
    out: str | None = None,
    every: bool = False,
    at_exit: bool = False,
) -> int:
    """Writes the tree of stacks with acquires, releases and what is left; returns the exit code.

    Returns:
        0; 2 when the file is missing or no recording, nothing was made at ``site``, or the output
        cannot be written; 3 when the recording is empty or damaged beyond use.
    """
    try:
        found = balance(read_for_command(path), site, at_exit)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    render = render_json if format == "json" else render_text
    return write(render(found, every), out)


def render_text(found: Balance, every: bool = False) -> str:
    """A sentence, then the tree: a frame stands below its caller, set in where there are several.

    Args:
        every: also branches in which everything has its pair, however many.
    """
    blocks = [wrap(_sentence(found))]
    if found.folded_events:
        blocks.append(
            wrap(
                f"The oldest {format_count(found.folded_events)} events are folded: of their "
                "objects only those that are still alive are counted, each as acquired once."
            )
        )
    roots = [node for node in found.roots if every or node.unpaired]
    if roots:
        shown, hidden = _chosen(roots, every)
        head = f"{'acquired':>10} {'released':>10} {'unpaired':>9} {'objects':>9} {'bytes':>9}"
        rows = [head, *(line for root in roots for line in _lines(root, 0, shown, every))]
        if hidden:
            rows.append(
                f"{format_count(hidden)} more frames, with fewer unpaired (--all shows them)"
            )
        blocks.append("\n".join(rows))
    if found.problems:
        blocks.append("\n".join(wrap(f"problem: {problem}") for problem in found.problems))
    return "\n\n".join(blocks) + "\n"


def render_json(found: Balance, every: bool = False) -> Iterator[str]:
    """One JSON object in pieces, with a line feed at its end."""
    return pieces(to_dict(found, every))


def to_dict(found: Balance, every: bool = False) -> dict[str, Any]:
    """A balance as plain dicts, texts and numbers; the nodes are made when they are asked for."""
    return {
        "schema": SCHEMA,
        "seconds": round(found.time_ns / 1e9, 9),
        "at_exit": found.at_exit,
        "site": found.site,
        "folded_events": found.folded_events,
        "problems": list(found.problems),
        "taken": found.taken,
        "given_back": found.given_back,
        "unpaired": found.unpaired,
        "objects": found.objects,
        "bytes": found.bytes,
        "nodes": _node_dicts(found, every),
    }


def _node_dicts(found: Balance, every: bool) -> Iterator[dict[str, Any]]:
    """The nodes, each after its caller; flat, as stacks may be deeper than JSON can be read."""
    waiting: list[tuple[Node, int | None]] = [(node, None) for node in reversed(found.roots)]
    number = 0
    while waiting:
        node, parent = waiting.pop()
        if not (every or node.unpaired):
            continue
        waiting.extend((child, number) for child in reversed(node.children))
        number += 1
        yield {
            "parent": parent,
            "site": frame_dict(node.frame if node.frame.file else None),
            "taken": node.taken,
            "given_back": node.given_back,
            "unpaired": node.unpaired,
            "objects": node.objects,
            "bytes": node.bytes,
            "holders": [{"name": name, "count": count} for name, count in node.holders],
        }


def _sentence(found: Balance) -> str:
    of = f"Objects allocated at '{found.site}' were" if found.site is not None else "Objects were"
    at = "at the end of the recording" if found.at_exit else "at the end of the program's own work"
    when = format_seconds(found.time_ns / 1e9)
    if not found.taken:
        return f"Nothing was acquired up to {when}, {at}."
    rest = (
        f"{format_count(found.unpaired)} acquires of {format_count(found.objects)} objects "
        f"({format_bytes(found.bytes)}) have no release"
        if found.unpaired
        else "every acquire has its release"
    )
    return (
        f"{of} acquired {format_count(found.taken)} times and released "
        f"{format_count(found.given_back)} times; {rest}, {when} after the start, {at}."
    )


def _chosen(roots: list[Node], every: bool) -> tuple[int, int]:
    """The fewest unpaired acquires of a frame that is shown, and how many frames are not."""
    sizes = sorted((node.unpaired for root in roots for node in _all_below(root)), reverse=True)
    sizes = [size for size in sizes if size]
    if every or len(sizes) <= MOST_LINES:
        return 0, 0
    # Never only a part of those that are equal, and always the largest.
    least = min(sizes[MOST_LINES - 1] + 1, sizes[0])
    return least, sum(size < least for size in sizes)


def _all_below(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def _lines(node: Node, depth: int, least: int, every: bool) -> Iterator[str]:
    """The line of a node and those below it; not recursive, as stacks may be a thousand deep."""
    waiting = [(node, depth)]
    while waiting:
        node, depth = waiting.pop()
        if node.unpaired < least:
            continue
        yield _line(node, depth)
        for name, count in node.holders:
            yield clipped(
                f"{'':52} {'  ' * depth}  held by {name}: {format_count(count)}", WIDTH + 40
            )
        kept = [child for child in node.children if every or child.unpaired]
        deeper = min(depth + (len(kept) > 1), DEEPEST)
        waiting.extend((child, deeper) for child in reversed(kept))


def _line(node: Node, depth: int) -> str:
    frame = node.frame
    name = frame.file.rpartition("/")[2]
    where = f"{name}:{frame.line} {frame.function}" if name else "no Python stack"
    return (
        f"{format_count(node.taken):>10} {format_count(node.given_back):>10} "
        f"{format_count(node.unpaired):>9} {format_count(node.objects):>9} "
        f"{format_bytes(node.bytes):>9}  {'  ' * depth}{where}"
    )
