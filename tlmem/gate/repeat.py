"""``tlmem check --repeat N -- COMMAND``: a program is recorded again and again until it is clear.

Every run is judged by the budgets; how many may be over is decided by ``sequential.Runs``. When the
command has ``{calls}`` in it, each run makes more calls than the one before, and what is kept per
call must not go on growing: ``sequential.PerCall``.

Covers: running, collecting, deciding, one ``Checked`` at the end. Does not cover: the mathematics.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.gate import decision
from tlmem.gate.amounts import BYTES, write
from tlmem.gate.budgets import BadOptions, Budget, CheckOptions
from tlmem.gate.check import check
from tlmem.gate.decision import (
    EXIT_OVER,
    EXIT_UNKNOWN,
    OVER,
    UNKNOWN,
    UNSURE,
    BudgetResult,
    Checked,
    Result,
)
from tlmem.gate.growth_rates import NotMeasured, curve_of
from tlmem.gate.sequential import ERROR, FAIL, FEWEST_RUNS, PASS, PerCall, Runs, per_call

CALLS = "{calls}"
FIRST_CALLS = 100
TOLERANCE_BYTES = 16.0
"""Bytes per call that are not a leak, as in psleak: one object would be more."""
METRICS = ("tracked", "native", "python")
Run = Callable[[Sequence[str], Path], None]
"""Records a command to a file."""


class ProgramFailed(TlmemError):
    """A run of the program failed; the check ends with its exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.exit_code = code


@dataclass(frozen=True)
class Asked:
    """What is to be repeated: at most ``most`` runs, the first with ``calls`` calls."""

    command: tuple[str, ...]
    most: int
    calls: int = FIRST_CALLS

    @property
    def escalates(self) -> bool:
        """Whether each run makes more calls."""
        return any(CALLS in word for word in self.command)

    def words(self, number: int) -> list[str]:
        """The command of a run, counted from 1."""
        return [word.replace(CALLS, str(self.calls * number)) for word in self.command]


def asked(command: Sequence[str], times: str, calls: str | None) -> Asked:
    """What the words of the command line ask for.

    Raises:
        BadOptions: the command is missing, or a number is invalid or too small to decide anything.
    """
    if not command:
        raise BadOptions("--repeat needs a command after --, as: -- train.py --epochs 3.")
    found = Asked(tuple(command), _count("--repeat", times))
    if calls is not None:
        if not found.escalates:
            raise BadOptions(
                f"--calls {calls} needs {CALLS} in the command, where the number goes."
            )
        found = replace(found, calls=_count("--calls", calls))
    if found.most < FEWEST_RUNS:
        raise BadOptions(f"--repeat {times} decides nothing; give at least {FEWEST_RUNS}.")
    if found.escalates and not PerCall(found.most, len(METRICS)).able:
        needed = next(n for n in range(found.most, 99) if PerCall(n, len(METRICS)).able)
        raise BadOptions(
            f"--repeat {times} is too few to tell growth per call from chance; give at least "
            f"{needed}."
        )
    return found


