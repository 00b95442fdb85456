"""Reports of recordings: ``run(paths, format, out)`` is the command ``tlmem report``.

Covers: choosing a format, writing it, errors as one sentence and an exit code.
See also: docs/reference/json.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tlmem.errors import TlmemError
from tlmem.report import json_report, text
from tlmem.report.summary import Summary, summarise

FORMATS = {"text": text.render, "json": json_report.render}

__all__ = ["FORMATS", "Summary", "run", "summarise"]


def run(paths: Sequence[str], format: str = "text", out: str | None = None) -> int:
    """Writes a report of recordings to a file or to stdout and returns the exit code.

    Returns:
        0; 2 when a file is missing, is no recording, or the output cannot be written; 3 when a
        recording is recognised but empty or damaged beyond use. A code other than 0 comes with one
        sentence on stderr.
    """
    try:
        report = FORMATS[format](summarise(paths))
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    return write(report, out)


def write(report: str, out: str | None) -> int:
    """Writes a text to a file, or to stdout when ``out`` is None, and returns the exit code."""
    if out is None:
        return to_stdout(report)
    try:
        with open(out, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
    except OSError as error:
        return fail(f"{out} cannot be written ({error.strerror}); choose another place with -o.", 2)
    return 0


def to_stdout(report: str) -> int:
    try:
        sys.stdout.flush()
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(report.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the pipe has seen enough; Python must not complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return fail(f"the report cannot be written to stdout ({error.strerror}); give -o OUT.", 2)
    return 0


def fail(sentence: str, code: int) -> int:
    sys.stderr.write(f"tlmem: {sentence}\n")
    return code
