"""Traces written by hand, and what a replay does with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlmem.replaying.cuda import Simulator
from tlmem.replaying.settings import DEFAULT, MIB, Settings
from tlmem.replaying.trace import ALLOC, EMPTY, EVENT_DTYPE, FREE, IDLE, WAIT, Trace

KIB = 1024


class Script:
    """Allocations and frees by name, one after the other."""

    def __init__(self, lanes: int = 1, pools: Sequence[int] | None = None) -> None:
        self.events: list[tuple[int, int, int, int, int]] = []
        self.names: dict[str, int] = {}
        self.sizes: list[int] = []
        self.lanes = lanes
        self.pools = list(pools or [0] * lanes)
        self.plain = [False] * lanes

    def alloc(self, name: str, size: float, lane: int = 0) -> Script:
        """One allocation of so many bytes."""
        self.names[name] = len(self.sizes)
        self.events.append((int(size), len(self.sizes), lane, ALLOC, 0))
        self.sizes.append(int(size))
        return self

    def free(self, *names: str) -> Script:
        """Frees, in order."""
        self.events += [(0, self.names.pop(name), 0, FREE, 0) for name in names]
        return self

    def wait(self, *names: str) -> Script:
        """The program gives them up, and another stream still uses them, until they are freed."""
        self.events += [(0, self.names[name], 0, WAIT, 0) for name in names]
        return self

    def idle(self, lane: int) -> Script:
        """Nothing uses the private pool of a lane any more."""
        self.events.append((0, 0, lane, IDLE, 0))
        return self

    def empty(self) -> Script:
        """``torch.cuda.empty_cache()``."""
        self.events.append((0, 0, 0, EMPTY, 0))
        return self

    def trace(self) -> Trace:
        """What was written so far."""
        count = len(self.sizes)
        return Trace(
            memory="cuda:0",
            events=np.array(self.events, EVENT_DTYPE),
            time_ns=np.arange(len(self.events), dtype=np.int64),
            number=np.arange(count, dtype=np.int64),
            site=np.zeros(count, np.int64),
            size=np.array(self.sizes, np.int64),
            older=0,
            lanes=tuple((n, pool, 0) for n, pool in enumerate(self.pools)),
            pools=np.array(self.pools, np.uint32),
            plain=np.array(self.plain, bool),
            imported=False,
            recorded=None,
        )


class Ran:
    """A script after a run: figures and where blocks lie."""

    def __init__(self, script: Script, settings: Settings = DEFAULT) -> None:
        trace = script.trace()
        self.simulator = Simulator(settings, trace)
        steps = self.simulator.run(trace.events, with_steps=True)
        assert steps is not None
        self.steps = steps
        self.figures = self.simulator.figures()
        assert self.simulator.broken_rule() == 0
        self.parts = self.simulator.parts()

    @property
    def reserved(self) -> float:
        """MiB now."""
        return self.figures.reserved_bytes / MIB

    @property
    def peak(self) -> float:
        """MiB at most."""
        return self.figures.peak_reserved_bytes / MIB

    def block(self, event: int) -> int:
        """Bytes of the block that an event got."""
        return int(self.steps["bytes"][event])

    def address(self, event: int) -> int:
        """Where it lies."""
        return int(self.steps["address"][event])


def growing(steps: int = 60, each: int = 24) -> Script:
    """Batches that grow: arrays of 10 MiB at first, half a MiB more in each step."""
    script = Script()
    for step in range(steps):
        names = [f"{step}.{n}" for n in range(each)]
        for name in names:
            script.alloc(name, (10 + 0.5 * step) * MIB)
        script.free(*names)
    return script


def transformer(steps: int = 30, layers: int = 12, seed: int = 7) -> Script:
    """Training steps of a transformer whose sequences differ in length; weights stay."""
    chance = np.random.default_rng(seed)
    script = Script()
    for layer in range(layers):
        for part, size in (("qkv", 12), ("out", 4), ("up", 16), ("down", 16)):
            script.alloc(f"w{layer}{part}", size * MIB)
    for step in range(steps):
        tokens = int(chance.integers(600, 4000))
        hidden = tokens * 4096
        live = []
        for layer in range(layers):
            for part, factor in (("norm", 1), ("qkv", 3), ("scores", tokens / 700), ("mlp", 4)):
                name = f"{step}.{layer}.{part}"
                script.alloc(name, max(1, int(hidden * factor)))
                live.append(name)
            script.alloc(f"{step}.t", 2 * hidden).free(f"{step}.t")
        for name in reversed(live):
            script.alloc(f"{step}.g", 2 * hidden)
            script.free(name, f"{step}.g")
    return script
