"""Random programs where memory runs out at any request, in several threads, and recorded."""

from __future__ import annotations

import gc
import threading
import traceback
from pathlib import Path

import pytest
from runtime.autograd.gradients import Random
from runtime.autograd.graph_player import ENDINGS, Play
from runtime.autograd.graphs import Step, program, text
from runtime.trace import live_objects

import tlmem
from tlmem.runtime import core
from tlmem.runtime.device import LimitDevice, limit_device

PROGRAMS = 8
MOST_REQUESTS = 400
THREADS = 4


def left() -> tuple[object, ...]:
    """Objects, and what the tape has."""
    gc.collect()
    found = tlmem.tape().stats()
    return (live_objects(), found.records, found.leaves, found.grads, found.saved_bytes)


def play(steps: tuple[Step, ...], seed: int, device: LimitDevice) -> Exception | None:
    """Plays; what a device that failed made of it."""
    game = Play(steps, seed, "once", device)
    try:
        game.run()
    except tlmem.DeviceOutOfMemory as error:
        grads = [leaf.grad for leaf in game.leaves.values()]
        while game.scopes:
            game.scopes.pop()[0].close()
        assert all(each is None for each in grads), "a pass that failed has changed a leaf"
        return error.with_traceback(None)
    return None


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_program_that_runs_out_of_memory_at_any_request_leaves_nothing(seed: int) -> None:
    steps = program(Random(seed, 9), 14)
    before, failures = left(), 0
    with limit_device() as device:
        for nth in range(1, MOST_REQUESTS):
            device.fail_nth(nth)
            failed = play(steps, seed, device)
            device.fail_nth(None)
            assert left() == before, f"request {nth}:\n{text(steps)}"
            assert device.stats().current_bytes == 0, f"request {nth}:\n{text(steps)}"
            if failed is None:
                break
            failures += 1
        assert failed is None
    assert failures > 10


def test_programs_in_several_threads_get_their_own_gradients_from_one_tape() -> None:
    before, failures = left(), []

    def run(thread: int) -> None:
        try:
            for seed in range(12):
                steps = program(Random(seed, thread, 10), 25)
                Play(steps, seed, ("once", "twice, retained", "a seed")[seed % 3]).run()
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert left() == before


def test_recording_tells_what_the_tape_did_and_that_it_let_go_of_all(tmp_path: Path) -> None:
    before, path = tlmem.tape().stats(), tmp_path / "programs.tlm"
    with tlmem.Recorder(path):
        for seed, ending in enumerate(dict.fromkeys(ENDINGS)):
            for number in range(6):
                steps = program(Random(seed, number, 11), 25)
                Play(steps, seed, ending, own_tape=False).run()
        gc.collect()
    after, recording = tlmem.tape().stats(), tlmem.read(path)

    assert recording.problems == []
    ops, passes = recording.ops, recording.passes
    assert (ops.held_count.sum(), ops.held_bytes.sum()) == (0, 0)
    assert ops.records.sum() == after.recorded - before.recorded
    assert passes.rules.sum() == after.rules - before.rules
    held = recording.holders
    of_tapes = held[held.kind == core.TAPE]
    assert len(of_tapes) > ops.saves.sum() / 2
    assert of_tapes[of_tapes.ended_by == 0].empty
