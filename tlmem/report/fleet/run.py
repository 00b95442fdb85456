"""From many files to a page: analyses them, renders, and says what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.engine import executor_at
from tlmem.fleets.fleet import Fleet
from tlmem.report.fleet import json, markdown, text
from tlmem.report.fleet.words import unreadable


def render_html(found: FleetAnalysis, paths: Sequence[str]) -> str:
    """The page for a browser; what draws pictures is imported only for it."""
    from tlmem.report.fleet import html

    return html.render(found, paths)


FORMATS: dict[str, Callable[[FleetAnalysis, Sequence[str]], str]] = {
    "text": text.render,
    "json": json.render,
    "html": render_html,
    "markdown": markdown.render,
}


def run_fleet(
    files: Sequence[Path],
    paths: Sequence[str],
    format: str = "text",
    jobs: int | None = None,
    on: str | None = None,
) -> tuple[str, int, str]:
    """The page on many recordings.

    Args:
        paths: what the user named, for the next commands.
        jobs: processes that analyse; None: one for each core.
        on: a cluster, ``dask://HOST:PORT``.
    Returns:
        The page, the exit code, and the sentence for stderr where that is not 0.
    Raises:
        TlmemError: no recording can be read, or there is no such cluster.
    """
    with executor_at(on) as executor:
        found = Fleet(files).analyse(executor, jobs, Progress() if is_shown() else None)
    page = FORMATS[format](found, paths)
    if not found.unreadable:
        return page, 0, ""
    code = max(each.exit_code for each in found.unreadable)
    return page, code, unreadable(found).rstrip(".") + "; the report names them."


def is_shown() -> bool:
    """Whether somebody may be waiting who reads stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


class Progress:
    """One line on the terminal that says how far it is, and is gone at the end."""

    def __call__(self, done: int, of: int) -> None:
        """Shows that so many of all recordings are analysed."""
        line = f"analysed {done} of {of} recordings"
        sys.stderr.write(f"\r{line}" if done < of else "\r" + " " * len(line) + "\r")
        sys.stderr.flush()
