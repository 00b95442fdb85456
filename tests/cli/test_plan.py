"""``tlmem plan`` on recordings of real programs: whole, killed, limited, empty, of families."""

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import programs

from tlmem import cli

pytest.importorskip("tlmem._native", reason="planning needs the extension")
from tlmem.planning import planner  # noqa: E402  (after the check that it can be)

# At each step 2 MB of input and 1 MB of work are alive; the model stays. 6 MB at most.
PROGRAM = """
import numpy as np

def step(model):
    batch = np.ones(250_000)  # batch
    np.empty(1000)  # a free between both
    work = batch[:125_000] * 2  # work
    del batch
    return work.sum() + model[0]

def main():
    model = np.ones(375_000)  # model
    for _ in range(50):
        step(model)
main()
"""
MODEL, BATCH, WORK = 3_000_000, 2_000_000, 1_000_000
KILLED = PROGRAM + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
CHILDREN = """
import os
import numpy as np

mine = np.ones(10_000)
child = os.fork()
if child == 0:
    theirs = np.ones(250_000)
    os._exit(0)
os.waitpid(child, 0)
"""
RUNTIME = """
import tlmem
with tlmem.scope("run"):
    idle = tlmem.empty(100_000)  # idle
    with tlmem.scope("first"):
        tlmem.empty(10)
    for _ in range(10):
        with tlmem.scope("step"):
            tlmem.empty(10_000)
"""
MANY = """
import numpy as np
keep = [np.empty(1000) for _ in range(100)]
for _ in range({count}):
    np.empty(500)
"""


def record(folder: Path, text: str, *options: str) -> Path:
    """Records a program and returns the file."""
    script = folder / "program.py"
    script.write_text(text)
    path = folder / "program.tlm"
    done = programs.recorded([str(script)], folder, options=("-q", "-o", str(path), *options))
    assert path.exists(), done.stderr
    return path


def plan(folder: Path, *words: object) -> "subprocess.CompletedProcess[bytes]":
    return programs.command(["plan", *words], folder)


