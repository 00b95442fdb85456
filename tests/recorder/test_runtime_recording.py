"""Programs that use tlmem's scopes and tensors, recorded as they are: who leaks, who keeps it."""

import json
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.programs import command, recorded

import tlmem
from tlmem.events import HolderKind

TRAINING = """
import sys
import time
from tlmem.runtime.tensors.factories import zeros
from tlmem.runtime.ownership.scope import escape, scope

history = []
weight = zeros(1000)

def step(number):
    with scope("step"):
        batch = zeros(1000)
        loss = batch + weight
        if sys.argv[1] == "leak":
            history.append(escape(loss))

for number in range(400):
    step(number)
    time.sleep(0.003)
"""
LEAKING_LINE, TAKING_LINE, WEIGHT_LINE = 13, 15, 8

VIEWS = """
import time
from tlmem.runtime.tensors.factories import zeros

base, views = zeros((10, 100)), []
for number in range(400):
    views.append(base[number % 10])
    zeros(10)
    time.sleep(0.003)
"""

MISUSE = """
from tlmem.runtime.errors import UseAfterFree
from tlmem.runtime.tensors.factories import zeros
from tlmem.runtime.ownership.scope import scope

with scope("epoch"):
    gone = zeros(10)
try:
    gone + 1
except UseAfterFree:
    print("refused")
"""

USES = """
import sys, threading
import tlmem

stop = threading.Event()
if sys.argv[1] == "beside":
    threading.Thread(target=stop.wait).start()

def gone():
    with tlmem.scope("step"):
        return tlmem.ones((4, 4))

for use in (
    lambda tensor: tensor.sum(),
    lambda tensor: tensor.mean(axis=0),
    lambda tensor: tlmem.softmax(tensor, 1),
    lambda tensor: tensor + 1.0,
    lambda tensor: tensor @ tensor,
    lambda tensor: tensor[0],
    lambda tensor: tensor[0, 1].item(),
    lambda tensor: tensor.reshape(-1),
    lambda tensor: tensor.numpy(),
):
    try:
        use(gone())
    except tlmem.UseAfterFree:
        pass
stop.set()
"""
FIRST_USE, LAST_USE = 14, 22

THREADS = """
import threading
from tlmem._native import ffi, lib
out = ffi.new("tlm_object *")
assert lib.tlm_object_alloc(lib.TLM_DEVICE_CPU, 64, out) == 0
HANDLE = lib.TLM_HOLDER_HANDLE << 56
lib.tlm_move(out[0], lib.TLM_HOLDER_FLOATING << 56, HANDLE | 1)

def work(holder):
    for _ in range(20_000):
        lib.tlm_acquire(out[0], holder)
        lib.tlm_release(out[0], holder)

threads = [threading.Thread(target=work, args=(HANDLE | 100 + n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

KILLED = """
import os
import signal
from tlmem.runtime.tensors.factories import zeros
from tlmem.runtime.ownership.scope import scope

with scope("whole"):
    kept = [zeros(100) for _ in range(50)]
    for _ in range(3000):
        with scope("step"):
            zeros(100)
    with scope("last"):
        here = zeros(7)
        os.kill(os.getpid(), signal.SIGKILL)
"""

LONG = """
from tlmem._native import lib
from tlmem.runtime.errors import UseAfterFree
from tlmem.runtime.tensors.factories import zeros
from tlmem.runtime.ownership.scope import scope

kept = [zeros(100) for _ in range(300)]
with scope("epoch"):
    gone = zeros(10)
try:
    gone + 1
except UseAfterFree:
    pass
ROUNDS_OF_ALLOC_AND_FREE, ROUNDS = 3, 6_000_000  # 16 MB when compacted: more than the limit
lib.tlm_bench_runtime(ROUNDS_OF_ALLOC_AND_FREE, ROUNDS, 64)
"""


def record(
    program: str, folder: Path, *arguments: str, code: int = 0, options: tuple[str, ...] = ()
) -> Path:
    """Records a program to ``folder/x.tlm``."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    options = ("-q", "-f", "-o", "x.tlm", *options)
    done = recorded(["program.py", *arguments], folder, options=options)
    assert done.returncode == code, done.stderr.decode()
    return folder / "x.tlm"


def report(path: Path) -> dict:
    done = command(["report", "--format", "json", path], path.parent)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def at_line(found: dict, kind: str) -> dict[int, dict]:
    """Findings of a kind by the line they blame."""
    return {f["site"]["line"]: f for f in found["findings"] if f["kind"] == kind}


def test_a_leak_out_of_a_scope_is_named_at_its_line_with_who_keeps_it(tmp_path: Path) -> None:
    found = report(record(TRAINING, tmp_path, "leak"))
    growing = at_line(found, "growing-site")

    assert found["verdict"]["outcome"] == "leak"
    assert list(growing) == [LEAKING_LINE]
    assert growing[LEAKING_LINE]["bytes"] == growing[LEAKING_LINE]["count"] * 4000
    holder, *python = growing[LEAKING_LINE]["holders"]
    assert {other["kind"] for other in python} <= {"python"}
    assert (holder["kind"], holder["site"]["line"]) == ("handle", TAKING_LINE)
    assert holder["count"] == growing[LEAKING_LINE]["count"]


