"""The words of ``tlmem plot`` and ``tlmem export``; ``report.plots`` and ``export`` do it.

Covers: options and help of these commands. Does not cover: other commands (``cli``).
"""

from __future__ import annotations

import argparse
import os

LONGEST_S = 1e9
"""Thirty years."""


def plot(words: list[str]) -> int:
    """Runs ``tlmem plot FILE``."""
    parser = argparse.ArgumentParser(
        prog="tlmem plot",
        description="Draws what a recording holds as PNG, SVG or PDF.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="a file that ends in .png, .svg or .pdf (default: FILE's name, the kind and .png, in "
        "this directory)",
    )
    parser.add_argument(
        "--kind",
        choices=("memory", "sites", "objects", "pool", "growth", "all"),
        default="memory",
        help="memory: resident memory by what it is; sites: tracked memory by line; objects: "
        "lifetimes; pool: what pools keep and serve; growth: what grows, with its slope; all: each "
        "of them for which there is something. Default: %(default)s",
    )
    parser.add_argument(
        "--size", metavar="WxH", help="1600x900 (pixels), 16x9cm, 8x5in; default: 1440x672"
    )
    _add_range(parser)
    parser.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
    given = parser.parse_args(words)
    from tlmem.report import plots

    out = given.output or f"{_stem(given.file)}-{given.kind}.png"
    return plots.run(given.file, out, given.kind, given.size, given.since, given.until, given.force)


def export(words: list[str]) -> int:
    """Runs ``tlmem export FILE``."""
    parser = argparse.ArgumentParser(
        prog="tlmem export",
        description="Writes a recording in the format of another tool.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--to",
        required=True,
        choices=("parquet", "csv", "perfetto", "speedscope", "memory-viz"),
        help="parquet, csv: a folder with a file for each table; perfetto: a trace for "
        "ui.perfetto.dev; speedscope: stacks with bytes for speedscope.app; memory-viz: a snapshot "
        "for pytorch.org/memory_viz",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="a file, or for parquet and csv a folder (default: FILE's name with another ending, "
        "in this directory)",
    )
    _add_range(parser)
    parser.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
    given = parser.parse_args(words)
    from tlmem import export as exports

    return exports.run(given.file, given.to, given.output, given.since, given.until, given.force)


def _add_range(parser: argparse.ArgumentParser) -> None:
    """The options for a range of time."""
    for option, what in (("--since", "from"), ("--until", "up to")):
        parser.add_argument(
            option,
            metavar="SECONDS",
            type=_seconds,
            help=f"only {what} this time after the start of the recording",
        )


def _seconds(text: str) -> float:
    """A time of a command line: a number of seconds that is not negative and has an end."""
    seconds = float(text)
    if not 0 <= seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"'{text}' is no time from 0 to {LONGEST_S:.0f} seconds")
    return seconds


_seconds.__name__ = "number of seconds"  # argparse says "invalid number of seconds value: 'x'"


def _stem(path: str) -> str:
    """The name of a recording without its folder and ending."""
    return os.path.basename(path).removesuffix(".tlm") or "tlmem"


COMMANDS = {"plot": plot, "export": export}
