"""The scenarios: where they are, what is true of each, and whether tlmem finds it.

Covers: listing, running and checking. A scenario is a module of this package with ``OUTCOME``, the
verdict that is right for it; a line that ends in ``# leaks here`` is the one to be blamed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tlmem.analysis import Analysis, analyse
from tlmem.recording import read

MARKER = "# leaks here"


class ScenarioFailed(Exception):
    """The program could not be run under ``tlmem record``."""


@dataclass(frozen=True)
class Scenario:
    """A small program with a known truth; ``line`` is 0 when no line is to be blamed."""

    name: str
    path: Path
    description: str
    outcome: str
    line: int


@dataclass(frozen=True)
class Result:
    """What was found in one run of a scenario."""

    scenario: Scenario
    analysis: Analysis

    @property
    def blamed(self) -> list[tuple[str, int]]:
        """Base name and line of every growing line, worst first."""
        return [
            (Path(finding.site.file).name, finding.site.line)
            for finding in self.analysis.findings
            if finding.kind == "growing-site" and finding.site is not None
        ]

    @property
    def right(self) -> bool:
        """Whether the verdict is the true one, and the line too when there is one."""
        expected = [(self.scenario.path.name, self.scenario.line)] if self.scenario.line else []
        return (
            self.analysis.verdict.outcome == self.scenario.outcome
            and self.blamed[: len(expected)] == expected
            and (bool(expected) or not self.blamed)
        )


def scenarios() -> dict[str, Scenario]:
    """All scenarios by name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        scenario = read_scenario(path)
        if scenario is not None:
            found[scenario.name] = scenario
    return found


def read_scenario(path: Path) -> Scenario | None:
    """The scenario in a file, without running it; None when it is no scenario."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            if [target.id for target in node.targets if isinstance(target, ast.Name)] == [
                "OUTCOME"
            ]:
                lines = [n for n, line in enumerate(text.splitlines(), 1) if line.endswith(MARKER)]
                return Scenario(
                    name=path.stem.replace("_", "-"),
                    path=path,
                    description=(ast.get_docstring(tree) or "").partition("\n")[0],
                    outcome=str(node.value.value),
                    line=lines[0] if lines else 0,
                )
    return None


def run(scenario: Scenario) -> Result:
    """Records a scenario in a process of its own and analyses the recording.

    Raises:
        ScenarioFailed: the program failed, or left no recording.
        TlmemError: the recording cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="tlmem-scenario-") as folder:
        file = os.path.join(folder, f"{scenario.name}.tlm")
        command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", file, str(scenario.path)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode != 0 or not os.path.exists(file):
            last = (finished.stderr.strip() or "no message").splitlines()[-1]
            raise ScenarioFailed(
                f"{scenario.name} could not be recorded (exit code {finished.returncode}: {last})"
            )
        return Result(scenario, analyse(read(file)))
