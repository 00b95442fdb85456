"""``tlmem check``, from files to an exit code.

Covers: which files belong together, judging each program, writing every format that was asked for.
Does not cover: words of the command line (``tlmem.cli.check``), repeated runs (``repeat``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.fleets.engine import executor_at
from tlmem.fleets.members import files_of, is_many
from tlmem.gate import inputs, suppressions
from tlmem.gate.budgets import BadOptions, CheckOptions
from tlmem.gate.decision import Checked, Unreadable, all_reasons, judge
from tlmem.gate.fleet import judge_fleet
from tlmem.gate.outputs import FORMATS, markdown
from tlmem.output.atomic_write import write_file
from tlmem.recording import family
from tlmem.report import write

SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
"""The environment variable in which GitHub Actions names the file of a job's summary."""


def check(
    paths: Sequence[str | Path],
    options: CheckOptions,
    source_roots: Sequence[str] = (),
    jobs: int | None = None,
    on: str | None = None,
) -> Checked:
    """Judges every program; files of processes that others of them started belong to those.

    Where a folder or a pattern is among the paths, every process is judged for itself.

    Args:
        source_roots: folders whose files may be read for source lines.
        jobs: processes that judge those of a folder; None: one for each core.
        on: a cluster that does, ``dask://HOST:PORT``.

    Raises:
        BadOptions: the options contradict each other, or its suppressions cannot be read.
        MissingFile: a folder has no recordings, or a pattern matches nothing.
        TlmemError: the baseline cannot be read.
    """
    options = options.checked()
    known = suppressions.read(options.suppressions)
    is_fleet = any(map(is_many, paths))
    files = files_of(paths) if is_fleet else programs([Path(path) for path in paths])
    baseline = None
    if options.baseline is not None:
        for file in files:
            if options.baseline.exists() and file.exists() and options.baseline.samefile(file):
                raise BadOptions(f"{file} is its own baseline; give an earlier recording.")
        baseline = inputs.read([options.baseline], known)
    if is_fleet:
        if options.baseline is not None and on is not None:
            raise BadOptions("--baseline is read here, so --on cannot be given too.")
        with executor_at(on) as executor:
            judged, lost = judge_fleet(
                files, options, known, source_roots, baseline, executor, jobs
            )
        return Checked(tuple(judged), tuple(lost), is_fleet=True)
    results, unreadable = [], []
    for file in files:
        try:
            results.append(judge(inputs.read([file], known, source_roots), options, baseline))
        except TlmemError as error:
            unreadable.append(Unreadable(file, str(error), error.exit_code))
    return Checked(tuple(results), tuple(unreadable))


def programs(paths: Sequence[Path]) -> list[Path]:
    """The files that are to be judged: each once, without children of others."""
    children = {member.absolute() for path in paths for member in family.find(path)}
    return [path for path in dict.fromkeys(paths) if path.absolute() not in children]


def report(
    checked: Checked, format: str = "text", out: str | None = None, more: Mapping[str, str] = {}
) -> int:
    """Writes the decision in every format that was asked for and returns the exit code.

    Args:
        format, out: of the decision itself; ``out`` None is stdout.
        more: format -> file, written beside it.
    """
    code = write(FORMATS[format](checked), out)
    _write_more(checked, more)
    if format == "github" and "github" not in more and os.environ.get(SUMMARY_FILE):
        _summarise_step(checked)
    for sentence in all_reasons(checked):
        sys.stderr.write(f"tlmem: {sentence}\n")
    return code or checked.exit_code


def report_after(checked: Checked, more: Mapping[str, str], quiet: bool) -> int:
    """What ``record --check`` says when the program is over, on stderr: stdout is the program's."""
    if not quiet:
        for line in FORMATS["text"](checked).splitlines():
            sys.stderr.write(f"tlmem: {line}".rstrip() + "\n")
    _write_more(checked, more)
    return checked.exit_code


def _write_more(checked: Checked, more: Mapping[str, str]) -> None:
    """Writes formats to files."""
    for name, path in more.items():
        text = FORMATS[name](checked)
        write_file(path, lambda place, text=text: place.write_text(text, "utf-8"), True)  # type: ignore[misc]
    if "github" in more and os.environ.get(SUMMARY_FILE):
        _summarise_step(checked)


def _summarise_step(checked: Checked) -> None:
    """Adds the decision to the summary of the job that runs."""
    try:
        with open(os.environ[SUMMARY_FILE], "a", encoding="utf-8") as file:
            file.write(markdown.render(checked))
    except OSError as error:
        sys.stderr.write(f"tlmem: the step summary cannot be written ({error.strerror}).\n")
