"""``tlmem index``: keep sums and answers, so that later commands are fast."""

from __future__ import annotations

import os

from tlmem.cli.arguments import new_parser
from tlmem.output.stdio import fail, to_stdout


def run(words: list[str]) -> int:
    """Runs ``tlmem index FILE...``."""
    parser = new_parser(
        "index",
        "Reads recordings once and keeps, in FILE.sums, sums of their older events and what "
        "report, check, diff, peak and stats ask, so that these answer at once. They do it by "
        "themselves, too; the file may be deleted at any time.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording")
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_count,
        default=os.cpu_count() or 1,
        help="files that are read at the same time (default: the number of cores)",
    )
    given = parser.parse_args(words)
    from tlmem.report.indexing import index_all
    from tlmem.units import format_bytes, format_count

    code = 0
    for found in index_all(given.files, given.jobs):
        if found.error:
            code = max(code, fail(found.error, found.exit_code))
        elif found.place:
            events = f"{format_count(found.events)} events"
            summed = f"sums of {format_count(found.summed)} of {events}"
            about = summed if found.summed else f"answers about {events}"
            size = format_bytes(found.place_bytes)
            to_stdout(f"{found.path}: {about} in {found.place} ({size})\n")
        else:
            about = f"{format_count(found.events)} events"
            to_stdout(f"{found.path}: {about}, read as fast without sums: none were kept\n")
    return code


def _count(text: str) -> int:
    """A number from 1 on."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


_count.__name__ = "number from 1 on"
