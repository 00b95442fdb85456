"""Programs that never ran: object and sample tables written down step by step.

Covers: the part of ``Recording`` that analyses read, with times chosen by the test instead of a
clock. Does not cover: files; see ``writer``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from tlmem.recording.format.chains import (
    CACHED,
    CONTAINER,
    TOTALS_GROUP,
    TYPE,
    UNTRACKED,
    ChainStep,
    Holding,
    StepKind,
)
from tlmem.recording.source_lines import SourceLines
from tlmem.recording.tables.holdings import (
    contents_table,
    holdings_table,
    object_types_table,
    steps_table,
)
from tlmem.recording.tables.schema import SCHEMA, frame

LEDGER = [
    *("object", "kind", "holder", "number", "begin_ns", "end_ns", "begin_site", "end_site"),
    "ended_by",
]
PASSES = ["site", "begin_ns", "end_ns", "status"]
POOLS = ["name", "pool", "hits", "misses", "puts", "drops", "kept_count", "kept_bytes"]
METRICS = [
    "anon",
    "file",
    "malloc_used",
    "malloc_free",
    "python_arena",
    "python_large",
    "recorder",
    "untouched",
]


class Told(SimpleNamespace):
    """The part of a recording that analyses read; each one is itself alone, as recordings are."""

    __hash__ = object.__hash__
    source_lines = SourceLines({}, {})

    @property
    def heap_count(self) -> int:
        """Rows of ``heap``."""
        return len(self.heap)

    @property
    def object_devices(self) -> frozenset[int]:
        """Devices of ``objects``."""
        return frozenset(self.objects["device"].tolist())

    def kept(self, _: tuple, answer: Callable[[], Any], with_attributes: bool = False) -> Any:
        """The answer: nothing is kept of what is simulated."""
        return answer()

    def release_events(self) -> None:
        """Nothing: there are none."""

    def source_line(self, file: str, line: int, function: str) -> str:
        """Nothing: no source was recorded."""
        return self.source_lines.line(file, line, function)


@dataclass
class Program:
    """A simulated program: allocate, free, let time pass; ``recording()`` is what a reader would
    give.

    Lines are numbers in ``program.py``. All that takes time takes ``slowdown`` times as long, so
    that a program of some hundred steps runs for seconds. ``native``, ``python``, ``python_large``
    and ``kept`` are bytes outside arrays that each sample reports, ``delayed`` the ns that it had
    waited for a processor.
    """

    slowdown: int = 10
    step_ns: int = 10_000
    sample_every_ns: int = 10_000_000
    now_ns: int = 0
    native: float = 0.0
    native_untouched: float = 0.0
    python: float = 5e6
    python_large: float = 0.0
    kept: float = 0.0
    end_ns: int | None = None
    end_thread: int = 2  # objects are made by thread 1
    born: list[int] = field(default_factory=list)
    died: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    site: list[int] = field(default_factory=list)
    device: list[int] = field(default_factory=list)
    died_site: list[int] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)
    live_bytes: int = 0
    lines: dict[int, int] = field(default_factory=dict)
    imports: set[int] = field(default_factory=set)
    held: list[tuple[int, int, str, int]] = field(default_factory=list)
    misuses: list[tuple[str, int, str, int]] = field(default_factory=list)
    ledger: list[list[Any]] = field(default_factory=list)
    scopes: dict[int, int] = field(default_factory=dict)
    marks: list[tuple[int, str, int]] = field(default_factory=list)
    passes: list[tuple[int, int, int, int]] = field(default_factory=list)
    pools: list[tuple[str, int, int, int, int, int, int, int]] = field(default_factory=list)
    pool_bytes: float = 0.0
    tapes: float = 0.0
    quarantined: float = 0.0
    recorder: float = 1e6
    driver_keeps: float = 0.0
    delayed: float = 0.0
    modules: float = 0.0
    device_live: int = 0
    seen: list[Holding] = field(default_factory=list)
    contents: list[Holding] = field(default_factory=list)
    frames: dict[int, tuple[str, int]] = field(default_factory=dict)
    heap: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sample()

    def alloc(self, line: int, size: int = 8_000, device: int = 1) -> int:
        """Makes an object and returns its number; from device 16 on it is the runtime's."""
        self.wait(self.step_ns)
        self.born.append(self.now_ns)
        self.died.append(-1)
        self.died_site.append(0)
        self.size.append(size)
        self.device.append(device)
        self.site.append(self.site_of(line))
        self.live_bytes += size
        self.device_live += size if device >= 16 else 0
        return len(self.born) - 1

    def site_of(self, line: int) -> int:
        return self.lines.setdefault(line, len(self.lines) + 2)

    def cell(self, line: int, file: str, run_at: int | None) -> None:
        """From now on that line is line 1 of a cell, which another line, or a library, runs."""
        self.frames[self.site_of(line)] = (file, self.site_of(run_at) if run_at else 0)

    def free(self, number: int, line: int | None = None) -> None:
        """Frees an object, at the line that made it or at another one."""
        self.wait(self.step_ns // 10)
        assert self.died[number] < 0
        self.died[number] = self.now_ns
        self.died_site[number] = self.site_of(line) if line is not None else self.site[number]
        self.live_bytes -= self.size[number]
        self.device_live -= self.size[number] if self.device[number] >= 16 else 0

    def hold(self, number: int, kind: int, holder: str, line: int, of: int = 0) -> int:
        """Somebody takes an object at a line; returns the row of the ledger."""
        self.wait(self.step_ns // 10)
        self.ledger.append([number, kind, holder, of, self.now_ns, -1, self.site_of(line), 0, 0])
        return len(self.ledger) - 1

    def let_go(self, row: int, line: int, by: int = 5) -> None:
        """The holder of a row gives its object up at a line, by an event of a kind."""
        self.wait(self.step_ns // 10)
        self.ledger[row][5:] = [self.now_ns, self.ledger[row][6], self.site_of(line), by]

    def mark(self, label: str, index: int) -> None:
        """The program says which step it is in."""
        self.marks.append((self.now_ns, label, index))

    def passed(self, line: int, status: int = 0) -> None:
        """A backward pass is run."""
        self.wait(self.step_ns)
        begin = self.now_ns
        self.wait(self.step_ns)
        self.passes.append((self.site_of(line), begin, self.now_ns, status))

    def snapshot(
        self,
        *chains: tuple[list[ChainStep], list[int], float],
        whole: bool = True,
        collecting: bool = False,
        trigger: int = 3,
    ) -> None:
        """A snapshot sees chains: steps, the objects that it names, the share that is used."""
        self.wait(self.step_ns)
        number = self.seen[-1].snapshot + 1 if self.seen else 1
        for group, (steps, objects, used) in enumerate(chains):
            held = sum(self.size[number] for number in objects)
            self.seen.append(
                Holding(
                    ticks=self.now_ns,
                    snapshot=number,
                    trigger=trigger,
                    incomplete=not whole,
                    arrays=len(objects),
                    held_bytes=held,
                    used_bytes=round(used * held),
                    group=group,
                    device=self.device[objects[0]],
                    addresses=np.array(objects[:: max(1, len(objects) // 64)], np.uint64),
                    steps=tuple(steps),
                    collecting=collecting,
                )
            )

    def look(self, *found: tuple[list[ChainStep], int, int]) -> None:
        """A snapshot sees containers: steps, items, and the bytes of untracked arrays in them; 0
        bytes where it is the items that are counted."""
        self.wait(self.step_ns)
        number = self.contents[-1].snapshot + 1 if self.contents else 1
        for group, (steps, count, held) in enumerate(found):
            self.contents.append(
                Holding(
                    ticks=self.now_ns,
                    snapshot=number,
                    trigger=4,
                    incomplete=False,
                    arrays=count,
                    held_bytes=held,
                    used_bytes=0,
                    group=group,
                    device=0,
                    addresses=np.empty(0, np.uint64),
                    steps=tuple(steps),
                    what=UNTRACKED if held else CONTAINER,
                )
            )

    def count(self, **types: int) -> None:
        """The snapshot before counts objects by type."""
        last = self.contents[-1]
        for name, count in types.items():
            steps = (ChainStep(StepKind.INSTANCE, name),)
            group = self.contents[-1].group + 1
            self.contents.append(replace(last, arrays=count, group=group, steps=steps, what=TYPE))

    def cached(self, items: int, most: int) -> None:
        """The snapshot before counts what caches with a bound have, and may have."""
        last = self.contents[-1]
        self.contents.append(
            replace(
                last, arrays=items, held_bytes=most, group=last.group + 1, steps=(), what=CACHED
            )
        )

    def holding_objects(self) -> pd.DataFrame:
        """What the reader would find at the addresses that snapshots name."""
        rows = [
            (held.snapshot, held.group, int(number), number)
            for held in self.seen
            for number in held.addresses
        ]
        columns = zip(*rows, strict=True) if rows else ([], [], [], [])
        names = ("snapshot", "group", "object", "address")
        return frame("holding_objects", dict(zip(names, map(list, columns), strict=True)))

    def wait(self, ns: int) -> None:
        """Lets time pass, taking samples on the way."""
        target = self.now_ns + self.slowdown * ns
        every_ns = self.slowdown * self.sample_every_ns
        while self.samples[-1]["time_ns"] + every_ns <= target:
            self.now_ns = int(self.samples[-1]["time_ns"]) + every_ns
            self.sample()
        self.now_ns = target

    def stand_still(self, ns: int) -> None:
        """Lets time pass without a sample: the machine runs something else."""
        self.now_ns += self.slowdown * ns
        self.sample()

    def sample(self) -> None:
        row = dict.fromkeys(METRICS, 0.0)
        row |= {
            "time_ns": self.now_ns,
            "tracked": self.live_bytes,
            "python_arena": self.python,
            "python_large": self.python_large,
            "recorder": self.recorder + self.tapes + self.quarantined,
            "tapes": self.tapes,
            "modules": self.modules,
            "malloc_used": self.live_bytes
            + self.native
            + self.native_untouched
            + self.pool_bytes
            + self.quarantined,
            "malloc_free": self.kept,
            "anon": 20e6 + self.live_bytes + self.native + self.python + self.kept + self.recorder,
            "file": 30e6,
            "driver": self.device_live + self.pool_bytes + self.driver_keeps,
            "delayed": self.delayed,
        }
        row["malloc_used"] += self.python_large
        row["anon"] += self.python_large
        row["anon"] += self.pool_bytes + self.driver_keeps + self.tapes + self.quarantined
        handed_out = self.device_live + self.pool_bytes
        row["of_devices"] = (float(self.device_live), handed_out, handed_out)
        self.samples.append(row)

    def join(self, line: int, part_line: int, times: int, size: int = 10_000) -> int:
        """Joins a new part to one array again and again; returns the number of the last array."""
        whole = self.alloc(line, size)
        for step in range(2, times + 1):
            part, larger = self.alloc(part_line, size), self.alloc(line, step * size)
            self.free(whole)
            self.free(part)
            whole = larger
            self.wait(2_000_000)
        return whole

    def temporary(self, line: int, size: int = 8_000) -> None:
        self.free(self.alloc(line, size))

    def recording(self) -> Any:
        """What the reader would hand to an analysis."""
        self.sample()
        numbers = list(range(len(self.lines) + 2))
        line_of = {site: line for line, site in self.lines.items()}
        sites = pd.DataFrame(
            {
                "parent": [self.frames.get(n, ("", 0))[1] for n in numbers],
                "file": [
                    self.frames.get(n, ("/home/user/program.py", 0))[0] if n in line_of else ""
                    for n in numbers
                ],
                "function": ["work" if n in line_of else "" for n in numbers],
                "line": [1 if n in self.frames else line_of.get(n, 0) for n in numbers],
                "code": numbers,
                "blamed": numbers,
                "depth": [(1 + (n in self.frames)) if n in line_of else 0 for n in numbers],
            },
            index=pd.Index(numbers, name="site"),
        )
        objects = pd.DataFrame(
            {
                "size_bytes": np.array(self.size, np.int64),
                "born_ns": np.array(self.born, np.int64),
                "died_ns": np.array(self.died, np.int64),
                "born_site": np.array(self.site, np.int64),
                "died_site": np.array(self.died_site, np.int64),
                "folded": np.zeros(len(self.born), bool),
                "device": np.array(self.device, np.uint8),
                "born_thread": np.ones(len(self.born), np.int32),
            },
            index=pd.RangeIndex(len(self.born), name="object"),
        )
        live = objects["died_ns"] < 0
        totals = SimpleNamespace(
            current_bytes=int(objects["size_bytes"][live].sum()),
            current_count=int(live.sum()),
            peak_bytes=int(objects["size_bytes"].sum()),
            peak_count=len(objects),
            total_bytes=int(objects["size_bytes"].sum()),
            total_count=len(objects),
            acquires=0,
            releases=0,
            unknown_frees=0,
        )
        return Told(
            path="/home/user/tlmem-program.7.tlm",
            pid=7,
            parent_pid=0,
            info={"command": "program.py", "script": "program.py"}
            | {"quarantine_bytes": "256000000" if self.quarantined else "0"},
            objects=objects,
            samples=pd.DataFrame(self.samples).drop(columns="of_devices"),
            sites=sites,
            blame_table=pd.Series(numbers, index=sites.index),
            stack=partial(stack_of, line_of),
            totals=totals,
            fold=None,
            horizon_ns=0,
            seconds=self.now_ns / 1e9,
            begin_ns=0,
            end_ns=self.end_ns,
            end_thread=self.end_thread,
            lost_events=0,
            missing_events=0,
            event_count=2 * len(self.born),
            complete=True,
            sealed=True,
            problems=[],
            misuses=pd.DataFrame(
                self.misuses, columns=["misuse", "object", "holder", "site"]
            ).assign(thread=1, time_ns=self.now_ns),
            holders=pd.DataFrame(self.ledger, columns=LEDGER),
            holdings=holdings_table(
                self.seen,
                {(held.snapshot, held.group): held for held in self.seen},
                as_ns,
            ),
            holding_steps=steps_table(self.seen),
            object_types=object_types_table(
                {(held.snapshot, held.group): held for held in self.contents},
                {(held.snapshot, TOTALS_GROUP): held for held in self.contents},
                (0, self.now_ns),
                as_ns,
            ),
            contents=contents_table(
                {(held.snapshot, held.group): held for held in self.contents},
                {(held.snapshot, TOTALS_GROUP): held for held in self.contents},
                (0, self.now_ns),
                as_ns,
            ),
            holding_objects=self.holding_objects(),
            heap_sampled=False,
            heap_from_ns=0,
            lost_ns=0,
            passed=pd.DataFrame(),
            heap=pd.DataFrame(
                self.heap, columns=[column.name for column in SCHEMA["heap"].columns]
            ),
            marks=pd.DataFrame(self.marks, columns=["time_ns", "label", "index"]),
            scopes=pd.DataFrame(
                {
                    "enter_site": list(self.scopes.values()),
                    "label": "",
                    "thread": 1,
                    "enter_ns": 0,
                    "exit_ns": -1,
                },
                index=pd.Index(self.scopes.keys(), name="scope", dtype=np.int64),
            ),
            threads=pd.DataFrame(
                {"name": [""], "main": [True]}, index=pd.Index([1], name="thread")
            ),
            passes=pd.DataFrame(self.passes, columns=PASSES),
            pools=pd.DataFrame(self.pools, columns=POOLS),
            held_at=self.held_at,
            device_memory=self.device_memory,
        )

    def device_memory(self, times_ns: np.ndarray) -> pd.DataFrame:
        """What the reader would compute from the events of devices."""
        rows = {row["time_ns"]: row for row in self.samples}
        device = [rows[time_ns]["of_devices"] for time_ns in times_ns.tolist()]
        return pd.DataFrame(device, columns=["objects", "handed_out", "host"]).assign(host_count=0)

    def held_at(self, objects: np.ndarray, time_ns: int) -> pd.DataFrame:
        """What the ledger of a recording would say."""
        rows = [row for row in self.ledger if row[4] <= time_ns and not 0 <= row[5] <= time_ns]
        held = [*self.held, *((row[0], row[1], row[2].partition(" #")[0], row[6]) for row in rows)]
        held = [row for row in held if row[0] in set(objects.tolist())]
        return pd.DataFrame(held, columns=["object", "kind", "holder", "site"])


def stack_of(line_of: dict[int, int], site: int) -> list[dict[str, Any]]:
    """The only frame of a site."""
    return [{"file": "/home/user/program.py", "line": line_of.get(site, 0), "function": "work"}]


def as_ns(ticks: np.ndarray) -> np.ndarray:
    """Ticks of these recordings are nanoseconds."""
    return ticks.astype(np.int64)


class Ring:
    """A bounded cache: beyond ``capacity`` the oldest object goes."""

    def __init__(self, program: Program, line: int, capacity: int, size: int = 8_000) -> None:
        self.program, self.line, self.capacity, self.size = program, line, capacity, size
        self.held: deque[int] = deque()

    def add(self) -> None:
        self.held.append(self.program.alloc(self.line, self.size))
        if len(self.held) > self.capacity:
            self.program.free(self.held.popleft())
