"""``tlmem stats``: how a program allocates: sizes, lines, temporaries."""

from __future__ import annotations

from tlmem.cli.arguments import add_output, add_source_root, count, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem stats FILE``."""
    parser = new_parser(
        "stats",
        "Shows how a program allocates: a histogram of sizes, and the lines that allocate most "
        "bytes, most often, and most of memory freed at once.",
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "-n",
        "--lines",
        type=count,
        default=5,
        metavar="N",
        help="rows of each table of lines (default: 5); JSON has all of them",
    )
    parser.add_argument(
        "--temporary",
        type=count,
        default=1,
        metavar="N",
        help="an allocation is temporary when its thread makes at most N others before it is freed "
        "(default: 1)",
    )
    add_output(parser, "text", "json")
    add_source_root(parser)
    given = parser.parse_args(words)
    from tlmem.report.stats import run_stats

    return run_stats(
        given.file,
        given.lines,
        given.temporary,
        given.format,
        given.output,
        given.source_root,
    )
