"""``tlmem report``: summarize a recording."""

from __future__ import annotations

from tlmem.cli.arguments import add_output, add_source_root, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem report FILE...``."""
    parser = new_parser("report", "Summarizes a recording: does it leak, where, how fast.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording")
    add_output(parser, "text", "json", "html", "markdown")
    add_source_root(parser)
    given = parser.parse_args(words)
    from tlmem import report

    return report.run(given.files, given.format, given.output, given.source_root)
