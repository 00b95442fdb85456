"""Which chains of Python objects held some objects when a snapshot last saw them.

Covers: the snapshot that speaks for objects, shares of its chains by the objects it names.
Does not cover: the chains themselves (``Recording.holdings``), which objects are asked about.

A snapshot names a sample of the objects of each chain. Of a chain in which a third of the named
objects are among those that are asked about, a third of all its objects count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.model import Holder, StackFrame
from tlmem.events import Device

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SPEAKS_FROM = 0.5
"""The latest snapshot that saw at least this share of the most objects any of them saw counts.

Later ones, taken after the program's frames have unwound, see what is left."""
CUT_SHORT_SPEAKS_FROM = 0.9
"""The same of a snapshot that ended before it had looked at everything."""
FEWEST_NAMED = 10
"""Objects that a snapshot must name to speak against a later one."""
GOOD_PART = 0.2
"""Share of the objects there were that it must have seen at a root to speak against cycles."""
EARLY = 0.25
"""Before this share of the objects was there, a snapshot only saw what was being worked on."""
PYTHON = "python"
"""Kind of holders that snapshots name."""
GRAPH = "graph"
"""Kind of a chain's last step that is a node of an autograd graph."""
NATIVE = "other"
"""Root of a chain that begins with an object that only native code holds: a part of a graph."""
WITH_GRAPH = ", with the autograd graph ("
"""Stands in the words for a chain before the node of the graph."""
_FRAMES = ("local", "generator")

Ints = NDArray[np.int64]


MANY_NUMBERED = 10
"""Variables that differ by a number alone which are told as one; fewer have been named by hand."""
_NUMBERED = re.compile(r"((?:local )?variable) '([^'\d]*)\d+([^'\d]*)'(.*)", re.DOTALL)
_MOST_DIGITS = 10
"""Of the number of a line."""


class Step(NamedTuple):
    """One step of a chain: what holds, its type, by which edge it holds the next, its items."""

    kind: str
    type: str
    edge: str
    items: int


@dataclass(frozen=True)
class Chain:
    """One chain and its share of the objects that were asked about, when a snapshot was taken.

    ``arrays``, ``held_bytes`` and ``used_bytes`` are of the share; ``objects`` are those of them
    that the snapshot names. ``whole`` says that the snapshot had seen all Python objects, ``view``
    that the last holder of the memory is a view of it, ``collecting`` that Python's garbage
    collector was on. ``most`` is how many items its container may have that has ``items``, 0 where
    no bound is known or another container on the way may grow. ``steps`` lead from the root to the
    memory, which is a device's.
    """

    words: str
    text: str
    root: str
    view: bool
    whole: bool
    time_ns: int
    arrays: int
    held_bytes: int
    used_bytes: int
    frame: StackFrame | None
    objects: Ints
    collecting: bool = False
    items: int = 0
    most: int = 0
    device: int = int(Device.NUMPY)
    steps: tuple[Step, ...] = ()

    @property
    def graph(self) -> str:
        """The node of PyTorch's autograd graph that the tensor keeps; empty without one."""
        return self.steps[-1].type if self.steps and self.steps[-1].kind == GRAPH else ""

    @property
    def holder(self) -> Holder:
        """The chain as a holder."""
        return Holder(
            kind=PYTHON,
            name=self.words,
            site=self.frame,
            count=self.arrays,
            chain=self.text,
            seen_ns=self.time_ns,
            held_bytes=self.held_bytes,
            used_bytes=self.used_bytes,
        )


