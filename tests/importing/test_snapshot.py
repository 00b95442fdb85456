"""A recording made from a snapshot has every figure of the allocator that wrote it."""

import gzip
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import cuda_snapshot
from support.cuda_snapshot import MB, Simulation, frame, training

import tlmem
from tlmem.analysis.peak.explained import explain
from tlmem.analysis.peak.phases import Phase, site_phases
from tlmem.cli import main
from tlmem.events import ENGINE, Device, Kind
from tlmem.importing import CannotImport, import_snapshot
from tlmem.importing.allocator import Stretches
from tlmem.importing.snapshot import EmptySnapshot
from tlmem.planning.buffers import planned_lives
from tlmem.recording.reader import Recording
from tlmem.report.allocator import allocator_lines, allocators

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ring overflow": {"ring": 300},
    "a ring that begins between the halves of a free": {"ring": 301},
    "leak": {"leak": 40_000},
    "stacks of C++": {"cpp": True},
    "frees without stacks": {"free_stacks": False, "ring": 500},
    "streams that wait": {"waits": True},
    "streams that wait, ring": {"waits": True, "ring": 157},
    "expandable": {"expandable": True},
    "expandable, ring": {"expandable": True, "ring": 201},
    "private pool": {"pool": (3, 1), "ring": 250},
    "two devices": {"devices": 2, "ring": 300},
    "small blocks": {"unit": 3000, "weight": 70_001},
    "small and large, a cache": {"unit": 600_001, "weight": 9_000_003, "cache": 80_000_000},
    "out of memory": {"oom": True},
}


def recording_of(value: Any, folder: Path, name: str = "x") -> Recording:
    """The recording of a snapshot."""
    source = folder / f"{name}.pickle"
    source.write_bytes(pickle.dumps(value, protocol=4))
    place = folder / f"{name}.tlm"
    place.write_bytes(import_snapshot(source).data)
    return tlmem.read(place)


def remarks(recording: Recording) -> list[str]:
    """What was left out of a snapshot, or set right, that says nothing of memory."""
    return [text for key, text in recording.info.items() if key.startswith("snapshot.remark.")]


@pytest.fixture(params=VARIANTS)
def simulation(request: pytest.FixtureRequest) -> Simulation:
    return training(**VARIANTS[request.param])


# ---- figures ----


def test_every_figure_is_that_of_the_allocator(simulation: Simulation, tmp_path: Path) -> None:
    recording = recording_of(simulation.snapshot(), tmp_path)
    found = {each.accelerator: each for each in allocators(recording)}

    assert recording.problems == [] and recording.complete
    assert recording.unknown_frees == 0
    for device in simulation.devices:
        truth, one = device.truth(), found[device.number]
        assert one.reserved.total == truth["reserved"]
        assert sum(one.reserved.parts.values()) == truth["reserved"]
        assert one.reserved.parts == {
            "requested_bytes": truth["requested"],
            "rounding_bytes": truth["rounding"],
            "waiting_bytes": truth["waiting"],
            "split_free_bytes": truth["split_free"],
            "whole_free_bytes": truth["whole_free"],
        }
        assert one.blocks == truth["blocks"]
        named = ("base_requested", "peak_requested", "entries")
        assert {name: one.figures[name] for name in named} == {name: truth[name] for name in named}
        # Of a block that the ring saw freed, but not allocated, the unsplit rest is not known.
        unsplit = truth["base"] - one.figures["base"]
        assert 0 <= unsplit <= len(device.trace) * MB
        assert 0 <= truth["peak"] - one.figures["peak"] <= unsplit
        if truth["base"] == 0:
            assert one.figures["peak"] == truth["peak"]


def test_live_memory_after_each_entry_is_that_of_the_allocator(tmp_path: Path) -> None:
    simulation = training(unit=700_001, weight=9_000_003, waits=True)
    device = simulation.devices[0]
    recording = recording_of(simulation.snapshot(), tmp_path)
    events, objects = recording.events, recording.objects

    kind = events["kind"].to_numpy()
    size = objects["size_bytes"].to_numpy()
    blocks = np.isin(kind, (Kind.ALLOC, Kind.FREE))
    sign = np.where(kind[blocks] == Kind.ALLOC, 1, -1)
    held = np.cumsum(sign * size[events["object"].to_numpy()[blocks]])
    asked = np.cumsum(
        sign * recording.requests["requested_bytes"].to_numpy()[events["object"].to_numpy()[blocks]]
    )
    truth = [
        level
        for entry, level in zip(device.trace, device.history, strict=True)
        if entry["action"] in ("alloc", "free_requested")
    ]
    # The entry of a free is written when its bytes are gone, that of an allocation when they are
    # there.
    assert held.tolist() == [level[0] for level in truth]
    assert asked.tolist() == [level[1] for level in truth]


