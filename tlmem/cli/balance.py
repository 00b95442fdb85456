"""``tlmem balance``: show which stacks acquire objects without releasing them."""

from __future__ import annotations

from tlmem.cli.arguments import add_output, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem balance FILE``."""
    parser = new_parser(
        "balance",
        "Shows the tree of stacks with the acquires and releases under each frame, and the "
        "acquires there that have no release.",
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--site",
        metavar="PATTERN",
        help="only objects allocated there: FILE:LINE, FILE, FUNCTION, or a pattern with * or ?",
    )
    parser.add_argument(
        "--at-exit",
        action="store_true",
        help="count up to the end of the recording, not to the end of the program's own work",
    )
    parser.add_argument(
        "--all", action="store_true", help="also branches in which every acquire has its release"
    )
    add_output(parser, "text", "json")
    given = parser.parse_args(words)
    from tlmem.report.balance import run_balance

    return run_balance(given.file, given.site, given.format, given.output, given.all, given.at_exit)
