"""``tlmem history``: show one object's history."""

from __future__ import annotations

from tlmem.cli.arguments import add_output, add_source_root, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem history FILE OBJECT``."""
    parser = new_parser(
        "history", "Shows one object's history: every event, who acquired it, who released it."
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "object",
        metavar="OBJECT",
        help="its number, as reports print it, or 0x and its handle or address",
    )
    parser.add_argument("--all", action="store_true", help="every step of a long life")
    add_output(parser, "text", "json")
    add_source_root(parser)
    given = parser.parse_args(words)
    from tlmem.report.history import run_history

    return run_history(
        given.file, given.object, given.format, given.output, given.all, given.source_root
    )
