"""The decision: budgets against measured values, what cannot be judged, and the exit code.

A value is over its budget only when it surely is: the whole interval. Where the interval contains
the budget, it counts as kept, and the result says so; ``strict`` asks for more.

Covers: the rules; recordings that are refused because they are short, lossy or incomplete; one
decision for each program and the exit code of all. Does not cover: values (``measure``), texts of
whole reports (``outputs``), files that cannot be read, which are errors of reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tlmem.analysis.compare import GROWING, MOST_NAMED, Difference
from tlmem.analysis.model import Finding, Verdict
from tlmem.gate import budget_kinds
from tlmem.gate.amounts import PERCENT, TIMES, Amount, Increase, write
from tlmem.gate.budget_kinds import PASSING
from tlmem.gate.budgets import INCOMPLETE, LOSSY, SHORT, Budget, CheckOptions
from tlmem.gate.growth_rates import NotMeasured, TooShort
from tlmem.gate.inputs import Judged, Subject
from tlmem.gate.measure import Measured, exact, measure
from tlmem.gate.suppressions import Used
from tlmem.units import format_count

PASS, OVER, UNSURE, UNKNOWN = "pass", "over", "unsure", "unknown"
"""States of a budget: kept; surely not kept; too noisy to decide; not measured."""
EXIT_PASS, EXIT_OVER, EXIT_UNKNOWN = 0, 1, 3
MOST_REASONS = 10
WORDS = {
    EXIT_PASS: "pass",
    EXIT_OVER: "fail",
    2: "error",
    EXIT_UNKNOWN: "cannot-judge",
}
"""What an exit code means, in one word."""


@dataclass(frozen=True)
class BudgetResult:
    """One budget and what came of it.

    ``measured`` and ``limit`` are texts; ``value``, ``low`` and ``high`` are None where nothing was
    measured. ``sentence`` says it all. ``findings`` brought it about, the worst first.
    """

    name: str
    state: str
    limit: str
    measured: str
    sentence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Doubt:
    """Why a recording cannot be trusted; ``kind`` is what would have to be allowed."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class Result:
    """The decision about one program.

    ``refused`` are reasons not to judge that the user did not allow, ``allowed`` those that he did.
    ``title`` is what was judged when that is more than one recording, or one of a fleet.
    ``process`` is who that is: ``rank 37 (node b, pid 20227)``.
    """

    subject: Subject
    rows: tuple[BudgetResult, ...]
    refused: tuple[Doubt, ...] = ()
    allowed: tuple[Doubt, ...] = ()
    baseline: Path | None = None
    strict: bool = False
    notes: tuple[str, ...] = field(default=())
    title: str = ""
    process: str = ""

    @property
    def verdict(self) -> Verdict:
        """Of the recording, suppressions applied."""
        return self.subject.verdict

    @property
    def used(self) -> list[Used]:
        """What each suppression did."""
        return self.subject.used

    def of_state(self, *states: str) -> list[BudgetResult]:
        """Rows in some states."""
        return [row for row in self.rows if row.state in states]

    @property
    def exit_code(self) -> int:
        """0: passed. 1: something is surely over its budget. 3: it cannot be judged.

        What is over in a recording that was only too short is over all the same; one with a part
        missing is not judged at all.
        """
        refused = {doubt.kind for doubt in self.refused}
        if refused - {SHORT}:
            return EXIT_UNKNOWN
        if self.of_state(OVER):
            return EXIT_OVER
        unknown = self.of_state(UNKNOWN, UNSURE) if self.strict else self.of_state(UNKNOWN)
        return EXIT_UNKNOWN if refused or unknown else EXIT_PASS


