"""The replay does what a recorded allocator did, or says where the two part."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cuda_snapshot import MB, training
from support.reference_allocator import ReferenceAllocator, program

import tlmem
from tlmem.cli import main
from tlmem.importing import import_snapshot
from tlmem.replaying.contradictions import contradiction
from tlmem.replaying.proof import prove
from tlmem.replaying.trace import Trace, trace_of


def imported(snapshot: dict[str, Any], folder: Path) -> Path:
    """A recording of a snapshot."""
    (folder / "x.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    (folder / "x.tlm").write_bytes(import_snapshot(folder / "x.pickle").data)
    return folder / "x.tlm"


def trace(snapshot: dict[str, Any], folder: Path) -> Trace:
    return trace_of(tlmem.read(imported(snapshot, folder)))


STREAMS: dict[str, Any] = {"streams": 3}
WAITING: dict[str, Any] = {"streams": 2, "waits": 0.3}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "expandable": ({"expandable": True}, {}),
    "max split": ({"max_split": 32 * MB}, {}),
    "expandable, max split": ({"expandable": True, "max_split": 32 * MB}, STREAMS),
    "divisions": ({"divisions": 4}, {}),
    "large segments": ({"large": 40 * MB, "max_split": 40 * MB, "rounding": 40 * MB}, {}),
    "refused": ({"capacity": 390 * MB}, {}),
    "refused, max split": ({"capacity": 380 * MB, "max_split": 32 * MB}, {}),
    "refused, max split, streams": ({"capacity": 340 * MB, "max_split": 32 * MB}, STREAMS),
    "refused, expandable": ({"capacity": 330 * MB, "expandable": True}, STREAMS),
    "refused, waiting": ({"capacity": 290 * MB}, WAITING),
    "refused, expandable, waiting": ({"capacity": 285 * MB, "expandable": True}, WAITING),
    "refused by a fraction": ({"allowed": 390 * MB}, {}),
    "refused by a fraction, expandable": ({"allowed": 330 * MB, "expandable": True}, STREAMS),
    "collecting": ({"allowed": 500 * MB, "collect": 0.4}, {}),
    "collecting, waiting": ({"allowed": 500 * MB, "collect": 0.4}, WAITING),
    "refused, collecting": ({"allowed": 270 * MB, "collect": 0.8}, WAITING),
    "streams": ({}, STREAMS),
    "emptied": ({}, {"empties": 4, "waits": 0.3}),
    "emptied, expandable": ({"expandable": True}, {"empties": 4, "waits": 0.3}),
    "graphs": ({}, {"graphs": 3, "empties": 7}),
    "graphs, expandable": ({"expandable": True}, {"graphs": 3, "empties": 7}),
}


@pytest.mark.parametrize("case", CASES)
def test_reserved_memory_is_reproduced(case: str, tmp_path: Path) -> None:
    settings, run = CASES[case]
    made = program(ReferenceAllocator(**settings), 40, **run)
    assert (made.retries > 0) == case.startswith("refused") and made.failures == 0
    snapshot = made.snapshot()
    made_trace = trace(snapshot, tmp_path)
    proof = prove(made_trace)

    assert proof is not None and proof.problems == ()
    assert contradiction(made_trace) is None
    assert (proof.error, proof.largest) == (0, 0)
    assert proof.placed == proof.compared > 400
    # The ring of the recorder overflowed: where older blocks wait for a stream is not known.
    snapshot["device_traces"] = [snapshot["device_traces"][0][-600:]]
    late = prove(trace(snapshot, tmp_path))
    assert late is not None and late.problems == ()
    assert late.error == 0 and late.compared > 120
    assert late.placed == late.compared or "waits" in run


def test_a_pool_with_an_allocator_of_its_own_is_reproduced(tmp_path: Path) -> None:
    made = ReferenceAllocator(expandable=True, own_pools=((4, 0), (8, 0), (12, 0), (16, 0)))
    proof = prove(trace(program(made, 16, graphs=4).snapshot(), tmp_path))

    assert proof is not None and (proof.error, proof.placed) == (0, proof.compared)


def without_entries(snapshot: dict[str, Any]) -> None:
    """As with ``skip_actions`` of ``_record_memory_history``."""
    entries = snapshot["device_traces"][0]
    snapshot["device_traces"] = [[e for e in entries if not e["action"].startswith("segment")]]


def with_a_hole(snapshot: dict[str, Any]) -> None:
    entries = snapshot["device_traces"][0]
    third = len(entries) // 3
    snapshot["device_traces"] = [entries[:third] + entries[2 * third :]]


@pytest.mark.parametrize("change", [without_entries, with_a_hole])
def test_a_trace_with_gaps_is_refused_with_where_they_part(
    change: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = program(ReferenceAllocator(), 30, streams=2, empties=5).snapshot()
    change(snapshot)

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "is not reproduced" in said.err
    assert "they part" in said.err or "contradicts itself: " in said.err


@pytest.mark.parametrize("traces", [None, [], [[]], [None]])
def test_a_snapshot_without_traces_says_that_there_is_none(
    traces: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = program(ReferenceAllocator(), 10).snapshot()
    if traces is None:
        del snapshot["device_traces"]
    else:
        snapshot["device_traces"] = traces

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 3
    assert "no allocation over time" in capsys.readouterr().err


def test_a_simulated_training_run_is_reproduced(tmp_path: Path) -> None:
    proof = prove(trace(training(steps=12, ring=700, waits=True).snapshot(), tmp_path))

    assert proof is not None and proof.error == 0


def test_blocks_that_lie_elsewhere_are_counted(tmp_path: Path) -> None:
    """Reserved memory alone would not show it: the last block lay behind a smaller gap."""
    made = trace(program(ReferenceAllocator(), 30).snapshot(), tmp_path)
    assert made.recorded is not None
    address = made.recorded.address.copy()
    address[-1] += 512
    wrong = replace(made, recorded=replace(made.recorded, address=address))

    whole, moved = prove(made), prove(wrong)

    assert whole is not None and moved is not None
    assert (moved.error, moved.compared) == (whole.error, whole.compared)
    assert moved.placed == whole.placed - 1 == whole.compared - 1


def test_without_segments_nothing_is_proven(tmp_path: Path) -> None:
    snapshot = training(steps=4).snapshot()
    snapshot["segments"] = []
    entries = snapshot["device_traces"][0]
    snapshot["device_traces"] = [[e for e in entries if not e["action"].startswith("segment")]]

    assert prove(trace(snapshot, tmp_path)) is None


def test_another_allocator_is_refused_with_where_they_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settings say another rounding than the one that was at work."""
    snapshot = program(ReferenceAllocator(), 30).snapshot()
    settings = snapshot["allocator_settings"]
    settings["max_split_size"] = 20 * MB
    path = imported(snapshot, tmp_path)

    assert main(["replay", str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert "is not reproduced" in said.err and "more than 5.0%" in said.err
    assert "they part" in said.err and "train.py:" in said.err


def half(snapshot: dict[str, Any]) -> None:
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "segment_alloc":
            entry["size"] //= 2
    for segment in snapshot["segments"]:
        segment["total_size"] //= 2


def twice(snapshot: dict[str, Any]) -> None:
    for entry in snapshot["device_traces"][0]:
        if entry["action"] == "segment_alloc":
            entry["size"] *= 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (half, "lies in no segment that is there then"),
        (twice, "comes while the one at 0x7f"),
    ],
)
def test_a_refused_snapshot_that_contradicts_itself_is_said_so_with_the_address(
    change: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = program(ReferenceAllocator(), 30).snapshot()
    assert contradiction(trace(snapshot, tmp_path)) is None
    change(snapshot)

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 1
    error = capsys.readouterr().err
    assert "the snapshot contradicts itself: " in error and said in error
    assert error.count("\n") == 1


def test_blocks_outside_of_segments_are_a_problem_even_where_sums_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = program(ReferenceAllocator(), 30).snapshot()
    for entry in snapshot["device_traces"][0]:
        if entry["action"].startswith(("alloc", "free")):
            entry["addr"] += 1 << 33

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "problem: the snapshot contradicts itself: the block of" in said


def test_the_error_stands_beside_the_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = imported(program(ReferenceAllocator(), 30).snapshot(), tmp_path)

    assert main(["replay", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Reproduces the recorded run within 0%: reserved" in text
    assert "all blocks lie where they lay" in text
    assert "default (recorded)" in text