@dataclass(frozen=True)
class Look:
    """What a snapshot saw of some objects: how many there were, at a root and in cycles.

    ``in_modules`` of those at a root were in variables of modules, which stay when functions
    return. ``named`` are those at a root that it names, ``whole`` says that it had looked at
    everything.
    """

    there: int
    reached: float
    in_modules: float
    cyclic: float
    named: int
    whole: bool

    @property
    def mostly_cyclic(self) -> bool:
        """Whether most of the objects were in cycles while the program's frames were there."""
        return self.cyclic >= max(FEWEST_NAMED, SPEAKS_FROM * self.there)

    @property
    def by_functions(self) -> bool:
        """Whether functions held a good part of the objects, which they drop when they return."""
        return self._at_a_root and self.in_modules <= self.reached / 2

    @property
    def by_modules(self) -> bool:
        """Whether variables of modules did, of which only the program's own code lets go."""
        return self._at_a_root and self.in_modules > self.reached / 2

    @property
    def _at_a_root(self) -> bool:
        part = max(GOOD_PART * self.there, self.cyclic)
        return self.named >= FEWEST_NAMED and self.reached > part


def last_look(looks: Sequence[Look]) -> Look | None:
    """The last whole one; without a whole one, the last. None without any.

    Earlier ones do not count: what a program prunes from a tree was at a root, too, before.
    """
    return next((look for look in reversed(looks) if look.whole), looks[-1] if looks else None)


