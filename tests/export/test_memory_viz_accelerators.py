"""Blocks of accelerators in exported snapshots: their own numbers, and the same figures again."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import cuda_snapshot, writer
from support.cuda_snapshot import training

import tlmem
from tlmem.cli import main
from tlmem.events import Device, Kind
from tlmem.export.memory_viz import snapshot
from tlmem.importing import import_snapshot
from tlmem.report.allocator import allocator_dicts, allocators

VARIANTS: dict[str, dict[str, Any]] = {
    "whole": {"leak": 4000},
    "ring": {"ring": 300, "cpp": True},
    "waiting": {"waits": True, "ring": 157},
    "expandable": {"expandable": True},
    "two devices": {"devices": 2, "ring": 300, "pool": (3, 1)},
}


def imported(value: Any, folder: Path, name: str) -> Path:
    """The file of the recording that a snapshot makes."""
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(value, protocol=4))
    place = folder / f"{name}.tlm"
    place.write_bytes(import_snapshot(folder / f"{name}.pickle").data)
    return place


@pytest.mark.parametrize("variant", VARIANTS)
def test_import_export_import_gives_the_same_figures(variant: str, tmp_path: Path) -> None:
    value = training(**VARIANTS[variant]).snapshot()
    first = tlmem.read(imported(value, tmp_path, "first"))
    made, left_out = snapshot(first)
    again = tlmem.read(imported(made, tmp_path, "again"))

    assert left_out == 0
    before, after = allocator_dicts(first), allocator_dicts(again)
    for each in (*before, *after):
        each["trace"].pop("entries")  # both halves of a free are written
        each["trace"].pop("base_bytes")  # unsplit rests of blocks before the trace: not known twice
        each["trace"].pop("peak_bytes")
        each["trace"].pop("peak_ns")  # the clock begins with the first entry that is written
    assert after == before
    assert again.totals.current_bytes == first.totals.current_bytes
    assert again.totals.total_count == first.totals.total_count
    assert again.problems == first.problems == []
    columns = ["label", "index", "accelerator"]
    assert again.phases[columns].equals(first.phases[columns])
    assert (again.requests["requested_bytes"] == first.requests["requested_bytes"]).all()
    lines = [
        Counter(
            (frame["file"], frame["line"])
            for site in recording.objects["born_site"]
            for frame in recording.stack(int(site))
        )
        for recording in (first, again)
    ]
    assert lines[0] == lines[1]


def test_the_trace_is_what_the_allocator_wrote(tmp_path: Path) -> None:
    value = training(ring=300, unit=700_001).snapshot()
    made, _ = snapshot(tlmem.read(imported(value, tmp_path, "x")))

    def seen(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        keys = ("action", "addr", "size", "stream", "time_us")
        return [
            tuple(entry[key] for key in keys)
            for entry in entries
            if entry["action"] not in ("free_completed", "snapshot")
        ]

    assert seen(made["device_traces"][0]) == seen(value["device_traces"][0])
    assert [s["address"] for s in made["segments"]] == [s["address"] for s in value["segments"]]
    for one, other in zip(made["segments"], value["segments"], strict=True):
        assert {k: v for k, v in one.items() if k not in ("blocks", "frames")} == {
            k: v for k, v in other.items() if k not in ("blocks", "frames")
        }
        assert [b["size"] for b in one["blocks"]] == [b["size"] for b in other["blocks"]]


def test_where_memory_ran_out_and_snapshots_are_entries_again(tmp_path: Path) -> None:
    simulation = training(steps=2, devices=2, expandable=True)
    second = simulation.devices[1]
    for free in (4 << 30, 0):
        second.entry("oom", 512 << 20, free, 0, second.stack(cuda_snapshot.MAIN))
        second.entry("snapshot", 0, 0, 0, [])
    value = simulation.snapshot()
    first = tlmem.read(imported(value, tmp_path, "first"))
    made, _ = snapshot(first)

    def seen(value: dict[str, Any]) -> list[Any]:
        keys = ("size", "device_free", "time_us")
        return [
            [
                (entry["action"], *map(entry.get, keys), len(entry["frames"]))
                for entry in entries
                if entry["action"] in ("oom", "snapshot", "segment_map")
            ]
            for entries in value["device_traces"]
        ]

    assert seen(made) == seen(value) and len(seen(value)[1]) > 4
    again = tlmem.read(imported(made, tmp_path, "again"))
    columns = ["label", "index", "thread"]
    assert sorted(again.marks[columns].values.tolist()) == sorted(
        first.marks[columns].values.tolist()
    )
    assert again.info["oom.1"] == first.info["oom.1"]


def test_a_trace_of_nothing_but_a_refused_request_is_written_again(tmp_path: Path) -> None:
    simulation = training(steps=0)
    device = simulation.devices[0]
    device.trace.clear()
    device.entry("oom", 0, 1 << 40, 0, device.stack(cuda_snapshot.MAIN))
    value = simulation.snapshot() | {"segments": []}
    made, _ = snapshot(tlmem.read(imported(value, tmp_path, "first")))

    assert [[entry["action"] for entry in trace] for trace in made["device_traces"]] == [["oom"]]


def test_pinned_memory_of_the_host_stays_apart(tmp_path: Path) -> None:
    value = cuda_snapshot.with_host(training(steps=1).snapshot())
    first = tlmem.read(imported(value, tmp_path, "first"))
    made, _ = snapshot(first)
    again = tlmem.read(imported(made, tmp_path, "again"))

    assert [s["total_size"] for s in made["host_segments"]] == [1 << 23]
    assert len(made["device_traces"]) == 1
    assert [each.reserved for each in allocators(again)] == [
        each.reserved for each in allocators(first)
    ]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A recording of a program with NumPy's, PyTorch's and two accelerators' blocks."""
    first, rows = 1_000_000, []
    meta = [
        writer.code(1, "/home/u/train.py", "main"),
        *(writer.site(2 + n, 0, 1, 10 + n) for n in range(4)),
        writer.note("accelerator.1", "cuda NVIDIA H100"),
    ]
    one = 1 << 56
    for step in range(40):
        at = first + 1000 * step
        size = 4096 + 512 * step
        rows += [
            (at + 10, one | 0x7F00_0000, 1 << 21, 2, 0, Kind.DEVICE_ALLOC, 5)
            if step == 0
            else (at + 10, 1, step, 2, 0, Kind.MARK, 0),
            (at + 20, 0x1000 * (step + 1), 300, 3, 1, Kind.ALLOC, Device.NUMPY),
            (at + 30, 0x900_0000 + 0x10000 * step, size, 4, 1, Kind.ALLOC, Device.TORCH),
            (at + 40, one | (0x7F00_0000 + 0x8000 * step), size, 5, 1, Kind.ALLOC, 5),
        ]
        if step % 2:
            rows += [
                (at + 50, 0x900_0000 + 0x10000 * step, 0, 4, 0, Kind.FREE, Device.TORCH),
                (at + 60, one | (0x7F00_0000 + 0x8000 * step), 0, 2, 0, Kind.FREE, 5),
            ]
    made = writer.RecordingWriter(form="sealed", meta=meta, threads={1: writer.events(rows)})
    return made.write(tmp_path / "mixed.tlm")


