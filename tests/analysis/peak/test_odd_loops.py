"""Roles in training loops that are not the usual one: the truth of the process, by address."""

import ast
from pathlib import Path

import pytest
from pytorch.recorded import VARIABLE, Recorded, wrong_roles
from support import programs

from tlmem.analysis.peak.explained import Known

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

PROGRAM = Path(__file__).with_name("odd_loops.py")
TRUTH = Path(__file__).resolve().parents[2] / "pytorch" / "programs" / "truth.py"
STEPS = {"three_models_one_after_the_other": 15}
MOST_WRONG = {"two_losses_of_one_graph": 32 * 10 * 4 + 4}
"""Bytes. What only the loss saved whose graph was retained goes with two small blocks, in one
statement of the program, as what the program itself held would."""
NAMES = [
    node.name
    for node in ast.parse(PROGRAM.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name not in ("network", "batch", "steps_of")
]


@pytest.mark.parametrize("name", NAMES)
def test_roles_and_steps_are_those_of_the_program(name: str, tmp_path: Path) -> None:
    for source in (PROGRAM, TRUTH):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    done = programs.recorded(
        [PROGRAM.name, name],
        tmp_path,
        environment={VARIABLE: str(tmp_path)},
        options=("-q", "-o", "a.tlm"),
    )
    assert done.returncode == 0, done.stderr.decode()
    run = Recorded(name, tmp_path, done, done)
    (recording,) = run.recordings.values()
    moments = run.moments(recording.pid)
    known = Known.of(recording)

    assert len(moments) >= 5
    for moment in moments:
        wrong = wrong_roles(known, moment)
        total = sum(size for size, *_ in wrong)
        assert total <= MOST_WRONG.get(name, 0), f"{moment.label} {moment.index}: {wrong}"
    assert known.passes.count == STEPS.get(name, 5)
