"""Programs with a tape, recorded as they are: who keeps what, also when killed in a pass."""

import json
import signal
from pathlib import Path

import numpy as np
from support.programs import command, recorded

import tlmem
from tlmem.events import FIRST_TAPE_OP, HOLDER_NAMES, TAPE_OP_BITS
from tlmem.units import format_count

HISTORY = """
import tlmem

weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
batch = tlmem.randn((8, 32), seed=2)
total = tlmem.zeros(())
for step in range(2000):
    hidden = tlmem.tanh(batch @ weight)
    total = total + tlmem.mean(hidden)
    if step % 500 == 499:
        tlmem.mark("epoch", step // 500)
"""
HIDDEN_LINE, TOTAL_LINE = 8, 9

KILLED = """
import os
import signal
import tlmem

def rule(context, grad):
    if context.last:
        os.kill(os.getpid(), signal.SIGKILL)
    return grad

@tlmem.op(backward=rule)
def deadly(context, value, last):
    context.last = last
    return value * 1

weight = tlmem.randn((32, 32), seed=1, requires_grad=True)
batch = tlmem.randn((8, 32), seed=2)
for step in tlmem.steps(300):
    hidden = tlmem.relu(batch @ weight)
    loss = tlmem.sum(tlmem.exp(deadly(hidden, step == 299)))
    loss.backward()
"""

LONG = """
import sys
import tlmem
from tlmem.scenarios.programs.healthy import nqueens

kept = [tlmem.zeros(100) for _ in range(300)]
board = tlmem.randn((8, 8), "float64", seed=22, requires_grad=True)
for epoch in tlmem.steps(int(sys.argv[1])):
    loss = nqueens.total_loss(tlmem.softmax(board, 1))
    loss.backward()
    board = tlmem.detach(board - 0.5 * board.grad).requires_grad_()
del loss
"""
LIMIT_BYTES = 8_400_000


def record(
    program: str, folder: Path, *arguments: str, code: int = 0, options: tuple[str, ...] = ()
) -> Path:
    """Records a program to ``folder/x.tlm``."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = recorded(
        ["program.py", *arguments], folder, options=("-q", "-f", "-o", "x.tlm", *options)
    )
    assert done.returncode == code, done.stderr.decode()
    return folder / "x.tlm"


def report(path: Path, form: str) -> str:
    done = command(["report", "--format", form, path], path.parent)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_history_that_never_ends_is_named_by_the_op_that_keeps_it_and_its_line(
    tmp_path: Path,
) -> None:
    path = record(HISTORY, tmp_path)
    found = json.loads(report(path, "json"))
    growing = {f["site"]["line"]: f for f in found["findings"] if f["kind"] == "growing-site"}
    holder = growing[HIDDEN_LINE]["holders"][0]

    assert found["verdict"]["outcome"] == "leak"
    assert (holder["kind"], holder["name"]) == ("tape", "tape 'tanh'")
    assert (holder["site"]["line"], holder["count"]) == (HIDDEN_LINE, 2000)
    assert TOTAL_LINE not in growing, "a sum saves nothing"
    taken = f"held by tape 'tanh': {format_count(2000)}, acquired at program.py:{HIDDEN_LINE}"
    assert taken in report(path, "text")


def test_what_tapes_hold_over_time_is_in_the_recording(tmp_path: Path) -> None:
    recording = tlmem.read(record(HISTORY, tmp_path))
    memory = recording.tape_memory(recording.marks["time_ns"].to_numpy())
    ops = recording.ops.set_index("name")

    # 8 by 32 numbers of 4 bytes for each step; the batch, which all of them share, is one object.
    assert memory["saved_bytes"].tolist() == [
        1024 * (steps + 1) for steps in (500, 1000, 1500, 2000)
    ]
    assert memory["grad_bytes"].tolist() == [0, 0, 0, 0]
    assert ops.loc[["matmul", "tanh", "mean", "add"], "records"].tolist() == [2000] * 4
    assert ops.loc["tanh", ["saves", "saved_bytes"]].tolist() == [2000, 2000 * 1024]
    assert ops.loc[["mean", "add"], "saves"].tolist() == [0, 0]
    assert recording.passes.empty
    assert recording.problems == []


def test_a_program_killed_in_a_rule_says_what_its_tape_held_and_that_a_pass_was_under_way(
    tmp_path: Path,
) -> None:
    recording = tlmem.read(record(KILLED, tmp_path, code=-signal.SIGKILL))
    passes, holders = recording.passes, recording.holders
    held = holders[(holders["end_ns"] < 0) & (holders["kind"].map(HOLDER_NAMES) == "tape")]
    texts = {text.partition(" #")[0] for text in held["holder"]}
    ops = held["number"].to_numpy() >> TAPE_OP_BITS

    assert recording.problems == []
    assert passes["status"].tolist() == [0] * 299 + [-1]
    assert (passes["left_bytes"].iloc[:-1] == 0).all()
    # The rules of sum and exp have run; those of relu and matmul have not.
    assert {"tape 'relu'", "tape 'matmul'"} <= texts
    assert "tape 'exp'" not in texts
    assert (ops < FIRST_TAPE_OP).any(), "the gradient on its way is there"
    assert recording.ops.loc[recording.ops["name"] == "deadly", "records"].tolist() == [300]


def test_a_size_limit_folds_the_events_of_tapes_and_keeps_every_sum(tmp_path: Path) -> None:
    epochs = 16_000
    some, more = (tlmem.read(record(LONG, tmp_path, n)).totals for n in ("400", "800"))
    path = record(LONG, tmp_path, str(epochs), options=("--max-file", str(LIMIT_BYTES)))
    recording = tlmem.read(path)
    totals, first = recording.totals, recording.passes.iloc[0]
    in_400 = more.total_count - some.total_count, more.total_bytes - some.total_bytes

    assert path.stat().st_size <= LIMIT_BYTES
    assert recording.folded_events > 0
    assert recording.problems == []
    assert totals.exact
    assert (totals.current_count, totals.current_bytes) == (some.current_count, some.current_bytes)
    assert totals.total_count == some.total_count + in_400[0] * (epochs // 400 - 1)
    assert totals.total_bytes == some.total_bytes + in_400[1] * (epochs // 400 - 1)
    assert 0 < len(recording.passes) < epochs
    memory = recording.tape_memory(np.array([0, int(first["begin_ns"]), 10**12]))
    assert np.isnan(memory["saved_bytes"].iloc[0])
    assert memory["saved_bytes"].tolist()[1:] == [first["saved_bytes"], 0]
