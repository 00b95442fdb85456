"""``tlmem record --check`` and ``tlmem check --repeat``: recording and judging in one command."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gate.programs import HEALTHY, LEAK, LEAK_LINE, tlmem
from support.programs import LONGEST_S

from tlmem.gate import repeat
from tlmem.gate.budgets import BadOptions, CheckOptions, from_words
from tlmem.gate.repeat import Asked, asked

CALLS = """\
import sys
import time

import numpy as np

kept = []


def call(i):
    work = np.ones(2000) * i
    if "leak" in sys.argv:
        kept.append(work[:20].copy())
    return work.sum()


for i in range(int(sys.argv[1])):
    call(i)
for _ in range(250):
    np.ones(1000).sum()
    time.sleep(0.003)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with programs."""
    for name, text in (("leak", LEAK), ("healthy", HEALTHY), ("calls", CALLS)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


# ---- record --check ----


def test_one_command_records_and_judges(place: Path) -> None:
    done = tlmem("record", "--check", "-o", "a.tlm", "leak.py", cwd=place)

    assert done.returncode == 1 and done.stdout == ""
    assert all(line.startswith("tlmem:") for line in done.stderr.splitlines())
    assert f"leak.py:{LEAK_LINE} in step" in done.stderr
    assert "tlmem: Failed: 1 of 2 budgets is over." in done.stderr
    assert (place / "a.tlm").exists()


def test_what_passes_exits_as_the_program_did(place: Path) -> None:
    words = ["--check", "--budget", "peak=1 GB", "--write", "json=a.json", "-fq"]

    done = tlmem("record", *words, "-o", "a.tlm", "healthy.py", cwd=place)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((place / "a.json").read_text())["result"] == "pass"


@pytest.mark.parametrize(
    "program, code",
    [("raise SystemExit(5)", 5), ("1 / 0", 1), ("import os; os._exit(9)", 9)],
)
def test_a_program_that_fails_is_not_judged(place: Path, program: str, code: int) -> None:
    words = ["--check", "--budget", "peak=1 B", "-o", "a.tlm"]

    done = tlmem("record", *words, "-c", program, cwd=place)

    assert done.returncode == code
    assert f"not checked, as the program exited with {code}" in done.stderr


def test_a_signal_that_ends_the_program_ends_the_command(place: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"

    done = tlmem("record", "--check", "-q", "-o", "a.tlm", "-c", program, cwd=place)

    assert done.returncode == -signal.SIGTERM


def test_a_signal_to_the_command_reaches_the_program(place: Path) -> None:
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "tlmem", "record", "--check", "-q", "-o", "a.tlm", "-c"]
    running = subprocess.Popen([*command, program], cwd=place, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None and running.stdout.readline() == "ready\n"

    running.terminate()

    assert running.wait(LONGEST_S / 2) == 6
    running.stdout.close()


def test_output_and_arguments_are_the_programs_own(place: Path) -> None:
    program = "import sys; print(sys.argv[1:], sys.stdin.read(), end='')"
    command = [sys.executable, "-m", "tlmem", "record", "--check", "--allow", "short", "-q", "-o"]

    done = subprocess.run(
        [*command, "a.tlm", "-c", program, "--budget", "x"],
        cwd=place,
        input="in",
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "['--budget', 'x'] in")


@pytest.mark.parametrize(
    "words, hint",
    [
        (["--check", "--budget", "pek=1 MB"], "did you mean 'peak'?"),
        (["--check", "--allow", "all"], "is not known"),
        (["--check", "--budget"], "needs a value"),
        (["--budget", "peak=1 MB"], "needs --check"),
        (["--strict"], "needs --check"),
        (["--check", "--config", "missing.toml"], "cannot be read"),
    ],
)
def test_wrong_budgets_are_refused_before_the_program_runs(
    place: Path, words: list[str], hint: str
) -> None:
    # What follows --budget without its value is taken for it, so nothing does.
    program = [] if words[-1] == "--budget" else ["-c", "print('ran')"]

    done = tlmem("record", *words, *program, cwd=place)

    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr and done.stderr.count("\n") == 1
    assert not list(place.glob("*.tlm"))


# ---- check --repeat ----


def test_runs_that_leak_fail_after_few_and_leave_a_recording(place: Path) -> None:
    words = ["--repeat", "9", "--format", "json", "--", "leak.py"]

    done = tlmem("check", *words, cwd=place)

    (program,) = json.loads(done.stdout)["programs"]
    assert done.returncode == 1
    assert program["budgets"][0]["measured"] == "2 of 2 runs over"
    assert "false alarms" in program["budgets"][0]["sentence"]
    assert Path(program["path"]).parent == place and Path(program["path"]).exists()
    assert program["budgets"][0]["findings"][0]["site"]["line"] == LEAK_LINE


def test_runs_that_are_healthy_pass_after_few_and_leave_nothing(place: Path) -> None:
    done = tlmem("check", "--repeat", "9", "--", "python", "healthy.py", cwd=place)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 runs of healthy.py\n")
    assert not list(place.glob("*.tlm"))


def test_growth_per_call_is_found_where_no_run_shows_it(place: Path) -> None:
    words = ["--repeat", "9", "--calls", "50", "--format", "json", "--"]

    done = tlmem("check", *words, "calls.py", "{calls}", "leak", cwd=place)

    (program,) = json.loads(done.stdout)["programs"]
    row = next(row for row in program["budgets"] if row["name"] == "tracked-growth")
    assert (done.returncode, row["state"]) == (1, "over")
    assert row["value"] == pytest.approx(160, rel=0.05)
    assert row["findings"][0]["site"]["line"] == 12


def test_calls_that_keep_nothing_pass(place: Path) -> None:
    done = tlmem("check", "--repeat", "8", "--", "calls.py", "{calls}", cwd=place)

    assert done.returncode == 0, done.stdout
    assert "pass  tracked-growth  0 B per call" in done.stdout


def test_a_budget_per_call_is_held_across_runs(place: Path) -> None:
    # An array that is kept brings Python objects with it.
    budgets = ["tracked-growth=200 B per call", "python-growth=1 kB per call"]
    words = ["--repeat", "8", *(w for b in budgets for w in ("--budget", b)), "--"]

    done = tlmem("check", *words, "calls.py", "{calls}", "leak", cwd=place)

    assert "pass  tracked-growth" in done.stdout, done.stdout


def test_a_run_that_fails_ends_it_with_its_code(place: Path) -> None:
    words = ["--repeat", "9", "--", "-c", "import sys; sys.exit('no data')"]

    done = tlmem("check", *words, cwd=place)

    assert done.returncode == 1
    assert "failed with exit code 1" in done.stderr and "no data" in done.stderr


def test_runs_that_are_too_short_cannot_be_judged(place: Path) -> None:
    done = tlmem("check", "--repeat", "9", "--", "-c", "pass", cwd=place)

    assert done.returncode == 3 and "--allow short" in done.stdout


@pytest.mark.parametrize(
    "command, times, calls",
    [
        ([], "9", None),
        (["a.py"], "2", None),
        (["a.py"], "9", "7"),
        (["a.py", "{calls}"], "5", None),
    ],
)
def test_what_decides_nothing_is_refused(command: list[str], times: str, calls: str | None) -> None:
    with pytest.raises(BadOptions):
        asked(command, times, calls)


def test_each_run_makes_more_calls() -> None:
    what = Asked(("a.py", "--n={calls}"), 9, 100)

    assert [what.words(n)[1] for n in (1, 2, 3)] == ["--n=100", "--n=200", "--n=300"]


def test_chance_neither_fails_nor_passes(place: Path) -> None:
    """Of five runs two were over, which no rule can call either."""
    files = [place / "over.tlm", place / "fine.tlm"]
    for file, script in zip(files, ("leak.py", "healthy.py"), strict=True):
        tlmem("record", "-q", "-o", file, script, cwd=place)
    order = iter([1, 0, 1, 1, 0])

    def again(words: object, file: Path) -> None:
        file.write_bytes(files[next(order)].read_bytes())

    found = repeat.repeat(Asked(("x.py",), 5), CheckOptions(), place, again)

    assert found.exit_code == 3
    assert found.results[0].rows[0].sentence.startswith("2 of 5 runs were over")


def test_a_plan_for_single_runs_has_no_budget_per_call() -> None:
    plan = from_words(["tracked-growth=1 kB per call", "peak=1 MB"])

    left, tolerances = repeat._without_calls(plan)

    assert [budget.name for budget in left.budgets] == ["peak"]
    assert tolerances == {"tracked": 1000.0, "native": 16.0, "python": 16.0}


def test_interrupting_stops_the_program_too(place: Path) -> None:
    program = "import time\nprint('ready', flush=True)\ntime.sleep(600)\n"
    command = [sys.executable, "-m", "tlmem", "record", "--check", "-q", "-o", "a.tlm", "-c"]
    running = subprocess.Popen(
        [*command, program],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        # A shell's background job, such as these tests may be, ignores the signal; so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stdout is not None and running.stdout.readline() == "ready\n"

    os.killpg(running.pid, signal.SIGINT)

    assert running.wait(LONGEST_S / 2) != 0  # long before it would have ended by itself
    running.stdout.close()
