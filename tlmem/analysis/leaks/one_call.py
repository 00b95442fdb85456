"""Growth within one call of a library: it may be building what the call returns.

``solve_ivp()`` collects states until it returns, ``fit()`` a model's trees: where such a call takes
all of the run, memory rises as evenly as with a leak. A leak repeats, so growth counts when the
program makes it more than once. The note ``once`` has the loops of the program's files: a call
is single if the user's line that called the library is outside of loops, and so is each call that
led to this line. Without that, a container in a local variable of a library says so if it holds
nearly all: it is gone when the call returns. What the user's own code holds, such as a list that a
callback fills, is judged as any other line.

Covers: growing lines, native memory and Python's heap, of scripts and modules that ``tlmem record``
ran, and what they import. Does not cover: processes that these started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.heap_samples import blocks_of
from tlmem.analysis.holders.snapshots import Chain, frame_of
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding, StackFrame
from tlmem.analysis.places import Places, place
from tlmem.analysis.rules import RULES
from tlmem.recording.format.symbols import FIRST_SITE
from tlmem.recording.tables.blame import is_users
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

KINDS = {"native": "Native memory", "python": "Python's heap"}
"""Kinds of memory that a call may fill, in words."""
MAY_BE_RESULT = "The call may be building its result."
MAIN = "__main__"
MODULE = "<module>"
LOCAL = "local"
COLLECTIONS = ("dict", "list", "tuple", "set", "deque")
NOT_CONTAINERS = ("instance", "module", "local")
"""Kinds of steps."""
NOWHERE = ("", 0, "")
LAUNCHERS = re.compile(r"[/\\](absl|click|fire|hydra|typer)[/\\]")
"""Libraries that read the command line and call a function of the user's for it, once."""


class Source(NamedTuple):
    """Loops of a file, and the lines of its single calls by name."""

    loops: list[tuple[int, int]]
    calls: dict[str, set[int]]


