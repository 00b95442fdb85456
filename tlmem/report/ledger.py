"""The commands ``tlmem history``, ``tlmem balance`` and ``tlmem diff``, from files to exit codes.

Covers: reading, choosing a format, writing. Does not cover: words of commands (``cli_ledger``).
"""

from __future__ import annotations

from tlmem.analysis.history import history
from tlmem.errors import TlmemError
from tlmem.recording import read
from tlmem.report import fail, history_report, write
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
