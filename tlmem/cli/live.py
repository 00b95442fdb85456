"""``tlmem live``: follow a program while it is recorded; ``tlmem.dashboards`` has the screens."""

from __future__ import annotations

from tlmem.cli.arguments import new_parser, require_terminal


def run(words: list[str]) -> int:
    """Runs ``tlmem live [FILE|PID]``."""
    parser = new_parser(
        "live",
        "Follows a program while it is recorded: memory over time, lines that hold it, all "
        "processes of a family together. Space pauses, arrows scrub back, q quits; the program "
        "does not notice, and it can be followed again at any time.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="FILE|PID",
        help="a recording, or the number of a process that is recorded (default: the newest "
        "recording of this directory that is being written)",
    )
    given = parser.parse_args(words)
    from tlmem.dashboards import opening

    is_file = given.target is not None and not given.target.isdigit()
    require_terminal(given.target if is_file else "FILE")
    return opening.follow(given.target)
