"""Where a row points to: the line to blame, as files are named in a repository.

Covers: the place of a row, paths as seen from the root of the checkout. Does not cover: formats.
"""

from __future__ import annotations

import os
from pathlib import Path

from tlmem.analysis.model import Finding, StackFrame
from tlmem.gate.decision import BudgetResult, Result


def root() -> str:
    """The root of the checkout: GitHub's, GitLab's, else the current directory."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        if os.environ.get(name):
            return os.environ[name]
    return os.getcwd()


def relative(file: str) -> str:
    """A file as seen from the root, absolute when it is not below it.

    By its name alone: a recording names any file, and following links would touch it.
    """
    name = os.path.abspath(file)
    for top in (root(), os.path.realpath(root())):
        if name.startswith(top.rstrip("/") + "/"):
            return name[len(top.rstrip("/")) + 1 :]
    return file


def blamed(row: BudgetResult) -> Finding | None:
    """The first finding of a row that names a line."""
    return next((f for f in row.findings if f.site is not None and f.site.file), None)


def frame_of(row: BudgetResult, result: Result) -> StackFrame | None:
    """The line to blame, else the first line of the script; None when even that is not known."""
    finding = blamed(row)
    if finding is not None:
        return finding.site
    script = script_of(result)
    return StackFrame(script, 1, "") if script else None


def script_of(result: Result) -> str:
    """The recorded script; empty when it was none."""
    return result.subject.summary.processes[0].recording.info.get("script", "")


def name_of(result: Result) -> str:
    """What the program is called: its script, else its recording."""
    script = script_of(result)
    path = result.subject.summary.processes[0].recording.path
    return Path(script).name if script else Path(path).name


def path_of(result: Result) -> str:
    """The recording, as it was named."""
    return str(result.subject.summary.processes[0].recording.path)
