"""What commands print about recordings; ``run(paths, format, out)`` is ``tlmem report``.

In: recordings and what was found in them. Out: text, and an exit code.
May import: errors, events, units, output, recording, analysis, planning. Inside functions:
report.html.
Third-party: numpy.

``text``, ``json``, ``markdown`` and ``html`` are the formats of ``tlmem report``; ``balance``,
``diff``, ``history`` and ``plan`` are the reports of the commands of these names; ``plots`` draws.
See also: docs/reference/json.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.output.atomic_write import STDOUT, write_file
from tlmem.output.stdio import fail, to_stdout
from tlmem.report import json, text
from tlmem.report.summary import Summary, summarise


def render_html(summary: Summary) -> str:
    """The report as a page; what draws pictures is imported only for it."""
    from tlmem.report import html

    return html.render(summary)


def render_markdown(summary: Summary) -> str:
    """The report as a comment."""
    from tlmem.report import markdown

    return markdown.render(summary)


FORMATS = {
    "text": text.render,
    "json": json.render,
    "html": render_html,
    "markdown": render_markdown,
}

__all__ = ["FORMATS", "Summary", "run", "summarise"]


def run(
    paths: Sequence[str],
    format: str = "text",
    out: str | None = None,
    source_roots: Sequence[str] = (),
    explain: bool = False,
) -> int:
    """Writes a report of recordings to a file or to stdout and returns the exit code.

    Args:
        source_roots: folders whose files may be read for source lines.
        explain: whether the text says which questions led to the verdict; JSON always does.

    Returns:
        0; 2 when a file is missing, is not a recording, or the output cannot be written; 3 when a
        recording is recognised but empty or damaged beyond use. A code other than 0 comes with one
        sentence on stderr.
    """
    try:
        summary = summarise(paths, source_roots)
        report = text.render(summary, True) if explain else FORMATS[format](summary)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    return write(report, out)


def write(report: str | Iterable[str], out: str | None) -> int:
    """Writes a text, or the pieces of one, to a file, or to stdout when ``out`` is None or ``-``.

    Returns:
        The exit code: 0; 2 after one sentence on stderr when the output cannot be written.
    """
    if out is None or out == STDOUT:
        return to_stdout(report)

    def write_to(place: Path) -> None:
        with place.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines([report] if isinstance(report, str) else report)

    try:
        write_file(out, write_to, force=True)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    return 0
