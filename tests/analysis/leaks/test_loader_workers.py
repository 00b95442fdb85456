"""What a DataLoader worker keeps is said to be the worker's, by its number."""

from typing import Any

import pandas as pd
import pytest
from support.torch_leaks import LOSSES, STEPS, TORCH, listed, local
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.leaks.loader_workers import worker_findings, worker_of
from tlmem.analysis.model import Finding, Holder, StackFrame

LOOP = "/lib/torch/utils/data/_utils/worker.py"


class Recorded:
    """As much of a recording as names a worker."""

    def __init__(self, note: str = "", parent: int = 0, file: str = LOOP) -> None:
        self.info = {"torch.worker": note} if note else {}
        self.parent_pid = parent
        self.sites = pd.DataFrame({"file": [file], "function": ["_worker_loop"]})


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        (Recorded("3 of 8"), "DataLoader worker 3"),
        (Recorded(parent=7), "DataLoader worker"),
        (Recorded(parent=7, file="/home/user/worker.py"), ""),
        (Recorded(), ""),
        (Recorded("many of 8"), ""),
    ],
)
def test_who_is_a_worker(recorded: Any, name: str) -> None:
    assert worker_of(recorded) == name


@pytest.mark.parametrize(("note", "kind"), [("0 of 2", "worker-grows"), ("", "cache-only-grows")])
def test_a_cache_in_a_worker_is_the_workers(note: str, kind: str) -> None:
    made, kept = Program(), []
    for step in range(STEPS):
        kept.append(made.alloc(LOSSES, 8_000, TORCH))
        made.temporary(90)
        made.wait(1_000_000)
        if step == 3 * STEPS // 4:
            made.snapshot(([local("seen"), listed(len(kept))], [*kept], 1.0))
    recording = made.recording()
    recording.info.update({"torch.worker": note} if note else {})
    (found,) = [f for f in analyse(recording).findings if f.kind.endswith("grows")]

    assert found.kind == kind
    assert ("each of the 2 workers has a dataset of its own" in found.evidence) == bool(note)


HEAP = Finding(
    *("python-growth", "warning", 0, 9_000_000, "Python's heap grew."),
    holders=(Holder("python", "list 'seen' of Logged"),),
)
LINE = Finding(
    *("python-site", "info", 0, 8_000_000, "..."), site=StackFrame("data.py", 7, "__getitem__")
)


def test_python_objects_that_a_worker_keeps_have_its_name_and_a_sampled_line() -> None:
    recorded: Any = Recorded("1 of 4")
    (found,) = worker_findings([HEAP, LINE], recorded)

    assert (found.kind, found.severity, found.site) == ("worker-grows", "warning", LINE.site)
    assert found.evidence == (
        "Python's heap of DataLoader worker 1 grows, kept by list 'seen' of Logged: each of the 4 "
        "workers has a dataset of its own and keeps what it makes until it ends."
    )
    assert "keep nothing for each item" in fix_of(found)


def test_of_other_processes_nothing_is_added() -> None:
    recorded: Any = Recorded()

    assert worker_findings([HEAP], recorded) == []
