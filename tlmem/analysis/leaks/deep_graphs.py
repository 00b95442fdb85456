"""A tensor whose autograd graph gets deeper with each step: ``total = total + loss``.

Where a backward pass frees what each step saved, such a tensor keeps next to nothing that is
tracked, and no line grows: its nodes are C++ objects, a few hundred bytes each, in native memory.
What gives it away is how deep its graph is, which each snapshot reads: as deep as the model for a
loss, one node more with each step for a sum of losses.

Covers: the tensor that was seen with ever deeper graphs, beside growth of native memory; that
growth where its own samples are too few or too uneven, as in a program that worked for a second.
Does not cover: graphs that keep tensors, whose lines grow; see ``torch_graphs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tlmem.analysis.growth.curves import Window, memory_curve
from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.growth.rates import rate_of
from tlmem.analysis.holders.snapshots import (
    GRAPH,
    NATIVE,
    PYTHON,
    Step,
    split_words,
    steps_of,
)
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding, Holder
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES
from tlmem.units import format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

FEWEST_SEEN = 3
"""Snapshots that must have seen the tensor: two of them show a difference, and no growth."""
FEWEST_MORE = 100
"""Nodes by which its graph must have become deeper: a sequence that is unrolled may be longer."""
LATEST = 0.5
"""Share of the time of growth within which it must have been seen last."""
KIND = "graph-chain-grows"

Key = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class DeepGraph:
    """A tensor of which each of ``seen`` snapshots saw a deeper graph than the one before.

    ``first`` and ``last`` are nodes on the longest way through it, at ``begin_ns`` and ``end_ns``;
    ``object`` is the number of the tensor's memory, -1 where it is not known, and ``site`` where it
    was allocated.
    """

    name: str
    chain: str
    node: str
    seen: int
    first: int
    last: int
    begin_ns: int
    end_ns: int
    object: int = -1
    site: int = 0

    @property
    def more(self) -> int:
        """By how many nodes it became deeper."""
        return self.last - self.first

    @property
    def holder(self) -> Holder:
        """Who keeps it."""
        return Holder(kind=PYTHON, name=self.name, count=1, chain=self.chain, seen_ns=self.end_ns)

    def explains(self, rise: Rise) -> bool:
        """Whether native memory may grow by the nodes of this graph."""
        return rise.kind == "native" and self.end_ns >= rise.since_ns + LATEST * rise.seconds * 1e9

    def sentence(self, origin_ns: int) -> str:
        """How its graph grew; times count from ``origin_ns``."""
        first_s, last_s = ((at - origin_ns) / 1e9 for at in (self.begin_ns, self.end_ns))
        return (
            f"The autograd graph ({self.node}) of {self.name} reaches back over all steps: "
            f"{format_count(self.first)} nodes deep after {format_seconds(first_s)}, "
            f"{format_count(self.last)} after {format_seconds(last_s)}."
        )


def deep_graph(recording: Recording) -> DeepGraph | None:
    """The tensor whose graph becomes ever deeper; of several the one that others come from.

    What is computed from it in each step, such as a mean, has a graph that is deeper still.
    """
    found = deepening(recording)
    most = max((each.more for each in found), default=0)
    alike = [each for each in found if each.more >= RULES.nearly_all * most]
    if not alike:
        return None
    return min(alike, key=lambda each: (-each.seen, each.last, each.name))


def deepening(recording: Recording) -> list[DeepGraph]:
    """All tensors of which snapshots saw ever deeper graphs."""
    table = recording.holdings
    if not len(table):
        return []
    steps = steps_of(recording.holding_steps)
    seen: dict[Key, dict[int, DeepGraph]] = {}
    columns = ("snapshot", "group", "time_ns", "root", "words", "chain")
    for snapshot, group, at_ns, root, words, chain in zip(
        *(table[name].tolist() for name in columns), strict=True
    ):
        way = steps.get((snapshot, group), ())
        if not way or way[-1].kind != GRAPH or not way[-1].items or root == NATIVE:
            continue
        depth = way[-1].items
        name, node = split_words(words)
        one = DeepGraph(name, chain, node, 1, depth, depth, at_ns, at_ns, group)
        of_name = seen.setdefault(name_of(way), {})
        if snapshot not in of_name or of_name[snapshot].last < depth:
            of_name[snapshot] = one
    found = [
        over_time([of_name[snapshot] for snapshot in sorted(of_name)]) for of_name in seen.values()
    ]
    return [with_object(each, recording) for each in found if each is not None]


def name_of(way: tuple[Step, ...]) -> Key:
    """What a chain has in common with that of the same variable at another moment: not its line."""
    return tuple((step.kind, "\n".join(step.type.split("\n")[:2]), step.edge) for step in way[:-1])


def over_time(moments: list[DeepGraph]) -> DeepGraph | None:
    """The snapshots of one variable as one; None where its graph did not become ever deeper."""
    rises = all(before.last < after.last for before, after in pairwise(moments))
    if len(moments) < FEWEST_SEEN or not rises:
        return None
    first, last = moments[0], moments[-1]
    if last.last - first.last < FEWEST_MORE:
        return None
    return replace(last, seen=len(moments), first=first.last, begin_ns=first.begin_ns)


def with_object(graph: DeepGraph, recording: Recording) -> DeepGraph:
    """With the tensor's memory in place of the group in which the last snapshot saw it.

    That is not known where the tensor was freed before older events were folded.
    """
    named, holdings = recording.holding_objects, recording.holdings
    last = holdings.loc[holdings["time_ns"] == graph.end_ns, "snapshot"].iloc[0]
    mine = named[(named["snapshot"] == last) & (named["group"] == graph.object)]
    mine = mine[mine["object"].isin(recording.objects.index)]
    if not len(mine):
        return replace(graph, object=-1)
    number = int(mine["object"].iloc[0])
    site = recording.objects["born_site"].loc[[number]].to_numpy(np.int64)
    return replace(graph, object=number, site=int(site[0]))


def with_deep_graph(
    found: Resident, graph: DeepGraph | None, samples: pd.DataFrame, lives: Lifetimes
) -> Resident:
    """With the native growth that a graph alone shows, where the curves show none.

    So many snapshots in a row would see a deeper graph by chance in 1 of 720 programs whose graphs
    begin anew. Memory must have risen meanwhile, whether steadily or not.
    """
    if graph is None or graph.seen < RULES.fewest_troughs:
        return found
    if any(graph.explains(rise) for rise in found.rises):
        return found
    window = Window(samples, graph.begin_ns, lives.judged_ns)
    for name in ("native", "outside"):
        curve = memory_curve(window, name)
        times, values = curve.time_ns[curve.taken] / 1e9, curve.values[curve.taken]
        rate = rate_of(times, values)
        if rate is None or rate.value <= 0 or values[-1] - values[0] < curve.least:
            continue
        seconds = float(times[-1] - times[0])
        rise = Rise("native", round(rate.value * seconds), seconds, graph.begin_ns, rate)
        if graph.explains(rise):
            return replace(found, rises=(rise, *found.rises))
    return found


def deep_graph_findings(
    graph: DeepGraph | None, rises: Sequence[Rise], places: Places, origin_ns: int
) -> list[Finding]:
    """What is said of it where native memory grows, at the line that made the tensor."""
    rise = next((rise for rise in rises if graph is not None and graph.explains(rise)), None)
    if graph is None or rise is None:
        return []
    return [
        Finding(
            kind=KIND,
            severity="warning",
            count=graph.more,
            bytes=rise.bytes,
            evidence=graph.sentence(origin_ns),
            object=graph.object if graph.object >= 0 else None,
            site=places.blamed_frame(graph.site) if graph.site > 0 else None,
            stack=places.stack(graph.site) if graph.site > 0 else (),
            holders=(graph.holder,),
            slope_bytes_per_s=rise.rate.value,
            fix=FIXES[KIND],
        )
    ]
