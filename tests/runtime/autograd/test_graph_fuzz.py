"""Random programs give the gradients of the reference, and leave nothing behind however they end.

``TLMEM_FUZZ=n`` plays ``n`` programs more, from a seed that is printed; ``TLMEM_FUZZ_SEED=s`` says
from which one.
"""

from __future__ import annotations

import gc
import os
import time
import traceback

import pytest
from runtime.autograd.gradients import Random
from runtime.autograd.graph_player import ENDINGS, Play
from runtime.autograd.graphs import program, text
from runtime.trace import live_objects

import tlmem
from tlmem.runtime.core import lib

FIXED = 40
MORE = int(os.environ.get("TLMEM_FUZZ", "0"))
DEPTHS = (4, 12, 40)


def what_is_left() -> tuple[object, ...]:
    """Objects, and what the tape has."""
    found = tlmem.tape().stats()
    kept = (found.records, found.leaves, found.grads, found.saved_bytes, found.grad_bytes)
    return (live_objects(), lib.tlm_scope_depth(), *kept)


def play(seed: int, ending: str | None = None) -> None:
    """One program; the assertion that fails shows it."""
    before = what_is_left()
    steps = program(Random(seed), DEPTHS[seed % len(DEPTHS)])
    chosen = ending
    failed = None
    try:
        game = Play(steps, seed, ending)
        chosen = game.ending
        game.run()
    except Exception:
        failed = traceback.format_exc()
    game = None
    if failed is None and what_is_left() != before:
        gc.collect()
        left = [
            f"{now} instead of {then}" for now, then in zip(what_is_left(), before, strict=True)
        ]
        failed = None if what_is_left() == before else "something is left:\n" + "\n".join(left)
    if failed is not None:
        pytest.fail(f"seed {seed}, ending {chosen!r}:\n{text(steps)}\n{failed}", pytrace=False)


@pytest.mark.parametrize("ending", dict.fromkeys(ENDINGS))
def test_random_programs_end_as_they_should(ending: str) -> None:
    for seed in range(FIXED):
        play(1000 * ENDINGS.index(ending) + seed, ending)


@pytest.mark.skipif(not MORE, reason="TLMEM_FUZZ says how many more programs are played")
def test_more_random_programs_on_demand() -> None:
    first = int(os.environ.get("TLMEM_FUZZ_SEED", "0")) or time.time_ns() % 10**9
    print(f"TLMEM_FUZZ_SEED={first}")
    for seed in range(first, first + MORE):
        play(seed)
