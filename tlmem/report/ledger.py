"""The commands ``tlmem history``, ``tlmem balance`` and ``tlmem diff``, from files to exit codes.

Covers: reading, choosing a format, writing. Does not cover: words of commands (``cli_ledger``).
"""

from __future__ import annotations

from tlmem.analysis.balance import balance
from tlmem.analysis.history import history
from tlmem.errors import TlmemError
from tlmem.recording import read
from tlmem.report import balance_report, fail, history_report, write
from tlmem.report.summary import DETAIL_EVENTS


def run_history(
    path: str, which: str, format: str = "text", out: str | None = None, every: bool = False
) -> int:
    """Writes the life of one object and returns the exit code.

    Returns:
        0; 2 when the file is missing or no recording, knows no such object, or the output cannot be
        written; 3 when the recording is empty or damaged beyond use.
    """
    try:
        life = history(read(path, detail_events=DETAIL_EVENTS), which)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    render = history_report.render_json if format == "json" else history_report.render_text
    return write(render(life, every), out)


def run_balance(
    path: str,
    site: str | None = None,
    format: str = "text",
    out: str | None = None,
    every: bool = False,
    at_exit: bool = False,
) -> int:
    """Writes the tree of stacks with what was taken, given back and left; returns the exit code.

    Returns:
        0; 2 when the file is missing or no recording, nothing was made at ``site``, or the output
        cannot be written; 3 when the recording is empty or damaged beyond use.
    """
    try:
        found = balance(read(path, detail_events=DETAIL_EVENTS), site, at_exit)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    render = balance_report.render_json if format == "json" else balance_report.render_text
    return write(render(found, every), out)
