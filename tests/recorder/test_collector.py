"""What a recording says of Python's garbage collector; its garbage is not called a leak."""

from pathlib import Path

import pytest
from support.programs import recorded

import tlmem
from tlmem.analysis import analyse
from tlmem.recording.reader import Recording

PROGRAM = """
import gc
import numpy as np

class Solver:
    pass

{begin}
for _ in range(150):
    solver = Solver()
    solver.matrix = np.random.random((120, 120))
    solver.itself = solver
    np.linalg.eigvalsh(solver.matrix + solver.matrix.T)
{end}
"""


def recording(folder: Path, begin: str = "", end: str = "") -> Recording:
    (folder / "program.py").write_text(PROGRAM.format(begin=begin, end=end), encoding="utf-8")
    done = recorded(["program.py"], folder, options=("-q", "-o", "x.tlm"))

    assert (done.returncode, done.stderr) == (0, b"")
    return tlmem.read(str(folder / "x.tlm"))


def test_cycles_that_wait_for_the_collector_are_no_leak(tmp_path: Path) -> None:
    found = recording(tmp_path)
    analysis = analyse(found)

    assert found.info["gc.frozen"] == "0"
    assert analysis.verdict.outcome != "leak"
    assert {finding.kind for finding in analysis.findings} & {"growing-site"} == set()


@pytest.mark.parametrize(
    ("begin", "end", "collecting", "notes"),
    [
        ("gc.disable()", "", False, {"gc.frozen": "0"}),
        ("gc.disable()", "gc.enable()", True, {"gc.frozen": "0"}),
        ("gc.set_threshold(0)", "", True, {"gc.threshold": "0"}),
        ("gc.set_threshold(9)", "", True, {"gc.threshold": "9"}),
    ],
)
def test_the_state_of_the_collector_is_in_the_recording(
    begin: str, end: str, collecting: bool, notes: dict[str, str], tmp_path: Path
) -> None:
    found = recording(tmp_path, begin, end)
    last = found.holdings[found.holdings["trigger"] == "end"]

    assert last["collecting"].tolist() == [collecting] * len(last) and len(last) > 0
    assert {key: found.info[key].split(",")[0] for key in notes} == notes


def test_what_is_frozen_is_counted(tmp_path: Path) -> None:
    assert int(recording(tmp_path, end="gc.freeze()").info["gc.frozen"]) >= 150