def test_the_same_program_without_the_leak_is_stable(tmp_path: Path) -> None:
    found = report(record(TRAINING, tmp_path, "healthy"))

    assert found["verdict"]["outcome"] == "stable"
    assert at_line(found, "live-at-end")[WEIGHT_LINE]["count"] == 1
    assert found["recording"]["complete"]


def test_every_scope_and_every_hand_over_is_in_the_tables(tmp_path: Path) -> None:
    recording = tlmem.read(record(TRAINING, tmp_path, "leak"))
    scopes, holders = recording.scopes, recording.holders
    steps = scopes[scopes["label"] == "step"]

    assert recording.problems == []
    assert len(steps) == 400
    assert (steps[["registered", "escaped", "released", "freed"]] == [2, 1, 1, 1]).all(axis=None)
    assert (steps["exit_ns"] > steps["enter_ns"]).all()
    still = holders[holders["end_ns"] < 0]
    assert set(still["kind"]) == {HolderKind.HANDLE}
    assert len(still) == 401


def test_every_prefix_balances(tmp_path: Path) -> None:
    """Allocations less frees are what is alive; so are the open rows of the ledger."""
    recording = tlmem.read(record(TRAINING, tmp_path, "leak"))
    ours = recording.objects[recording.objects["device"] >= 16]
    holders = recording.holders
    for time_ns in np.linspace(0, recording.seconds * 1e9, 23).astype(np.int64):
        alive = alive_at(ours, "born_ns", "died_ns", time_ns)
        held = holders[alive_at(holders, "begin_ns", "end_ns", time_ns)]
        freed = (ours["died_ns"] >= 0) & (ours["died_ns"] <= time_ns)
        assert (ours["born_ns"] <= time_ns).sum() - freed.sum() == alive.sum()
        assert set(held["object"]) == set(ours.index[alive])


def alive_at(table: pd.DataFrame, begin: str, end: str, time_ns: int) -> pd.Series:
    return (table[begin] <= time_ns) & ((table[end] < 0) | (table[end] > time_ns))


def test_a_leak_of_views_is_told_by_its_count(tmp_path: Path) -> None:
    found = report(record(VIEWS, tmp_path))
    growing = at_line(found, "growing-site")[7]

    assert found["verdict"]["outcome"] == "leak"
    assert growing["bytes"] == 0 and growing["count"] > 350
    base = at_line(found, "live-at-end")[5]
    assert {holder["kind"] for holder in base["holders"]} - {"python"} == {"view", "handle"}


def test_a_use_after_free_is_an_error_at_its_line(tmp_path: Path) -> None:
    found = report(record(MISUSE, tmp_path))["findings"]
    (misuse,) = [f for f in found if f["kind"] == "use-after-free"]

    assert (misuse["severity"], misuse["site"]["line"]) == ("error", 9)
    assert "was allocated at program.py:7" in misuse["evidence"]


@pytest.mark.parametrize("threads", ["alone", "beside"])
def test_each_use_after_free_is_recorded_once_whatever_computes_it(
    tmp_path: Path, threads: str
) -> None:
    """With another thread beside it, the core computes in another way."""
    recording = tlmem.read(record(USES, tmp_path, threads))
    stacks = map(recording.stack, recording.misuses["site"].tolist())
    own = str(tmp_path / "program.py")
    lines = [next(frame["line"] for frame in stack if frame["file"] == own) for stack in stacks]

    assert set(recording.misuses["misuse"]) == {"use-after-free"}
    assert lines == list(range(FIRST_USE, LAST_USE + 1))


@pytest.mark.parametrize("attempt", range(3))
def test_counts_of_a_shared_object_follow_from_the_events_of_all_threads(
    tmp_path: Path, attempt: int
) -> None:
    recording = tlmem.read(record(THREADS, tmp_path))

    assert recording.problems == [], f"in attempt {attempt}"
    assert recording.totals.acquires == recording.totals.releases == 80_000
    assert recording.holders["end_ns"].lt(0).sum() == 1


def test_a_killed_program_leaves_scopes_that_are_entered_and_what_they_hold(tmp_path: Path) -> None:
    recording = tlmem.read(record(KILLED, tmp_path, code=-signal.SIGKILL))
    open_scopes = recording.scopes[recording.scopes["exit_ns"] < 0]
    open_rows = recording.holders[recording.holders["end_ns"] < 0]

    assert recording.problems == [] and not recording.sealed
    assert open_scopes["label"].tolist() == ["whole", "last"]
    assert open_scopes["parent"].tolist() == [0, open_scopes.index[0]]
    named = open_rows["holder"].str.replace(r" #\d+", "", regex=True).value_counts().to_dict()
    assert named == {"scope 'whole'": 50, "scope 'last'": 1}


def test_a_size_limit_keeps_the_sums_and_the_misuse_of_what_is_folded(tmp_path: Path) -> None:
    recording = tlmem.read(record(LONG, tmp_path, options=("--max-file", "8MiB")))
    totals = recording.totals
    ours = recording.objects[recording.objects["device"] >= 16]
    alive = ours[ours["died_ns"] < 0]

    assert recording.problems == [] and recording.complete
    assert recording.folded_events > 1_000_000
    assert totals.total_count > 1_500_000
    assert totals.total_count - totals.freed_count == totals.current_count == len(alive) == 300
    assert totals.current_bytes == alive["size_bytes"].sum() == 300 * 400
    assert totals.unknown_frees == 0
    assert recording.misuses["misuse"].tolist() == ["use-after-free"]