def judge(subject: Subject, options: CheckOptions, baseline: Subject | None = None) -> Result:
    """The decision about one program, by all of its budgets and those that are implied."""
    budgets = with_implied(options)
    of_growth = any(budget.kind.of_growth for budget in budgets)
    found = doubts(subject, of_growth)
    trusted = all(doubt.kind in options.allow for doubt in found)
    judge_of = _Judge(subject, baseline, options, trusted)
    rows = [judge_of.row(budget) for budget in budgets]
    notes = []
    if baseline is not None:
        for doubt in doubts(baseline, of_growth):
            if doubt.kind not in options.allow:
                found.append(Doubt(doubt.kind, f"the baseline cannot be used: {doubt.sentence}"))
    if options.budgets and not any(row.name == "verdict" for row in rows):
        if subject.verdict.outcome in GROWING:
            notes.append(
                f"The verdict is {subject.verdict.outcome}, which no budget asks about; "
                "--budget verdict=stable,retained does."
            )
    return Result(
        subject=subject,
        rows=tuple(rows),
        refused=tuple(doubt for doubt in found if doubt.kind not in options.allow),
        allowed=tuple(doubt for doubt in found if doubt.kind in options.allow),
        baseline=options.baseline,
        strict=options.strict,
        notes=tuple(notes),
    )


def with_implied(options: CheckOptions) -> list[Budget]:
    """The budgets that were asked for, and those that hold unless these say otherwise.

    Without any budget: the verdict, and no finding that is an error. With a baseline: no growth and
    no findings that it has not. With budgets: no misuse.
    """
    names = {budget.name for budget in options.budgets}
    found = list(options.budgets)
    if not names and options.baseline is None:
        found.append(_implied("verdict", PASSING))
        found.append(
            Budget(
                budget_kinds.BudgetKind("errors", "findings that are errors", (TIMES,)),
                Amount(0, TIMES),
                "0",
                implied=True,
            )
        )
        return found
    if options.baseline is not None and "new-findings" not in names:
        found.append(_implied("new-findings", Amount(0, TIMES)))
    if "misuse" not in names:
        found.append(_implied("misuse", Amount(0, TIMES)))
    return found


def _implied(name: str, limit: Amount | tuple[str, ...]) -> Budget:
    text = ",".join(limit) if isinstance(limit, tuple) else str(limit)
    return Budget(budget_kinds.KINDS[name], limit, text, implied=True)


