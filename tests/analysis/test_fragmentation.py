"""Free memory of a caching allocator that lies in pieces, from snapshots of a simulated one."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from support.cuda_snapshot import MAIN, MB, Device, Simulation, frame

import tlmem
from tlmem.analysis import analyse
from tlmem.analysis.model import Finding
from tlmem.importing import import_snapshot

KEPT = frame("/home/u/train.py", 31, "keep")
GONE = frame("/home/u/train.py", 47, "work")


def snapshot(
    *, expandable: bool = False, request: int = 0, room: int = 0, pairs: int = 30, gone: int = 9
) -> dict[str, Any]:
    """Pairs of a block that comes and goes and a small one that stays, in segments of 20 MB."""
    device = Device(0, 10**9, expandable)
    kept, gone_stack = device.stack(KEPT, MAIN), device.stack(GONE, MAIN)
    away = []
    for _ in range(pairs):
        away.append(device.alloc(gone * MB, gone_stack, 0, (0, 0)))
        device.alloc(MB + 1000, kept, 0, (0, 0))
    for address in away:
        device.free(address, gone_stack, False)
    if request:
        device.entry("oom", room, request, 0, gone_stack)
    return Simulation([device]).snapshot()


def found(folder: Path, value: dict[str, Any]) -> list[Finding]:
    source, made = folder / "s.pickle", folder / "s.tlm"
    source.write_bytes(pickle.dumps(value, protocol=4))
    made.write_bytes(import_snapshot(source).data)
    return [f for f in analyse(tlmem.read(made)).findings if f.kind == "fragmentation"]


def test_a_request_that_failed_beside_enough_free_memory_names_the_line_that_splits_it(
    tmp_path: Path,
) -> None:
    (finding,) = found(tmp_path, snapshot(request=64 * MB, room=3 * MB))

    assert finding.severity == "warning"
    assert finding.site is not None and (finding.site.file, finding.site.line) == (
        "/home/u/train.py",
        31,
    )
    assert "a request for 67.1 MB failed, though 290 MB were free" in finding.evidence
    assert "Most of it is kept by 30 blocks, 45.1 MB, allocated at train.py:31" in finding.evidence
    assert "expandable_segments:True" in finding.fix


def test_the_figures_are_those_of_the_segments(tmp_path: Path) -> None:
    value = snapshot(request=64 * MB)
    (finding,) = found(tmp_path, value)
    blocks = [block for segment in value["segments"] for block in segment["blocks"]]
    free = [block["size"] for block in blocks if block["state"] == "inactive"]

    assert finding.bytes == sum(free)
    assert finding.count == len(free)


@pytest.mark.parametrize(
    "options",
    [
        {"request": 5 * MB},  # the largest piece would have done
        {"request": 900 * MB, "room": 3 * MB},  # more than all of them
        {"request": 600 * MB, "room": 550 * MB},  # the device had more than the segments
        {"pairs": 4},  # little
        {"gone": 0},  # nothing
    ],
)
def test_of_other_failures_and_of_little_memory_nothing_is_said(
    options: dict[str, int], tmp_path: Path
) -> None:
    assert found(tmp_path, snapshot(**options)) == []


def test_without_a_failed_request_it_is_info(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, snapshot())

    assert finding.severity == "info"
    assert "failed" not in finding.evidence


def test_where_segments_are_expandable_the_cure_is_another(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, snapshot(expandable=True, request=200 * MB))

    assert "expandable already" in finding.fix


def test_a_failure_before_other_blocks_came_is_not_judged_by_the_state_at_the_end(
    tmp_path: Path,
) -> None:
    value = snapshot(request=64 * MB)
    trace = value["device_traces"][0]
    trace.append(trace.pop(-2))

    (finding,) = found(tmp_path, value)
    assert finding.severity == "info"