@functools.cache  # several tests ask the same of one recording
def planned(folder: Path, *words: object) -> dict[str, Any]:
    """The JSON of a plan that must not fail."""
    done = plan(folder, *words, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


def line_of(text: str, comment: str) -> int:
    """The line with this comment."""
    return next(n for n, line in enumerate(text.split("\n"), 1) if line.endswith(f"# {comment}"))


def at_peak(found: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """What is told of each line at the peak, by its number."""
    return {row["site"]["line"]: row for row in found["at_peak"] if row["site"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recording of ``PROGRAM``."""
    folder = tmp_path_factory.mktemp("plan")
    record(folder, PROGRAM)
    return folder


def test_a_program_of_numpy_is_planned_as_it_is(folder: Path) -> None:
    found = planned(folder, "program.tlm")
    lines = at_peak(found)

    alive = MODEL + BATCH + WORK
    assert alive <= found["peak_bytes"] < alive + 100_000
    assert found["peak_bytes"] <= found["lower_bound_bytes"] <= found["plan_bytes"]
    assert found["plan_bytes"] <= 1.02 * found["lower_bound_bytes"]
    for name, size in (("model", MODEL), ("batch", BATCH), ("work", WORK)):
        assert size <= lines[line_of(PROGRAM, name)]["bytes"] < size + 1000


def test_a_batch_that_went_before_its_work_is_made_would_lower_the_peak(folder: Path) -> None:
    found = planned(folder, "program.tlm")
    batch, work = (at_peak(found)[line_of(PROGRAM, name)] for name in ("batch", "work"))

    assert MODEL + BATCH <= batch["lowered_peak_bytes"] < MODEL + BATCH + 100_000
    assert work["lowered_peak_bytes"] > found["peak_bytes"] - 1000
    assert batch["stays_seconds"] is not None and batch["known_by"] == "birth"


def test_every_way_is_at_least_the_lower_bound_and_slots_at_least_the_plan(folder: Path) -> None:
    found = planned(folder, "program.tlm")
    ways = found["ways"]

    assert min(ways.values()) >= found["lower_bound_bytes"]
    assert found["plan_bytes"] <= ways["slot_sharing_bytes"]
    assert ways["without_reuse_bytes"] > 50 * (BATCH + WORK)


def test_the_text_begins_with_what_was_needed(folder: Path) -> None:
    done = plan(folder, "program.tlm")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith("The program's objects needed at most 6.0")


@pytest.mark.parametrize(("ending", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_drawn_beside_the_text(folder: Path, ending: str, begin: bytes) -> None:
    out = folder / f"plan.{ending}"

    done = plan(folder, "program.tlm", "-o", out)
    again = plan(folder, "program.tlm", "-o", out)

    assert done.returncode == 0 and done.stdout.startswith(b"The program's objects")
    assert out.read_bytes().startswith(begin)
    assert (again.returncode, again.stdout) == (2, b"") and b"exists" in again.stderr
    assert plan(folder, "program.tlm", "-f", "-o", out).returncode == 0


def test_a_text_or_json_goes_to_a_file(folder: Path) -> None:
    words = ["program.tlm", "--seconds", "0"]
    done = plan(folder, *words, "--json", "-o", "plan.json")

    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads((folder / "plan.json").read_text()) == planned(folder, *words)


def test_fewer_objects_are_planned_around_the_peak(folder: Path) -> None:
    whole, part = (planned(folder, "program.tlm", "--objects", n) for n in (100_000, 20))

    assert part["peak_bytes"] == whole["peak_bytes"] and part["at_peak"] == whole["at_peak"]
    assert part["planned"]["objects"] <= 20 < part["planned"]["of"] == whole["planned"]["objects"]
    assert part["plan_bytes"] >= part["lower_bound_bytes"] >= part["peak_bytes"]


def test_a_program_that_was_killed_is_planned_up_to_there(tmp_path: Path) -> None:
    record(tmp_path, KILLED)
    found = planned(tmp_path, "program.tlm")

    assert found["recording"]["complete"] is False
    assert MODEL + BATCH + WORK <= found["peak_bytes"] < MODEL + BATCH + WORK + 100_000
    text = plan(tmp_path, "program.tlm").stdout.decode()
    assert "The recording has no end" in text


def test_nothing_allocated_is_nothing_to_plan(tmp_path: Path) -> None:
    record(tmp_path, "print('no array')\n")
    done = plan(tmp_path, "program.tlm")

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"nothing to plan" in b" ".join(done.stdout.split())
    drawn = plan(tmp_path, "program.tlm", "-o", "plan.png")
    assert drawn.returncode == 2 and not (tmp_path / "plan.png").exists()


def test_each_process_of_a_family_has_a_plan_of_its_own(tmp_path: Path) -> None:
    record(tmp_path, CHILDREN)
    (child,) = (path for path in tmp_path.glob("*.tlm") if path.name != "program.tlm")

    assert planned(tmp_path, "program.tlm")["peak_bytes"] < 1_000_000
    assert planned(tmp_path, child.name)["peak_bytes"] >= 2_000_000
    assert child.name in plan(tmp_path, "program.tlm").stdout.decode()


def test_tensors_are_planned_with_their_last_use(tmp_path: Path) -> None:
    record(tmp_path, RUNTIME)
    found = planned(tmp_path, "program.tlm")
    line = at_peak(found)[line_of(RUNTIME, "idle")]

    assert found["peak_bytes"] == 440_000
    assert line["known_by"] == "ownership" and line["idle_seconds"] > 0
    assert line["lowered_peak_bytes"] == 400_040


def test_a_limited_recording_is_planned_from_what_is_left(tmp_path: Path) -> None:
    record(tmp_path, MANY.format(count=1_500_000), "--max-file", "8.4MB")
    found = planned(tmp_path, "program.tlm", "--objects", "2000")

    assert found["peak_bytes"] >= 800_000 and found["planned"]["of"] > 2000
    assert found["peak_bytes"] <= found["lower_bound_bytes"] <= found["plan_bytes"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["missing.tlm"], b"missing.tlm"),
        (["program.py"], b"program.py"),
        (["program.tlm", "--memory", "metal"], b"memories with objects: host"),
        (["program.tlm", "-o", "plan.png", "--size", "huge"], b"is not a size"),
        (["program.tlm", "--objects", "1"], b"too few"),
        (["program.tlm", "--seconds", "-1"], b"is not a time"),
        (["program.tlm", "--seconds", "soon"], b"--seconds needs a number of seconds, not 'soon'"),
        (["program.tlm", "-o", "no/such/folder.txt"], b"cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder: Path, words: list[str], says: bytes) -> None:
    done = plan(folder, *words)

    assert done.returncode == 2 and says in done.stderr and b"Traceback" not in done.stderr
    assert done.stderr.strip()


def test_an_interrupt_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planner, "plan", interrupt)

    assert cli.main(["plan", str(folder / "program.tlm")]) == 130
    assert capsys.readouterr() == ("", "tlmem: interrupted\n")
