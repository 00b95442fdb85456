"""Roles in snapshots of CUDA: what real ones show that a recording of a whole program does not.

The trace begins when the program has run for long, and ends wherever it was; PyTorch keeps memory
for cuBLAS in the midst of all; blocks are larger than what was asked for.
"""

from collections import Counter
from pathlib import Path

import pytest
from support.cuda_snapshot import (
    BACKWARD,
    CALL,
    LOOP,
    MAIN,
    MB,
    TORCH,
    Device,
    Frames,
    Simulation,
    engine_stack,
    frame,
)

import tlmem
from tlmem.analysis.peak.explained import Known, explain
from tlmem.analysis.peak.roles import NAMES, Role
from tlmem.cli import main
from tlmem.importing import import_snapshot

CUBLAS = 8_519_680
WEIGHTS = (3 * MB, 5 * MB, 5 * MB, 11 * MB)
SAVED = 4
"""Blocks that a layer saves, each at a line of its own."""
EVERYTHING = 10**9


def model(line: int) -> Frames:
    """A line of a forward method that a module called."""
    return [frame("/home/u/model.py", line, "forward"), *CALL, LOOP, MAIN]


ADAM = [frame(f"{TORCH}/optim/adamw.py", 243, "step"), LOOP, MAIN]
OWN_ADAM = [
    frame("/home/u/adam.py", 76, "step"),
    frame(f"{TORCH}/optim/optimizer.py", 500, "wrapper"),
    LOOP,
    MAIN,
]


def known_of(device: Device, folder: Path) -> Known:
    """What is known of a snapshot of one device."""
    Simulation([device]).write(folder / "x.pickle")
    (folder / "x.tlm").write_bytes(import_snapshot(folder / "x.pickle").data)
    return Known.of(tlmem.read(folder / "x.tlm"))


def asked_by_role(known: Known) -> dict[str, Counter[int]]:
    """Bytes that were asked for, of what is left at the end, by role."""
    blocks, found = known.blocks, {}
    left = blocks.alive(len(blocks.time_ns) - 1)
    for role in Role:
        mine = left & (known.role == role)
        if mine.any():
            found[NAMES[role]] = Counter(blocks.asked[mine].tolist())
    return found


def forward(device: Device, layers: int = len(WEIGHTS)) -> list[int]:
    """What a forward pass saves, at four lines for each layer."""
    saved = []
    for layer in range(layers):
        for part in range(SAVED):
            saved.append(device.alloc(MB + layer, device.stack(*model(20 + part))))
        passing = device.stack(*model(30))
        device.free(device.alloc(2 * MB, passing), passing)
    return saved


def backward(device: Device, saved: list[int]) -> list[int]:
    """Frees what was saved; a gradient for each weight."""
    stack = device.stack(*BACKWARD, LOOP, MAIN)
    made = []
    for size in reversed(WEIGHTS):
        made.append(device.alloc(size, stack))
        for address in saved[-SAVED:]:
            device.free(address, stack)
        del saved[-SAVED:]
    return made


def begun(states: int = 0) -> tuple[Device, list[int]]:
    """A device whose trace begins after the model, and so many states for each weight, were made.

    The largest weight lies in a segment of 12 MiB: what is left of it is too little to be split
    off. Its gradient will come from one that has room for more.
    """
    device = Device(0, EVERYTHING)
    for size in WEIGHTS:
        device.alloc(size, [])
    made = [device.alloc(size, []) for _ in range(states) for size in WEIGHTS]
    device.free(device.alloc(200 * MB, []), [])
    device.trace.clear()
    device.history.clear()
    return device, made


@pytest.mark.parametrize("told", ["stack", "size"])
def test_what_is_kept_for_cublas_is_neither_weight_nor_gradient(told: str, tmp_path: Path) -> None:
    device, _ = begun()
    kept = (
        frame("??", 0, "at::cuda::getNewWorkspace()"),
        frame("??", 0, "at::cuda::getCurrentCUDABlasHandle()"),
    )
    size = 32 * MB if told == "stack" else CUBLAS
    above = kept if told == "stack" else ()
    device.alloc(size, device.stack(*above, *model(20)))
    saved = forward(device)
    node = engine_stack("torch::autograd::MmBackward0::apply(int&&)")
    device.alloc(size, [*kept, *node] if told == "stack" else [])
    backward(device, saved)

    found = asked_by_role(known_of(device, tmp_path))

    assert found["workspaces"] == {size: 2}
    assert size not in found["gradients"] and size not in found["weights"]


def test_a_temporary_of_that_size_is_what_its_stack_says(tmp_path: Path) -> None:
    device, _ = begun()
    passing = device.stack(*model(30))
    device.free(device.alloc(CUBLAS, passing), passing)
    backward(device, forward(device))

    known = known_of(device, tmp_path)

    role = known.role[known.blocks.asked == CUBLAS]
    assert [NAMES[Role(int(each))] for each in role] == ["temporaries"]


@pytest.mark.parametrize("told", ["a stack of C++", "their number"])
def test_other_blocks_of_that_size_are_none_of_cublas(told: str, tmp_path: Path) -> None:
    device, _ = begun()
    device.cpp = told == "a stack of C++"
    count = 1 if device.cpp else 40
    for _ in range(count):
        device.alloc(CUBLAS, device.stack(frame("/home/u/train.py", 50, "main"), MAIN))
    backward(device, forward(device))

    assert "workspaces" not in asked_by_role(known_of(device, tmp_path))


