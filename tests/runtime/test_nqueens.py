"""N-Queens by gradient descent: right, and not an object, a byte or a page more per epoch.

The workload of the seeds (docs/seed-map.md, S23, S24, S33, S35), with its books at every boundary.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from runtime.exits import Left, recorded
from runtime.queens import (
    RATE,
    Books,
    Descent,
    balance,
    books,
    random_board,
    reference_epoch,
)
from tlmem.scenarios.harness import catalog
from tlmem.scenarios.programs.healthy import nqueens

import tlmem
from tlmem.recording.reader import Recording, read
from tlmem.runtime.device import device, limit_device
from tlmem.runtime.errors import DeviceOutOfMemory

EPOCHS, SOME = 2000, 30
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pool_on() -> Iterator[None]:
    """The device keeps freed buffers and uses them again, beginning with none."""
    device("cpu").policy("bounded")
    device("cpu").trim()
    yield
    device("cpu").trim()


def in_a_scope(queens: Descent) -> float:
    """An epoch in a scope of its own, which its board leaves."""
    with tlmem.scope("epoch"):
        loss = queens.epoch()
        tlmem.escape(queens.board)
    return loss


WAYS: dict[str, Callable[[Descent], float]] = {"plain": Descent.epoch, "in a scope": in_a_scope}


# ---- right ----


def test_losses_are_those_of_numpy_in_every_epoch() -> None:
    queens, board = Descent(22), random_board(22)
    for epoch in range(EPOCHS):
        loss, _, slope = reference_epoch(board)
        assert queens.epoch() == pytest.approx(loss, rel=1e-9), epoch
        board = board - RATE * slope

    np.testing.assert_allclose(queens.board.numpy(), board, rtol=1e-9, atol=1e-9)


def test_the_reference_has_the_gradient_of_its_loss() -> None:
    board, step = random_board(5), 1e-6
    _, _, slope = reference_epoch(board)
    found = np.empty_like(board)
    for place in np.ndindex(board.shape):
        near = [board.copy(), board.copy()]
        near[0][place] -= step
        near[1][place] += step
        below, above = (reference_epoch(each)[0] for each in near)
        found[place] = (above - below) / (2 * step)

    np.testing.assert_allclose(found, slope, atol=1e-8)


def test_the_program_stands_where_numpy_stands() -> None:
    """The stop check, every 100 epochs, comes before backward and ends at the same epoch."""
    board, epoch = random_board(22), 0
    while True:
        loss, placed, slope = reference_epoch(board)
        if epoch % 100 == 0 and np.sum(placed > 0.5) == 8:
            break
        board, epoch = board - RATE * slope, epoch + 1

    assert nqueens.solve(22) == (epoch, pytest.approx(loss, rel=1e-9))
    assert 0 < epoch < EPOCHS - 1


# ---- the books ----


def over_epochs(queens: Descent, epoch: Callable[[Descent], float], count: int) -> list[Books]:
    """The books before the first epoch and after each."""
    found = [books()]
    for _ in range(count):
        epoch(queens)
        found.append(books())
    return found


@pytest.mark.parametrize("way", WAYS)
def test_s35_the_books_are_the_same_at_every_boundary(way: str) -> None:
    queens = Descent(22)
    first = books()
    found = over_epochs(queens, WAYS[way], EPOCHS)

    assert set(found[1:]) == {found[1]}
    assert (found[1].records, found[1].grads, found[1].saved_bytes) == (0, 0, 0)
    assert (found[1].depth, found[1].leaves) == (first.depth, 0)


@pytest.mark.parametrize("way", WAYS)
def test_s33_from_the_second_epoch_on_exactly_what_is_made_is_freed(way: str) -> None:
    queens = Descent(22)
    WAYS[way](queens)
    first = balance()
    for _ in range(SOME):
        WAYS[way](queens)
        assert balance() == first


def test_an_epoch_that_leaves_before_backward_leaves_nothing() -> None:
    queens = Descent(22)
    queens.epoch()
    first, made = books(), balance()
    for _ in range(5):
        queens.epoch(leave=True)
        # The board is a leaf of the tape from its first use on; nothing else was left there.
        assert (replace(books(), leaves=0), balance()) == (first, made)
        queens.epoch()
        assert (books(), balance()) == (first, made)


def stopping(wanted: list[bool]) -> Callable[[tlmem.Tensor], tlmem.Tensor]:
    """An identity whose rule raises when that is wanted: in the middle of a pass."""

    def rule(context: object, grad: tlmem.Tensor) -> tlmem.Tensor:
        if wanted[0]:
            raise Left
        return grad

    def forward(context: object, placed: tlmem.Tensor) -> tlmem.Tensor:
        return placed * 1

    return tlmem.op(backward=rule)(forward)


def test_an_exception_in_the_middle_of_backward_leaves_nothing() -> None:
    wanted = [False]
    queens = Descent(22, stopping(wanted))
    queens.epoch()
    first, made = books(), balance()
    before = queens.board.tolist()
    for _ in range(5):
        wanted[0] = True
        with pytest.raises(Left):
            queens.epoch()
        # The board of that epoch is still the leaf of the next one; it got no gradient.
        assert queens.board.grad is None
        assert queens.board.tolist() == before
        wanted[0] = False
        queens.epoch()
        before = queens.board.tolist()
        assert (books(), balance()) == (first, made)


def test_an_epoch_that_runs_out_of_memory_anywhere_leaves_nothing() -> None:
    with limit_device("cpu") as limited:
        queens = Descent(22, device=limited)
        queens.epoch()
        first, made = books(), balance()
        ended, nth = 0, 0
        while True:
            nth += 1
            limited.fail_nth(nth)
            try:
                queens.epoch()
            except DeviceOutOfMemory:
                ended += 1
            else:
                break
            finally:
                limited.fail_nth(None)
            queens.board.requires_grad_()
            queens.epoch()
            assert (books(), balance()) == (first, made), f"request {nth} failed"
        del queens

    assert ended == nth - 1 > 20


def test_each_of_twenty_attempts_leaves_what_the_first_one_left() -> None:
    def attempt(seed: int) -> None:
        queens = Descent(seed)
        for _ in range(10):
            queens.epoch()
        queens.epoch(leave=True)

    attempt(0)
    first, made = books(), balance()
    for seed in range(1, 20):
        attempt(seed)
        assert (books(), balance()) == (first, made)


# ---- the driver and the process ----


def test_with_the_pool_on_no_epoch_from_the_third_on_asks_the_driver(pool_on, trace) -> None:
    queens = Descent(22)
    for _ in range(2):
        queens.epoch()
    first = device("cpu").stats()
    with trace() as t:
        for _ in range(SOME):
            queens.epoch()
    last = device("cpu").stats()

    assert last.total_bytes == first.total_bytes
    assert last.total_count == first.total_count
    assert t.count("DEVICE_ALLOC") == 0
    assert t.count("ALLOC") == t.count("FREE") > 10 * SOME


@pytest.mark.parametrize("way", WAYS)
def test_s23_every_acquire_has_its_release_by_the_same_holder(way: str, trace) -> None:
    queens = Descent(22)
    WAYS[way](queens)
    with trace() as t:
        for _ in range(5):
            WAYS[way](queens)
    found = recorded(trace)
    held = found.holders[found.holders["end_ns"] < 0]

    assert t.misuses() == []
    # Only the last board is left: a view, and what it looks into.
    assert held["address"].nunique() == 2
    assert t.count("TAPE_SAVE") == t.count("TAPE_UNSAVE") > 0
    assert found.ops["held_count"].sum() == 0
    assert found.passes["left_bytes"].tolist() == [0] * 5
    assert found.passes["saved_bytes"].nunique() == 1
    assert (found.passes["status"] == 0).all()


PROGRAM = """
import tlmem
from tlmem.scenarios.programs.healthy import nqueens

