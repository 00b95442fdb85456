"""A pretended program whose memory is known at every step: the truth the reader is compared with.

Covers: threads that allocate, free, resize (also in vain), free memory of unknown age, and reuse
addresses; objects of the runtime, whose handles look like these addresses and are never used again;
the events they would record; the checkpoint that folding some of them would give.
Does not cover: the bytes of files (``support.writer``).
"""

import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from support import writer
from support.writer import EVENT

ALLOC, FREE, REALLOC, ACQUIRE, RELEASE, MARK, SAMPLE, MISUSE = 1, 2, 3, 4, 5, 32, 33, 34
RUNTIME = 16
FAILED = 2**64 - 1
ADDRESSES = [0x7F00_0000_0000 + 16 * i for i in range(12)] + [
    0x5500_0000_1000 + 48 * i for i in range(4)
]
META = [writer.label(1, "step"), *(writer.site(n, n - 1, 1, n) for n in range(2, 12))]
"""Names of what programs record: the label of their marks, and their sites."""
OLD_ADDRESSES = [0x6600_0000_0000 + 64 * i for i in range(8)]


def operations(most: int = 60) -> st.SearchStrategy[list[tuple[int, int, int, bool]]]:
    """Random operations, at least one, for ``Program.run``."""
    one = st.tuples(st.integers(1, 4), st.integers(0, 9), st.integers(0, 1000), st.booleans())
    return st.lists(one, min_size=1, max_size=most)


@dataclass
class Life:
    """One allocation, as it really was."""

    address: int
    size: int
    device: int
    site: int
    thread: int
    born_step: int
    resized_from: int = -1
    died_step: int | None = None
    died_site: int = 0

    def alive_after(self, steps: int) -> bool:
        """Whether it is alive after this many events."""
        ended = self.died_step is not None and self.died_step < steps
        return self.born_step < steps and not ended


@dataclass
class Step:
    """One event, and what is true just after it. ``quiet``: no resize is under way."""

    thread: int
    ticks: int
    kind: int
    site: int
    quiet: bool
    live_bytes: int
    live_count: int
    allocs: int
    frees: int
    unknown: int