def _count(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise BadOptions(f"{option} needs a whole number above 0, not '{text}'.")
    return int(text)


def repeat(what: Asked, options: CheckOptions, folder: Path, run: Run | None = None) -> Checked:
    """Runs the command until it is clear, and at most as often as was asked for.

    Args:
        folder: gets the recording that decided, if the program does not pass.
        run: records a command to a file; None: ``tlmem record`` in a process of its own.

    Raises:
        ProgramFailed: a run of the program failed.
        BadOptions: the options contradict each other.
    """
    per_run, tolerances = _without_calls(options) if what.escalates else (options, {})
    rule, rises = Runs(what.most), PerCall(what.most, len(METRICS))
    seen = _Seen(what, tolerances)
    with tempfile.TemporaryDirectory(prefix="tlmem-check-") as place:
        for number in range(1, what.most + 1):
            file = Path(place) / f"run-{number}.tlm"
            (run or record)(what.words(number), file)
            checked = check([file], per_run)
            if not checked.results or checked.exit_code not in (0, EXIT_OVER):
                return _kept(checked, file, folder, what)
            seen.add(checked.results[0], file)
            if seen.answer(rule, rises):
                break
        rows = seen.rows(rule, rises)
        fine = all(row.state in (decision.PASS, UNSURE) for row in rows)
        result, file = seen.example(over=not fine and rows[0].state == OVER)
        own = () if not fine and rows[0].state != OVER else result.rows
        title = f"{len(seen.runs)} runs of {' '.join(what.command)}"
        final = Checked((replace(result, rows=(*rows, *own), title=title),))
        return final if fine else _kept(final, file, folder, what)


def _without_calls(options: CheckOptions) -> tuple[CheckOptions, dict[str, float]]:
    """The options for single runs, and what may be kept per call by kind of memory."""
    tolerances = dict.fromkeys(METRICS, TOLERANCE_BYTES)
    left: list[Budget] = []
    for budget in options.budgets:
        metric = budget.name.removesuffix("-growth")
        per = getattr(budget.limit, "per", "")
        if per == "call" and metric in METRICS and getattr(budget.limit, "kind", "") == BYTES:
            tolerances[metric] = budget.limit.value  # type: ignore[union-attr]
        else:
            left.append(budget)
    return replace(options, budgets=tuple(left)), tolerances


class _Seen:
    """The runs so far."""

    def __init__(self, what: Asked, tolerances: dict[str, float]) -> None:
        self.what = what
        self.tolerances = tolerances
        self.runs: list[tuple[Result, Path]] = []
        self.kept: dict[str, list[float]] = {metric: [] for metric in METRICS}

    def add(self, result: Result, file: Path) -> None:
        """One more run."""
        self.runs.append((result, file))
        if self.what.escalates:
            for metric in METRICS:
                self.kept[metric].append(level(result, metric))

    @property
    def over(self) -> int:
        """Runs that were over their budgets."""
        return sum(result.exit_code == EXIT_OVER for result, _ in self.runs)

    @property
    def calls(self) -> list[int]:
        """How many calls each run made."""
        return [self.what.calls * (number + 1) for number in range(len(self.runs))]

    def answer(self, rule: Runs, rises: PerCall) -> bool:
        """Whether it is clear: one rule fails, or all of them pass."""
        answers = [self.of_runs(rule)]
        if self.what.escalates:
            answers += [self.of_calls(rises, metric) for metric in METRICS]
        return FAIL in answers or all(answer == PASS for answer in answers)

    def of_runs(self, rule: Runs) -> str:
        """What the runs say, each by itself."""
        return rule.decide(self.over, len(self.runs) - self.over)

    def of_calls(self, rises: PerCall, metric: str) -> str:
        """What the runs say together about one kind of memory."""
        return rises.decide(self.calls, self.kept[metric], self.tolerances[metric])

    def example(self, over: bool) -> tuple[Result, Path]:
        """The last run that was over its budgets, or that was not; else the last one."""
        fitting = [run for run in self.runs if (run[0].exit_code == EXIT_OVER) == over]
        return (fitting or self.runs)[-1]

    def rows(self, rule: Runs, rises: PerCall) -> list[BudgetResult]:
        """What the runs say, as rows of a report."""
        found = [self._row_of_runs(rule)]
        if self.what.escalates:
            found += [self._row_of_calls(rises, metric) for metric in METRICS]
        failed = [row for row in found if row.state == OVER]
        # One rule that fails ends the runs; the others then had no time to answer.
        return failed or found

    def _row_of_runs(self, rule: Runs) -> BudgetResult:
        answer, rates = self.of_runs(rule), rule.rates()
        result = self.example(over=answer == FAIL)[0]
        guilty = tuple(f for row in result.of_state(OVER) for f in row.findings)
        return BudgetResult(
            "repeat",
            {FAIL: OVER, PASS: decision.PASS}.get(answer, UNKNOWN),
            f"clear within {self.what.most} runs",
            f"{self.over} of {len(self.runs)} runs over",
            f"{self.over} of {len(self.runs)} runs were over their budgets, which "
            + {
                FAIL: "is not chance",
                PASS: "is chance at most",
            }.get(answer, "decides nothing; give a larger N to --repeat")
            + f" (false alarms {rates.false_alarms * 100:.2g}%, misses "
            f"{rates.misses * 100:.2g}% at most).",
            findings=guilty if answer == FAIL else (),
        )

    def _row_of_calls(self, rises: PerCall, metric: str) -> BudgetResult:
        answer, tolerance = self.of_calls(rises, metric), self.tolerances[metric]
        value = per_call(self.calls, self.kept[metric])
        levels = f"{write(self.kept[metric][0], BYTES)} to {write(self.kept[metric][-1], BYTES)}"
        sentence = (
            f"{metric} memory kept at the end went from {levels} as calls went from "
            f"{self.calls[0]} to {self.calls[-1]}: {write(value, BYTES, 'call')}; "
        )
        sentence += {
            FAIL: f"it goes on growing (false alarms: {ERROR * 100:g}% at most).",
            PASS: f"no more than {write(tolerance, BYTES)} per call.",
        }.get(answer, "which is within noise.")
        result = self.runs[-1][0]
        guilty = [f for f in result.subject.findings if f.site and f.kind == "live-at-end"]
        return BudgetResult(
            f"{metric}-growth",
            {FAIL: OVER, PASS: decision.PASS}.get(answer, UNSURE),
            f"{write(tolerance, BYTES)} per call",
            write(value, BYTES, "call"),
            sentence,
            value=value,
            findings=tuple(guilty[:3]) if answer == FAIL and metric == "tracked" else (),
        )


def level(result: Result, metric: str) -> float:
    """Bytes of one kind that the first process held when it was judged; 0 when not sampled."""
    judged = result.subject.processes[0]
    try:
        values = curve_of(judged, metric, BYTES).values
    except NotMeasured:
        return 0.0
    return float(values[-1]) if len(values) else 0.0


def _kept(checked: Checked, file: Path, folder: Path, what: Asked) -> Checked:
    """The same, with the recording where it can be looked at."""
    if not checked.results or not file.exists():
        return checked
    result = checked.results[0]
    name = Path(what.command[1] if what.command[0] in ("-m", "-c") else what.command[0]).stem
    name = "string" if what.command[0] == "-c" else name
    place = folder / f"tlmem-check-{name}.{os.getpid()}.tlm"
    shutil.copy2(file, place)
    recording = result.subject.summary.processes[0].recording
    recording.path = place
    return checked


def record(words: Sequence[str], file: Path) -> None:
    """Records a command in a process of its own; what it prints is kept back.

    Raises:
        ProgramFailed: it could not be started, or failed.
    """
    command = [
        sys.executable,
        "-m",
        "tlmem",
        "record",
        "-q",
        "-f",
        "-o",
        str(file).replace("%", "%%"),
        *words,
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    if done.returncode == 0 and file.exists():
        return
    last = (done.stderr.decode("utf-8", "replace").strip() or "no message").splitlines()[-1]
    code = 128 - done.returncode if done.returncode < 0 else done.returncode or EXIT_UNKNOWN
    raise ProgramFailed(
        f"'{' '.join(words)}' failed with exit code {code}, so its memory says nothing: {last}",
        code,
    )