def test_devices_of_a_live_recording_have_their_own_numbers(mixed: Path) -> None:
    recording = tlmem.read(mixed)
    made, _ = snapshot(recording)
    objects = recording.objects

    assert made["allocator_settings"]["tlmem_devices"] == "accelerator:0, cuda:1, numpy, torch"
    actions = [Counter(entry["action"] for entry in trace) for trace in made["device_traces"]]
    assert actions[0] == {}
    assert actions[1] == {
        "segment_alloc": 1, "alloc": 40, "free_requested": 20, "free_completed": 20,
    }  # fmt: skip
    assert actions[3] == {"alloc": 40, "free_requested": 20, "free_completed": 20}
    entry = made["device_traces"][1][1]
    assert entry["addr"] == 0x7F00_0000 and entry["size"] == 4096
    assert entry["frames"][0]["line"] == 13
    for number, index in ((Device.TORCH_ACCELERATOR, 1), (Device.NUMPY, 2), (Device.TORCH, 3)):
        alive = objects[(objects["device"] == number) & (objects["died_ns"] < 0)]
        held = sum(s["allocated_size"] for s in made["segments"] if s["device"] == index)
        assert held == alive["size_bytes"].sum()


@pytest.mark.parametrize("source", ["mixed", "imported"])
def test_the_functions_of_pytorch_read_it(
    source: str, mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    from torch.cuda import _memory_viz as viz

    value = training(leak=4096, steps=3).snapshot()
    path = mixed if source == "mixed" else imported(value, tmp_path, "x")
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(path), "--to", "memory-viz", "-o", "out.pickle"]) == 0
    made = pickle.loads(Path("out.pickle").read_bytes())

    def lines(text: str) -> str:
        return text

    total = sum(segment["total_size"] for segment in made["segments"])
    assert f"total_reserved: {viz.Bytes(total)!r}" in viz.segsum(made)
    flames = viz.memory(made, format_flamegraph=lines)
    sizes = [int(line.rsplit(" ", 1)[1]) for line in flames.splitlines()]
    assert sum(sizes) == total
    assert "train.py" in flames and "active_allocated" in flames
    assert viz.segments(made, format_flamegraph=lines).count("\n") == len(sizes)
    assert "cudaMalloc" in viz.trace(made)
    assert len(viz.trace_plot(made)) > 10_000 and len(viz.segment_plot(made)) > 10_000
    compared = viz.compare([], made["segments"], format_flamegraph=lines)
    assert "only_after" in compared
    filtered = viz.filter_alloc_free_pairs(pickle.loads(Path("out.pickle").read_bytes()))
    allocs = sum(e["action"] == "alloc" for trace in filtered["device_traces"] for e in trace)
    freed = np.sum([e["action"] == "free_requested" for t in made["device_traces"] for e in t])
    whole = sum(e["action"] == "alloc" for trace in made["device_traces"] for e in trace)
    assert whole - freed <= allocs < whole