def test_reserved_memory_is_what_the_segments_add_up_to(
    simulation: Simulation, tmp_path: Path
) -> None:
    recording = recording_of(simulation.snapshot(), tmp_path)
    events = recording.events
    for device in simulation.devices:
        truth = device.truth()
        mine = events[events["device"] == Device.TORCH_ACCELERATOR]
        number = mine["address"].to_numpy(np.uint64) >> np.uint64(56)
        mine = mine[number == device.number]
        arg = mine["arg"].to_numpy(np.uint64).view(np.int64)
        change = np.where(mine["kind"] == Kind.DEVICE_ALLOC, arg, 0)
        change = np.where(mine["kind"] == Kind.DEVICE_FREE, -arg, change)
        before = change[mine["time_ns"].to_numpy() == 0].sum()
        assert before == truth["base_reserved"]
        assert np.cumsum(change).max() == truth["peak_reserved"]
        assert change.sum() == truth["reserved"]


def test_blocks_are_objects_of_the_recording(simulation: Simulation, tmp_path: Path) -> None:
    recording = recording_of(simulation.snapshot(), tmp_path)
    blocks, objects = recording.blocks, recording.objects
    used = blocks[blocks["state"] == "allocated"]

    assert len(used) == sum(device.truth()["live_blocks"] for device in simulation.devices)
    assert (used["object"] >= 0).all() and used["object"].is_unique
    same = objects.loc[used["object"]]
    assert same["size_bytes"].tolist() == used["size_bytes"].tolist()
    assert same["born_site"].tolist() == used["site"].tolist()
    assert (same["died_ns"] == -1).all()
    asked = recording.requests.loc[used["object"]]["requested_bytes"]
    assert asked.tolist() == used["requested_bytes"].tolist()
    assert recording.totals.current_bytes == used["size_bytes"].sum()


def test_old_blocks_are_allocated_before_the_first_entry(tmp_path: Path) -> None:
    simulation = training(ring=300)
    recording = recording_of(simulation.snapshot(), tmp_path)
    objects = recording.objects
    old = objects[objects["born_ns"] == 0]

    assert recording.begin_ns == 1000
    assert (
        recording.requests.loc[old.index]["requested_bytes"].sum()
        == (simulation.devices[0].truth()["base_requested"])
    )
    alive = old[old["died_ns"] < 0]
    lines = {recording.blame(int(site))["line"] for site in alive["born_site"]}
    assert 12 in lines and 243 not in lines


def test_weights_and_steps_are_named_by_their_lines(tmp_path: Path) -> None:
    recording = recording_of(training(cpp=True).snapshot(), tmp_path)
    stack = recording.stack(int(recording.objects["born_site"].iloc[0]))

    assert [(f["file"], f["line"], f["function"]) for f in stack] == [
        ("/home/u/model.py", 12, "__init__"),
        ("/home/u/train.py", 40, "build"),
        ("/home/u/train.py", 90, "<module>"),
    ]
    sites = recording.sites
    module = sites[sites["file"].str.endswith("nn/modules/module.py")]
    assert len(module) and not (module["blamed"] == module.index).any()


@pytest.mark.parametrize(
    ("library", "file"),
    [
        ("/src/pytorch/torch/nn/modules/module.py", "/src/pytorch/torch/nn/functional.py"),
        ("/tmp/torchinductor_u/ab/cab.py", "/tmp/torchinductor_u/xy/cxy.py"),
        ("/opt/lib/python3.12/threading.py", "/opt/lib/python3.12/queue.py"),
        ("C:\\py\\Lib\\site-packages\\torch\\_tensor.py", "C:\\py\\Lib\\site-packages\\a.py"),
    ],
)
def test_a_library_wherever_it_lies_is_not_blamed(library: str, file: str, tmp_path: Path) -> None:
    simulation = training(steps=1)
    stack = [frame(file, 5, "f"), frame(library, 6, "g"), frame("/home/u/train.py", 7, "main")]
    for entry in simulation.devices[0].trace:
        entry["frames"] = stack
    objects = recording_of(simulation.snapshot(), tmp_path)

    assert objects.blame(int(objects.objects["born_site"].iloc[0]))["line"] == 7


