"""``tlmem export``: write a recording in the format of another tool."""

from __future__ import annotations

from tlmem.cli.arguments import add_range, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem export FILE``."""
    parser = new_parser("export", "Writes a recording in the format of another tool.")
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--to",
        required=True,
        choices=(
            *("parquet", "csv", "perfetto", "speedscope", "heap-speedscope", "heap-collapsed"),
            "memory-viz",
        ),
        help="parquet, csv: a folder with a file for each table; perfetto: a trace for "
        "ui.perfetto.dev; speedscope: stacks with bytes for speedscope.app; heap-speedscope, "
        "heap-collapsed: stacks of the heap that record --heap sampled, estimated, for "
        "speedscope.app and for flamegraph.pl; memory-viz: a snapshot for pytorch.org/memory_viz",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="a file, or for parquet and csv a folder (default: FILE's name with another ending, "
        "in this directory)",
    )
    add_range(parser)
    parser.add_argument("-f", "--force", action="store_true", help="overwrite OUT")
    given = parser.parse_args(words)
    from tlmem import export

    return export.run(given.file, given.to, given.output, given.since, given.until, given.force)
