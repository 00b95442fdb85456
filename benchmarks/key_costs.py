"""When every key on every screen of ``tlmem tui`` is answered, and what it costs in CPU time.

Covers: pressing keys one by one, each when all that the one before asked for has been done. A key
is answered when the last thing that it leads to has been written to the terminal. CPU time is the
same on a busy machine; that of the interface's own thread and of the process are read from /proc,
so this part needs Linux.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import Spread
from benchmarks.pages import table
from benchmarks.pseudo_terminal import Screen

UP, DOWN, RIGHT, LEFT, HOME, END, PAGE_DOWN, FAR_RIGHT = (
    f"\x1b[{code}" for code in ("A", "B", "C", "D", "H", "F", "6~", "1;2C")
)
ENTER, TAB, ESCAPE = "\r", "\t", "\x1b"
NAMES = {
    **{UP: "↑", DOWN: "↓", RIGHT: "→", LEFT: "←", HOME: "Home", END: "End"},
    **{PAGE_DOWN: "PgDn", FAR_RIGHT: "⇧→", ENTER: "⏎", TAB: "⇥", ESCAPE: "Esc"},
}
TIME = ("+", "+", ".", ",", "-", "-", "0")
KEYS: dict[str, tuple[str, ...]] = {
    "1 overview": (*TIME, RIGHT, LEFT, "?", ESCAPE),
    "2 timeline": (
        *(DOWN, UP, RIGHT, LEFT, *TIME, "[", FAR_RIGHT, "]", "0"),
        *(ENTER, DOWN, "s", "s", "s", END, HOME, PAGE_DOWN, "+", "s", "s", "s", "-"),
        *(ENTER, "n", "N", ESCAPE, ESCAPE),
        *("o", "s", "s", "s", END, HOME, *TIME, "o"),
    ),
    "3 findings": (*"ssssss", *"fff", DOWN, UP, TAB, TAB, "c", *TIME),
    "4 sites": (
        *(DOWN, UP, RIGHT, LEFT, "e", *"bbbb", *"toat"),
        *("v", DOWN, ENTER, ESCAPE, "v", *"rriiuu", ">", ">", "m", *TIME),
    ),
    "5 scopes": (*TIME, TAB),
    "6 pools": (*TIME, TAB),
    "7 tape": (*TIME, TAB),
    "8 diff": (*TIME, TAB),
}
SLOWEST = 8
"""So many keys are named."""
NOTICES = {"c"}
LONGEST_NOTICE_S = 20.0
"""After these keys a notice is on screen, which goes by itself after 5 s: the next key is pressed
when it has, for its going is no answer to that one."""
QUIET_S = 0.15
"""A process that has written nothing and used next to no CPU for so long has done everything."""


@dataclass(frozen=True)
class Cost:
    """One key: milliseconds until the last thing was written, and CPU milliseconds, of the
    interface's thread until it first wrote, and until all was done, and of the whole process until
    then."""

    screen: str
    key: str
    answer_ms: float
    first_ms: float
    interface_ms: float
    process_ms: float


def costs(screen: Screen) -> tuple[list[Cost], list[Cost]]:
    """The first visits of all screens, then every key on each; begins when all work is done."""
    _settle(screen)
    visits = [_press(screen, name[0], name) for name in KEYS]
    found = []
    for name, keys in KEYS.items():
        found.append(_press(screen, name[0], name))
        for key in keys:
            found.append(_press(screen, key, name))
            if key in NOTICES and not _written(screen, LONGEST_NOTICE_S):
                raise RuntimeError(f"the notice of '{key}' has not gone")
    return visits, found


def tables(visits: Sequence[Cost], found: Sequence[Cost]) -> Iterator[str]:
    """Both in Markdown."""
    groups = {name: [cost for cost in found if cost.screen == name] for name in KEYS}
    rows = [
        [name, str(len(mine)), *(_spread([getattr(cost, of) for cost in mine]) for of in _COLUMNS)]
        for name, mine in {**groups, "first visits": visits}.items()
    ]
    yield "Milliseconds of a key, median (most):"
    yield table(["screen", "keys", *_COLUMNS.values()], rows)
    late = sorted([*visits, *found], key=lambda cost: -cost.answer_ms)[:SLOWEST]
    named = ", ".join(f"`{cost.key}` on {cost.screen[2:]} {cost.answer_ms:.0f}" for cost in late)
    yield f"The slowest: {named} ms; Esc waits for the rest of another key's sequence."


_COLUMNS = {
    "answer_ms": "answered after",
    "first_ms": "CPU of the interface until it first wrote",
    "interface_ms": "until all was done",
    "process_ms": "with what threads compute",
}


def _spread(values: list[float]) -> str:
    spread = Spread.of(values)
    return f"{spread.median:.0f} ({spread.most:.0f})"


def _press(screen: Screen, key: str, name: str) -> Cost:
    while _written(screen, 0.0):
        pass
    process, interface = _process_s(screen.pid), _interface_s(screen.pid)
    began = time.perf_counter()
    os.write(screen.terminal, key.encode())
    first_s, answer_s, used, since = 0.0, 0.0, process, began
    while time.perf_counter() - since < QUIET_S:
        wrote = _written(screen, 0.01)
        answer_s = time.perf_counter() - began if wrote else answer_s
        if wrote and not first_s:
            first_s = _interface_s(screen.pid) - interface
        if wrote or _process_s(screen.pid) - used > 0.002:
            used, since = _process_s(screen.pid), time.perf_counter()
    return Cost(
        name,
        NAMES.get(key, key),
        answer_s * 1e3,
        first_s * 1e3,
        (_interface_s(screen.pid) - interface) * 1e3,
        (_process_s(screen.pid) - process) * 1e3,
    )


def _settle(screen: Screen) -> None:
    """Waits until the process has written nothing and used next to no CPU for a while."""
    used, since = _process_s(screen.pid), time.perf_counter()
    while time.perf_counter() - since < QUIET_S:
        if _written(screen, 0.01) or _process_s(screen.pid) - used > 0.002:
            used, since = _process_s(screen.pid), time.perf_counter()


def _written(screen: Screen, wait_s: float) -> bool:
    """Whether the screen has written something; it is thrown away."""
    if not select.select([screen.terminal], [], [], wait_s)[0]:
        return False
    os.read(screen.terminal, 1 << 16)
    return True


def _process_s(pid: int) -> float:
    """CPU seconds of a process."""
    return time.clock_gettime((~pid << 3) | 2)


def _interface_s(pid: int) -> float:
    """CPU seconds of its first thread."""
    text = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
    return int(text.split()[0]) / 1e9