board = tlmem.randn((8, 8), "float64", seed=22, requires_grad=True)
for epoch in tlmem.steps(4000):
    loss = nqueens.total_loss(tlmem.softmax(board, 1))
    loss.backward()
    board = tlmem.detach(board - 0.5 * board.grad).requires_grad_()
    if epoch % 100 == 0:
        tlmem.mark("epoch", epoch)
"""


def test_s35_resident_memory_grows_by_less_than_20_kb_in_100_epochs(tmp_path: Path) -> None:
    script, file = tmp_path / "queens.py", tmp_path / "queens.tlm"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "tlmem", "record", "-q", "--rss-interval", "5"]
    subprocess.run([*command, "-o", str(file), str(script)], check=True, timeout=600)
    recording = read(file)
    growth = resident_growth(recording)

    assert recording.problems == []
    assert growth < 0.02e6, f"{growth:.0f} bytes in 100 epochs"


def resident_growth(recording: Recording) -> float:
    """Bytes in 100 epochs: the middle of the second half against that of the first, warm-up aside.

    Medians of many samples: one sample that catches a page fault of somebody else moves neither.
    """
    marks = recording.marks
    times = marks["time_ns"].to_numpy()
    samples = recording.samples
    # The recorder's own part is told when it has changed.
    resident = (samples["anon"] - samples["recorder"].ffill()).to_numpy()
    epoch = np.interp(samples["time_ns"], times, marks["index"], left=np.nan, right=np.nan)
    middles = []
    for begin, end in ((800, 2350), (2350, 3900)):
        inside = (epoch >= begin) & (epoch < end) & ~np.isnan(resident)
        assert inside.sum() >= 10, "too few samples to tell"
        middles.append((np.median(resident[inside]), np.mean(epoch[inside])))
    (low, since), (high, until) = middles
    return float((high - low) / (until - since) * 100)


# ---- the scenarios ----


def test_the_report_of_over_retained_queens_names_the_lines_that_retain() -> None:
    scenario = catalog.scenarios()["nqueens-over-retained"]
    result = catalog.run(scenario)
    text = scenario.path.read_text(encoding="utf-8").splitlines()
    retaining = {number for number, line in enumerate(text, 1) if "tlmem.acquire(" in line}
    named = {
        holder.site.line
        for finding in result.growing
        for holder in finding.holders
        if holder.name == "struct Tensor" and holder.site is not None
    }

    assert result.right
    assert named == retaining
    assert len(retaining) == 2