class _Judge:
    """Turns budgets into rows."""

    def __init__(
        self, subject: Subject, baseline: Subject | None, options: CheckOptions, trusted: bool
    ) -> None:
        self.subject = subject
        self.baseline = baseline
        self.options = options
        self.trusted = trusted

    def row(self, budget: Budget) -> BudgetResult:
        """One budget, judged."""
        limit = budget.limit
        try:
            if isinstance(limit, tuple):
                return self._verdict(budget, limit)
            if budget.name == "errors":
                return self._errors(budget)
            if budget.name == "new-findings":
                return self._new_findings(budget)
            if isinstance(limit, Increase):
                return self._increase(budget, limit)
            if budget.name == "misuse" and budget.implied and self._has_misuse_kinds():
                return self._other_misuse(budget, limit)
            return self._compare(
                budget, limit, measure(budget.name, limit.kind, limit.per, self.subject)
            )
        except TooShort as error:
            return self._unknown(budget, str(error), SHORT in self.options.allow)
        except NotMeasured as error:
            return self._unknown(budget, str(error), False)

    def _compare(self, budget: Budget, limit: Amount, found: Measured) -> BudgetResult:
        """A measured value against an amount."""
        floor = budget.kind.at_least
        over = found.high < limit.value if floor else found.low > limit.value
        kept = found.low >= limit.value if floor else found.high <= limit.value
        state = OVER if over and found.even else PASS if kept else UNSURE
        # A step may be large, yet in all it is what was asked about.
        if over and not found.even and not limit.per:
            state = OVER
        sentence = _sentence(budget, state, found, limit)
        if state == OVER and found.note:
            sentence += f" {found.note}"
        return _row(budget, state, found, str(limit), sentence)

    def _verdict(self, budget: Budget, fine: tuple[str, ...]) -> BudgetResult:
        verdict = self.subject.verdict
        if verdict.outcome == "cannot-judge":
            why = verdict.sentence.removeprefix("Cannot judge: ").rstrip(".")
            return self._unknown(budget, why, self.trusted)
        state = PASS if verdict.outcome in fine else OVER
        kinds = ("growing-site", "retained")
        guilty = [f for f in self.subject.findings if f.severity != "info"]
        guilty = [f for f in guilty if f.kind in kinds or f.kind.endswith("-growth")]
        return BudgetResult(
            budget.name,
            state,
            " or ".join(fine),
            verdict.outcome,
            verdict.sentence,
            findings=tuple(guilty) if state == OVER else (),
        )

    def _errors(self, budget: Budget) -> BudgetResult:
        """Errors that are not in the verdict, as growing lines are."""
        judged = ("growing-site",) if self.subject.verdict.outcome == "leak" else ()
        found = [f for f in self.subject.findings if f.severity == "error" and f.kind not in judged]
        value = exact(len(found), TIMES, tuple(found))
        state = OVER if found else PASS
        sentence = found[0].evidence if found else "No finding is an error."
        return _row(budget, state, value, "0", sentence)

    def _has_misuse_kinds(self) -> bool:
        return any(budget.name.startswith("misuse-") for budget in self.options.budgets)

    def _other_misuse(self, budget: Budget, limit: Amount) -> BudgetResult:
        """Misuse of the kinds that have no budget of their own."""
        own = {b.name.removeprefix("misuse-") for b in self.options.budgets if "misuse-" in b.name}
        every = measure("misuse", TIMES, "", self.subject)
        found = tuple(f for f in every.findings if f.kind not in own)
        return self._compare(budget, limit, exact(sum(f.count for f in found), TIMES, found))

    def _increase(self, budget: Budget, limit: Increase) -> BudgetResult:
        """A measured value against that of the baseline."""
        assert self.baseline is not None
        name = budget.name.removesuffix(budget_kinds.INCREASE)
        kind = limit.amount.kind if limit.amount else budget.kind.kinds[0]
        before = measure(name, kind, "", self.baseline)
        after = measure(name, kind, "", self.subject)
        more = limit.amount.value if limit.amount else 0.0
        allowed = Amount(before.high * (1 + limit.percent / 100) + more, kind)
        row = self._compare(budget, allowed, after)
        sentence = (
            f"{name} is {write(after.value, kind)}, and {write(before.value, kind)} in the "
            f"baseline; {limit} more is allowed, which is {allowed}."
        )
        if row.state == OVER and after.note:
            sentence += f" {after.note}"
        limits = f"{allowed} (baseline + {limit})"
        return BudgetResult(
            row.name,
            row.state,
            limits,
            row.measured,
            sentence,
            row.value,
            row.low,
            row.high,
            row.findings,
        )

    def _new_findings(self, budget: Budget) -> BudgetResult:
        assert self.baseline is not None and isinstance(budget.limit, Amount)
        difference: Difference = self.subject.since(self.baseline)
        new = difference.new
        before, after = difference.before.verdict.outcome, difference.after.verdict.outcome
        value = exact(len(new), TIMES, new)
        state = OVER if len(new) > budget.limit.value else PASS
        named = ", ".join(f.kind + (f" at {f.site}" if f.site else "") for f in new[:MOST_NAMED])
        sentence = (
            f"{len(new)} findings are not in the baseline: {named}."
            if new
            else "Every warning and error is in the baseline too."
        )
        if after in GROWING and after != before:
            state = OVER
            sentence += f" It grows ({after}) and the baseline does not ({before})."
        return _row(budget, state, value, str(budget.limit), sentence)

    def _unknown(self, budget: Budget, why: str, allowed: bool) -> BudgetResult:
        """Nothing was measured, which passes only when the reason for it was allowed."""
        text = str(budget.limit) if not isinstance(budget.limit, tuple) else budget.text
        return BudgetResult(
            budget.name,
            PASS if allowed else UNKNOWN,
            text,
            "not measured",
            f"{budget.name} cannot be judged: {why}" + (" (allowed)." if allowed else "."),
        )


def _row(budget: Budget, state: str, found: Measured, limit: str, sentence: str) -> BudgetResult:
    return BudgetResult(
        name=budget.name,
        state=state,
        limit=("at least " if budget.kind.at_least else "") + limit,
        measured=_written(found),
        sentence=sentence,
        value=found.value,
        low=found.low,
        high=found.high,
        findings=found.findings if state == OVER else (),
    )


def _written(found: Measured) -> str:
    """The value, with its interval when it has one."""
    text = write(found.value, found.kind, found.per)
    if found.low == found.high or found.kind == PERCENT:
        return text
    low, high = write(found.low, found.kind), write(found.high, found.kind)
    return f"{text} ({low} to {high})"