def test_weights_in_blocks_that_are_larger_are_found_by_what_was_asked(tmp_path: Path) -> None:
    device, _ = begun()
    backward(device, forward(device))

    known = known_of(device, tmp_path)
    found = asked_by_role(known)

    weights = known.role == Role.WEIGHTS
    assert known.blocks.size[weights].sum() == sum(WEIGHTS) + MB
    assert 11 * MB in known.blocks.size[known.role == Role.GRADIENTS]
    assert found["weights"] == Counter(WEIGHTS) == found["gradients"]
    assert "kept by Python" not in found


def test_states_that_an_optimizer_replaces_are_states_before_the_trace_too(tmp_path: Path) -> None:
    device, states = begun(states=2)
    backward(device, forward(device))
    step = device.stack(*OWN_ADAM)
    for size, old in zip(2 * WEIGHTS, states, strict=True):
        device.alloc(size, step)
        device.free(old, step)

    known = known_of(device, tmp_path)

    old = known.blocks.died_phase >= 0
    old &= known.blocks.born < known.blocks.begin
    assert set(known.role[old].tolist()) == {Role.OPTIMIZER_STATE}
    assert asked_by_role(known)["optimizer state"] == Counter(2 * WEIGHTS)


@pytest.mark.parametrize("states", [0, 1, 2, 3])
def test_states_that_are_changed_in_place_are_known_by_their_number(
    states: int, tmp_path: Path
) -> None:
    """Three for each weight are more than an optimizer keeps: averages may be among them."""
    device, _ = begun(states=states)
    backward(device, forward(device))
    step = device.stack(*ADAM)
    device.free(device.alloc(MB, step), step)

    found = asked_by_role(known_of(device, tmp_path))

    assert found["weights"] == Counter(WEIGHTS)
    where = "kept by Python" if states == 3 else "optimizer state"
    assert found.get(where, Counter()) == Counter(states * WEIGHTS)


def test_a_pass_that_the_snapshot_cuts_has_activations(tmp_path: Path) -> None:
    device, _ = begun()
    forward(device, layers=12)

    known = known_of(device, tmp_path)
    found = asked_by_role(known)

    assert sum(found["activations"].values()) == 12 * SAVED
    assert found["kept by Python"] == Counter(WEIGHTS)
    parts = {role.role: [line.function for line, _ in role.lines] for role in explained(known)}
    assert parts["kept by Python"] == ["older than the trace"]


def explained(known: Known) -> tuple:
    """The roles at the end."""
    moment = known.blocks.time_of(len(known.blocks.time_ns) - 1)
    return explain(known.recording, at=str(moment / 1e9)).roles


def test_a_cache_that_inference_fills_is_kept_by_the_program(tmp_path: Path) -> None:
    device, _ = begun()
    for layer in range(12):
        for line in range(30, 50):
            passing = device.stack(*model(line))
            device.free(device.alloc(2 * MB, passing), passing)
        for line in (50, 51):
            device.alloc(MB + layer, device.stack(*model(line)))

    found = asked_by_role(known_of(device, tmp_path))

    assert "activations" not in found
    assert sum(found["kept by Python"].values()) == len(WEIGHTS) + 24


def test_casts_that_autocast_lets_go_are_temporaries(tmp_path: Path) -> None:
    device, _ = begun()
    casts = [device.alloc(MB + n, device.stack(*model(20 + n % 5))) for n in range(20)]
    outputs = device.stack(frame("/home/u/train.py", 66, "main"), MAIN)
    device.free(device.alloc(MB, device.stack(*model(60))), outputs)
    ended = frame(f"{TORCH}/amp/autocast_mode.py", 372, "__exit__")
    for address in casts:
        device.free(address, device.stack(ended, LOOP, MAIN))

    known = known_of(device, tmp_path)

    made = known.blocks.born >= known.blocks.begin
    assert set(known.role[made].tolist()) == {Role.TEMPORARIES}


def test_a_forward_method_that_the_program_calls_is_a_forward_pass(tmp_path: Path) -> None:
    """``model.forward(x)`` and ``self.layer.forward(x)`` pass no frame of torch.nn."""
    device, _ = begun()
    layer = frame("/home/u/layers.py", 15, "forward")
    outer = frame("/home/u/model.py", 36, "forward")
    stack = device.stack(layer, outer, LOOP, MAIN)
    for _ in range(4):
        device.free(device.alloc(2 * MB, stack), stack)
        device.alloc(MB, stack)

    found = explain(known_of(device, tmp_path).recording)

    assert found.moment.phase == "in forward"
    assert {role.role for role in found.roles} == {"temporaries", "kept by Python"}


def test_without_an_allocation_in_the_trace_the_peak_is_where_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    device, _ = begun()
    device.alloc(MB, device.stack(*model(20)))
    device.trace.clear()
    device.entry("snapshot", 0, 0, 0, [])
    known_of(device, tmp_path)

    assert main(["peak", str(tmp_path / "x.tlm")]) == 0

    said = capsys.readouterr().out
    assert "when the trace began" in said and "in forward" not in said
    assert "older than the trace\n" in said and "model.py:20 forward" in said


def test_what_git_stands_in_for_a_large_file_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.pickle"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")

    assert main(["import", str(path), "-o", str(tmp_path / "x.tlm")]) == 2
    assert "git lfs pull" in capsys.readouterr().err
