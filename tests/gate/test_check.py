"""``tlmem check`` passes, fails and refuses as it says, on recordings of real programs."""

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from gate.programs import (
    EPOCHS,
    HEALTHY,
    LEAK,
    LEAK_BYTES,
    LEAK_LINE,
    MISUSE,
    check,
    recorded,
    states,
    tlmem,
)
from support.writer import HEADER_BYTES

from tlmem import Recorder
from tlmem.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings ``leak.tlm``, ``healthy.tlm`` and ``misuse.tlm``."""
    folder = tmp_path_factory.mktemp("check")
    for name, text in (("leak", LEAK), ("healthy", HEALTHY), ("misuse", MISUSE)):
        recorded(folder, text, name)
    return folder


# ---- without budgets ----


def test_a_leak_fails_and_names_its_line(place: Path) -> None:
    code, found = check("leak.tlm", cwd=place)

    row = found["programs"][0]["budgets"][0]
    assert (code, found["result"]) == (1, "fail")
    assert (row["name"], row["state"], row["measured"]) == ("verdict", "over", "leak")
    assert row["findings"][0]["site"]["line"] == LEAK_LINE


def test_a_healthy_program_passes(place: Path) -> None:
    code, found = check("healthy.tlm", cwd=place)

    assert (code, found["result"]) == (0, "pass")
    assert states(found) == {"verdict": "pass", "errors": "pass"}


def test_an_error_fails_where_nothing_grows(place: Path) -> None:
    code, found = check("misuse.tlm", cwd=place)

    assert code == 1
    assert states(found) == {"verdict": "pass", "errors": "over"}
    assert found["programs"][0]["budgets"][1]["findings"][0]["kind"] == "double-free"


def test_several_programs_are_judged_each_and_the_worst_decides(place: Path) -> None:
    code, found = check("healthy.tlm", "leak.tlm", "missing.tlm", cwd=place)

    assert code == 2
    assert [program["exit_code"] for program in found["programs"]] == [0, 1]
    assert found["unreadable"][0]["exit_code"] == 2
    assert check("healthy.tlm", "leak.tlm", cwd=place)[0] == 1


# ---- budgets ----


@pytest.mark.parametrize(
    "budget, state",
    [
        ("peak=24 MB", "pass"),
        ("peak=1 MB", "over"),
        ("peak=100 objects", "over"),
        ("live-at-end=1 MB", "over"),
        ("live-at-end=1.3 MB", "pass"),
        ("allocated=1 MB", "over"),
        ("leaks=0", "over"),
        ("leaks=10 MB", "pass"),
        ("leaks=290 objects", "over"),  # the first few may be put down to warm-up
        (f"leaks@leak.py:{LEAK_LINE}=0", "over"),
        ("leaks@step=1 kB", "over"),
        ("leaks@other.py=0", "pass"),
        ("leaks-growing-site=0", "over"),
        ("leaks-floating=0", "pass"),
        (f"tracked-growth={LEAK_BYTES - 500} B per epoch", "over"),
        (f"tracked-growth={LEAK_BYTES + 500} B per epoch", "pass"),
        ("tracked-growth=0.5 objects per epoch", "over"),
        ("tracked-growth=2 objects per epoch", "pass"),
        ("resident-peak=1 MB", "over"),
        ("resident-peak=10 GB", "pass"),
        ("verdict=leak", "pass"),
        ("verdict=stable", "over"),
        ("misuse=0", "pass"),
    ],
)
def test_budgets_are_kept_or_not(place: Path, budget: str, state: str) -> None:
    """Those per second, and of growth in all, are in tests/gate/test_growth_rates.py."""
    code, found = check("leak.tlm", "--budget", budget, cwd=place)

    assert states(found)[budget.partition("=")[0]] == state
    assert code == (1 if state == "over" else 0)


def test_growth_per_mark_is_measured_exactly(place: Path) -> None:
    _, found = check("leak.tlm", "--budget", "tracked-growth=0 per epoch", cwd=place)

    row = found["programs"][0]["budgets"][0]
    assert row["value"] == pytest.approx(LEAK_BYTES, rel=0.02)
    assert row["low"] <= row["value"] <= row["high"]
    assert row["limit"] == "0 B per epoch"


def test_a_small_leak_is_not_hidden_by_a_large_model(place: Path) -> None:
    model = LEAK.replace("kept = []\n", "kept = []\nmodel = np.zeros(50_000_000)\n")
    recorded(place / "large", model, "large")

    code, found = check(
        *("large.tlm", "--budget", "tracked-growth=1 kB per epoch"), cwd=place / "large"
    )

    assert (code, states(found)["tracked-growth"]) == (1, "over")


def test_budgets_alone_do_not_ask_about_the_verdict_and_say_so(place: Path) -> None:
    code, found = check("leak.tlm", "--budget", "peak=1 GB", cwd=place)

    assert code == 0
    assert "The verdict is leak, which no budget asks about" in found["programs"][0]["notes"][0]


def test_misuse_is_not_allowed_unless_it_is(place: Path) -> None:
    assert check("misuse.tlm", "--budget", "peak=1 GB", cwd=place)[0] == 1
    assert check("misuse.tlm", "--budget", "misuse=1", cwd=place)[0] == 0
    assert check("misuse.tlm", "--budget", "misuse-double-free=1", cwd=place)[0] == 0
    assert check("misuse.tlm", "--budget", "misuse-over-release=1", cwd=place)[0] == 1


@pytest.mark.parametrize(
    "budget, hint",
    [
        ("tracked-growth=1 kB per epocs", "did you mean 'epoch'?"),
        ("pool-hit-rate=90 %", "no pool was asked"),
    ],
)
def test_what_the_recording_does_not_tell_is_no_pass(place: Path, budget: str, hint: str) -> None:
    for words in ([], ["--allow", "short"]):
        code, found = check("healthy.tlm", "--budget", budget, *words, cwd=place)

        assert code == 3
        assert hint in found["programs"][0]["budgets"][0]["sentence"]


def test_growth_within_noise_passes_unless_strict(place: Path) -> None:
    words = ["healthy.tlm", "--budget", "resident-growth=0 B"]

    code, found = check(*words, cwd=place)
    strict, _ = check(*words, "--strict", cwd=place)

    assert states(found)["resident-growth"] in ("unsure", "pass")
    assert code == 0
    assert strict == (3 if states(found)["resident-growth"] == "unsure" else 0)


# ---- baselines ----


def test_a_baseline_allows_what_it_has_and_nothing_new(place: Path) -> None:
    (place / "again.tlm").write_bytes((place / "leak.tlm").read_bytes())

    assert check("leak.tlm", "--baseline", "healthy.tlm", cwd=place)[0] == 1
    assert check("leak.tlm", "--baseline", "again.tlm", cwd=place)[0] == 0
    assert check("healthy.tlm", "--baseline", "leak.tlm", cwd=place)[0] == 0


@pytest.mark.parametrize(
    "increase, code", [("10 %", 1), ("1 MB", 1), ("2 MB", 0), ("10 % + 1.3 MB", 0), ("0", 1)]
)
def test_an_increase_is_held_against_the_baseline(place: Path, increase: str, code: int) -> None:
    words = ["--budget", f"peak-increase={increase}", "--budget", "new-findings=9"]

    found, told = check("leak.tlm", "--baseline", "healthy.tlm", *words, cwd=place)

    assert states(told)["peak-increase"] == ("over" if code else "pass")
    assert found == 1  # it grows, and the baseline does not


def test_a_recording_is_not_its_own_baseline(place: Path) -> None:
    assert check("leak.tlm", "--baseline", "leak.tlm", cwd=place)[0] == 2


# ---- suppressions ----


def test_a_suppressed_leak_passes_and_is_told(place: Path) -> None:
    (place / "known.txt").write_text("leak:^step$\nleak:nothing\n")

    code, found = check("leak.tlm", "--suppressions", "known.txt", cwd=place)

    used, unused = found["programs"][0]["suppressions"]
    assert code == 0
    assert (used["pattern"], used["used"], unused["used"]) == ("^step$", True, False)
    assert used["bytes"] == pytest.approx(EPOCHS * LEAK_BYTES, rel=0.03)
    assert found["programs"][0]["suppressed"][0]["site"]["line"] == LEAK_LINE


def test_a_suppression_of_something_else_does_not_help(place: Path) -> None:
    (place / "other.txt").write_text("leak:^other$\n")

    assert check("leak.tlm", "--suppressions", "other.txt", cwd=place)[0] == 1


# ---- configuration ----


def test_budgets_of_the_project_hold_and_the_command_line_wins(place: Path) -> None:
    inner = place / "project"
    inner.mkdir(exist_ok=True)
    (inner / "pyproject.toml").write_text('[tool.tlmem.check]\npeak = "1 MB"\n')

    assert check("../leak.tlm", cwd=inner)[0] == 1
    assert check("../leak.tlm", "--budget", "peak=1 GB", cwd=inner)[0] == 0
    assert states(check("../leak.tlm", "--no-config", cwd=inner)[1]) == {
        "verdict": "over",
        "errors": "pass",
    }


# ---- usage ----


@pytest.mark.parametrize(
    "words, hint",
    [
        ([], "nothing to check"),
        (["leak.tlm", "--budget", "pek=1 MB"], "did you mean 'peak'?"),
        (["leak.tlm", "--budget", "peak=24"], "has no unit"),
        (["leak.tlm", "--budget", "peak-increase=1 MB"], "--baseline"),
        (["leak.tlm", "--allow", "lossi"], "did you mean 'lossy'?"),
        (["leak.tlm", "--config", "a", "--no-config"], "contradict"),
        (["leak.tlm", "--config", "missing.toml"], "cannot be read"),
        (["leak.tlm", "--suppressions", "missing.txt"], "cannot be read"),
        (["leak.tlm", "--baseline", "missing.tlm"], "does not exist"),
        (["leak.tlm", "--write", "pdf=x"], "FORMAT one of"),
        (["leak.tlm", "--write", "json=a", "--write", "json=b"], "given twice"),
        (["leak.tlm", "--write", "json=/no/such/place"], "/no/such/place"),
        (["missing.tlm"], "does not exist"),
        (["leak.py"], "not a tlmem recording"),
        (["leak.tlm", "--repeat", "5", "--", "leak.py"], "leave one out"),
        (["--repeat", "5"], "needs a command"),
        (["--repeat", "x", "--", "leak.py"], "whole number"),
        (["--repeat", "2", "--", "leak.py"], "at least 3"),
        (["--repeat", "5", "--", "leak.py", "{calls}"], "at least 6"),
        (["--repeat", "5", "--calls", "7", "--", "leak.py"], "{calls}"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(
    place: Path, words: list[str], hint: str
) -> None:
    error = io.StringIO()
    with chdir(place), redirect_stderr(error), redirect_stdout(io.StringIO()):
        code = main(["check", *words])

    assert code == 2
    assert hint in error.getvalue() and error.getvalue().startswith("tlmem: ")
    assert error.getvalue().count("\n") == 1


def test_every_budget_is_listed(place: Path) -> None:
    listed = tlmem("check", "--list-budgets", cwd=place)

    assert (listed.returncode, listed.stderr) == (0, "")
    assert "resident-growth" in listed.stdout and "leaks@PATTERN" in listed.stdout


# ---- recordings that cannot be judged ----


def damaged(place: Path, kind: str) -> Path:
    """A recording that is not as it should be."""
    path, whole = place / f"{kind}.tlm", (place / "leak.tlm").read_bytes()
    middle = (HEADER_BYTES + len(whole)) // 2
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(whole[:middle])
    elif kind == "damaged":
        path.write_bytes(whole[:middle] + b"\xff" * 64 + whole[middle + 64 :])
    elif kind == "short":
        with Recorder(path, force=True, rss_interval=0):  # without samples, however slow it is
            np.ones(3)
    elif kind == "killed":
        script = LEAK.replace("range(300)", "range(10**9)")
        (place / "endless.py").write_text(script)
        command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", str(path), "endless.py"]
        running = subprocess.Popen(command, cwd=place)
        while not (path.exists() and path.stat().st_size):
            time.sleep(0.01)
        while check(path, "--allow", "incomplete", cwd=place)[0] in (2, 3):  # no header; short
            assert running.poll() is None
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    return path


@pytest.mark.parametrize("kind", ["empty", "cut", "damaged", "short", "killed"])
def test_what_cannot_be_trusted_is_never_a_pass(place: Path, kind: str) -> None:
    path = damaged(place, kind)

    for words in ([], ["--budget", "peak=1 TB"], ["--budget", "leaks=1 TB"]):
        code, found = check(path, *words, cwd=place)

        assert (code, found["result"]) == (3, "cannot-judge")


@pytest.mark.parametrize("kind", ["cut", "short", "killed"])
def test_what_cannot_be_trusted_may_be_allowed(place: Path, kind: str) -> None:
    path = damaged(place, kind)
    allowed = ["--allow", "short,incomplete", "--allow", "lossy"]

    code, found = check(path, "--budget", "peak=1 TB", *allowed, cwd=place)

    assert code == 0
    assert found["programs"][0]["allowed"] and not found["programs"][0]["refused"]


def test_what_is_surely_over_is_over_in_a_short_recording_too(place: Path) -> None:
    path = damaged(place, "short")

    assert check(path, "--budget", "peak=1 B", cwd=place)[0] == 1


# ---- families of processes ----

FAMILY = """\
import multiprocessing
import time

