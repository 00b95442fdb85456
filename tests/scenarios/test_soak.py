"""The soak: what it runs, that it goes on where it was ended, what its tables say; a small share.

A small share of the real thing is ``test_a_share_of_the_soak_is_right``.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tlmem.scenarios.harness import catalog
from tlmem.scenarios.harness.soak import command, digest, judging, plan, tables, workers
from tlmem.scenarios.harness.soak.state import RunRow, State, read_rows
from tlmem.scenarios.harness.soak.workers import Worker, company

from tlmem.analysis.model import Analysis, Attribution, Finding, StackFrame, Verdict
from tlmem.gate.decision import EXIT_OVER, EXIT_PASS, EXIT_UNKNOWN, BudgetResult
from tlmem.gate.inputs import Subject
from tlmem.report.summary import Process, Summary

ROW = RunRow(
    name="warm-up",
    group="healthy",
    seed=0,
    judge="findings",
    code="c0de",
    program="1234",
    commit="abc",
    machine="a machine",
    load="1 at a time",
    right=True,
    outcome="stable",
    said="stable",
    wolves=(),
    seconds=0.5,
)
SAID = {"right": True, "outcome": "stable", "said": "stable", "wolves": []}
PASSED = {"right": True, "outcome": "pass", "said": "pass", "wolves": []}


def answer_of(found: dict = SAID, decided: dict = PASSED) -> dict:
    """What a worker answers."""
    judged = {"findings": found, "gate": decided}
    return {"judged": judged, "seconds": 0.1, "load_average": 2.5}


# ---- what is run ----


def test_programs_take_turns_and_each_group_has_its_number_of_runs() -> None:
    names = ["warm-up", "dict-cache", "arrays-100", "native-1000"]
    made = list(plan.jobs({"healthy": 3, "faulty": 1, "seeded": 2, "small": 0}, names))

    assert [(job.scenario.name, job.seed) for job in made] == [
        ("warm-up", 0),
        ("arrays-100", 0),
        ("warm-up", 1),
        ("arrays-100", 1),
        ("warm-up", 2),
        ("dict-cache", 0),
    ]


def test_a_seeded_program_is_told_its_size_and_seed_and_a_scenario_nothing() -> None:
    made = {job.scenario.name: job for job in plan.jobs({"healthy": 1, "seeded": 1})}

    assert made["arrays-10000"].scenario.words == ("10000", "0")
    assert made["arrays-10000"].scenario.line > 0
    assert made["native-4000"].scenario.outcome == "native"
    assert made["warm-up"].scenario.words == ()


def test_every_scenario_is_in_one_group_and_seeded_leaks_are_not_scenarios() -> None:
    groups: dict[str, set[str]] = {}
    for group, scenario in plan.all_programs():
        groups.setdefault(group, set()).add(scenario.name)

    assert groups["healthy"] & groups["faulty"] == set()
    assert groups["seeded"] == {
        *("arrays-100", "arrays-1000", "arrays-10000"),
        *("tensors-100", "tensors-1000", "tensors-10000"),
        *("native-4000", "native-10000"),
    }
    assert not (groups["seeded"] | groups["small"]) & (groups["healthy"] | groups["faulty"])


# ---- what is right ----


def judged(job: plan.Job, outcome: str, *findings: Finding) -> judging.Judgement:
    said = Analysis(Verdict(outcome, "So it is."), Attribution(), findings)
    return judging.by_findings(job, Subject(Summary((Process(None, said),))))


def growing(line: int) -> Finding:
    site = StackFrame(str(catalog.SEEDED / "arrays.py"), line, "main")
    return Finding("growing-site", "error", 2000, 200_000, "It grows.", site=site)


def job_of(name: str) -> plan.Job:
    return next(plan.jobs(dict.fromkeys(plan.GROUPS, 1), [name]))


def test_a_warning_about_a_healthy_program_is_wrong() -> None:
    warning = Finding("pool-never-hits", "warning", 1, 5, "It never hits.")

    assert judged(job_of("warm-up"), "stable").right
    found = judged(job_of("warm-up"), "stable", warning)
    assert (found.right, found.wolves) == (False, ("pool-never-hits",))


def test_a_seeded_leak_is_found_at_its_line_alone() -> None:
    job = job_of("arrays-100")
    line = job.scenario.line

    assert judged(job, "leak", growing(line)).right
    assert not judged(job, "leak", growing(line + 1)).right
    assert not judged(job, "leak", growing(line), growing(line - 9)).right
    assert not judged(job, "stable").right
    assert not judged(job, "cannot-judge").right


@dataclass(frozen=True)
class Decided:
    """A decision of the gate about a finding at a line."""

    exit_code: int
    line: int = 0

    def of_state(self, *states: str) -> list:
        if self.exit_code != EXIT_OVER or "over" not in states:
            return []
        findings = (growing(self.line),) if self.line else ()
        return [BudgetResult("verdict", "over", "stable", "leak", "It grows.", findings=findings)]


def gated(
    monkeypatch: pytest.MonkeyPatch, job: plan.Job, plain: Decided, strict: Decided | None = None
) -> judging.Judgement:
    """What is made of the decisions without budgets and with those of no growth."""
    decisions = iter((plain, strict or plain))
    monkeypatch.setattr(judging, "judge", lambda subject, plan: next(decisions))
    monkeypatch.setattr(judging, "reasons", lambda decision: [f"code {decision.exit_code}"])
    return judging.by_gate(job, None)


def test_a_healthy_program_must_pass_without_budgets_and_with_them(monkeypatch) -> None:
    job, passed, over = job_of("warm-up"), Decided(EXIT_PASS), Decided(EXIT_OVER)

    assert gated(monkeypatch, job, passed).right
    for found in (gated(monkeypatch, job, over), gated(monkeypatch, job, passed, over)):
        assert (found.right, found.outcome) == (False, "fail")
    found = gated(monkeypatch, job, passed, Decided(EXIT_UNKNOWN))
    assert (found.right, found.outcome) == (False, "cannot-judge")


def test_a_gate_must_fail_a_seeded_leak_at_its_line_without_budgets(monkeypatch) -> None:
    job = job_of("arrays-100")
    line = job.scenario.line

    assert gated(monkeypatch, job, Decided(EXIT_OVER, line)).right
    assert not gated(monkeypatch, job, Decided(EXIT_OVER, line + 1)).right
    assert not gated(monkeypatch, job, Decided(EXIT_PASS), Decided(EXIT_OVER, line)).right
    assert not gated(monkeypatch, job, Decided(EXIT_UNKNOWN, line)).right
    assert gated(monkeypatch, job_of("native-4000"), Decided(EXIT_OVER)).right


def test_no_gate_may_pass_growth_or_with_budgets_misuse(monkeypatch) -> None:
    growth, misuse, kept = job_of("dict-cache"), job_of("double-free"), job_of("idle-buffers")
    passed, over = Decided(EXIT_PASS), Decided(EXIT_OVER)

    assert gated(monkeypatch, growth, over).right
    assert not gated(monkeypatch, growth, passed, over).right
    assert gated(monkeypatch, misuse, passed, over).right
    assert not gated(monkeypatch, misuse, passed, passed).right
    assert gated(monkeypatch, kept, passed, over).right
    assert not gated(monkeypatch, kept, over, over).right


def test_programs_that_are_named_for_the_gate_are_programs() -> None:
    names = {scenario.name for _, scenario in plan.all_programs()}

    assert {*judging.TOUCHING, *judging.UNSEALED} <= names


def test_a_digest_is_of_what_judges_and_of_what_a_program_imports(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(digest, "SCENARIOS", tmp_path)
    files = {path.relative_to(digest.PACKAGE).as_posix() for path in digest.code_files()}
    program, other = tmp_path / "program.py", tmp_path / "group" / "other.py"
    other.parent.mkdir()
    program.write_text("from tlmem.scenarios.group.other import solve\n")
    recorders = {name for name in files if not digest.is_reading(Path(name))}
    digests = []
    for text in ("1", "2"):
        other.write_text(text)
        digests.append(digest.of_program(program))

    assert {"gate/decision.py", "report/summary.py", "analysis/judge.py"} <= files
    assert not {"gate/outputs/text.py", "report/text.py", "cli.py"} & files
    assert "recorder/session.py" in recorders
    assert not {"gate/decision.py", "report/summary.py", "analysis/judge.py"} & recorders
    assert digests[0] != digests[1]


# ---- what is kept ----


def test_rows_come_back_and_a_torn_one_is_left_out(tmp_path) -> None:
    state = State(tmp_path)
    state.add(ROW)
    with open(state.file, "a") as file:
        file.write('{"name": "torn", "gro')
    again = State(tmp_path)
    again.add(replace(ROW, seed=1))

    assert read_rows(state.file) == [ROW, replace(ROW, seed=1)]


def soak(tmp_path, monkeypatch, *words: str, answer=None) -> tuple[int, list[str], str]:
    """Exit code, programs that were run, and the page of a soak without processes."""
    asked: list[str] = []

    def ask(self: Worker, request: dict) -> dict:
        asked.append(f"{request['name']}-{request['seed']}")
        return answer(request) if answer else answer_of()

    monkeypatch.setattr(Worker, "ask", ask)
    page = tmp_path / "page.md"
    code = command.main(["--state", str(tmp_path / "state"), "--page", str(page), *words])
    return code, asked, page.read_text()


FEW = ("--runs", "2", "--only", "warm-up", "arrays-100")


def test_a_soak_goes_on_where_it_was_ended(tmp_path, monkeypatch) -> None:
    first = soak(tmp_path, monkeypatch, *FEW)
    again = soak(tmp_path, monkeypatch, *FEW)
    more = soak(tmp_path, monkeypatch, "--runs", "3", *FEW[2:])

    assert (first[0], first[1]) == (0, ["warm-up-0", "arrays-100-0", "warm-up-1", "arrays-100-1"])
    assert (again[0], again[1]) == (0, [])
    assert more[1] == ["warm-up-2", "arrays-100-2"]
    assert "4 of 4 runs." in again[2] and "6 of 6 runs." in more[2]


def test_the_page_names_the_command_without_the_places_of_one_machine(
    tmp_path, monkeypatch
) -> None:
    _, _, page = soak(tmp_path, monkeypatch, f"--state={tmp_path / 'other'}", *FEW)

    assert f"`python -m tlmem.scenarios.harness.soak {' '.join(FEW)}`: 4 of 4 runs." in page
    assert str(tmp_path) not in page


def test_runs_of_other_code_are_made_again_and_not_counted(tmp_path, monkeypatch) -> None:
    soak(tmp_path, monkeypatch, *FEW)
    monkeypatch.setattr(digest, "of_code", lambda: "other")
    _, asked, page = soak(tmp_path, monkeypatch, *FEW)

    assert len(asked) == 4
    assert "4 of 4 runs, 4 runs of other code not counted." in page
    assert "(digest other," in page


def test_code_that_changes_in_the_middle_ends_the_soak(tmp_path, monkeypatch, capsys) -> None:
    seen = iter(range(3))
    monkeypatch.setattr(digest, "signature", lambda: max(0, next(seen) - 1))
    code, asked, page = soak(tmp_path, monkeypatch, *FEW)

    assert code == 2
    assert asked == ["warm-up-0", "arrays-100-0"]
    assert "1 of 4 runs." in page
    assert "start the soak again" in capsys.readouterr().err


def test_no_run_starts_when_time_is_up(tmp_path, monkeypatch) -> None:
    code, asked, page = soak(tmp_path, monkeypatch, *FEW, "--budget", "-1")

    assert (code, asked) == (0, [])
    assert "0 of 4 runs." in page


def test_a_wrong_run_is_told_and_fails(tmp_path, monkeypatch, capsys) -> None:
    wrong = {**SAID, "right": False, "outcome": "leak", "said": "leak at a.py:3"}
    wrong["wolves"] = ["growing-site at /somewhere/a.py:3"]

    def answer(request: dict) -> dict:
        is_it = (request["name"], request["seed"]) == ("warm-up", 1)
        return answer_of(wrong) if is_it else answer_of()

    code, _, page = soak(tmp_path, monkeypatch, *FEW, answer=answer)

    assert code == 1
    assert "WRONG (findings) warm-up, seed 1: leak at a.py:3" in capsys.readouterr().err
    assert "| `warm-up` | 2 | 1 | 1 | 0 | 0 | 0 |" in page
    assert "- `warm-up`, seed 1, by the findings: leak at a.py:3 (growing-site at a.py:3)" in page


def test_what_is_not_promised_does_not_fail(tmp_path, monkeypatch) -> None:
    missed = answer_of({**SAID, "right": False}, {**PASSED, "right": False})
    words = ("--runs", "1", "--only", "native-1000")
    code, _, page = soak(tmp_path, monkeypatch, *words, answer=lambda request: missed)

    assert code == 0
    assert "| `native-1000` | 1 | 0 | above 0 % | 1 | 0 | above 0 % |" in page
    assert "not right" not in page


def test_an_unknown_program_is_one_sentence(tmp_path, capsys) -> None:
    assert command.main(["--state", str(tmp_path), "--only", "nothing"]) == 2
    assert capsys.readouterr().err == "tlmem: there is no program nothing to run.\n"


@pytest.mark.parametrize("words", [["--runs", "-1"], ["--jobs", "0"], ["--judge", "nobody"]])
def test_a_wrong_command_line_is_usage(words, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(words)
    assert "usage" in capsys.readouterr().err


# ---- what the page says ----


def page_of(*rows: RunRow) -> str:
    return tables.page_part(rows, tables.Origin("soak", len(rows), 0))


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    assert tables.bounds(0, 100) == pytest.approx((0, 1 - 0.025 ** (1 / 100)))
    assert tables.bounds(100, 100) == pytest.approx((0.025 ** (1 / 100), 1))
    assert tables.percent(tables.bounds(0, 100)[1]) == "3.6 %"
    assert tables.percent(tables.bounds(0, 4800)[1]) == "0.077 %"
    assert tables.percent(tables.bounds(100, 100)[0]) == "96.4 %"


def test_each_promise_has_a_line_with_its_bound() -> None:
    rows = [replace(ROW, seed=seed) for seed in range(100)]
    leak = replace(ROW, name="arrays-100", group="seeded")
    rows += [replace(leak, seed=seed, right=seed > 0) for seed in range(100)]
    text = page_of(*rows)

    assert "| healthy programs: false verdict | 1 | 100 | 0 | below 3.6 % |" in text
    assert "| seeded leaks: found at the right line | 1 | 100 | 99 | above 94.6 % |" in text
    assert "- `arrays-100`, seed 0, by the findings: stable" in text


def test_a_run_without_a_verdict_is_no_pass_and_a_failed_one_is_a_false_verdict() -> None:
    text = page_of(
        replace(ROW, outcome="cannot-judge", right=False),
        replace(ROW, seed=1, outcome="failed", right=False, said="it broke"),
    )

    assert "| `warm-up` | 2 | 1 | 0 | 1 | 0 | 0 |" in text
    assert "| healthy programs: not judged | 1 | 2 | 1 |" in text
    assert "- `warm-up`, seed 1, by the findings: it broke" in text


def test_the_page_says_how_busy_the_machine_was() -> None:
    rows = [replace(ROW, seed=seed, load_average=seed + 1.0) for seed in range(3)]

    assert "was 2.0 in the middle run, 1.0 to 3.0 in all." in page_of(*rows)
    assert "load average" not in page_of(ROW)


def test_the_gate_has_rows_of_its_own() -> None:
    passed = replace(ROW, judge="gate", outcome="pass", said="pass")
    failed = replace(passed, outcome="fail", right=False, said="It grows.", seed=1)
    leak = replace(passed, name="arrays-100", group="seeded", outcome="fail")
    missed = replace(leak, judge="findings", right=False, outcome="stable")
    text = page_of(ROW, replace(ROW, seed=1), passed, failed, leak, missed)

    assert "| `warm-up` | 2 | 0 | 0 | 0 | 1 | 0 |" in text
    assert "healthy programs: failed by the gate | 1 | 2 | 1 |" in text
    assert "| `arrays-100` | 1 | 0 | above 0 % | 1 | 1 | above 2.5 % |" in text
    assert "- `warm-up`, seed 1, by the gate: It grows." in text


def test_a_page_without_rows_says_so() -> None:
    assert "`soak`: 0 of 0 runs." in page_of()


# ---- processes ----


def test_a_share_of_the_soak_is_right(tmp_path) -> None:
    programs = ["warm-up", "arrays-1000", "tensors-1000", "over-retain"]
    page = tmp_path / "page.md"
    code = command.main(
        ["--runs", "1", "--state", str(tmp_path), "--page", str(page), "--only", *programs]
    )

    assert code == 0, page.read_text()
    assert {row.name for row in read_rows(tmp_path / "runs.jsonl")} == set(programs)
    assert "healthy programs: false error or warning | 1 | 1 | 0 |" in page.read_text()
    assert "healthy programs: failed by the gate | 1 | 1 | 0 |" in page.read_text()
    assert "seeded leaks: failed by the gate, with the line | 2 | 2 | 2 |" in page.read_text()


def test_the_recording_of_a_wrong_run_is_kept(tmp_path) -> None:
    job = job_of("over-retain")
    lie = replace(job, scenario=replace(job.scenario, count=1))
    found = workers.run(lie, ["findings"], None, tmp_path / "kept.tlm")

    assert not found["findings"].right
    assert (tmp_path / "kept.tlm").stat().st_size > 0


def test_what_is_kept_is_judged_again_and_not_recorded_again(tmp_path, monkeypatch) -> None:
    job, kept, wrong = job_of("over-retain"), tmp_path / "kept", tmp_path / "wrong.tlm"
    first = workers.run(job, ["findings"], kept, wrong)
    monkeypatch.delattr(workers, "record")
    lie = replace(job, scenario=replace(job.scenario, count=1))
    again = [workers.run(asked, ["findings"], kept, wrong) for asked in (job, lie)]

    assert first == again[0] and first["findings"].right
    assert not again[1]["findings"].right
    assert [path.name for path in kept.iterdir()] == ["over-retain.tlm"]
    assert wrong.exists()


def test_of_a_named_recorder_only_what_is_kept_is_judged(tmp_path, monkeypatch) -> None:
    words = (*FEW, "--recorder", "older", f"--state={tmp_path}")
    program = digest.of_program(job_of("warm-up").scenario.path)
    (tmp_path / "kept" / f"warm-up-1-{program}-older").mkdir(parents=True)
    _, asked, page = soak(tmp_path, monkeypatch, *words)

    assert asked == ["warm-up-1"]
    assert "1 of 4 runs." in page and "recorder older)" in page
    assert "--recorder" not in page


def test_a_program_that_cannot_be_recorded_is_a_wrong_run(tmp_path) -> None:
    job = job_of("over-retain")
    gone = replace(job, scenario=replace(job.scenario, path=tmp_path / "gone.py"))
    found = workers.run(gone, ["findings", "gate"], None, tmp_path / "kept.tlm")

    assert found["findings"] == found["gate"]
    assert (found["gate"].right, found["gate"].outcome) == (False, "failed")
    assert "could not be recorded" in found["gate"].said


def test_a_worker_that_dies_is_told_and_replaced() -> None:
    worker_ = Worker()
    answer = worker_.ask({"name": "no such program", "judges": ["gate"]})
    served = worker_.ask({"name": "no such program", "judges": ["gate"]})
    worker_.close()

    assert answer == served
    assert answer["judged"]["gate"]["said"] == "the worker ended with exit code 1"
    assert json.dumps(answer)


def test_company_ends_with_the_soak() -> None:
    with company(True) as process:
        assert process is not None and process.poll() is None
    assert process.poll() is not None
    with company(False) as nobody:
        assert nobody is None
