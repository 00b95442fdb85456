"""``tlmem report``: summarize a recording."""

from __future__ import annotations

from tlmem.cli.arguments import add_jobs, add_output, add_source_root, new_parser


def run(words: list[str]) -> int:
    """Runs ``tlmem report FILE...``."""
    parser = new_parser("report", "Summarizes a recording: does it leak, where, how fast.")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a recording, a folder of recordings, or a pattern such as 'run/*.tlm'",
    )
    add_output(parser, "text", "json", "html", "markdown")
    add_source_root(parser)
    parser.add_argument(
        "--explain",
        action="store_true",
        help="say which questions, figures and thresholds led to the verdict (text; JSON has them)",
    )
    parser.add_argument(
        "--all", action="store_true", help="show each process in full, however many there are"
    )
    parser.add_argument(
        "--process", metavar="RANK|PID", help="show one process in full: its rank, worker or pid"
    )
    add_jobs(parser)
    given = parser.parse_args(words)
    if given.explain and given.format not in ("text", "json"):
        parser.error(f"--explain is for text and JSON, not for {given.format}")
    if given.all and given.process is not None:
        parser.error("--all and --process contradict each other; give one of them")
    from tlmem import report

    explain = given.explain and given.format == "text"
    many = report.Many(given.all, given.process, given.jobs, given.on)
    return report.run(given.files, given.format, given.output, given.source_root, explain, many)
