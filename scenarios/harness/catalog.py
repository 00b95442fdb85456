"""The scenarios: where they are, what is true of each, and whether tlmem finds it.

A scenario is a program in ``programs`` with these constants and comments:

=========================  =====================================================================
``OUTCOME``                the verdict that is right for it
``# leaks here``           ends the line to be blamed
``HELD_BY``                who holds most of what that line made (of Python holders without the
                           numbers that change from one moment to the next)
``CLASS``                  the class of the leak
``BECAUSE``                a part of what the finding of that class says
``# double-free here``     or another kind of misuse: ends the line where it must be found, and no
                           other misuse may be found
``COUNT``, ``BYTES``       what the finding must count, exactly
``RECORD``                 further words for ``tlmem record``
``EXIT``                   the signal that ends the program
``TWIN``                   the name of the same program without the fault, else ``NAME-fixed``
``NEEDS``                  a package that it imports and that tlmem does not require; where it is
                           not installed, ``scenarios`` leaves the program out
``Fixed: ...``             a paragraph of the docstring: the file holds the twin as well, which is
                           stable, has nothing to find and runs when the first word is ``fixed``
                           (see ``switch``)
=========================  =====================================================================
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlmem.scenarios.programs.switch import WORD

from tlmem.analysis import Analysis, Finding, analyse
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.leaks.deep_graphs import KIND as DEEP
from tlmem.analysis.ledger.misuse import WHAT
from tlmem.recording import family
from tlmem.recording.reader import read
from tlmem.recording.tables.chain_text import without_numbers

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
SEEDED = PROGRAMS / "seeded"
"""The folder of programs that are no scenarios: they need a size and a seed."""
MARKER = "# leaks here"
INSTALL = {"torch": "PyTorch: pip install tlmem[torch]"}
"""What a scenario may need, and where it comes from."""
REPAIRED = "Fixed: "
"""Begins the paragraph that describes the repaired twin."""
OF_TAPES = "tape-growth"
"""Says what leaks where no line makes objects that stay: records pile up on a tape."""
MISUSE_MARKER = re.compile(rf"# ({'|'.join(WHAT)}) here$", re.MULTILINE)

LONGEST_RUN_S = 600


class ScenarioFailed(Exception):
    """The program could not be run under ``tlmem record``."""


Place = tuple[str, int]
"""Base name and line of a file."""


@dataclass(frozen=True)
class Scenario:
    """A small program with a known truth.

    ``line`` is 0 when no line is to be blamed; ``held_by`` is empty when it does not matter;
    ``misuse`` is a kind of finding and its line, None when the program does nothing wrong;
    ``leak_class`` is the kind of finding that says why ``line`` leaks, empty when there is none;
    ``because`` is a part of what it says, empty when it does not matter.
    ``count`` and ``bytes`` are what the finding of the truth counts, None when it is not exact.
    ``record`` are further words for ``tlmem record``, ``words`` are the program's own; ``exit`` is
    how a process ends that runs it, negative for a signal; ``twin`` is the scenario without fault;
    ``needs`` is a package that it imports, empty when tlmem requires all that it does.
    """

    name: str
    path: Path
    description: str
    outcome: str
    line: int
    held_by: str = ""
    misuse: tuple[str, int] | None = None
    leak_class: str = ""
    because: str = ""
    count: int | None = None
    bytes: int | None = None
    record: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    exit: int = 0
    twin: str = ""
    needs: str = ""

    @property
    def missing(self) -> str:
        """What has to be installed before it can run, such as ``PyTorch: pip install ...``."""
        if not self.needs or importlib.util.find_spec(self.needs) is not None:
            return ""
        return INSTALL.get(self.needs, self.needs)

    @property
    def faulty(self) -> bool:
        """Whether there is something to find."""
        return self.outcome != "stable" or self.misuse is not None

    @property
    def truth(self) -> str:
        """The truth in words, such as ``leak at cache.py:12, held by cache, over-retained``."""
        at = f" at {self.path.name}:{self.line}" if self.line else ""
        held = f", held by {self.held_by}" if self.held_by else ""
        wrong = f", {self.misuse[0]} at {self.path.name}:{self.misuse[1]}" if self.misuse else ""
        kind = f", {self.leak_class}" if self.leak_class else ""
        why = f': "{self.because}"' if self.because else ""
        return self.outcome + at + held + kind + why + wrong


@dataclass(frozen=True)
class Result:
    """What was found in one run of a scenario."""

    scenario: Scenario
    analysis: Analysis

    @property
    def growing(self) -> list[Finding]:
        """Findings about growing lines, worst first; or about the line whose graph grows."""
        found = self.analysis.findings
        lines = [finding for finding in found if finding.kind == "growing-site"]
        return lines or [finding for finding in found if finding.kind == DEEP and finding.site]

    @property
    def blamed(self) -> list[Place]:
        """Every growing line, worst first."""
        return [place_of(finding) for finding in self.growing if finding.site is not None]

    @property
    def held_by(self) -> str:
        """Who holds most of what the worst line made; empty when nobody has a name."""
        holders = self.growing[0].holders if self.growing else ()
        return holders[0].name if holders else ""

    @property
    def classes(self) -> list[Finding]:
        """Findings that say why the worst line leaks, or without one why anything does."""
        kinds = {*FIXES, OF_TAPES}
        found = [finding for finding in self.analysis.findings if finding.kind in kinds]
        if not self.growing:
            return found
        return [finding for finding in found if finding.site == self.growing[0].site][:1]

    @property
    def leak_class(self) -> str:
        """The class of the leak at the worst line; empty when it has none."""
        return ", ".join(found.kind for found in self.classes)

    @property
    def because(self) -> str:
        """What is true of why it leaks, if that is said; else what is said instead."""
        said = " ".join(found.evidence for found in self.classes)
        return self.scenario.because if self.scenario.because in said else said

    @property
    def misuses(self) -> list[tuple[str, Place]]:
        """Every misuse that was found, and where."""
        return [
            (found.kind, place_of(found)) for found in self.analysis.findings if found.kind in WHAT
        ]

    @property
    def wolves(self) -> list[Finding]:
        """Errors and warnings."""
        return [finding for finding in self.analysis.findings if finding.severity != "info"]

    @property
    def main_finding(self) -> Finding | None:
        """The finding the truth is about: of a growing line, of a misuse, or else the worst."""
        wrong = [found for found in self.analysis.findings if found.kind in WHAT]
        return next(iter([*self.growing, *wrong, *self.wolves]), None)

    @property
    def found(self) -> str:
        """What was found, in the words of ``Scenario.truth``."""
        parts = [
            self.analysis.verdict.outcome
            + (f" at {', '.join(map(place_text, self.blamed))}" if self.blamed else "")
        ]
        parts += [f"held by {self.held_by}"] if self.held_by else []
        why = f': "{self.because}"' if self.because else ""
        parts += [f"{self.leak_class}{why}"] if self.leak_class else []
        parts += [f"{kind} at {place_text(place)}" for kind, place in self.misuses]
        return ", ".join(parts)

    @property
    def located(self) -> bool:
        """Whether the verdict is the true one and the true line is blamed, and no other."""
        truth = self.scenario
        expected = [(truth.path.name, truth.line)] if truth.line else []
        return (
            self.analysis.verdict.outcome == truth.outcome
            and self.blamed == expected
            and not self.misuses
        )

    @property
    def right(self) -> bool:
        """Whether verdict, line, holder, class, misuse and numbers are the true ones."""
        truth, name = self.scenario, self.scenario.path.name
        worst = self.main_finding
        expected = [(name, truth.line)] if truth.line else []
        return (
            self.analysis.verdict.outcome == truth.outcome
            and self.blamed[: len(expected)] == expected
            and (bool(expected) or not self.blamed)
            and truth.held_by in ("", self.held_by, without_numbers(self.held_by))
            and truth.leak_class == self.leak_class
            and truth.because == self.because
            and truth.count in (None, worst.count if worst else 0)
            and truth.bytes in (None, worst.bytes if worst else 0)
            and self.misuses
            == ([(truth.misuse[0], (name, truth.misuse[1]))] if truth.misuse else [])
        )


def place_of(finding: Finding) -> Place:
    """Where a finding points to; an empty name when that is not known."""
    return (Path(finding.site.file).name, finding.site.line) if finding.site else ("", 0)


def place_text(place: Place) -> str:
    """``cache.py:12``."""
    return f"{place[0]}:{place[1]}"


def scenarios() -> dict[str, Scenario]:
    """All scenarios by name that can run here; ``skipped`` has the others."""
    return {name: scenario for name, scenario in _all().items() if not scenario.missing}


def skipped() -> dict[str, Scenario]:
    """The scenarios that need a package which is not installed, by name."""
    return {name: scenario for name, scenario in _all().items() if scenario.missing}


def skipped_text() -> str:
    """One line for each package that is not installed and how many scenarios need it."""
    missing = [scenario.missing for scenario in skipped().values()]
    return "".join(
        f"tlmem: {missing.count(what)} scenarios are skipped, they need {what}\n"
        for what in sorted(set(missing))
    )


def _all() -> dict[str, Scenario]:
    found = {}
    for path in PROGRAMS.glob("*/*.py"):
        if path.parent != SEEDED:
            found.update({scenario.name: scenario for scenario in read_scenarios(path)})
    return dict(sorted(found.items()))


def read_scenarios(path: Path) -> list[Scenario]:
    """The scenarios in a file, without running it: none, one, or a fault and its repaired twin."""
    faulty = read_scenario(path)
    if faulty is None:
        return []
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    repaired = [part for part in docstring.split("\n\n") if part.startswith(REPAIRED)]
    if not repaired:
        return [faulty]
    twin = Scenario(
        name=faulty.twin,
        path=path,
        description=" ".join(repaired[0].removeprefix(REPAIRED).split()),
        outcome="stable",
        line=0,
        record=faulty.record,
        words=(WORD,),
        needs=faulty.needs,
    )
    return [faulty, twin]


def read_scenario(path: Path) -> Scenario | None:
    """The scenario in a file as it runs without a word; None when the file is no scenario."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    known = constants(tree)
    if "OUTCOME" not in known:
        return None
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith(MARKER)]
    marked = MISUSE_MARKER.search(text)
    name = path.stem.replace("_", "-")
    return Scenario(
        name=name,
        path=path,
        description=(ast.get_docstring(tree) or "").partition("\n")[0],
        outcome=known["OUTCOME"],
        line=lines[0] if lines else 0,
        held_by=known.get("HELD_BY", ""),
        leak_class=known.get("CLASS", ""),
        because=known.get("BECAUSE", ""),
        misuse=(marked[1], 1 + text.count("\n", 0, marked.start())) if marked else None,
        count=known.get("COUNT"),
        bytes=known.get("BYTES"),
        record=tuple(shlex.split(known.get("RECORD", ""))),
        exit=-signal.Signals[known["EXIT"]] if "EXIT" in known else 0,
        twin=known.get("TWIN", f"{name}-fixed"),
        needs=known.get("NEEDS", ""),
    )