class Snapshots:
    """All whole snapshots of a recording, ready to be asked who held what."""

    def __init__(self, recording: Recording) -> None:
        self._holdings = recording.holdings
        named = recording.holding_objects
        keys = ["snapshot", "group"]
        row_of = pd.Series(
            range(len(self._holdings)), pd.MultiIndex.from_frame(self._holdings[keys])
        )
        self._row = row_of.reindex(pd.MultiIndex.from_frame(named[keys])).to_numpy(np.int64)
        self._object = named["object"].to_numpy(np.int64)
        self._born = recording.objects["born_ns"].to_numpy(np.int64)
        self._numbers = recording.objects.index.to_numpy(np.int64)
        self._named = np.bincount(self._row, minlength=len(self._holdings))
        steps = recording.holding_steps
        self._steps = steps_of(steps)
        first = steps[(steps["step"] == 0) & steps["kind"].isin(_FRAMES)]
        self._frames = {
            (int(row["snapshot"]), int(row["group"])): frame_of(row["type"])
            for row in first.to_dict("records")
        }

    def __bool__(self) -> bool:
        return len(self._object) > 0

    @property
    def objects(self) -> Ints:
        """Every object that a snapshot names, once each, rising."""
        return np.unique(self._object)

    def chains_of(self, objects: Ints, at_ns: int | None = None) -> list[Chain]:
        """The chains that held these objects (numbers, rising), most objects first.

        Args:
            at_ns: of the snapshots that saw enough of them, the one nearest to this moment speaks;
                None: the latest one that ran while the program did.
        Returns:
            Nothing when no snapshot names one of them.
        """
        if not self or not len(objects):
            return []
        at = np.searchsorted(objects, self._object).clip(max=len(objects) - 1)
        mine = objects[at] == self._object
        counts = np.bincount(self._row[mine], minlength=len(self._holdings))
        table = self._holdings
        share = counts / np.maximum(self._named, 1)
        arrays = table["arrays"].to_numpy(np.int64) * share
        snapshot = table["snapshot"].to_numpy(np.int64)
        numbers, which = np.unique(snapshot, return_inverse=True)
        seen = np.bincount(which.reshape(-1), weights=arrays)
        if not seen.any():
            return []
        cut_short = numbers[:, None] == snapshot[~table["complete"].to_numpy(bool)][None, :]
        enough = np.where(cut_short.any(axis=1), CUT_SHORT_SPEAKS_FROM, SPEAKS_FROM)
        able = numbers[seen >= enough * seen.max()]
        if at_ns is None:
            speaks = self._while_it_ran(int(able[-1]), objects, arrays, counts)
        else:
            first = np.array([np.argmax(snapshot == each) for each in able])
            away = np.abs(table["time_ns"].to_numpy(np.int64)[first] - at_ns)
            speaks = int(able[np.argmin(away)])
        rows = np.flatnonzero((snapshot == speaks) & (counts > 0))
        rows = rows[np.argsort(-arrays[rows], kind="stable")]
        return [
            self._chain(int(row), float(share[row]), self._object[mine & (self._row == row)])
            for row in rows
        ]

    def looks_at(self, objects: Ints) -> list[Look]:
        """What each snapshot before the end saw of these objects (numbers, rising).

        Those are left out that came before a good part of the objects was made.
        """
        if not self or not len(objects):
            return []
        at = np.searchsorted(objects, self._object).clip(max=len(objects) - 1)
        counts = np.bincount(self._row[objects[at] == self._object], minlength=len(self._holdings))
        table = self._holdings
        arrays = table["arrays"].to_numpy(np.int64) * counts / np.maximum(self._named, 1)
        of_cycles = (table["root"] == "cycle").to_numpy()
        of_modules = (table["root"] == "module").to_numpy()
        found = []
        for number, rows in table[table["trigger"] != "end"].groupby("snapshot"):
            there = self._born_by(objects, int(rows["time_ns"].iloc[0]))
            if there < EARLY * len(objects):
                continue
            now = (table["snapshot"] == number).to_numpy()
            found.append(
                Look(
                    there=there,
                    reached=float(arrays[now & ~of_cycles].sum()),
                    in_modules=float(arrays[now & of_modules].sum()),
                    cyclic=float(arrays[now & of_cycles].sum()),
                    named=int(counts[now & ~of_cycles].sum()),
                    whole=bool(rows["complete"].all()),
                )
            )
        return found

    def _while_it_ran(
        self, speaks: int, objects: Ints, arrays: NDArray[np.float64], counts: Ints
    ) -> int:
        """The snapshot that speaks, or one before it, where only its cycles come from unwinding.

        When frames have gone, what tracebacks and closures made circular looks like garbage. The
        whole look before knows better, if it saw most of the objects there were then at a root.
        """
        table = self._holdings
        snapshot = table["snapshot"].to_numpy(np.int64)
        of_cycles = (table["root"] == "cycle").to_numpy()
        then = snapshot == speaks
        if arrays[then & of_cycles].sum() < SPEAKS_FROM * arrays[then].sum():
            return speaks
        for number in np.unique(snapshot[snapshot < speaks])[::-1].tolist():
            now = snapshot == number
            reached = now & ~of_cycles
            there = self._born_by(objects, int(table["time_ns"].to_numpy(np.int64)[now][0]))
            if there < EARLY * len(objects):
                continue
            if counts[reached].sum() >= FEWEST_NAMED and (
                arrays[reached].sum() > SPEAKS_FROM * there
            ):
                return int(number)
            if table["complete"].to_numpy(bool)[now].all():
                break
        return speaks

    def _born_by(self, objects: Ints, time_ns: int) -> int:
        """How many of these objects (numbers, rising) there were at a time."""
        latest = int(np.searchsorted(self._born, time_ns, side="right")) - 1
        if latest < 0:
            return 0
        return int(np.searchsorted(objects, self._numbers[latest], side="right"))

    def _chain(self, row: int, share: float, objects: Ints) -> Chain:
        said = self._holdings.iloc[row]
        key = (int(said["snapshot"]), int(said["group"]))
        steps = self._steps.get(key, ())
        return Chain(
            words=str(said["words"]),
            text=str(said["chain"]),
            root=str(said["root"]),
            view=bool(steps) and steps[-1].kind == "view",
            whole=bool(said["complete"]),
            time_ns=int(said["time_ns"]),
            arrays=max(1, round(int(said["arrays"]) * share)),
            held_bytes=round(int(said["held_bytes"]) * share),
            used_bytes=round(int(said["used_bytes"]) * share),
            frame=self._frames.get(key),
            objects=np.sort(objects),
            collecting=bool(said["collecting"]),
            items=int(said["items"]),
            most=int(said["most"]),
            device=int(said["device"]),
            steps=steps,
        )


