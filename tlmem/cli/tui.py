"""``tlmem tui``: browse a recording in the terminal; ``tlmem.dashboards`` has the screens."""

from __future__ import annotations

import shlex

from tlmem.cli.arguments import add_source_root, jobs_number, new_parser, require_terminal


def run(words: list[str]) -> int:
    """Runs ``tlmem tui FILE...``."""
    parser = new_parser(
        "tui",
        "Browses recordings in the terminal: what grows and who holds it, lifetimes, lines, "
        "scopes, pools and tapes. ? shows every key, q quits.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a recording; of a folder, a pattern or several files, a map of all processes",
    )
    parser.add_argument(
        "--diff", metavar="OTHER", help="a recording to compare it with, on the screen diff"
    )
    add_source_root(parser)
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=jobs_number,
        help="analyse many recordings in N processes (default: one for each core)",
    )
    given = parser.parse_args(words)
    from tlmem.dashboards import opening
    from tlmem.fleets.members import is_many

    is_fleet = len(given.files) > 1 or is_many(given.files[0])
    if is_fleet and given.diff:
        parser.error("--diff compares one recording with another; name one FILE")
    require_terminal(shlex.join(given.files))
    if is_fleet:
        return opening.browse_fleet(given.files, given.source_root, given.jobs)
    return opening.browse(given.files[0], given.diff, given.source_root)
