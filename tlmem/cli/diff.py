"""``tlmem diff``: compare two recordings of a program."""

from __future__ import annotations

from tlmem.cli.arguments import add_output, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem diff A B``."""
    parser = new_parser(
        "diff",
        "Compares two recordings of a program, before and after a change: verdicts, findings that "
        "came and went, lines that retain or allocate more. Lines are matched by file, function "
        "and rank, so that code above them may have moved them.",
    )
    parser.add_argument("a", metavar="A", help="the recording before")
    parser.add_argument("b", metavar="B", help="the recording after")
    parser.add_argument("--all", action="store_true", help="every line that changed")
    parser.add_argument(
        "--fail-on",
        action="append",
        choices=("new-findings", "growth"),
        default=[],
        help="exit with 1 when B has warnings or errors that A does not have, or when it grows and "
        "A does not; also when B cannot be judged. May be given twice",
    )
    add_output(parser, "text", "json")
    given = parser.parse_args(words)
    from tlmem.report.diff import run_diff

    return run_diff(given.a, given.b, given.format, given.output, given.all, given.fail_on)
