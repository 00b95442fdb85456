"""A chain of results through all steps, recorded: found, though no tensor is held by it."""

from pathlib import Path

from support import programs
from support.foreign import report_of

import tlmem

TRAINING = """
import os, time
import tlmem
w = tlmem.ones(4, requires_grad=True)
total = 0
for step in tlmem.steps(30_000):
    loss = (w * w).sum()
    loss.backward()
    total = total + {what}
    if step % 60 == 0:
        time.sleep(0.002)
os._exit(0)
"""
"""About a second, and nothing after the last step in which a stall of the machine could be taken
for a time without growth."""


def report_of_training(folder: Path, what: str) -> dict:
    (folder / "train.py").write_text(TRAINING.format(what=what), encoding="utf-8")
    done = programs.recorded(["train.py"], folder, options=("-q", "-o", "run.tlm"))
    assert done.returncode == 0, done.stderr.decode()
    return report_of(folder / "run.tlm")


def test_a_sum_of_losses_that_keeps_every_step_is_a_leak(tmp_path: Path) -> None:
    report = report_of_training(tmp_path, "loss")
    taken = tlmem.read(tmp_path / "run.tlm").samples["tapes"].dropna()

    assert report["verdict"]["outcome"] == "leak"
    assert "tape-growth" in {each["kind"] for each in report["findings"]}
    assert taken.iloc[-1] > 30_000 * 500
    assert report["attribution"]["tape_bytes"] > 15e6


def test_a_sum_of_numbers_is_none(tmp_path: Path) -> None:
    report = report_of_training(tmp_path, "loss.item()")

    assert {each["severity"] for each in report["findings"]} <= {"info"}
    assert report["attribution"]["tape_bytes"] < 1e6