@dataclass(frozen=True)
class SingleCalls:
    """The calls of libraries that a program makes exactly once."""

    recording: Recording
    places: Places

    @cached_property
    def sources(self) -> dict[str, Source]:
        """What is known of the program's files; of no other is known how often its lines run."""
        try:
            note: Any = json.loads(self.recording.info.get("once", "{}"))
            return {
                str(file): Source(
                    [(int(first), int(last)) for first, last in about["loops"]],
                    {str(name): set(map(int, lines)) for name, lines in about["calls"].items()},
                )
                for file, about in note.items()
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            return {}

    @cached_property
    def frames(self) -> dict[int, tuple[str, int, str]]:
        """File, line and function of each site."""
        sites = self.recording.sites
        columns = (sites[name].tolist() for name in ("file", "line", "function"))
        return dict(zip(sites.index.tolist(), zip(*columns, strict=True), strict=True))

    @cached_property
    def user_paths(self) -> list[str]:
        """The files of the user's code without their endings."""
        files = {file for file, _, _ in self.frames.values()}
        users = sorted(file for file in files if is_users(file, self.recording.info))
        return [file.removesuffix(".py").removesuffix("/__init__") for file in users]

    def is_user_module(self, name: str) -> bool:
        """Whether a module is the user's, by its full name."""
        path = "/" + name.replace(".", "/")
        return name == MAIN or any(file.endswith(path) for file in self.user_paths)

    def call_of(self, site: int) -> int:
        """The user's site whose call of a library allocated here; 0 if that call may repeat."""
        caller = int(self.places.blamed[site])
        if caller in (0, site) or self.places.blamed[caller] != caller:
            return 0
        callee, at = "", caller
        while at >= FIRST_SITE and at in self.frames:
            file, line, function = self.frames[at]
            source = self.sources.get(file)
            if source is None or any(first <= line <= last for first, last in source.loops):
                return 0
            if callee and line not in source.calls.get(callee, ()):
                return 0
            if function == MODULE:  # a module runs once
                return caller
            at = int(self.places.parents[at])
            parts = function.split(".")
            callee = parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
            while at >= FIRST_SITE and LAUNCHERS.search(self.frames.get(at, NOWHERE)[0]):
                callee, at = "", int(self.places.parents[at])
        return 0

    def call_of_most(self, sites: NDArray[np.int64], weight: NDArray[Any]) -> int:
        """The one call that made nearly all of these allocations; 0 if there is none."""
        known, numbers = np.unique(sites, return_inverse=True)
        counts = np.bincount(numbers.reshape(-1), weights=weight)
        calls = np.array([self.call_of(int(site)) for site in known], np.int64)
        if not calls.any():
            return 0
        shares = np.bincount(calls, weights=counts)
        shares[0] = 0
        most = int(np.argmax(shares))
        return most if shares[most] >= RULES.nearly_all * counts.sum() else 0

    def is_in_progress(self, site: int, chains: Sequence[Chain], born: NDArray[np.int64]) -> bool:
        """Whether one call holds nearly all: a local variable of a library that led to the site.

        A container in such a variable is gone when the call returns, so that what it holds is of
        one call, whatever becomes of it later.

        Args:
            chains: of one snapshot, which need not have met all.
            born: when each of them was allocated.
        """
        calls, at = set(), site
        while at >= FIRST_SITE and at in self.frames:  # a damaged recording does not name all
            file, _, function = self.frames[at]
            if not is_users(file, self.recording.info):
                calls.add((file, function))
            at = int(self.places.parents[at])
        held = sum(chain.arrays for chain in chains if local_container_of(chain) in calls)
        if held == 0 or held < RULES.nearly_all * sum(chain.arrays for chain in chains):
            return False
        return held >= RULES.majority * int((born <= chains[0].time_ns).sum())

    def is_user_held(self, chain: Chain) -> bool:
        """Whether a variable or coroutine of the user's, or an object of its classes, leads on."""
        instances = (step.type for step in chain.steps if step.kind == "instance")
        if any(self.is_user_module(name.rpartition(".")[0]) for name in instances):
            return True
        coroutines = (frame_of(step.type) for step in chain.steps if step.kind == "generator")
        if any(is_users(code.file, self.recording.info) for code in coroutines if code is not None):
            return True
        begin = chain.steps[:2]
        if len(begin) < 2 or begin[1].kind in NOT_CONTAINERS:
            return False
        if begin[0].kind == "module":
            return self.is_user_module(begin[0].type)
        return chain.frame is not None and is_users(chain.frame.file, self.recording.info)


def local_container_of(chain: Chain) -> tuple[str, str] | None:
    """File and function whose local variable is the container that a chain begins with."""
    begin = [step.kind for step in chain.steps[:2]]
    if chain.frame is None or len(begin) < 2 or begin[0] != LOCAL or begin[1] not in COLLECTIONS:
        return None
    return chain.frame.file, chain.frame.function


def within_one_call(
    single: SingleCalls,
    lives: Lifetimes,
    growths: Sequence[GrowingSite],
    lines: Sequence[Survivors],
) -> list[tuple[GrowingSite, Finding]]:
    """The growing lines whose survivors one call of a library made and holds, with their findings.

    Args:
        growths: the growing lines.
        lines: their holders, as far as they are known.
    """
    chains = {id(line.growth): line.chains for line in lines}
    found = []
    for growth in growths:
        rows = growth.rows
        if rows is None or not len(rows):
            continue
        held = chains.get(id(growth), ())
        once = single.call_of_most(lives.site[rows], lives.weight[rows])
        if not once and not single.is_in_progress(growth.site, held, lives.born[rows]):
            continue
        own = sum(chain.arrays for chain in held if single.is_user_held(chain))
        if own > RULES.majority * sum(chain.arrays for chain in held):
            continue
        found.append((growth, finding_of(lives, single.places, growth, held)))
    return found


def finding_of(
    lives: Lifetimes, places: Places, growth: GrowingSite, held: Sequence[Chain]
) -> Finding:
    """The finding about a growing line."""
    who = f", {format_count(held[0].arrays)} of them by {held[0].words}" if held else ""
    return growth.info(
        "one-call",
        places,
        f"{format_count(growth.survivors)} {lives.noun(growth.group)}s "
        f"({format_bytes(growth.bytes)}) were kept within one call of a library at "
        f"{place(places.frames[growth.group])}{who}. {MAY_BE_RESULT}",
    )


def without_one_call(
    resident: Resident, single: SingleCalls, lives: Lifetimes
) -> tuple[Resident, list[Finding]]:
    """The same samples without rises within one call of a library, and findings about these."""
    rises, found = [], []
    for rise in resident.rises:
        call = call_of_rise(rise, single, lives)
        if call:
            frame = single.places.frames[single.places.group_of_site[call]]
            found.append(finding_of_rise(rise, frame))
        else:
            rises.append(rise)
    return replace(resident, rises=tuple(rises)), found


def call_of_rise(rise: Rise, single: SingleCalls, lives: Lifetimes) -> int:
    """The site of the one call in which memory outside arrays rose; 0 where there is none.

    Sampled blocks of that memory decide; without them, the arrays that were allocated meanwhile.
    """
    if rise.kind not in KINDS or not single.sources:
        return 0
    if len(single.recording.heap):
        blocks = blocks_of(
            single.recording, single.places, rise.kind, lives.judged_ns, rise.since_ns
        )
        if len(blocks):
            return single.call_of_most(blocks.site, blocks.size * blocks.weight)
    during = np.flatnonzero((lives.born >= rise.since_ns) & (lives.born <= lives.judged_ns))
    if len(during) < RULES.fewest_survivors:
        return 0
    return single.call_of_most(lives.site[during], lives.weight[during])


def finding_of_rise(rise: Rise, frame: StackFrame) -> Finding:
    """The finding about memory outside arrays."""
    return Finding(
        kind="one-call",
        severity="info",
        count=0,
        bytes=rise.bytes,
        evidence=(
            f"{KINDS[rise.kind]} grew by {format_bytes(rise.bytes)}, {rise.rate.per_second()}, "
            f"within one call of a library at {place(frame)}. {MAY_BE_RESULT}"
        ),
        site=frame,
    )