import numpy as np


def work(leaks):
    kept = []
    for i in range(400):
        array = np.ones(500)
        if leaks:
            kept.append(array)
        np.ones(400).sum()
        time.sleep(0.003)


if __name__ == "__main__":
    workers = [multiprocessing.Process(target=work, args=(n == 1,)) for n in range(2)]
    for worker in workers:
        worker.start()
    work(False)
    for worker in workers:
        worker.join()
"""


def test_a_leak_in_a_child_fails_and_children_are_not_judged_twice(tmp_path: Path) -> None:
    recorded(tmp_path, FAMILY, "family")
    files = sorted(tmp_path.glob("*.tlm"))

    code, found = check(*files, cwd=tmp_path)
    peak, told = check("family.tlm", "--budget", "peak=0.5 MB", cwd=tmp_path)

    assert len(files) == 3
    assert (code, len(found["programs"])) == (1, 1)
    assert found["programs"][0]["path"] == str(tmp_path / "family.tlm")
    assert found["programs"][0]["budgets"][0]["findings"][0]["site"]["line"] == 10
    assert (peak, states(told)["peak"]) == (1, "over")


def test_the_sum_of_peaks_is_only_an_upper_bound(tmp_path: Path) -> None:
    recorded(tmp_path, FAMILY.replace("n == 1", "True"), "family")

    _, found = check("family.tlm", "--budget", "peak=2 MB", cwd=tmp_path)

    row = found["programs"][0]["budgets"][0]
    assert row["state"] == "unsure"
    assert row["low"] < 2e6 < row["high"]