def test_a_stack_of_c_alone_is_kept(tmp_path: Path) -> None:
    simulation = training(steps=1)
    entry = next(e for e in simulation.devices[0].trace if e["action"] == "alloc")
    entry["frames"] = [*cuda_snapshot.CPP, frame("engine.cpp", 7, "Engine::thread_main")]
    for segment in simulation.devices[0].segments:
        for block in segment.blocks:
            block.frames = entry["frames"] if block.address == entry["addr"] else block.frames
    recording = recording_of(simulation.snapshot(), tmp_path)
    stack = recording.stack(int(recording.objects["born_site"].iloc[0]))

    assert stack[-1]["function"] == "Engine::thread_main"
    assert not any("unwind" in each["function"] for each in stack)


NODE = "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"
MM = "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)"
NO_NODE = [
    "c10::StorageImpl::~StorageImpl()",
    "std::vector<at::Tensor, std::allocator<at::Tensor> >::~vector()",
]


@pytest.mark.parametrize(
    "frames, functions",
    [
        (
            cuda_snapshot.engine_stack(MM, "at::native::mm_backward()", NODE),
            ["MmBackward0", ENGINE],
        ),
        (cuda_snapshot.engine_stack(MM, "at::native::sum()"), ["aten::mm", ENGINE]),
        (
            cuda_snapshot.engine_stack(*NO_NODE),
            [
                "torch::autograd::Engine::evaluate_function",
                "torch::autograd::Engine::thread_main",
                ENGINE,
            ],
        ),
        (
            [frame("/home/u/f.py", 9, "backward"), *cuda_snapshot.engine_stack(NODE)],
            ["backward", ENGINE],
        ),
        ([*cuda_snapshot.CPP, frame("??", 0, MM)], ["aten::mm"]),
    ],
)
def test_what_a_thread_of_the_engine_did_is_named(
    frames: list, functions: list[str], tmp_path: Path
) -> None:
    simulation = training(steps=1)
    entry = next(e for e in simulation.devices[0].trace if e["action"] == "alloc")
    entry["frames"] = frames
    for segment in simulation.devices[0].segments:
        for block in segment.blocks:
            block.frames = frames if block.address == entry["addr"] else block.frames
    recording = recording_of(simulation.snapshot(), tmp_path)
    site = int(recording.objects["born_site"].iloc[0])

    assert [each["function"] for each in recording.stack(site)] == functions
    phases = site_phases(recording.sites)
    assert phases.phase[site] == (Phase.BACKWARD if ENGINE in functions else Phase.USER)
    assert recording.blame(site)["function"] == functions[0]


def test_pages_that_are_mapped_beside_each_other_are_taken_together() -> None:
    held = Stretches([(0, 20), (20, 30), (60, 10)])

    assert held.take(10, 50)
    assert list(held) == [(0, 10), (60, 70)]
    assert not held.take(5, 65)


