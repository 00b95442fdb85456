"""What is kept of one process."""

import json
import os
from pathlib import Path

from support.fleets import KEPT_BYTES, STEPS, write_rank

from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.digest import CURVE_POINTS, Digest, digest_file, from_dict


def leaking(found: FleetAnalysis) -> Digest:
    return next(process for process in found.processes if process.grows)


def test_growth_is_that_of_the_run_and_not_what_is_left_at_exit(found: FleetAnalysis) -> None:
    process = leaking(found)
    (line,) = process.lines

    assert (process.name, process.outcome) == ("rank 5 (node b, pid 20005)", "leak")
    assert (process.step, process.step_bytes) == ("step", KEPT_BYTES)
    assert (line.place, line.function, line.source) == (
        "ranks.py:12",
        "step",
        "kept.append(batch * 2)",
    )
    assert (line.count, line.bytes) == (STEPS, STEPS * KEPT_BYTES)


def test_a_process_takes_about_a_kilobyte_whatever_it_recorded(tmp_path: Path) -> None:
    short = digest_file(write_rank(tmp_path / "a.tlm", steps=60)).to_dict()
    long = digest_file(write_rank(tmp_path / "b.tlm", steps=1200)).to_dict()
    sizes = [len(json.dumps(values)) for values in (short, long)]

    assert max(sizes) < 1500
    assert sizes[1] - sizes[0] < 100


def test_a_digest_survives_the_way_through_json(found: FleetAnalysis) -> None:
    for process in found.processes:
        values = {**json.loads(json.dumps(process.to_dict())), "of a later tlmem": 1}

        assert from_dict(values) == process


def test_memory_over_time_is_the_highest_of_each_part(found: FleetAnalysis) -> None:
    process = leaking(found)

    assert len(process.tracked_curve) == len(process.resident_curve) == CURVE_POINTS
    assert list(process.tracked_curve) == sorted(process.tracked_curve)
    assert process.resident_peak_bytes is not None
    assert abs(max(process.resident_curve) * 1000 - process.resident_peak_bytes) <= 1000


def test_a_recording_is_closed_when_it_has_been_analysed(run_folder: Path) -> None:
    file = sorted(run_folder.iterdir())[0]
    digest_file(file)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        digest_file(file)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    assert after == before
