"""``tlmem plan MODULE:FUNCTION``: what a compiled function plans, said without calling it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import programs

pytest.importorskip("tlmem._native", reason="compiled functions need the extension")

MODEL = """
import tlmem

@tlmem.compile
def forward(x, w1, b1, w2, b2):
    h = tlmem.relu(x @ w1 + b1)
    return h @ w2 + b2

def plain(x, lr=0.1, *, steps=2):
    raise_if_called = x * lr
    for _ in range(steps):
        raise_if_called = tlmem.tanh(raise_if_called) + x
    return raise_if_called

class Model:
    def scale(self, x):
        y = x * 2.0
        return y + x

def refused(x):
    with open("x"):
        return x

number = 3
"""
SHAPES = ["--shapes", "64x784", "784x128", "128", "128x10", "10"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module of functions."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "model.py").write_text(MODEL)
    (folder / "broken.py").write_text("import model\nraise ValueError('half done')\n")
    return folder


def plan(folder: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return programs.run([sys.executable, "-m", "tlmem", "plan", *words], folder)


def planned(folder: Path, *words: str) -> dict[str, Any]:
    """The JSON of a plan that must not fail."""
    done = plan(folder, *words, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


@pytest.mark.parametrize("place", ["model", "model.py"])
def test_a_frame_is_told_result_by_result(folder: Path, place: str) -> None:
    found = planned(folder, f"{place}:forward", *SHAPES)

    assert found["arguments"]["x"] == "64x784:float32" and found["function"] == "forward"
    assert found["lower_bound_bytes"] == 2 * 64 * 128 * 4
    assert found["lower_bound_bytes"] <= found["frame_bytes"] <= 1.02 * found["lower_bound_bytes"]
    assert [each["op"] for each in found["planned"]] == ["matmul", "add", "relu", "matmul"]
    ends = [each["offset"] + each["bytes"] for each in found["planned"]]
    assert max(ends) <= found["frame_bytes"] < found["apart_bytes"]
    assert [each["line"] for each in found["outside"]] == [7]


def test_the_text_says_frame_bound_and_what_is_outside(folder: Path) -> None:
    done = plan(folder, "model:forward", *SHAPES, "--out")
    text = " ".join(done.stdout.decode().split())

    assert done.returncode == 0
    assert "computes 4 results in a frame of 65.5 kB; no frame can be smaller than 65.5 kB" in text
    assert "Results outside of the frame line 7: add: it is computed into the destination" in text


def test_a_function_that_is_not_compiled_is_planned_with_its_defaults(folder: Path) -> None:
    found = planned(folder, "model:plain", "--shapes", "x=1000:float64", "--values", "steps=3")

    assert found["arguments"] == {"x": "1000:float64", "lr": "0.1", "steps": "3"}
    assert {each["bytes"] for each in found["planned"]} == {8000}


def test_a_method_has_an_owner_of_its_own(folder: Path) -> None:
    found = planned(folder, "model:Model.scale", "--values", "self=None", "--shapes", "4x4")

    assert found["function"].endswith("scale") and found["arguments"]["x"] == "4x4:float32"


def test_a_plan_goes_to_a_file(folder: Path) -> None:
    done = plan(folder, "model:forward", *SHAPES, "-o", "plan.txt")

    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"tlmem: wrote the report to plan.txt\n"
    assert (folder / "plan.txt").read_text().startswith("forward, given")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["model:nope"], "model has no 'nope'"),
        (["nowhere:f"], "nowhere cannot be imported (ModuleNotFoundError"),
        (["nowhere.py:f"], "nowhere.py does not exist"),
        (["broken:f"], "broken cannot be imported (ValueError: half done)"),
        (["model:number"], "is not a Python function"),
        (["model:refused", "--shapes", "3"], "cannot compile"),
        (["model:forward", "--shapes", "64x784"], "forward needs w1, b1, w2, b2 too"),
        (["model:plain", "--shapes", "64by784"], "is not a shape"),
        (["model:plain", "--shapes", "64:float99"], "cannot be made"),
        (["model:plain", "--shapes", "1", "2", "3", "4"], "there is no parameter for the shape"),
        (["model:plain", "--shapes", "y=1"], "there is no parameter 'y'"),
        (["model:plain", "--values", "steps"], "write NAME=VALUE"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(folder: Path, words: list[str], says: str) -> None:
    done = plan(folder, *words)
    error = done.stderr.decode()

    assert (done.returncode, done.stdout) == (2, b"")
    assert error.startswith("tlmem: ") and says in error and error.count("\n") == 1
