"""What commands print about recordings; ``run(paths, format, out)`` is ``tlmem report``.

In: recordings and what was found in them. Out: text, and an exit code.
May import: errors, events, units, output, recording, analysis, fleets, planning. Inside functions:
report.html, report.fleet.
Third-party: numpy.

``text``, ``json``, ``markdown`` and ``html`` are the formats of ``tlmem report``; ``balance``,
``diff``, ``history`` and ``plan`` are the reports of the commands of these names; ``plots`` draws;
``fleet`` is the page on many processes.
See also: docs/reference/json.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.fleets.members import chosen, files_of, is_many
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

MOST_IN_FULL = 4
"""More processes than this are one page."""

__all__ = ["FORMATS", "Many", "Summary", "run", "summarise"]


@dataclass(frozen=True)
class Many:
    """What is to be done with more than one process.

    ``all``: show each in full. ``process``: show only the one with this rank, worker's name or
    process id. ``jobs``: analyse in so many processes, None: in one for each core. ``on``: analyse
    on a cluster, ``dask://HOST:PORT``.
    """

    all: bool = False
    process: str | None = None
    jobs: int | None = None
    on: str | None = None


def run(
    paths: Sequence[str],
    format: str = "text",
    out: str | None = None,
    source_roots: Sequence[str] = (),
    explain: bool = False,
    many: Many = Many(),  # noqa: B008
) -> int:
    """Writes a report of recordings to a file or to stdout and returns the exit code.

    More than ``MOST_IN_FULL`` processes are one page, see ``report.fleet``.

    Args:
        paths: files, each with its family, folders, and patterns.
        source_roots: folders whose files may be read for source lines.
        explain: whether the text says which questions led to the verdict; JSON always does.
        many: what is to be done with more than one process.

    Returns:
        0; 2 when a file is missing, is not a recording, or the output cannot be written; 3 when a
        recording is recognised but empty or damaged beyond use. A code other than 0 comes with one
        sentence on stderr. Of a page on many processes some may be unreadable: it is made of the
        others and names them, and the code is the highest of theirs.
    """
    try:
        files = files_of(paths)
        if many.process is not None:
            summary = summarise([str(chosen(files, many.process))], source_roots, alone=True)
        elif len(files) > MOST_IN_FULL and many.all and format == "text":
            return write(_each(files, source_roots, explain), out)
        elif len(files) > MOST_IN_FULL and not many.all and not _is_one_in_json(paths, format):
            return _run_fleet(files, paths, format, out, many)
        elif not any(map(is_many, paths)):
            summary = summarise(paths, source_roots)
        else:
            try:
                summary = summarise(_names(paths, files), source_roots)
            except TlmemError:
                if len(files) < 2:
                    raise
                return _run_fleet(files, paths, format, out, many)
        report = text.render(summary, True) if explain else FORMATS[format](summary)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    return write(report, out)


def _is_one_in_json(paths: Sequence[str], format: str) -> bool:
    """Whether JSON of one named file is asked for: it has its ``processes``, however many."""
    return format == "json" and len(paths) == 1 and not is_many(paths[0])


def _names(paths: Sequence[str], files: Sequence[Path]) -> list[str]:
    """Files as they were named; those of folders and patterns one by one."""
    return [str(file) for file in files] if any(map(is_many, paths)) else list(paths)


def _run_fleet(
    files: Sequence[Path], paths: Sequence[str], format: str, out: str | None, many: Many
) -> int:
    """One page on many processes."""
    from tlmem.report.fleet.run import run_fleet

    page, code, sentence = run_fleet(files, paths, format, many.jobs, many.on)
    written = write(page, out)
    if sentence:
        fail(sentence, code)
    return written or code


def _each(files: Sequence[Path], source_roots: Sequence[str], explain: bool) -> Iterator[str]:
    """The report on each process, one after the other: one recording is open at a time."""
    for number, file in enumerate(files):
        try:
            process = summarise([str(file)], source_roots, alone=True).processes[0]
        except TlmemError as error:
            blocks = [str(error)]
        else:
            blocks = list(text.process_part(process, explain, True))
            del process
        yield ("\n" if number else "") + "\n\n".join(blocks) + "\n"


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
    sys.stderr.write(f"tlmem: wrote the report to {out}\n")
    return 0
