"""Replays: what they predict is what a program does that was changed so.

The changed programs are simulated as well, event by event, and measured as any other recording.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import training
from support.training import Loop, trained

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import Curve
from tlmem.analysis.peak.explained import Lowered, explain
from tlmem.analysis.peak.lowering import BATCH, CHECKPOINT, CLEAR, candidates

UNIT = 16_384


def lowered(loop: Loop, folder: Path, kind: str) -> Lowered | None:
    """What the replay of one kind of change says; None: nothing."""
    found = explain(loop.recorded(folder / "a.tlm"))
    return next((each for each in found.lowered if each.kind == kind), None)


def peak(loop: Loop, folder: Path) -> int:
    return explain(loop.recorded(folder / "b.tlm")).bytes


def deep(
    layers: Sequence[int],
    *,
    checkpointed: bool = False,
    steps: int = 3,
    scratch: int = 1,
    loss: int = 0,
) -> Loop:
    """Blocks of layers, each of which saves its output; ``layers`` are units of each in a block.

    Args:
        checkpointed: every block by itself.
        scratch: units of a temporary in each block.
        loss: units of a temporary at the end of forward.
    """
    loop = Loop()
    blocks = 4
    for _ in range(blocks):
        loop.alloc(training.init(), UNIT)

    def run(number: int, again: bool) -> tuple[list[int], int]:
        stack = training.recomputed if again else training.forward
        path = f"Net/h.{number}"
        made = []
        for place, units in enumerate(layers):
            made.append(loop.alloc(stack(30 + place), units * UNIT, f"{path}.{place}"))
        passing = loop.alloc(stack(40), scratch * UNIT, path)
        output = loop.alloc(stack(41), 2 * UNIT, path)
        loop.free(passing, stack(41))
        return made, output

    for _ in range(steps):
        batch = loop.alloc(training.at(56), 2 * UNIT)
        saved: list[tuple[list[int], int]] = []
        for number in range(blocks):
            made, output = run(number, False)
            if checkpointed:
                loop.free_all(made, training.forward(42))
                made = []
            saved.append((made, output))
        if loss:
            loop.free(loop.alloc(training.forward(50), loss * UNIT, "Net"), training.forward(50))
        gradients = []
        for number in reversed(range(blocks)):
            made, output = saved[number]
            if checkpointed:
                made, unused = run(number, True)
                loop.free(unused, training.backward())
            gradients.append(loop.alloc(training.backward(), UNIT))
            loop.free_all([*reversed(made), output], training.backward())
        loop.free(loop.alloc(training.optimizer(), 64), training.optimizer())
        loop.free_all(gradients, training.zero_grad())
        loop.free(batch, training.at(56))
    return loop


@pytest.mark.parametrize("layers", [(4,), (4, 4), (1, 8, 1), (8, 2), (2, 2, 2, 2)])
@pytest.mark.parametrize("loss", [0, 3])
def test_checkpointing_each_block_is_predicted(
    layers: tuple[int, ...], loss: int, tmp_path: Path
) -> None:
    found = lowered(deep(layers, loss=loss), tmp_path, CHECKPOINT)
    real = peak(deep(layers, loss=loss, checkpointed=True), tmp_path)

    assert found is not None
    assert found.group == ("Net", "h", "*")
    assert found.modules == tuple(("Net", "h", str(n)) for n in range(4))
    assert found.bytes == real


def test_a_peak_that_temporaries_make_is_not_lowered_by_checkpoints(tmp_path: Path) -> None:
    """The blocks save little; one of them needs much while it runs."""
    assert lowered(deep((1,), scratch=400), tmp_path, CHECKPOINT) is None


def test_the_whole_model_as_one_checkpoint_gains_nothing(tmp_path: Path) -> None:
    """All of it would be computed again at once."""
    found = explain(deep((4, 4)).recorded(tmp_path / "a.tlm"))

    assert all(len(each.group) > 1 for each in found.lowered if each.kind == CHECKPOINT)


@pytest.mark.parametrize("blocks", [1, 3, 8])
def test_clearing_gradients_before_forward_is_predicted(blocks: int, tmp_path: Path) -> None:
    """Their memory is a large part: activations are as large as weights."""
    found = lowered(trained(5, blocks, unit=UNIT, batch=1, clear="late"), tmp_path, CLEAR)
    before = peak(trained(5, blocks, unit=UNIT, batch=1, clear="late"), tmp_path)
    real = peak(trained(5, blocks, unit=UNIT, batch=1, clear="early"), tmp_path)

    if before - real < 0.02 * before:
        assert found is None
    else:
        assert found is not None
        assert found.bytes == real
        assert found.saved == before - real


def test_gradients_that_are_cleared_early_are_not_mentioned(tmp_path: Path) -> None:
    assert lowered(trained(5, 4, unit=UNIT, batch=1), tmp_path, CLEAR) is None


def test_gradients_that_are_zeroed_in_place(tmp_path: Path) -> None:
    """They are there all the time, and each pass adds to them what it computed."""

    def loop(in_place: bool) -> Loop:
        made = Loop()
        gradients: list[int] = []
        for _ in range(3):
            made.alloc(training.init(), 4 * UNIT)
        for step in range(4):
            if not in_place:
                made.free_all(gradients, training.zero_grad())
                gradients = []
            saved = [made.alloc(training.forward(), 5 * UNIT) for _ in range(3)]
            for block in reversed(saved):
                gradient = made.alloc(training.backward(), 4 * UNIT)
                made.free(block, training.backward())
                if in_place and step:
                    made.free(gradient, training.backward())
                else:
                    gradients.append(gradient)
            made.free(made.alloc(training.optimizer(), 64), training.optimizer())
        made.free_all(gradients, training.at(95))
        return made

    found = lowered(loop(True), tmp_path, CLEAR)
    assert found is not None
    assert found.bytes == peak(loop(False), tmp_path)


def test_half_the_batch_is_predicted(tmp_path: Path) -> None:
    found = lowered(trained(4, 4, unit=UNIT, batch=8), tmp_path, BATCH)

    assert found is not None
    assert found.bytes == peak(trained(4, 4, unit=UNIT, batch=4), tmp_path)


def test_inference_has_nothing_to_lower(tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.init(), UNIT)
    for _ in range(4):
        loop.free(loop.alloc(training.forward(), 8 * UNIT, "Net/fc"), training.forward())

    assert explain(loop.recorded(tmp_path / "a.tlm")).lowered == ()


def test_less_than_two_percent_is_not_said(tmp_path: Path) -> None:
    loop = trained(4, 2, unit=64, batch=1, clear="late")
    loop.alloc(training.at(10), 10**6)

    assert explain(loop.recorded(tmp_path / "a.tlm")).lowered == ()


def test_where_the_new_peak_is(tmp_path: Path) -> None:
    """The optimizer's temporary is the highest once activations are gone."""
    loop = Loop()
    for _ in range(2):
        loop.alloc(training.init(), UNIT)
    for _ in range(3):
        saved = []
        for number in range(4):
            path = f"Net/h.{number}"
            inner = loop.alloc(training.forward(31), 4 * UNIT, path)
            saved += [inner, loop.alloc(training.forward(32), 64, path)]
        loop.free_all(saved[::-1], training.backward())
        loop.free(loop.alloc(training.optimizer(), 9 * UNIT), training.optimizer())
    found = lowered(loop, tmp_path, CHECKPOINT)

    assert found is not None
    assert found.bytes == 11 * UNIT
    assert found.moment.phase == "in the optimizer"


def test_candidates_are_modules_and_their_rows() -> None:
    paths = [("N", "h", "0", "a"), ("N", "h", "1", "a"), ("N", "out")]
    found = dict(candidates(paths, np.array([40.0, 40.0, 1.0]), 0.02))

    assert found[("N", "h", "*")] == [("N", "h", "0"), ("N", "h", "1")]
    assert found[("N", "h", "*", "a")] == [("N", "h", "0", "a"), ("N", "h", "1", "a")]
    assert found[("N", "h", "1")] == [("N", "h", "1")]
    assert ("N", "out") not in found


def test_a_curve_with_changes() -> None:
    curve = Curve.of(np.array([10, 20]), np.array([0, 2]), np.array([4, NEVER]))
    changed = curve.changed(np.array([2]), np.array([4]), np.array([-10.0]))

    assert curve.at.tolist() == [0, 2, 4]
    assert curve.level.tolist() == [10, 30, 20]
    assert changed.level.tolist() == [10, 20, 20]
    assert curve.highest == (30, 2)