def test_what_was_too_small_to_be_split_off_belongs_to_the_block_before(tmp_path: Path) -> None:
    """Of a block that the trace frees and did not see allocated, nothing else says its size."""
    simulation = Simulation([cuda_snapshot.Device(0, ring=3)])
    device = simulation.devices[0]
    stack = device.stack(cuda_snapshot.MAIN)
    device.free(device.alloc(40 * MB, stack), stack)
    front, back = (device.alloc(20 * MB, stack) for _ in "ab")
    device.free(front, stack)
    unsplit = device.alloc(20 * MB - MB // 2, stack)
    device.free(back, stack)  # the ring begins here
    assert device.alloc(20 * MB, stack) == unsplit + 20 * MB
    device.free(unsplit, stack)

    recording = recording_of(simulation.snapshot(), tmp_path)

    assert recording.objects["size_bytes"].tolist() == [20 * MB, 20 * MB]


def test_the_second_half_of_a_free_is_not_a_block(tmp_path: Path) -> None:
    simulation = training(steps=2)
    whole = simulation.snapshot()
    freed = next(e for e in whole["device_traces"][0][::-1] if e["action"] == "free_completed")
    whole["device_traces"] = [[freed]]

    recording = recording_of(whole, tmp_path)

    assert (
        allocators(recording)[0].figures["base_blocks"]
        == (simulation.devices[0].truth()["live_blocks"])
    )


def test_stacks_of_frees_that_repeat_the_allocation_are_left_out(tmp_path: Path) -> None:
    own = recording_of(training().snapshot(), tmp_path, "own")
    repeated = recording_of(training(free_stacks=False).snapshot(), tmp_path, "repeated")

    assert (own.objects["died_site"][own.objects["died_ns"] >= 0] > 0).all()
    assert (repeated.objects["died_site"] == 0).all()
    assert (repeated.objects["born_site"] > 0).all()


def test_annotations_are_marks_and_phases(tmp_path: Path) -> None:
    recording = recording_of(training(steps=5).snapshot(), tmp_path)
    marks, phases = recording.marks, recording.phases

    assert marks["label"].value_counts().to_dict() == {
        "ProfilerStep": 5, "## forward ##": 5, "Optimizer.step#AdamW.step": 5,
    }  # fmt: skip
    steps = marks[marks["label"] == "ProfilerStep"]
    assert steps["index"].tolist() == [0, 1, 2, 3, 4]
    assert len(phases) == 15
    assert (phases["end_ns"] >= phases["begin_ns"]).all()
    step = phases[phases["label"] == "ProfilerStep"]
    forward = phases[phases["label"] == "## forward ##"]
    assert (forward["begin_ns"].to_numpy() >= step["begin_ns"].to_numpy()).all()
    assert (forward["end_ns"].to_numpy() <= step["end_ns"].to_numpy()).all()


def test_phases_without_a_begin_or_an_end_are_open(tmp_path: Path) -> None:
    value = training(steps=2).snapshot()
    first, last = value["external_annotations"][0], value["external_annotations"][-1]
    end_us = value["device_traces"][0][-1]["time_us"]
    value["external_annotations"] = [
        {**last, "name": "old", "time_us": end_us},
        {**first, "name": "new", "time_us": end_us},
        {**last, "name": "gone", "time_us": first["time_us"] - 10**6},
    ]
    phases = recording_of(value, tmp_path).phases.set_index("label")

    assert sorted(phases.index) == ["new", "old"]
    assert phases.loc["old", "begin_ns"] == 0 and phases.loc["old", "end_ns"] > 0
    assert phases.loc["new", "end_ns"] == -1


def test_out_of_memory_is_a_mark_with_its_figures(tmp_path: Path) -> None:
    recording = recording_of(training(oom=True).snapshot(), tmp_path)
    mark = recording.marks.iloc[-1]

    assert mark["label"] == (
        "out of memory on cuda:0: 4.29 GB requested, 537 MB free on the device"
    )
    assert recording.blame(int(mark["site"]))["line"] == 70


def test_text_that_the_program_set_becomes_marks(tmp_path: Path) -> None:
    simulation = training(steps=1)
    for row, entry in enumerate(simulation.devices[0].trace):
        entry["user_metadata"] = f"batch #{row // 20}"
    marks = recording_of(simulation.snapshot(), tmp_path).marks
    batches = marks[marks["label"] == "batch"]

    assert batches["index"].tolist() == list(range(-(-len(simulation.devices[0].trace) // 20)))


# ---- forms ----


def test_a_bare_list_of_segments_with_histories(tmp_path: Path) -> None:
    simulation = training(steps=2)
    recording = recording_of(cuda_snapshot.bare_list(simulation.snapshot()), tmp_path)
    truth = simulation.devices[0].truth()
    (found,) = allocators(recording)

    assert found.reserved.total == truth["reserved"]
    assert found.reserved.parts["requested_bytes"] == truth["requested"]
    assert recording.totals.current_bytes == truth["allocated"]
    assert recording.problems == []
    frames = recording.stack(int(recording.objects["born_site"].iloc[0]))
    assert frames[0]["function"] == "__init__"


@pytest.mark.parametrize(
    "keys",
    [
        ("frames",),
        ("time_us",),
        ("stream", "pool_id", "segment_pool_id", "segment_type", "is_expandable"),
        ("requested_size",),
        ("allocated_size", "active_size", "compile_context", "user_metadata"),
    ],
    ids=lambda keys: keys[0],
)
def test_missing_keys_change_no_other_figure(keys: tuple[str, ...], tmp_path: Path) -> None:
    simulation = training(steps=2, ring=90)
    value = cuda_snapshot.without(simulation.snapshot(), *keys)
    recording = recording_of(value, tmp_path)
    truth, (found,) = simulation.devices[0].truth(), allocators(recording)

    assert found.reserved.total == truth["reserved"]
    assert recording.totals.current_bytes == truth["allocated"]
    assert recording.problems == []
    if "requested_size" in keys:  # what is older than the trace asked for no one knows what
        assert truth["requested"] <= found.reserved.parts["requested_bytes"] <= truth["allocated"]
    else:
        assert found.reserved.parts["requested_bytes"] == truth["requested"]
    assert found.reserved.parts["whole_free_bytes"] == truth["whole_free"]
    if "time_us" in keys:
        assert recording.info["snapshot.clock"] == "entries"
        assert recording.objects["born_ns"].max() <= 1_000_000 * truth["entries"]


def test_unknown_keys_and_actions_do_no_harm(tmp_path: Path) -> None:
    simulation = training(steps=2)
    value = simulation.snapshot()
    value["new_key"] = {"a": [1, 2]}
    value["device_traces"][0].insert(5, {"action": "teleport", "addr": 5, "size": 5})
    value["device_traces"][0].insert(9, {"action": "snapshot", "addr": 0, "size": 0, "frames": []})
    recording = recording_of(value, tmp_path)

    assert recording.totals.current_bytes == simulation.devices[0].truth()["allocated"]
    assert recording.problems == []
    assert any("unknown action" in remark for remark in remarks(recording))
    assert "snapshot" in recording.marks["label"].tolist()


def test_unknown_actions_are_a_problem_where_the_rest_does_not_add_up(tmp_path: Path) -> None:
    value = training(steps=2).snapshot()
    trace = value["device_traces"][0]
    row = next(n for n, e in enumerate(trace) if n > 60 and e["action"] == "alloc")
    trace[row]["action"] = "teleport"

    assert any("unknown action" in each for each in recording_of(value, tmp_path).problems)


@pytest.mark.parametrize(
    "what", ["annotation of a version to come", "clock set back", "state of a version to come"]
)
def test_what_says_nothing_of_memory_is_a_remark(what: str, tmp_path: Path) -> None:
    simulation = training(steps=3)
    value = simulation.snapshot()
    if what.startswith("annotation"):
        value["external_annotations"] += [{"stage": "INSTANT", "name": "x", "time_us": 5}, None]
    elif what.startswith("clock"):
        for entry in value["device_traces"][0][90:]:
            entry["time_us"] -= 500_000
    else:
        blocks = [b for s in value["segments"] for b in s["blocks"]]
        next(b for b in blocks if b["state"] == "active_allocated")["state"] = "active_packed"
    value["device_traces"].append(None)
    recording = recording_of(value, tmp_path)
    truth, found = simulation.devices[0].truth(), allocators(recording)[0]

    assert recording.problems == [] and recording.complete
    assert len(remarks(recording)) == 1
    assert remarks(recording)[0] in "\n".join(allocator_lines(recording))
    assert found.figures["peak"] == truth["peak"]
    assert found.reserved.parts["requested_bytes"] == truth["requested"]


def test_each_device_has_its_own_weights_whatever_is_known_of_the_others(tmp_path: Path) -> None:
    """Of one device nothing but what is alive, of another no segments."""
    value = training(steps=4, layers=4, devices=3).snapshot()
    value["device_traces"][1] = []
    value["segments"] = [each for each in value["segments"] if each["device"] != 2]
    alone = training(steps=4, layers=4).snapshot()
    found, expected = (
        {r.role: r.bytes for r in explain(recording_of(each, tmp_path), memory="cuda:0").roles}
        for each in (value, alone)
    )

    assert found == expected
    assert found["weights"] > 0


def test_a_plan_of_a_trace_whose_clock_went_back_has_its_peak(tmp_path: Path) -> None:
    """Entries that are taken for one moment would all be alive at once."""
    simulation = training(steps=3)
    value = simulation.snapshot()
    for entry in value["device_traces"][0][60:]:
        entry["time_us"] -= 900_000
    recording = recording_of(value, tmp_path)

    assert planned_lives(recording, "cuda:0").peak_bytes == simulation.devices[0].truth()["peak"]


def test_annotations_as_entries_of_the_trace(tmp_path: Path) -> None:
    value = training(steps=2).snapshot()
    trace = value["device_traces"][0]
    for row, stage in ((3, "START"), (30, "END")):
        trace.insert(
            row,
            {"action": "user_defined", "addr": 0, "size": 0, "stream": 0,
             "time_us": trace[row]["time_us"], "frames": [frame("ProfilerStep#7", 0, stage)]},
        )  # fmt: skip
    value["external_annotations"] = []
    recording = recording_of(value, tmp_path)

    assert recording.phases[["label", "index"]].to_numpy().tolist() == [["ProfilerStep", 7]]
    assert recording.problems == []


@pytest.mark.parametrize("nested", [False, True])
def test_pinned_memory_of_the_host_stands_apart(nested: bool, tmp_path: Path) -> None:
    simulation = training(steps=1)
    value = cuda_snapshot.with_host(simulation.snapshot())
    if nested:
        value["host_traces"] = [value["host_traces"]]
    recording = recording_of(value, tmp_path)
    device, host = allocators(recording)

    assert device.reserved.total == simulation.devices[0].truth()["reserved"]
    assert host.name == "pinned host memory"
    assert host.reserved.total == 1 << 23
    assert host.reserved.parts["requested_bytes"] == 5_000_000
    assert recording.problems == []


def test_a_trace_without_requests_of_frees(tmp_path: Path) -> None:
    simulation = training(steps=3, ring=200)
    value = simulation.snapshot()
    value["device_traces"] = [
        [entry for entry in trace if entry["action"] != "free_requested"]
        for trace in value["device_traces"]
    ]
    recording = recording_of(value, tmp_path)

    assert recording.totals.current_bytes == simulation.devices[0].truth()["allocated"]
    assert recording.problems == []


@pytest.mark.parametrize(
    ("skipped", "contradicts"),
    [
        (("free_completed",), False),
        (("segment_alloc", "segment_free"), False),
        (("free_requested", "free_completed"), True),
        (("alloc",), True),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_actions_that_were_skipped_are_missed_or_reported(
    skipped: tuple[str, ...], contradicts: bool, tmp_path: Path
) -> None:
    """``_record_memory_history(skip_actions=...)`` leaves entries out."""
    simulation = training(steps=3)
    value = simulation.snapshot()
    for trace in value["device_traces"]:
        trace[:] = [entry for entry in trace if entry["action"] not in skipped]
    recording = recording_of(value, tmp_path)
    truth, (found,) = simulation.devices[0].truth(), allocators(recording)

    assert found.reserved.total == truth["reserved"]
    assert found.reserved.parts["requested_bytes"] == truth["requested"]
    assert (recording.problems != []) == contradicts, recording.problems
    if not contradicts:
        assert recording.totals.current_bytes == truth["allocated"]
        assert found.figures["peak_requested"] == truth["peak_requested"]


def test_the_free_of_older_versions(tmp_path: Path) -> None:
    simulation = training(steps=3)
    value = simulation.snapshot()
    for trace in value["device_traces"]:
        trace[:] = [entry for entry in trace if entry["action"] != "free_requested"]
        for entry in trace:
            entry["action"] = entry["action"].replace("free_completed", "free")
    recording = recording_of(value, tmp_path)

    assert recording.totals.current_bytes == simulation.devices[0].truth()["allocated"]


def test_an_asynchronous_allocator_has_no_segments(tmp_path: Path) -> None:
    simulation = training(steps=3)
    value = simulation.snapshot()
    value["segments"] = []
    value["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    value["device_traces"][0] = [
        e for e in value["device_traces"][0] if not e["action"].startswith("segment")
    ]
    recording = recording_of(value, tmp_path)
    truth = simulation.devices[0].truth()

    assert recording.totals.current_bytes == truth["requested"]
    assert recording.totals.peak_bytes == truth["peak_requested"]
    assert recording.problems == []


def test_requests_come_from_the_trace_where_segments_have_none(tmp_path: Path) -> None:
    simulation = training(steps=2)
    value = cuda_snapshot.without(simulation.snapshot(), "requested_size")
    (found,) = allocators(recording_of(value, tmp_path))

    assert found.reserved.parts["requested_bytes"] == simulation.devices[0].truth()["requested"]


def test_a_trace_with_sizes_of_blocks_contradicts_nothing(tmp_path: Path) -> None:
    simulation = training(steps=2)
    value = simulation.snapshot()
    for entry in value["device_traces"][0]:
        if entry["action"] in ("alloc", "free_requested", "free_completed"):
            entry["size"] = max(512, -(-entry["size"] // 512) * 512)
    recording = recording_of(value, tmp_path)

    assert recording.problems == []
    assert recording.totals.current_bytes == simulation.devices[0].truth()["allocated"]


def test_power_of_two_divisions_are_how_sizes_are_rounded() -> None:
    from tlmem.importing.allocator import rounded

    asked = np.array([1, 512, 513, 1 << 20, 1_200_000, 3_000_000, 1 << 22])
    assert rounded(asked, ()).tolist() == [512, 512, 1024, 1 << 20, 1_200_128, 3_000_320, 1 << 22]
    # 1200 kB lies between 1 MiB and 2 MiB; four divisions make steps of 256 KiB.
    assert rounded(asked, (4,) * 16).tolist() == [
        512, 512, 1024, 1 << 20, 1_310_720, 3_145_728, 1 << 22,
    ]  # fmt: skip


def test_a_snapshot_that_pytorch_makes_of_a_profile(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    from torch.cuda import _memory_viz as viz

    kept = []
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        profile_memory=True, record_shapes=True, with_stack=True,
    ) as profile:  # fmt: skip
        for _ in range(40):
            kept.append(torch.zeros(5000))
            torch.zeros(300).sum()
    recording = recording_of(viz._profile_to_snapshot(profile), tmp_path)
    objects = recording.objects
    mine = objects[objects["size_bytes"] == 20_000]

    assert recording.problems == []
    assert len(mine) == 40 and (mine["died_ns"] < 0).all()
    frame = recording.blame(int(mine["born_site"].iloc[0]))
    assert frame["file"].endswith("test_snapshot.py") and frame["line"] > 0
    assert allocators(recording)[0].name.startswith("cpu:")


# ---- contradictions ----


def test_a_segment_that_contradicts_its_blocks_is_reported(tmp_path: Path) -> None:
    value = training(steps=2).snapshot()
    value["segments"][1]["allocated_size"] += 1_000_000
    value["segments"][1]["total_size"] += 4096
    recording = recording_of(value, tmp_path)

    (problem,) = recording.problems
    assert problem.startswith("1 segment of 11 contradicts the blocks in it")
    assert f"{value['segments'][1]['address']:#x}" in problem
    assert not recording.complete


@pytest.mark.parametrize(
    "damage", ["lost free", "lost alloc", "state", "size", "place", "asked", "overlap"]
)
def test_a_trace_that_contradicts_the_segments_is_reported(damage: str, tmp_path: Path) -> None:
    value = training(steps=3).snapshot()
    trace = value["device_traces"][0]
    row = next(n for n, e in enumerate(trace) if n > 60 and e["action"] == "free_requested")
    used = next(b for s in value["segments"] for b in s["blocks"] if b["requested_size"])
    if damage == "lost free":
        del trace[row : row + 2]
    elif damage == "lost alloc":
        at = next(n for n, e in enumerate(trace) if n > 60 and e["action"] == "alloc")
        del trace[at]
    elif damage == "state":
        used["state"] = "inactive"
        used["requested_size"] = 0
    elif damage == "size":
        used["requested_size"] -= 8
    elif damage == "place":
        used["address"] += 256
    elif damage == "asked":
        used["requested_size"] = used["size"] + 1
    else:
        moved = value["segments"][1]
        for part in (*moved["blocks"], moved):
            part["address"] += value["segments"][0]["address"] - moved["address"] + 512
    recording = recording_of(value, tmp_path)

    assert recording.problems != []
    assert all(len(problem) > 30 for problem in recording.problems)


# ---- what is refused ----


class Evil:
    """Runs a program when it is unpickled by anything that trusts it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.check_output, (["touch", "owned"],)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: {"segments": [e]}], ids=["bare", "inside"])
def test_code_in_a_pickle_is_refused(
    wrap: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(wrap(Evil()), protocol=protocol))

    with pytest.raises(CannotImport, match="nothing in it was run"):
        import_snapshot("x.pickle")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"hello\n", "not a"),
        (b"\x80\x04N.", "not a snapshot"),
        (pickle.dumps({"a": 1}), "not a snapshot"),
        (pickle.dumps([1, 2]), "not a snapshot"),
        (pickle.dumps({"segments": "none"}), "not a snapshot"),
        (gzip.compress(b"")[:-3], "damaged"),
        (b"\x80\x02}r\xff\xff\xff\xff.", "more memory|not a snapshot"),
        (b"\x80\x05\x96\x10\0\0\0\0\0\0\0abc.", "whole pickle"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0fabc.", "pickle|memory"),
    ],
    ids=["empty", "text", "none", "dict", "list", "wrong type", "gzip", "memo bomb", "bytearray",
         "bytes bomb"],
)  # fmt: skip
def test_what_is_no_snapshot_is_said_in_a_sentence(
    data: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.pickle").write_bytes(data)

    assert main(["import", str(tmp_path / "x.pickle"), "-o", str(tmp_path / "x.tlm")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("tlmem: ")
    with pytest.raises(CannotImport, match=words):
        import_snapshot(tmp_path / "x.pickle")
    assert not (tmp_path / "x.tlm").exists()


def test_one_trace_that_is_meant_a_million_times_is_refused(tmp_path: Path) -> None:
    trace = training(steps=1).devices[0].trace
    (tmp_path / "x.pickle").write_bytes(pickle.dumps({"device_traces": [trace * 2000]}))

    with pytest.raises(CannotImport, match="again and again"):
        import_snapshot(tmp_path / "x.pickle")


def test_a_snapshot_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.pickle"
    source.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))

    with pytest.raises(EmptySnapshot, match="later"):
        import_snapshot(source)
    assert main(["import", str(source)]) == 3


# ---- the command, and how long it takes ----


def test_the_command_writes_beside_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    training(steps=2).write(Path("run.pickle"))

    assert main(["import", "run.pickle"]) == 0
    assert "trace entries" in capsys.readouterr().err
    assert tlmem.read("run.tlm").complete
    assert main(["import", "run.pickle"]) == 2
    assert "exists" in capsys.readouterr().err
    assert main(["import", "run.pickle", "-f"]) == 0
    assert main(["import", "nothing.pickle"]) == 2


def test_a_snapshot_in_gzip(tmp_path: Path) -> None:
    simulation = training(steps=2)
    source = tmp_path / "x.pickle.gz"
    source.write_bytes(gzip.compress(pickle.dumps(simulation.snapshot())))

    assert import_snapshot(source).entries == len(simulation.devices[0].trace)


def test_a_large_snapshot_is_right_and_takes_less_than_a_second(tmp_path: Path) -> None:
    simulation = training(
        steps=120, layers=32, ring=20_000, unit=90_000_001, weight=420_000_003,
        cache=6_060_000_000, leak=1 << 20, cpp=True,
    )  # fmt: skip
    source = simulation.write(tmp_path / "x.pickle")
    spent = []
    for _ in range(3):
        begin = time.process_time()
        made = import_snapshot(source)
        spent.append(time.process_time() - begin)
    (tmp_path / "x.tlm").write_bytes(made.data)
    truth = simulation.devices[0].truth()
    (found,) = allocators(tlmem.read(tmp_path / "x.tlm"))

    assert truth["reserved"] > 60e9 and truth["entries"] == 20_000
    assert found.reserved.total == truth["reserved"]
    assert found.reserved.parts["requested_bytes"] == truth["requested"]
    assert (found.figures["base"], found.figures["peak"]) == (truth["base"], truth["peak"])
    assert min(spent) < 1.0


def test_the_package_loads_neither_pandas_nor_torch() -> None:
    code = "import sys, tlmem.importing; print('pandas' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]
