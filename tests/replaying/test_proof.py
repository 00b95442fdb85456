"""The replay does what a recorded allocator did, or says where the two part."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.caching_allocator import CachingDevice, mixed
from support.cuda_snapshot import MB, training

import tlmem
from tlmem.cli import main
from tlmem.importing import import_snapshot
from tlmem.replaying.contradictions import contradiction
from tlmem.replaying.proof import prove
from tlmem.replaying.trace import MOST_ERROR, Trace, trace_of


def imported(snapshot: dict[str, Any], folder: Path) -> Path:
    """A recording of a snapshot."""
    (folder / "x.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    (folder / "x.tlm").write_bytes(import_snapshot(folder / "x.pickle").data)
    return folder / "x.tlm"


def trace(snapshot: dict[str, Any], folder: Path) -> Trace:
    return trace_of(tlmem.read(imported(snapshot, folder)))


DEVICES: dict[str, dict[str, Any]] = {
    "default": {},
    "expandable": {"expandable": True},
    "max split": {"max_split": 32 * MB},
    "divisions": {"divisions": 4},
    "small device": {"capacity": 285 * MB},
    "small device, max split": {"capacity": 280 * MB, "max_split": 32 * MB},
    "small device, expandable": {"capacity": 310 * MB, "expandable": True},
    "collecting": {"capacity": 500 * MB, "collect": 0.4},
}
RUNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "streams": {"streams": 3},
    "emptied": {"empties": 4},
    "waiting": {"waits": True, "streams": 2},
    "private pool": {"pool_every": 6},
}
CASES = [
    *((device, "plain") for device in DEVICES),
    *((device, run) for device in ("default", "expandable") for run in RUNS if run != "plain"),
]


@pytest.mark.parametrize("ring", [10**9, 600], ids=["whole", "late"])
@pytest.mark.parametrize(("device", "run"), CASES)
def test_reserved_memory_is_reproduced(device: str, run: str, ring: int, tmp_path: Path) -> None:
    made = mixed(CachingDevice(ring=ring, **DEVICES[device]), 40, **RUNS[run])
    made_trace = trace(made.snapshot(), tmp_path)
    proof = prove(made_trace)

    assert proof is not None and proof.problems == ()
    assert contradiction(made_trace) is None
    assert proof.error <= (0.0 if ring > 600 else MOST_ERROR)
    assert proof.compared > 80
    assert proof.placed == proof.compared or ring == 600
    assert (made.retries > 0) == device.startswith("small")


def test_a_simulated_training_run_is_reproduced(tmp_path: Path) -> None:
    proof = prove(trace(training(steps=12, ring=700, waits=True).snapshot(), tmp_path))

    assert proof is not None and proof.error == 0


def test_blocks_that_lie_elsewhere_are_counted(tmp_path: Path) -> None:
    """Reserved memory alone would not show it: the last block lay behind a smaller gap."""
    device = CachingDevice()
    made = trace(mixed(device, 30).snapshot(), tmp_path)
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
    snapshot = mixed(CachingDevice(), 30).snapshot()
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
        (half, "the block of 15.8 MB at 0x7f0000200000 lies in no segment that is there then"),
        (twice, "the segment of 33.6 MB at 0x7f0000200000 comes while the one at 0x7f0000000000"),
    ],
)
def test_a_refused_snapshot_that_contradicts_itself_is_said_so_with_the_address(
    change: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = mixed(CachingDevice(), 30).snapshot()
    assert contradiction(trace(snapshot, tmp_path)) is None
    change(snapshot)

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 1
    error = capsys.readouterr().err
    assert f"the snapshot contradicts itself: {said}" in error and error.count("\n") == 1


def test_blocks_outside_of_segments_are_a_problem_even_where_sums_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = mixed(CachingDevice(), 30).snapshot()
    for entry in snapshot["device_traces"][0]:
        if entry["action"].startswith(("alloc", "free")):
            entry["addr"] += 1 << 33

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "problem: the snapshot contradicts itself: the block of" in said


def test_the_error_stands_beside_the_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = imported(mixed(CachingDevice(), 30).snapshot(), tmp_path)

    assert main(["replay", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Reproduces the recorded run within 0%: reserved" in text
    assert "all blocks lie where they lay" in text
    assert "default (recorded)" in text


def test_a_snapshot_without_a_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = training(steps=4).snapshot()
    snapshot["device_traces"] = [[]]

    assert main(["replay", str(imported(snapshot, tmp_path))]) == 3
    assert "no allocation over time" in capsys.readouterr().err
