"""Stacks of sampled heap: for speedscope, and collapsed; weights are estimates of the truth."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.heap_programs import LITTLE, MUCH, two_lines
from support.programs import command, recorded

from tlmem.export import heap_stacks
from tlmem.recording.reader import read


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_lines(tmp_path_factory.mktemp("sampled"), "r.tlm")


def export(path: Path, to: str) -> str:
    done = command(["export", path.name, "--to", to, "-f", "-o", "out"], path.parent)
    assert done.returncode == 0, done.stderr.decode()
    return (path.parent / "out").read_text("utf-8")


def test_speedscope_has_profiles_of_native_memory_and_of_python_objects(sampled: Path) -> None:
    made = json.loads(export(sampled, "heap-speedscope"))
    profiles = {profile["name"]: profile for profile in made["profiles"]}
    native = profiles["sampled native memory: bytes alive when judged, estimated"]
    frames = made["shared"]["frames"]
    held: dict[int, int] = {}
    for stack, weight in zip(native["samples"], native["weights"], strict=True):
        lines = {frames[frame].get("line") for frame in stack}
        for line in lines & {LITTLE, MUCH}:
            held[line] = held.get(line, 0) + weight

    assert held[MUCH] == pytest.approx(24e6, rel=0.25)
    assert held[LITTLE] == pytest.approx(8e6, rel=0.4)
    assert profiles["sampled memory of Python objects: bytes alive when judged, estimated"][
        "weights"
    ]


def test_collapsed_stacks_are_frames_and_a_number(sampled: Path) -> None:
    rows = export(sampled, "heap-collapsed").splitlines()
    much = [row for row in rows if f"program.py:{MUCH})" in row]

    assert all(re.fullmatch(r"sampled (native|memory)[^\n]+ \d+", row) for row in rows)
    assert rows[0].startswith("sampled native memory;")
    assert sum(int(row.rpartition(" ")[2]) for row in much) == pytest.approx(24e6, rel=0.25)


@pytest.mark.parametrize("to", ["heap-speedscope", "heap-collapsed"])
def test_without_samples_it_is_said_how_to_get_them(to: str, tmp_path: Path) -> None:
    recorded(["-f", "-o", "r.tlm", "-c", "print(1)"], tmp_path)
    done = command(["export", "r.tlm", "--to", to], tmp_path)

    assert done.returncode == 2
    assert b"record with --heap" in done.stderr and len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["r.tlm"]


def test_forged_samples_are_written(sampled: Path, tmp_path: Path) -> None:
    recording = read(sampled)
    heap = recording.heap.iloc[:4].copy()
    heap["born_site"] = np.array([2**32 - 1, 0, 1, 2], np.uint32)
    heap["size_bytes"] = [2**63 - 1, -(2**63), 0, 2**62]
    heap["weight"], heap["died_ns"] = [1e16, 1e16, 0.0, 1.0], -1
    recording.heap = heap
    heap_stacks.write_collapsed(recording, tmp_path / "collapsed")
    heap_stacks.write_speedscope(recording, tmp_path / "speedscope")
    numbers = [int(row.rpartition(" ")[2]) for row in (tmp_path / "collapsed").open()]
    profiles = json.loads((tmp_path / "speedscope").read_text())["profiles"]

    assert 0 < min(numbers) <= max(numbers) <= 2**53
    assert all(weight >= 0 for profile in profiles for weight in profile["weights"])