def _sentence(budget: Budget, state: str, found: Measured, limit: Amount) -> str:
    bound = "at least" if budget.kind.at_least else "at most"
    value = _written(found)
    if state == UNSURE:
        if not found.even and found.low > limit.value:
            return (
                f"{budget.name} is {value}, but it rises in steps instead of evenly to the end, by "
                "less in total than a healthy process drifts, in a run too short to tell, or as "
                f"results that were joined do: not compared with {limit}."
            )
        return f"{budget.name} is {value}: within noise of {bound} {limit}. Run it for longer."
    return f"{budget.name} is {value}; {bound} {limit} is allowed."


def doubts(subject: Subject, of_growth: bool) -> list[Doubt]:
    """Every reason not to judge.

    Where only growth could not be judged, a budget must ask for it. A process that others started
    and that was too short to be judged does not count when the first one could be: it ended, and
    gave everything back.
    """
    found = [doubt for process in subject.processes for doubt in _doubts_of(process, subject)]
    first = subject.summary.processes[0].analysis.verdict
    if first.outcome == "cannot-judge" and not found and (of_growth or not first.only_growth):
        found.append(
            Doubt(SHORT, f"{subject.summary.processes[0].recording.path}: {first.sentence}")
        )
    return found


def _doubts_of(judged: Judged, subject: Subject) -> list[Doubt]:
    """What is missing from one recording."""
    recording = judged.recording
    name = str(recording.path)
    found = []
    gone = recording.lost_events + recording.missing_events
    if gone:
        found.append(
            Doubt(
                LOSSY,
                f"{name} is lossy: {format_count(gone)} events were lost or are missing; record "
                "again with more room.",
            )
        )
    if not recording.sealed and not recording.lost_events:
        verdict = judged.process.analysis.verdict
        found.append(
            Doubt(
                INCOMPLETE,
                f"{name} was never sealed: the program was killed or still runs, or the file was "
                f"cut. What is there says: {verdict.sentence}",
            )
        )
    elif recording.problems and not gone:
        found.append(Doubt(INCOMPLETE, f"{name} is damaged: {recording.problems[0]}."))
    return found


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read at all, and why."""

    path: Path
    sentence: str
    exit_code: int


@dataclass(frozen=True)
class Checked:
    """Decisions in the order of the files; of a fleet in that of ranks."""

    results: tuple[Result, ...]
    unreadable: tuple[Unreadable, ...] = ()
    is_fleet: bool = False

    @property
    def exit_code(self) -> int:
        """2 when a file is missing or no recording, else 1 when anything is over, else 3 when
        anything cannot be judged, else 0."""
        codes = {result.exit_code for result in self.results}
        codes |= {file.exit_code for file in self.unreadable}
        return next((code for code in (2, EXIT_OVER, EXIT_UNKNOWN) if code in codes), EXIT_PASS)

    @property
    def word(self) -> str:
        """``pass``, ``fail``, ``error`` or ``cannot-judge``."""
        return WORDS[self.exit_code]


def reasons(result: Result) -> list[str]:
    """Why a program did not pass, a sentence each; empty when it did."""
    if result.exit_code == EXIT_PASS:
        return []
    found = [doubt.sentence for doubt in result.refused]
    who = f"{result.process}: " if result.process else ""
    if result.exit_code == EXIT_OVER:
        return [f"{who}{row.sentence}" for row in result.of_state(OVER)]
    states = (UNKNOWN, UNSURE) if result.strict else (UNKNOWN,)
    unknown = result.of_state(*states)
    # That the verdict is not known follows from what was refused.
    found += [row.sentence for row in unknown if not (found and row.name == "verdict")]
    return list(dict.fromkeys(f"{who}{sentence}" for sentence in found))


def all_reasons(checked: Checked) -> list[str]:
    """What goes to stderr when the exit code is not 0: one sentence for each reason, of a fleet the
    first ``MOST_REASONS``."""
    found = [file.sentence for file in checked.unreadable]
    for result in checked.results:
        found += reasons(result)
    found = list(dict.fromkeys(found))
    if not checked.is_fleet or len(found) <= MOST_REASONS:
        return found
    return [*found[:MOST_REASONS], f"and {len(found) - MOST_REASONS} more reasons."]
