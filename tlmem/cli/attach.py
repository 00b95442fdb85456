"""``tlmem attach``: record a Python process that is running already."""

from __future__ import annotations

import argparse
import time

from tlmem.cli.arguments import UsageError, new_parser
from tlmem.output.stdio import to_stdout


def run(words: list[str]) -> int:
    """Runs ``tlmem attach PID``."""
    parser = new_parser(
        "attach",
        "Records a Python process that was not started under tlmem, from now on: what it has "
        "allocated before is not known. The recording goes on until the process ends, or until "
        "tlmem attach --stop PID.",
    )
    parser.add_argument("pid", metavar="PID", type=_pid, help="the process")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write (default: tlmem-attached.PID.tlm in this directory)",
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite FILE")
    parser.add_argument(
        "--max-file", metavar="SIZE", help="keep FILE below SIZE by folding its oldest events"
    )
    parser.add_argument("--stop", action="store_true", help="end the recording of this process")
    parser.add_argument(
        "--seconds", metavar="N", type=float, help="record for so long, wait, and stop"
    )
    parser.add_argument(
        "--timeout",
        metavar="N",
        type=float,
        default=15.0,
        help="seconds to wait until the main thread runs Python code (default: 15)",
    )
    given = parser.parse_args(words)
    if given.stop and (given.output or given.seconds is not None or given.max_file):
        raise UsageError("--stop ends a recording; -o, --max-file and --seconds start one.")
    from tlmem.recorder import attach
    from tlmem.units import parse_bytes

    if given.stop:
        return _stopped(attach.stop(given.pid, given.timeout))
    options: dict[str, object] = {"force": given.force}
    if given.max_file:
        try:
            options["max_file"] = parse_bytes(given.max_file)
        except ValueError as error:
            raise UsageError(f"{error}.") from None
    path = attach.start(
        given.pid, given.output or f"tlmem-attached.{given.pid}.tlm", options, given.timeout
    )
    if given.seconds is not None:
        try:
            time.sleep(given.seconds)
        finally:
            path = attach.stop(given.pid, given.timeout)
        return _stopped(path)
    return to_stdout(
        f"Recording process {given.pid} to {path}.\nStop: tlmem attach --stop {given.pid}\n"
    )


def _stopped(path: str) -> int:
    return to_stdout(f"Stopped. Next: tlmem report {path}\n")


def _pid(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not the number of a process")
    return number


_pid.__name__ = "process number"
