"""The project's own memory job finds what is planted into its programs, and names the line."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from support.programs import LONGEST_S

ROOT = Path(__file__).resolve().parents[2]
HEALTHY = ROOT / "scenarios" / "programs" / "healthy"
LINE = "        loss = total_loss(p)\n"
PLANTED = "        KEPT.append(tlmem.ones(100))\n"


def memory_job(out: Path, folder: Path, *programs: str) -> "subprocess.CompletedProcess[str]":
    """``.ci/memory`` with this interpreter."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GITHUB_"))}
    return subprocess.run(
        [ROOT / ".ci" / "memory", out, folder, *programs],
        capture_output=True,
        text=True,
        env={**environment, "PYTHON": sys.executable},
        timeout=LONGEST_S,
    )


def test_a_leak_that_is_planted_into_our_own_scenario_fails_at_its_line(tmp_path: Path) -> None:
    text = (HEALTHY / "nqueens.py").read_text(encoding="utf-8")
    assert text.count(LINE) == 1
    planted = text.replace(LINE, LINE + PLANTED).replace('OUTCOME = "stable"', "KEPT = []")
    (tmp_path / "nqueens.py").write_text(planted, encoding="utf-8")
    line = planted[: planted.index(PLANTED)].count("\n") + 1

    job = memory_job(tmp_path / "out", tmp_path, "nqueens")

    assert job.returncode == 1, job.stdout + job.stderr
    assert f"{tmp_path}/nqueens.py:{line} in solve" in job.stdout
    assert "KEPT.append(tlmem.ones(100))" in job.stdout
    root = ElementTree.parse(tmp_path / "out" / "nqueens.xml").getroot()
    judged = {case.get("name") for case in root.iter("testcase")}
    assert judged >= {"verdict", "tracked-growth", "native-growth", "recorder-growth", "misuse"}
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert "verdict" in [case.get("name") for case in failed]
    # What is known of each array that is kept is the recorder's own memory, which has no line.
    named = {case.get("line") for case in failed if case.get("name") != "recorder-growth"}
    assert named == {str(line)}


def test_a_program_that_fails_fails_the_job(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit(7)\n")

    job = memory_job(tmp_path / "out", tmp_path, "broken")

    assert job.returncode == 1
    assert "broken: exit code 7" in job.stdout
