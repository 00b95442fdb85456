"""``tlmem tui``: browse a recording in the terminal; ``tlmem.dashboards`` has the screens."""

from __future__ import annotations

from tlmem.cli.arguments import add_source_root, new_parser, require_terminal


def run(words: list[str]) -> int:
    """Runs ``tlmem tui FILE``."""
    parser = new_parser(
        "tui",
        "Browses a recording in the terminal: what grows and who holds it, lifetimes, lines, "
        "scopes, pools and tapes. ? shows every key, q quits.",
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--diff", metavar="OTHER", help="a recording to compare it with, on the screen diff"
    )
    add_source_root(parser)
    given = parser.parse_args(words)
    from tlmem.dashboards import opening

    require_terminal(given.file)
    return opening.browse(given.file, given.diff, given.source_root)