def constants(tree: ast.Module) -> dict[str, Any]:
    """The constants of a module, by name."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def run(scenario: Scenario) -> Result:
    """Records a scenario in a process of its own and analyses the recording.

    Raises:
        ScenarioFailed: the program failed, or left no recording.
        TlmemError: the recording cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="tlmem-scenario-") as folder:
        file = os.path.join(folder, f"{scenario.name}.tlm")
        record(scenario, file)
        return Result(scenario, speaking(file))


def speaking(file: str | os.PathLike[str]) -> Analysis:
    """What is found in the program's own process, or in the first of its children that grows.

    Raises:
        TlmemError: a recording cannot be read.
    """
    own, *children = (analyse(read(each)) for each in (file, *family.find(file)))
    grows = (each for each in children if each.verdict.outcome in ("leak", "native", "python"))
    return own if own.verdict.outcome != "stable" else next(grows, own)


def record(
    scenario: Scenario, file: str | os.PathLike[str], changes: Mapping[str, str] | None = None
) -> None:
    """Records a scenario in a process of its own, with changes to the environment.

    Raises:
        ScenarioFailed: the program failed, did not end, or left no recording.
    """
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", os.fspath(file)]
    try:
        finished = subprocess.run(
            [*command, *scenario.record, str(scenario.path), *scenario.words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **(changes or {})},
            timeout=LONGEST_RUN_S,
        )
    except subprocess.TimeoutExpired:
        raise ScenarioFailed(
            f"{scenario.name} did not end within {LONGEST_RUN_S} s, so it was ended"
        ) from None
    if finished.returncode != scenario.exit or not os.path.exists(file):
        last = (finished.stderr.strip() or "no message").splitlines()[-1]
        raise ScenarioFailed(
            f"{scenario.name} could not be recorded (exit code {finished.returncode}: {last})"
        )
