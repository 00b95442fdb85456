"""``tlmem scenario``: list or run small programs with a known truth."""

from __future__ import annotations

from tlmem.cli.arguments import new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem scenario list`` or ``tlmem scenario run NAME``."""
    parser = new_parser("scenario", "Small programs with a known truth.")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="print one line for each")
    one = actions.add_parser(
        "run",
        help="record one, analyse the recording, and exit with 0 exactly when the truth was found",
    )
    one.add_argument(
        "name",
        metavar="NAME",
        help="a scenario, or policies: what programs cost under each policy of the compiler",
    )
    given = parser.parse_args(words)
    from tlmem.scenarios import list_scenarios, run_scenario

    return list_scenarios() if given.action == "list" else run_scenario(given.name)
