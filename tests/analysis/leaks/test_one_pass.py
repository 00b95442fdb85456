"""Within one pass of a model memory rises as with a leak; a snapshot may show no more than that."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from support import cuda_snapshot
from support.cuda_snapshot import CALL, MB, Device, Simulation, engine_stack, frame, training

import tlmem
from tlmem.analysis import analyse
from tlmem.importing import import_snapshot

LAYERS = 400
STEP_US = 3_000
"""Passes take longer than what is too short to be judged at all."""
MODEL = frame("/home/u/model.py", 20, "forward")
GRADIENT = engine_stack("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)")


def analysed(simulation: Simulation, folder: Path) -> Any:
    """What is said of a snapshot."""
    source = folder / "x.pickle"
    source.write_bytes(pickle.dumps(simulation.snapshot(), protocol=4))
    made = folder / "x.tlm"
    made.write_bytes(import_snapshot(source).data)
    return analyse(tlmem.read(made))


def one_device() -> tuple[Simulation, Device]:
    simulation = Simulation([Device(0, 10**9)])
    return simulation, simulation.devices[0]


def layers(device: Device, *frames: dict[str, Any], kept: bool = True) -> None:
    """One pass: each layer allocates what it keeps, and a temporary."""
    stack = device.stack(*frames)
    for _ in range(LAYERS):
        block = device.alloc(MB, stack)
        device.free(device.alloc(2 * MB, stack), stack)
        if not kept:
            device.free(block, stack)
        device.now += STEP_US * 5


@pytest.mark.parametrize(
    "frames, words",
    [
        ((MODEL, *CALL, cuda_snapshot.MAIN), "within one forward pass"),
        (tuple(GRADIENT), "within one backward pass"),
    ],
)
def test_one_pass_is_no_leak(frames: tuple, words: str, tmp_path: Path) -> None:
    simulation, device = one_device()
    layers(device, *frames)

    found = analysed(simulation, tmp_path)

    assert found.verdict.outcome == "cannot-judge"
    assert (
        words in found.verdict.sentence and "Record several whole steps" in found.verdict.sentence
    )
    kinds = [each.kind for each in found.findings]
    assert "one-pass" in kinds and "growing-site" not in kinds and "cache-only-grows" not in kinds


def test_what_several_passes_leave_is_a_leak(tmp_path: Path) -> None:
    simulation, device = one_device()
    forward = device.stack(MODEL, *CALL, cuda_snapshot.MAIN)
    for _ in range(LAYERS):
        device.alloc(MB, forward)
        device.free(device.alloc(2 * MB, GRADIENT), GRADIENT)
        device.now += STEP_US * 5

    assert analysed(simulation, tmp_path).verdict.outcome == "leak"


def test_the_program_s_own_code_is_judged_as_before(tmp_path: Path) -> None:
    found = analysed(training(steps=400, layers=2, leak=40_000), tmp_path)

    assert found.verdict.outcome == "leak" and "train.py:66" in found.verdict.sentence
