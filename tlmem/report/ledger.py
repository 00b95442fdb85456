"""The commands ``tlmem history``, ``tlmem balance`` and ``tlmem diff``, from files to exit codes.

Covers: reading, choosing a format, writing. Does not cover: words of commands (``cli_ledger``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tlmem.analysis.compare import Side, compare, failures
from tlmem.analysis.ledger.balance import balance
from tlmem.analysis.ledger.history import history
from tlmem.errors import TlmemError
from tlmem.output.stdio import fail
from tlmem.recording.reader import read
from tlmem.report import balance as balance_report
from tlmem.report import diff as diff_report
from tlmem.report import history as history_report
from tlmem.report import write
from tlmem.report.summary import DETAIL_EVENTS, summarise


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


def run_diff(
    before: str,
    after: str,
    format: str = "text",
    out: str | None = None,
    every: bool = False,
    fail_on: Sequence[str] = (),
) -> int:
    """Writes what differs between two recordings and returns the exit code.

    Returns:
        0; 1 when ``fail_on`` asks to refuse the second one, with a sentence for each reason on
        stderr; 2 when a file is missing or no recording, or the output cannot be written; 3 when a
        recording is empty or damaged beyond use.
    """
    try:
        found = compare(_side(before), _side(after))
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    render = diff_report.render_json if format == "json" else diff_report.render_text
    code = write(render(found, every), out)
    why = failures(found, fail_on)
    for sentence in why:
        sys.stderr.write(f"tlmem: {sentence}\n")
    return code or bool(why)


def _side(path: str) -> Side:
    """One recording, with those of the processes that it started."""
    summary = summarise([path])
    return Side(
        recordings=[process.recording for process in summary.processes],
        verdict=summary.verdict,
        findings=summary.findings,
        totals=summary.totals if summary.is_family else summary.processes[0].totals,
    )
