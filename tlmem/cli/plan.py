"""``tlmem plan``: the lowest peak a recorded program could reach, and what prevents it.

Covers: options, and handing the planner to the reading side, which does not import it.
Does not cover: the text (``report.plan``, ``report.plots.plan``), functions that tlmem compiles
(``plan_function``).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlmem.cli.arguments import add_format, new_parser

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording
    from tlmem.report.plan import Planned

PICTURES = (".png", ".svg", ".pdf")
MOST_SECONDS = 1e6


def run(words: list[str]) -> int:
    """Runs ``tlmem plan FILE`` and ``tlmem plan MODULE:FUNCTION``."""
    given = _parser().parse_args(words)
    from tlmem.cli import plan_function

    if plan_function.is_function(given.target):
        return plan_function.run(
            given.target, given.shapes, given.values, given.out, given.format, given.output
        )
    from tlmem.recording.reader import read_for_command
    from tlmem.report import write
    from tlmem.report.plan import render_json, render_text

    recording = read_for_command(given.target)
    how = (given.memory, given.objects, given.seconds)
    render = render_json if given.format == "json" else render_text
    if given.output is None or Path(given.output).suffix.lower() not in PICTURES:
        question = ("plan", *how, given.format)
        text = recording.kept(question, lambda: render(_found(recording, *how)), True)
        return write(text, given.output)
    from tlmem.report import plots
    from tlmem.report.plots import plan as picture

    found = _found(recording, *how)
    size = plots.parse_size(given.size) if given.size else None
    drawn = picture.picture(found, plots.format_of(given.output), size)
    plots.write_picture(drawn, given.output, given.force)
    return write(render(found), None)


def _found(recording: Recording, memory: str | None, most: int, seconds: float) -> Planned:
    """What a plan of a recording would need.

    Raises:
        TlmemError: it has no such memory.
    """
    from tlmem.planning import planner
    from tlmem.report.plan import Placement, find

    def place(rows: Any) -> Placement:
        made = planner.plan(rows, seconds=seconds)
        return Placement(made.offsets, made.peak_bytes, made.lower_bound_bytes, made.proven)

    return find(recording, place, memory, most)


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "plan",
        "Shows the lowest peak a recorded program could reach, and what prevents it: the most that "
        "was alive at once, what a plan with an offset for each object needs, what pools, slots "
        "and gaps need, which lines hold the peak, and whose shorter lives would lower it. For a "
        "function that tlmem compiles: what its frame holds, without calling it.",
    )
    parser.add_argument(
        "target", metavar="FILE", help="a recording, or MODULE:FUNCTION, or FILE.py:FUNCTION"
    )
    add_format(parser, "text", "json")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write here instead of to stdout; with .png, .svg or .pdf at its end: draw where each "
        "object would lie, and when, beside the text",
    )
    parser.add_argument(
        "--size", metavar="WxH", help="of the picture: 1600x900 (pixels), 16x9cm, 8x5in"
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite a picture")
    parser.add_argument(
        "--objects",
        metavar="N",
        type=_count,
        default=20_000,
        help="place at most N objects, those nearest to the peak (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=_seconds,
        default=1.0,
        help="CPU time for finding a lower plan than the first (default: %(default)s; 0: none)",
    )
    parser.add_argument(
        "--memory",
        metavar="NAME",
        help="which memory: host, or a device's name (default: the one with the highest peak)",
    )
    function = parser.add_argument_group("of a function")
    function.add_argument(
        "--shapes",
        metavar="SHAPE",
        nargs="+",
        default=[],
        help="of its tensors, in order or by name: 64x128, 128:float64, bias=10, scalar",
    )
    function.add_argument(
        "--values",
        metavar="NAME=VALUE",
        nargs="+",
        default=[],
        help="of its other arguments; what has a default may be left out",
    )
    function.add_argument("--out", action="store_true", help="as it is called with out=")
    return parser


def _count(text: str) -> int:
    """How many objects are placed: at least two, so that what is left out can be one of them."""
    count = int(text)
    if count < 2:
        raise argparse.ArgumentTypeError(f"'{text}' objects are too few; give 2 or more")
    return count


def _seconds(text: str) -> float:
    """CPU time: a number of seconds that is not negative and has an end."""
    seconds = float(text)
    if not 0 <= seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time from 0 to {MOST_SECONDS:.0f} s")
    return seconds


_count.__name__ = "whole number"  # argparse says "invalid whole number value: 'x'"
_seconds.__name__ = "number of seconds"