@dataclass
class Program:
    """Runs operations one after another and keeps what they recorded and what is true.

    Times are multiples of ``1 << shift``, with noise below that the reader must ignore.
    """

    shift: int = 2
    ticks: int = 1_000_000
    lives: list[Life] = field(default_factory=list)
    live: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: dict[int, list[tuple]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    pending: dict[int, tuple[int, bool]] = field(default_factory=dict)
    unknown: int = 0
    handles: int = 0
    _last: int = 0
    _tied: bool = False

    def run(self, operations: list[tuple[int, int, int, bool]]) -> "Program":
        """Runs (thread, action, choice, same time as the one before if allowed) operations."""
        for thread, action, choice, tie in operations:
            if thread in self.pending:
                self._finish_resize(thread, choice, tie)
            elif action <= 3:
                self._alloc(thread, choice, tie)
            elif action <= 6:
                self._free(thread, choice, tie)
            elif action == 7:
                self._begin_resize(thread, choice, tie)
            elif action == 8:
                self._free_unknown(thread, choice, tie)
            else:
                kind = (MARK, SAMPLE, ACQUIRE, RELEASE, MISUSE)[choice % 5]
                self._record(thread, kind, 1, 100 + choice, 2, 0, tie)
        for thread in list(self.pending):
            self._finish_resize(thread, 0, False)
        return self

    def events(self) -> dict[int, np.ndarray]:
        """What each thread recorded."""
        return {thread: np.array(rows, EVENT) for thread, rows in sorted(self.rows.items())}

    def fold(self, steps: int) -> tuple[dict[int, bytes], dict[int, int]]:
        """A checkpoint of the first events: its sections, and how many each thread recorded."""
        done, state = self.steps[:steps], self.steps[steps - 1]
        born = [life for life in self.lives if life.born_step < steps]
        live = [number for number, life in enumerate(self.lives) if life.alive_after(steps)]
        consumed = Counter(step.thread for step in done)
        peak = max(done, key=lambda step: step.live_bytes)
        alloc_bytes = sum(life.size for life in born)
        peak_ticks = peak.ticks if peak.live_bytes else 0
        totals = [
            *(len(done), state.ticks, state.allocs, alloc_bytes, state.frees),
            *(alloc_bytes - state.live_bytes, state.unknown, state.live_bytes, state.live_count),
            *(
                peak.live_bytes,
                peak_ticks,
                max(step.live_count for step in done),
                len(born),
            ),
            *(1, len(live)),
            *(sum(s.kind == kind for s in done) for kind in (RELEASE, ACQUIRE, MISUSE)),
            0,
        ]
        sections = {
            0: struct.pack(f"<{len(totals)}Q", *totals),
            1: b"".join(self._site_sums(site, steps) for site in sorted({s.site for s in done})),
            2: b"".join(struct.pack("<QQ", n, thread) for thread, n in sorted(consumed.items())),
            5: b"".join(self._listed(number) for number in live),
        }
        return {number: data for number, data in sections.items() if data}, dict(consumed)

    def _site_sums(self, site: int, steps: int) -> bytes:
        born = [life for life in self.lives if life.site == site and life.born_step < steps]
        dead = [life.size for life in born if not life.alive_after(steps)]
        calls = sum(s.kind == FREE and s.site == site for s in self.steps[:steps])
        first = self.steps[born[0].born_step].ticks if born else 0
        sums = (len(born), sum(life.size for life in born), len(dead), sum(dead), calls, first)
        return struct.pack("<6QII", *sums, site, 1)

    def _listed(self, number: int) -> bytes:
        life = self.lives[number]
        ticks = self.steps[life.born_step].ticks
        about = (number, ticks, life.address, life.size, life.site, life.thread, life.device, 0)
        return struct.pack("<QQQQIHBB", *about)

    # ---- operations ----

    def _record(self, thread, kind, address, arg, site, device, tie):
        allowed = not self._tied and thread >= self._last
        self._tied = bool(self.steps and tie and allowed)
        self.ticks += 0 if self._tied else 1 << self.shift
        noise = len(self.steps) % (1 << self.shift) if not self._tied else 0
        stamp = max(self.ticks + noise, self.rows.get(thread, [(0,)])[-1][0])
        count = int(kind == ALLOC and device == RUNTIME)
        self.rows.setdefault(thread, []).append((stamp, address, arg, site, count, kind, device))
        self._last = thread
        live = [self.lives[number].size for number in self.live.values()]
        dead = sum(life.died_step is not None for life in self.lives)
        allocs, quiet = len(self.lives), not self.pending
        about = (thread, self.ticks, kind, site, quiet, sum(live), len(live))
        self.steps.append(Step(*about, allocs, dead, self.unknown))

    def _new(self, thread, address, size, site, device, came_from=-1):
        self.live[device, address] = len(self.lives)
        self.lives.append(Life(address, size, device, site, thread, len(self.steps), came_from))

    def _end(self, key, site):
        life = self.lives[self.live.pop(key)]
        life.died_step, life.died_site = len(self.steps), site
        return life

    def _freeable(self):
        resizing = {number for number, fails in self.pending.values() if fails}
        return sorted(key for key, number in self.live.items() if number not in resizing)

    def _resizable(self):
        return [key for key in self._freeable() if key[0] < RUNTIME]

    def _unused(self, choice):
        reserved = {self.lives[number].address for number, fails in self.pending.values() if fails}
        taken = {address for device, address in self.live if device < RUNTIME} | reserved
        unused = [address for address in ADDRESSES if address not in taken]
        return unused[choice % len(unused)] if unused else None

    def _alloc(self, thread, choice, tie):
        if choice % 4 == 3:
            self._alloc_of_the_runtime(thread, choice, tie)
            return
        address = self._unused(choice)
        if address is None:
            return
        size, site, device = 1 + choice * 37 % 5000, 2 + choice % 5, 1 + choice % 2
        self._new(thread, address, size, site, device)
        self._record(thread, ALLOC, address, size, site, device, tie)

    def _alloc_of_the_runtime(self, thread, choice, tie):
        """The first handles look like addresses; every fourth object is a view, without bytes."""
        number = self.handles
        self.handles += 1
        handle = ADDRESSES[number] if number < len(ADDRESSES) else (1 + number << 28) + choice % 3
        size, site = 0 if choice % 16 == 3 else 1 + choice * 37 % 5000, 2 + choice % 5
        self._new(thread, handle, size, site, RUNTIME)
        self._record(thread, ALLOC, handle, size, site, RUNTIME, tie)

    def _free(self, thread, choice, tie):
        keys = self._freeable()
        if not keys:
            return
        device, address = keys[choice % len(keys)]
        life = self._end((device, address), 2 + choice % 7)
        ended = 1 if device == RUNTIME else 0
        self._record(thread, FREE, address, ended, life.died_site, device, tie)

    def _free_unknown(self, thread, choice, tie):
        self.unknown += 1
        self._record(thread, FREE, OLD_ADDRESSES[choice % 8], choice % 2, 3, 1, tie)

    def _begin_resize(self, thread, choice, tie):
        keys = self._resizable()
        if not keys:
            return
        key = keys[choice % len(keys)]
        number, fails = self.live[key], choice % 3 == 0
        self.pending[thread] = (number, fails)
        if fails:
            self._record(thread, FREE, key[1], 1, 4, key[0], tie)
            return
        self._end(key, 4)
        self._record(thread, FREE, key[1], 1, 4, key[0], tie)

    def _finish_resize(self, thread, choice, tie):
        number, fails = self.pending.pop(thread)
        old = self.lives[number]
        if fails:
            self._record(thread, REALLOC, old.address, FAILED, 4, old.device, tie)
            return
        address = self._unused(choice)
        size = old.size * 2 + 1
        if address is None:
            self._free_unknown(thread, choice, tie)
            return
        self._new(thread, address, size, 4, old.device, number)
        self._record(thread, REALLOC, address, size, 4, old.device, tie)


def write(program: Program, path: Path, form: str = "sealed", fold_at: int = 0) -> Path:
    """The file of a program; the first ``fold_at`` events are in a checkpoint."""
    file = writer.RecordingWriter(
        form=form, per_slot=3, codec=-1, meta=META, threads=program.events()
    )
    if fold_at:
        sections, file.consumed = program.fold(fold_at)
        file.fold = writer.fold_blocks(7, sections, entries_per_block=5)
        file.header.fold_number, file.header.folded_events = 7, fold_at
    return file.write(path)
