"""``tlmem.plan`` hears an interrupt while it works, and gives its memory back then."""

import gc
import signal
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tlmem
from tlmem import _native
from tlmem.planning import planner


class CountedLib:
    """The C core; counts the plans that it made and those that it ended."""

    def __init__(self) -> None:
        self.made = self.ended = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(_native.lib, name)

    def tlm_plan_create(self, *arguments: Any) -> int:
        self.made += 1
        return int(_native.lib.tlm_plan_create(*arguments))

    def tlm_plan_destroy(self, made: Any) -> None:
        self.ended += 1
        _native.lib.tlm_plan_destroy(made)


def interrupt_when_placed_is(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets another thread send an interrupt while the first such step is made."""
    main, original = threading.main_thread().ident or 0, planner.step
    sender = threading.Thread(target=lambda: signal.pthread_kill(main, signal.SIGINT))

    def step(made: Any, result: Any, cpu_ns: int) -> None:
        if bool(result.placed) is not wanted or sender.ident is not None:
            return original(made, result, cpu_ns)
        sender.start()
        original(made, result, cpu_ns)
        return sender.join()

    monkeypatch.setattr(planner, "step", step)


def never_lowest(count: int) -> np.ndarray:
    """Buffers for which nobody knows a plan as low as the lower bound; many of them."""
    random = np.random.default_rng(count)
    first = random.integers(0, 1000, count)
    return np.column_stack([first, first + random.integers(0, 300, count), 1 + first % 97])


@pytest.mark.parametrize(
    ("count", "placed"), [(20_000, False), (20_000, True), (600, True)], ids=str
)
def test_an_interrupt_ends_a_plan_and_gives_its_memory_back(
    count: int, placed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib, before = CountedLib(), signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(planner, "_native", SimpleNamespace(ffi=_native.ffi, lib=lib))
    monkeypatch.setattr(planner, "SLICE_NS", 1)
    interrupt_when_placed_is(placed, monkeypatch)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            tlmem.plan(never_lowest(count), seconds=float("inf"))
    finally:
        signal.signal(signal.SIGINT, before)
    del caught  # its traceback holds the plan
    gc.collect()

    assert (lib.made, lib.ended) == (1, 1)


def test_many_buffers_are_placed_in_steps_between_which_an_interrupt_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps, original = [], planner.step
    monkeypatch.setattr(planner, "SLICE_NS", 1)
    monkeypatch.setattr(planner, "step", lambda *arguments: (steps.append(1), original(*arguments)))
    rows = never_lowest(20_000)

    stepwise = tlmem.plan(rows)

    assert len(steps) > 20_000 // 1000
    monkeypatch.undo()
    assert tlmem.plan(rows).offsets.tolist() == stepwise.offsets.tolist()