def steps_of(table: pd.DataFrame) -> dict[tuple[int, int], tuple[Step, ...]]:
    """The steps of each chain, by its snapshot and group; ``table`` is ``holding_steps``."""
    columns = (table[name].tolist() for name in ("snapshot", "group", "kind", "type", "edge"))
    found: dict[tuple[int, int], list[Step]] = {}
    for snapshot, group, kind, of, edge, items in zip(*columns, table["items"], strict=True):
        found.setdefault((snapshot, group), []).append(Step(kind, of, edge, int(items)))
    return {key: tuple(steps) for key, steps in found.items()}


def are_with_graph(table: pd.DataFrame, steps: pd.DataFrame) -> NDArray[np.bool_]:
    """Which chains end at tensors that keep an autograd graph, held from Python.

    Args:
        table: ``holdings``.
        steps: ``holding_steps``.
    """
    chain = ["snapshot", "group"]
    last = steps.drop_duplicates(chain, keep="last")
    graphs = pd.MultiIndex.from_frame(last.loc[last["kind"] == GRAPH, chain])
    from_python = (table["root"] != NATIVE).to_numpy(bool)
    return pd.MultiIndex.from_frame(table[chain]).isin(graphs) & from_python


def objects_with_graph(recording: Recording) -> Ints:
    """The numbers of the tensors that some snapshot saw keep an autograd graph, rising."""
    table = recording.holdings
    if not len(table):
        return np.empty(0, np.int64)
    chains = table[are_with_graph(table, recording.holding_steps)]
    named = recording.holding_objects
    keys = pd.MultiIndex.from_frame(named[["snapshot", "group"]])
    mine = keys.isin(pd.MultiIndex.from_frame(chains[["snapshot", "group"]]))
    return np.unique(named["object"].to_numpy(np.int64)[mine])


def split_words(words: str) -> tuple[str, str]:
    """The words for a chain without its graph, and the node of the graph."""
    name, _, node = words.partition(WITH_GRAPH)
    return name, node.removesuffix(")")


def holders_of(chains: list[Chain]) -> tuple[Holder, ...]:
    """Chains as holders, those with the same words as one, most objects first.

    Many variables that differ by their numbers alone are one, too: ``_7`` and ``_8`` of IPython.
    """
    found: dict[str, Holder] = {}
    for chain in chains:
        holder = chain.holder
        known = found.get(holder.name)
        found[holder.name] = holder if known is None else added(known, holder)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in found:
        if (parts := _NUMBERED.match(name)) is not None:
            alike.setdefault(parts.groups(), []).append(name)
    for (kind, before, after, where), names in alike.items():
        if len(names) < MANY_NUMBERED:
            continue
        holder = found.pop(names[0])
        for name in names[1:]:
            holder = added(holder, found.pop(name))
        first = names[0].partition("'")[2].partition("'")[0]
        text = f"{len(names)} numbered {kind}s such as '{first}'{where}"
        found[f"{before}#{after}{text}"] = replace(holder, name=text)
    return tuple(sorted(found.values(), key=lambda holder: -holder.count))


def added(first: Holder, other: Holder) -> Holder:
    """Two holders of one name as one."""
    return Holder(
        kind=first.kind,
        name=first.name,
        site=first.site,
        count=first.count + other.count,
        chain=first.chain,
        seen_ns=first.seen_ns,
        held_bytes=(first.held_bytes or 0) + (other.held_bytes or 0),
        used_bytes=(first.used_bytes or 0) + (other.used_bytes or 0),
    )


def frame_of(code: str) -> StackFrame | None:
    """The place of a frame from its function, file and line."""
    function, *rest = code.split("\n")
    if len(rest) != 2 or not rest[0]:
        return None
    line = int(rest[1]) if rest[1].isdecimal() and len(rest[1]) < _MOST_DIGITS else 0
    return StackFrame(rest[0], line, function)
