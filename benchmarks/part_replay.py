"""Part ``replay``: nanoseconds an event of the simulated CUDA allocator, and seconds of a sweep."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measuring import Settings, Spread
from benchmarks.pages import Section, table
from tlmem.replaying.answers import answer, settings_to_sweep
from tlmem.replaying.cuda import Simulator
from tlmem.replaying.settings import DEFAULT, MIB
from tlmem.replaying.settings import Settings as AllocatorSettings
from tlmem.replaying.trace import ALLOC, EVENT_DTYPE, FREE, Trace

EVENTS = 1_000_000
SLOTS = 4_000
KEPT, MADE = 1_500, 1_000
"""Blocks that stay, and blocks of a step."""
WAYS = {
    "default": "",
    "expandable": "expandable_segments:True",
    "max split": "max_split_size_mb:64",
}


def trace_of(events: np.ndarray, sizes: np.ndarray) -> Trace:
    """A trace of one lane."""
    return Trace(
        memory="cuda:0",
        events=events,
        time_ns=np.arange(len(events), dtype=np.int64),
        number=np.arange(len(sizes), dtype=np.int64),
        site=np.zeros(len(sizes), np.int64),
        size=sizes,
        older=0,
        lanes=((0, 0, 0),),
        pools=np.zeros(1, np.uint32),
        plain=np.zeros(1, bool),
        imported=False,
        recorded=None,
    )


def any_sizes(count: int) -> Trace:
    """Slots that are filled and emptied at random."""
    chance = np.random.default_rng(5)
    slot = chance.integers(0, SLOTS, count)
    kind = np.empty(count, np.uint8)
    order = np.argsort(slot, kind="stable")
    turn = np.arange(count) - np.searchsorted(slot[order], slot[order])
    kind[order] = np.where(turn % 2 == 0, ALLOC, FREE)
    events = np.zeros(count, EVENT_DTYPE)
    events["kind"] = kind
    most = chance.choice([65_536, 8 * MIB, 64 * MIB], count, p=[0.5, 0.4, 0.1])
    begins = np.flatnonzero(kind == ALLOC)
    sizes = (1 + chance.random(len(begins)) * most[begins]).astype(np.int64)
    block = np.empty(count, np.int64)
    block[begins] = np.arange(len(begins))
    block[order] = np.where(turn % 2 == 0, block[order], np.roll(block[order], 1))
    events["block"] = block
    events["bytes"][begins] = sizes
    return trace_of(events, sizes)


def steps(count: int) -> Trace:
    """Training steps: blocks of a few sizes in the same order, freed from the last one on."""
    chance = np.random.default_rng(6)
    kept = chance.integers(1, 4 * MIB, KEPT)
    made = chance.choice(chance.integers(1, 24 * MIB, 60), MADE)
    rounds = (count - KEPT) // (2 * MADE)
    sizes = np.concatenate([kept, np.tile(made, rounds)]).astype(np.int64)
    events = np.zeros(KEPT + 2 * MADE * rounds, EVENT_DTYPE)
    events["kind"][:KEPT], events["block"][:KEPT] = ALLOC, np.arange(KEPT)
    blocks = KEPT + np.arange(MADE * rounds).reshape(rounds, MADE)
    events["block"][KEPT:] = np.concatenate([blocks, blocks[:, ::-1]], axis=1).reshape(-1)
    events["kind"][KEPT:] = np.tile(np.repeat([ALLOC, FREE], MADE), rounds)
    begins = events["kind"] == ALLOC
    events["bytes"][begins] = sizes[events["block"][begins]]
    return trace_of(events, sizes)


def nanoseconds(trace: Trace, settings: AllocatorSettings) -> float:
    """CPU time of an event."""
    simulator = Simulator(settings, trace)
    begin = time.thread_time_ns()
    simulator.run(trace.events)
    return (time.thread_time_ns() - begin) / len(trace.events)


def measure(settings: Settings) -> Section:
    """Events of two kinds under some settings, then a whole sweep."""
    count = max(20_000, int(EVENTS * settings.scale))
    traces = {"steps": steps(count), "any sizes": any_sizes(count)}
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(settings.rounds):
        for name, trace in traces.items():
            for way, line in WAYS.items():
                settings.show(f"replaying {name}, {way}")
                each = nanoseconds(trace, DEFAULT.changed([line]))
                found.setdefault((name, way), []).append(each)
    sweeps = []
    for name, trace in traces.items():
        settings.show(f"a sweep of {name}")
        begin = time.thread_time()
        tried = [answer(trace, each) for each, _ in settings_to_sweep(None)]
        sweeps.append(f"{time.thread_time() - begin:.1f} s for *{name}* ({len(tried)} settings)")
    section = Section("replay")
    section.blocks = [
        f"{count:,} events; CPU time of one thread, {settings.rounds} rounds: ns an event.",
        table(
            ["", *WAYS],
            [[name, *(_spread(found[name, way]) for way in WAYS)] for name in traces],
        ),
        f"A sweep, each setting with its smallest device: {', '.join(sweeps)}.",
    ]
    if settings.scale >= 1:
        section.values = {
            f"replay, {what}": max(Spread.of(found[name, way]).median for name in traces)
            for what, way in (("event", "default"), ("expandable", "expandable"))
        }
    return section


def _spread(values: list[float]) -> str:
    found = Spread.of(values)
    return f"{found.median:.0f} ({found.least:.0f} to {found.most:.0f})"
