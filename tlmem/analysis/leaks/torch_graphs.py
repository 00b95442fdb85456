"""Leaks of PyTorch programs: ``hook-keeps``, ``retained-graph``, ``hook-cycle``,
``graph-chain-grows``, ``kept-graph``, ``modules-grow``, ``optimizer-outlives-params``,
``shared-memory-kept``, and ``view-pins-base`` of tensors.

A tensor that a program keeps may keep an autograd graph, and the graph keeps what its backward pass
needs: activations, inputs, copies. No Python object refers to those, and Python's collector cannot
see the graph. So a line whose survivors a snapshot looked for and did not find is explained by the
tensors with a graph that it did find.

Covers: growing lines whose survivors are PyTorch's. Does not cover: whether a line grows; tensors
in lists and caches without a graph (``ownership``), and in cycles (``python_objects``).
See also: docs/findings/, a page for each class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.holders.snapshots import (
    NATIVE,
    PYTHON,
    Chain,
    Step,
    are_with_graph,
    holders_of,
    split_words,
    steps_of,
)
from tlmem.analysis.holders.survivors import Survivors, is_torch
from tlmem.analysis.leaks.autograd_cycles import OF_CREATED_GRAPHS, Cycle, autograd_cycles
from tlmem.analysis.leaks.cures import OF_FRAMES
from tlmem.analysis.leaks.deep_graphs import DeepGraph, deep_graph
from tlmem.analysis.leaks.growing_models import (
    BUFFERS,
    PARAMETERS,
    optimizer_at,
    parameters_without_module,
)
from tlmem.analysis.leaks.python_objects import total, what_views_use
from tlmem.analysis.model import Finding, Holder, StackFrame
from tlmem.analysis.peak.phases import Phase, SitePhases, site_phases
from tlmem.analysis.places import place
from tlmem.analysis.rules import RULES
from tlmem.events import Device
from tlmem.units import format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SPEAKS_FROM = 0.5
"""The latest snapshot that saw at least this share of the most graphs any of them saw counts."""
FOUND = 0.2
"""Survivors are held by no Python object if a snapshot found fewer than this share of them."""
MOST_STATES = 8
"""Tensors of an optimizer for each parameter: where there are more, the states grow."""
DEEP = 0.5
"""Share of the deepest graph's depth from which on a graph may be the one that reaches back."""
MOST_GRAPHS = 2
"""Tensors whose graph may be the one that grows, which are named."""
NO_ACTIVATIONS = (Phase.INIT, Phase.COPY, Phase.OPTIMIZER, Phase.ZERO_GRAD)
"""What is allocated in these phases is not saved for a backward pass."""
NODES = "Backward"
"""How the names of classes end of which the contexts of the program's own functions are."""
OPTIONS = ("create_graph", "retain_graph")
_RETAINS = re.compile(rf"\b({'|'.join(OPTIONS)})\s*=\s*True\b")
_GIVES_GRADIENTS = re.compile(r"\bgrad\(.*\bcreate_graph\s*=\s*True\b")
_HOOKS = re.compile(
    r"_(global_)?((full_)?(forward|backward)(_pre)?|post_accumulate_grad|"
    r"optimizer_step_(pre|post)|(load_)?state_dict(_pre|_post)?)_hooks"
)
_CONTAINERS = ("list", "dict", "tuple", "set", "deque", "lru_cache")

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Keeper:
    """Tensors that keep their autograd graph: ``count`` of them, held by ``name``.

    ``hooked`` says that they are held by a hook of a module, ``kept`` that an object or a container
    holds them and not a variable, which each step sets anew.
    """

    name: str
    node: str
    count: int
    hooked: bool
    kept: bool = True

    def holder(self, seen_ns: int) -> Holder:
        """The same as a holder, as a snapshot saw it."""
        return Holder(kind=PYTHON, name=self.name, count=self.count, seen_ns=seen_ns)


@dataclass(frozen=True)
class Retained:
    """Backward passes that were asked to keep their graph.

    ``times`` are those of their allocations and frees, rising; ``site`` is where most of them were
    called, with this option.
    """

    times: Ints
    site: StackFrame
    option: str


@dataclass(frozen=True)
class Graphs:
    """What keeps autograd graphs in a recording.

    ``growing`` are those that growing lines' survivors keep, most first; ``others`` are the few
    tensors beside them that a snapshot at ``seen_ns`` saw with a graph. ``whole`` says that it had
    looked at all Python objects. ``saved`` says that some growing line's survivors, which no Python
    object holds, are likely to be parts of a graph: a good part is of forward passes, or the line's
    last ones have a graph.
    ``cycles`` are objects that only autograd nodes hold and that keep tensors with a graph.
    ``deep`` is a tensor whose graph snapshots saw become ever deeper.
    """

    growing: tuple[Keeper, ...]
    others: tuple[Keeper, ...]
    seen_ns: int
    whole: bool
    phases: SitePhases
    retained: Retained | None
    saved: bool = False
    cycles: tuple[Cycle, ...] = ()
    deep: DeepGraph | None = None


def graphs_of(recording: Recording, lines: Sequence[Survivors]) -> Graphs | None:
    """What keeps graphs; None when no growing line is of tensors of PyTorch."""
    lines = [line for line in lines if is_torch(line)]
    if not lines:
        return None
    phases = site_phases(recording.sites)
    chains = [chain for line in lines for chain in from_python(line) if chain.graph]
    growing = tuple(k for k in keepers(chains) if k.count >= RULES.fewest_survivors)
    others, many, seen_ns, whole = other_graphs(recording, lines)
    graphs = Graphs(
        growing or many,
        others,
        seen_ns,
        whole,
        phases,
        retained_passes(recording, phases),
        cycles=autograd_cycles(recording),
        deep=deep_graph(recording),
    )
    unheld = [line for line in lines if is_unheld(line, graphs)]
    saved = any(
        in_forward(line, graphs) >= FOUND or any(chain.graph for chain in from_python(line))
        for line in unheld
    )
    return replace(graphs, saved=saved)


def keepers(chains: Sequence[Chain]) -> tuple[Keeper, ...]:
    """The holders of tensors with a graph, most tensors first."""
    found = holders_of(list(chains))
    hooked = {chain.words: is_hooked(chain.steps) for chain in chains}
    return tuple(
        Keeper(*split_words(holder.name), holder.count, hooked.get(holder.name, False))
        for holder in found
    )


def other_graphs(
    recording: Recording, lines: Sequence[Survivors]
) -> tuple[tuple[Keeper, ...], tuple[Keeper, ...], int, bool]:
    """Tensors with a graph that are few, those first that most snapshots saw; and containers of
    many; when they were seen, and whether that snapshot had looked at everything.

    The deepest come first, and what is kept in an object before a variable, which each step sets
    anew.
    """
    table = recording.holdings
    if not len(table):
        return (), (), 0, True
    steps = steps_of(recording.holding_steps)
    keys = list(zip(table["snapshot"].tolist(), table["group"].tolist(), strict=True))
    graph = are_with_graph(table, recording.holding_steps)
    arrays = np.where(graph, table["arrays"].to_numpy(np.int64), 0)
    snapshot = table["snapshot"].to_numpy(np.int64)
    numbers, which = np.unique(snapshot, return_inverse=True)
    kept = np.bincount(which.reshape(-1), weights=arrays)
    # When functions have returned, what they held is gone: the snapshot at the end sees nothing.
    speaks = numbers[np.flatnonzero(kept >= SPEAKS_FROM * kept.max())[-1]]
    now = snapshot == speaks
    words = table["words"].tolist()
    often: dict[str, int] = {}
    for row in np.flatnonzero(graph).tolist():
        often[words[row]] = often.get(words[row], 0) + 1
    is_few = arrays < RULES.fewest_survivors
    rows = np.flatnonzero(now & graph & is_few).tolist()
    own = {frame.file for frame in lines[0].places.frames}
    rows = [row for row in rows if is_own(steps[keys[row]][0], own)] or rows
    most = max((often[words[row]] for row in rows), default=0)
    deepest = max((steps[keys[row]][-1].items for row in rows), default=0)

    def order(row: int) -> tuple[bool, bool, int, int]:
        chain, seen = steps[keys[row]], often[words[row]]
        is_shallow = chain[-1].items < DEEP * deepest
        return is_shallow, not (is_kept(chain) and 2 * seen >= most), -seen, keys[row][1]

    def keeper(row: int) -> Keeper:
        chain = steps[keys[row]]
        words_of = split_words(words[row])
        return Keeper(*words_of, int(arrays[row]), is_hooked(chain), is_kept(chain))

    several = np.flatnonzero(now & graph & ~is_few).tolist()
    seen_ns = int(table["time_ns"].to_numpy(np.int64)[now][0])
    return (
        tuple(keeper(row) for row in sorted(rows, key=order)),
        tuple(keeper(row) for row in sorted(several, key=lambda row: -arrays[row])),
        seen_ns,
        bool(table["complete"].to_numpy(bool)[now][0]),
    )


def class_name(name: str) -> str:
    """A class without its module."""
    return name.rpartition(".")[2]


def is_kept(steps: Sequence[Step]) -> bool:
    """Whether a chain passes an object or a container on its way to a tensor with its graph."""
    return len(steps) > len(("variable", "graph"))


def is_own(root: Step, files: Container[str]) -> bool:
    """Whether the root of a chain is no local variable of a library: of none of these files."""
    _, *code = root.type.split("\n")
    return root.kind not in ("local", "generator") or not code or code[0] in files


# ---- what chains pass


def is_hooked(steps: Sequence[Step]) -> bool:
    """Whether a chain passes the hooks of a module, a tensor or an optimizer."""
    return any(
        step.kind in ("instance", "module") and _HOOKS.fullmatch(step.edge) and after.kind == "dict"
        for step, after in zip(steps, steps[1:], strict=False)
    )


def items_of_modules(chain: Chain) -> int:
    """How many items the largest container on the way to a module has; 0 of no parameter."""
    of_module = [at for at, step in enumerate(chain.steps) if step.edge in (PARAMETERS, BUFFERS)]
    if not of_module:
        return 0
    before = chain.steps[: of_module[0]]
    own: Sequence[Step] = ()
    if chain.steps[of_module[0]].edge == PARAMETERS:  # a ParameterList keeps its items so
        own = chain.steps[of_module[0] + 1 : of_module[0] + 2]
    return max((step.items for step in (*before, *own) if step.kind in _CONTAINERS), default=0)


def of_optimizer(chain: Chain) -> bool:
    """Whether a chain passes what an optimizer has: states and groups of parameters."""
    return optimizer_at(chain.steps) is not None


# ---- what a snapshot found of a line


def from_python(line: Survivors) -> list[Chain]:
    """The chains that begin at something that the program can reach.

    What a graph keeps may have a Python object of its own, which nothing refers to.
    """
    return [chain for chain in line.chains if chain.root != NATIVE]


def there(line: Survivors, graphs: Graphs) -> int:
    """How many of the survivors there were when a snapshot looked for them."""
    return there_at(line, looked_ns(line, graphs)[0])


def there_at(line: Survivors, at_ns: int) -> int:
    """How many of the survivors there were at a time."""
    born, died = line.lives.born[line.rows], line.lives.died[line.rows]
    return int(np.count_nonzero((born <= at_ns) & (died > at_ns)))


def looked_ns(line: Survivors, graphs: Graphs) -> tuple[int, bool]:
    """When a snapshot looked for the survivors, and whether it had looked at everything.

    The one that saw graphs, where an earlier one saw most of what was found: that were temporaries.
    """
    chains = from_python(line)
    if chains and chains[0].time_ns >= graphs.seen_ns:
        return chains[0].time_ns, chains[0].whole
    return graphs.seen_ns, graphs.whole


def is_unheld(line: Survivors, graphs: Graphs) -> bool:
    """Whether a snapshot looked for the survivors and found next to none of them."""
    count = there(line, graphs)
    return count >= RULES.fewest_survivors and total(from_python(line)) < FOUND * count


def is_held_by(line: Survivors, graphs: Graphs, fits: Callable[[Chain], bool]) -> list[Chain]:
    """The chains that fit, when they hold enough survivors and others hold next to none.

    What no Python object holds beside them is a part of their graph.
    """
    held = from_python(line)
    chains = [chain for chain in held if fits(chain)]
    few = (1 - RULES.nearly_all) * there(line, graphs)
    if total(chains) < RULES.fewest_survivors or total(held) - total(chains) > few:
        return []
    return chains


def are_held_by(line: Survivors, graphs: Graphs, fits: Callable[[Chain], bool]) -> list[Chain]:
    """The same, when they hold most of the survivors that there were when they were seen.

    A later snapshot that saw graphs and ended early has no word in it: the objects that it did not
    reach may well have held the same.
    """
    held = from_python(line)
    chains = [chain for chain in held if fits(chain)]
    at_ns, whole = looked_ns(line, graphs)
    count = there_at(line, chains[0].time_ns if chains and not whole else at_ns)
    if total(chains) < max(RULES.fewest_survivors, RULES.majority * count):
        return []
    return chains if total(held) - total(chains) <= (1 - RULES.nearly_all) * count else []


def may_be_saved(line: Survivors, graphs: Graphs) -> bool:
    """Whether the survivors may be what a graph saved: of any phase but those of weights."""
    phase, _ = graphs.phases.of(line.lives.site[line.rows])
    others = np.isin(phase, [int(each) for each in NO_ACTIVATIONS])
    return bool(others.mean() <= 1 - RULES.nearly_all)


def in_forward(line: Survivors, graphs: Graphs) -> float:
    """Which share of the survivors was allocated in forward passes."""
    phase, _ = graphs.phases.of(line.lives.site[line.rows])
    forward = np.isin(phase, [int(Phase.FORWARD), int(Phase.RECOMPUTED)])
    return float(forward.mean())


def activations(line: Survivors, graphs: Graphs) -> str:
    """``, in the forward pass,``: where their stacks say so."""
    return ", in the forward pass," if in_forward(line, graphs) >= RULES.nearly_all else ""


def looked(line: Survivors, graphs: Graphs) -> str:
    """When a snapshot looked for the survivors, in brackets."""
    at_ns, whole = looked_ns(line, graphs)
    early = "" if whole else ", and ended before it had seen everything"
    return f"(a snapshot looked after {format_seconds(at_ns / 1e9)}{early})"


# ---- backward passes that retain their graph


def retained_passes(recording: Recording, phases: SitePhases) -> Retained | None:
    """Backward passes whose call says ``retain_graph=True`` or ``create_graph=True``.

    Gradients that ``torch.autograd.grad()`` gives are the program's, and so are their graphs.
    """
    sites = recording.sites
    numbers = sites.index.to_numpy(np.int64)
    size = int(numbers.max(initial=0)) + 1
    row_of = np.full(size, -1, np.int64)
    row_of[numbers] = np.arange(len(numbers))
    parent = sites["parent"].to_numpy(np.int64)
    parent_row = np.where((parent >= 0) & (parent < size), row_of[np.clip(parent, 0, size - 1)], -1)
    in_backward = phases.in_backward[numbers]
    if not in_backward.any():
        return None
    lines = list(
        zip(sites["file"].tolist(), sites["line"].tolist(), sites["function"].tolist(), strict=True)
    )
    known: dict[tuple[str, int, str], str] = {}
    option = np.full(len(numbers), "", object)
    caller = np.zeros(len(numbers), np.int64)
    order = np.argsort(sites["depth"].to_numpy(np.int64), kind="stable")
    for row in order.tolist():
        line = lines[row]
        if line not in known:
            text = recording.source_line(*line) if line[0] else ""
            found = None if _GIVES_GRADIENTS.search(text) else _RETAINS.search(text)
            known[line] = found[1] if found else ""
        if known[line]:
            option[row], caller[row] = known[line], numbers[row]
        elif parent_row[row] >= 0:
            option[row], caller[row] = option[parent_row[row]], caller[parent_row[row]]
    retains = np.zeros(size, bool)
    retains[numbers] = in_backward & (option != "")
    if not retains.any():
        return None
    table = recording.objects
    times, where = [], []
    for at, site in (("born_ns", "born_site"), ("died_ns", "died_site")):
        of = table[site].to_numpy(np.int64)
        mine = (of >= 0) & (of < size)
        mine[mine] = retains[of[mine]]
        times.append(table[at].to_numpy(np.int64)[mine])
        where.append(of[mine])
    rows = row_of[np.concatenate(where)]
    if not len(rows):
        return None
    sites_called, counts = np.unique(caller[rows], return_counts=True)
    most = int(sites_called[np.argmax(counts)])
    file, number, function = lines[row_of[most]]
    return Retained(
        np.sort(np.concatenate(times)),
        StackFrame(file, int(number), function),
        str(option[row_of[most]]),
    )


def are_followed(line: Survivors, passes: Ints) -> bool:
    """Whether such a pass follows most survivors before the next one is made in the same way.

    So the losses of an evaluation, of which many are made between two passes, are not meant.
    """
    rows = line.rows[line.lives.born[line.rows] <= passes[-1]]
    if len(rows) < RULES.majority * len(line.rows) or len(rows) < RULES.fewest_survivors:
        return False
    sites, counts = np.unique(line.lives.site[rows], return_counts=True)
    born = np.sort(line.lives.born[rows[line.lives.site[rows] == sites[np.argmax(counts)]]])
    followed = np.unique(np.searchsorted(passes, born, side="right"))
    return len(followed) >= RULES.majority * len(born)


# ---- the classes


def hook_keeps(line: Survivors, graphs: Graphs) -> Finding | None:
    """What a hook of a module keeps, or the graph of what it keeps."""
    chains = is_held_by(line, graphs, lambda chain: is_hooked(chain.steps))
    if chains:
        name, node = split_words(holders_of(chains)[0].name)
        graph = f", each with its autograd graph ({node})" if node else ""
        return line.finding(
            "hook-keeps",
            f"{line.noun} are kept by {name}{graph}: in each step the hook keeps what it is given, "
            "or one more hook is added.",
        )
    hooked = [keeper for keeper in graphs.growing if keeper.hooked]
    if not hooked or not is_unheld(line, graphs) or not may_be_saved(line, graphs):
        return None
    if hooked[0] != graphs.growing[0]:
        return None
    return line.finding("hook-keeps", through(line, graphs, hooked[0]))


def through(line: Survivors, graphs: Graphs, keeper: Keeper) -> str:
    """What is said of survivors that a graph keeps."""
    return (
        f"{line.noun}{activations(line, graphs)} are held by no Python object "
        f"{looked(line, graphs)}: they are kept through the autograd graphs ({keeper.node}) that "
        f"{keeper.name} keeps."
    )


def retained_graph(line: Survivors, graphs: Graphs) -> Finding | None:
    """What a backward pass would have freed, had it not been asked to keep its graph."""
    retained = graphs.retained
    if retained is None or not is_unheld(line, graphs):
        return None
    creates = retained.option == "create_graph"
    if not graphs.growing and graphs.others and not creates:
        return None  # one graph that reaches ever further back
    if not may_be_saved(line, graphs) or not are_followed(line, retained.times):
        return None
    graph = (
        f" The graphs ({graphs.growing[0].node}) are kept by {graphs.growing[0].name}."
        if graphs.growing
        else " The gradients have a graph of their own, which refers to their parameters."
        if creates
        else ""
    )
    found = line.finding(
        "retained-graph",
        f"{line.noun} are kept although a backward pass follows them: it is run with "
        f"{retained.option}=True at {place(retained.site)}, and does not free what it used.{graph}",
    )
    return replace(found, fix=OF_CREATED_GRAPHS) if creates else found


def hook_cycle(line: Survivors, graphs: Graphs) -> Finding | None:
    """What a cycle through autograd nodes keeps: the program does not reach it, nor does gc.

    Where a tensor that is kept in an object has a graph, that one may reach back to all of these.
    """
    if not graphs.cycles or graphs.growing or not is_unheld(line, graphs):
        return None
    if not may_be_saved(line, graphs) and not is_only_native(line, graphs):
        return None
    cycle = graphs.cycles[0]
    if not cycle.proven and any(keeper.kept for keeper in graphs.others):
        return None
    named = [each for each in graphs.cycles if each.count >= RULES.majority * cycle.count]
    names = " and ".join(kept_tensor(each) for each in named[:MOST_GRAPHS])
    unless = " or ".join(keeper.name for keeper in graphs.others[:MOST_GRAPHS])
    otherwise = (
        f" If {unless} is computed from those of all steps before, its graph keeps them instead: "
        "detach it from step to step."
    )
    found = line.finding(
        "hook-cycle",
        f"{line.noun}{activations(line, graphs)} are held by nothing that the program can reach "
        f"(a snapshot looked after {format_seconds(cycle.seen_ns / 1e9)}). Autograd nodes hold "
        f"{names}, whose graph leads back to the node: a cycle through C++, which Python's garbage "
        f"collector does not see.{otherwise if unless and not cycle.proven else ''}",
    )
    return replace(found, fix=cycle.fix)


def kept_tensor(cycle: Cycle) -> str:
    """Who keeps a tensor in a cycle, and its graph where the snapshot says it."""
    return f"{cycle.name} with a tensor of {cycle.node}" if cycle.node else cycle.name


def is_only_native(line: Survivors, graphs: Graphs) -> bool:
    """Whether a snapshot saw most of the survivors, all but a few behind native code."""
    native = [chain for chain in line.chains if chain.root == NATIVE]
    return total(native) >= RULES.majority * there(line, graphs)


def graph_chain_grows(line: Survivors, graphs: Graphs) -> Finding | None:
    """What one graph keeps that reaches back over all steps."""
    if graphs.growing or not graphs.others or not is_unheld(line, graphs):
        return None
    if not may_be_saved(line, graphs) or outlives_graphs(line, graphs):
        return None
    deep = graphs.deep
    if not looked_ns(line, graphs)[1] and not graphs.saved and deep is None:
        return None  # the snapshot may have ended before it came to their holder
    names = " or ".join(keeper.name for keeper in graphs.others[:MOST_GRAPHS])
    if deep is not None:
        names = f"{deep.name}, {format_count(deep.last)} nodes deep"
    found = line.finding(
        "graph-chain-grows",
        f"{line.noun}{activations(line, graphs)} are held by no Python object "
        f"{looked(line, graphs)}, and there are few tensors with an autograd graph: they are kept "
        f"through one graph that reaches back over all steps, that of {names}.",
    )
    holder = graphs.others[0].holder(graphs.seen_ns) if deep is None else deep.holder
    return replace(found, holders=(*found.holders, holder))


def outlives_graphs(line: Survivors, graphs: Graphs) -> bool:
    """Whether the survivors were still there when the program reached those graphs no more.

    Where no snapshot saw a graph, as of a short run that was only searched at its end, any counts.
    """
    since_ns = graphs.seen_ns if graphs.growing or graphs.others else 0
    later = [
        chain
        for chain in line.chains
        if chain.root == NATIVE and chain.whole and chain.time_ns > since_ns
    ]
    return total(later) >= RULES.majority * len(line.rows)


def nodes_kept(recording: Recording) -> Keeper | None:
    """Autograd nodes of the program's own functions of which a container has about as many items.

    What ``save_for_backward`` was given is in C++, where no snapshot looks.
    """
    types, contents = recording.object_types, recording.contents
    types = types[types["type"].str.endswith(NODES)]
    if not len(types):
        return None
    types = types[types["snapshot"] == types["snapshot"].max()].sort_values("count")
    most = types.iloc[-1]
    contents = contents[(contents["snapshot"] == most["snapshot"]) & (contents["what"] == "items")]
    near = (contents["count"] - most["count"]).abs() <= (1 - RULES.nearly_all) * most["count"]
    names = contents.loc[near, "words"].tolist()[:MOST_GRAPHS]
    if most["count"] < RULES.fewest_survivors or not names:
        return None
    return Keeper(" or ".join(names), class_name(most["type"]), int(most["count"]), hooked=False)


def kept_nodes(line: Survivors, graphs: Graphs) -> Finding | None:
    """What autograd nodes keep, contexts of the program's own functions, that are in a list."""
    if graphs.growing or graphs.cycles or not outlives_graphs(line, graphs):
        return None
    is_held = total(from_python(line)) >= FOUND * len(line.rows)
    nodes = None if is_held else nodes_kept(line.recording)
    if nodes is None:
        return None
    return line.finding(
        "kept-graph",
        f"{line.noun}{activations(line, graphs)} are held by no Python object (a snapshot looked "
        f"after {format_seconds(line.chains[0].time_ns / 1e9)}): what a function saved for its "
        "backward pass stays as long as its context. There are "
        f"{format_count(nodes.count)} contexts {nodes.node}, and about as many items in "
        f"{nodes.name}.",
    )


def kept_graph(line: Survivors, graphs: Graphs) -> Finding | None:
    """Tensors that keep their graph, and what the graphs of others keep."""
    chains = is_held_by(line, graphs, lambda chain: bool(chain.graph))
    if chains:
        name, node = split_words(holders_of(chains)[0].name)
        return line.finding(
            "kept-graph",
            f"{line.noun} are kept by {name}, each with its autograd graph ({node}): the graph's "
            "nodes, and what a backward pass has not freed, stay with it.",
        )
    if not graphs.growing or not is_unheld(line, graphs) or not may_be_saved(line, graphs):
        return None
    keeper = graphs.growing[0]
    found = line.finding("kept-graph", through(line, graphs, keeper))
    fix = OF_FRAMES if "traceback" in keeper.name else found.fix
    return replace(found, fix=fix, holders=(*found.holders, keeper.holder(graphs.seen_ns)))


def modules_grow(line: Survivors, graphs: Graphs) -> Finding | None:
    """Parameters, and their gradients and states, of ever more modules."""
    chains = are_held_by(line, graphs, in_many_modules)
    if chains:
        return line.finding(
            "modules-grow",
            f"{line.noun} are {holders_of(chains)[0].name}: modules are added in the course of the "
            "run and stay.",
        )
    chains = are_held_by(line, graphs, of_optimizer)
    lonely, count = parameters_of_optimizer(line, chains)
    states_grow = count > 0 and total(chains) > MOST_STATES * count
    if not chains or is_left(lonely, count) or states_grow:
        return None
    return line.finding(
        "modules-grow",
        f"{line.noun} are {holders_of(chains)[0].name}: modules are added in the course of the run "
        "and stay, and the optimizer has their parameters.",
    )


def in_many_modules(chain: Chain) -> bool:
    """Whether a chain passes a container of many modules."""
    return items_of_modules(chain) >= RULES.fewest_survivors


def parameters_of_optimizer(line: Survivors, chains: Sequence[Chain]) -> tuple[int, int]:
    """How many parameters only an optimizer had when it was seen, and how many there were."""
    return parameters_without_module(line.recording, chains[0].time_ns) if chains else (0, 0)


def is_left(lonely: int, count: int) -> bool:
    """Whether so many parameters are without a module that they are what grows."""
    return lonely >= max(RULES.fewest_survivors, FOUND * count)


def optimizer_outlives_params(line: Survivors, graphs: Graphs) -> Finding | None:
    """Parameters of modules that are gone, and their states: the optimizer has them still."""
    chains = are_held_by(line, graphs, of_optimizer)
    lonely, count = parameters_of_optimizer(line, chains)
    if not chains or not is_left(lonely, count):
        return None
    return line.finding(
        "optimizer-outlives-params",
        f"{line.noun} are {holders_of(chains)[0].name}. {format_count(lonely)} of "
        f"{format_count(count)} parameters are in no module any more: the optimizer was given "
        "them, and keeps them and their states.",
    )


def shared_memory_kept(line: Survivors, graphs: Graphs) -> Finding | None:
    """Tensors in shared memory, or over files, such as batches of a DataLoader's workers."""
    device = line.recording.objects["device"].reindex(line.lives.ordinal[line.rows])
    if (device == int(Device.TORCH_MAPPED)).mean() < RULES.nearly_all:
        return None
    holders = holders_of(list(line.chains))
    by = f", kept by {split_words(holders[0].name)[0]}" if holders else ""
    used = what_views_use(line.chains) if line.chains else ""
    return line.finding(
        "shared-memory-kept",
        f"{line.noun} are in shared memory or mapped files{by}: each keeps its mapping, and in "
        f"shared memory a file descriptor{f'; {used}' if used else ''}.",
    )


def tensor_view_pins_base(line: Survivors, graphs: Graphs) -> Finding | None:
    """Tensors that show a small part of the storage that they keep."""
    chains = are_held_by(line, graphs, lambda chain: chain.used_bytes < chain.held_bytes)
    used = what_views_use(chains) if chains else ""
    if not used:
        return None
    return line.finding(
        "view-pins-base",
        f"{line.noun} are held only by views, kept by {holders_of(chains)[0].name}: {used}; each "
        "view keeps its whole storage alive.",
    )


GRAPH_LEAKS = (
    hook_keeps,
    retained_graph,
    hook_cycle,
    graph_chain_grows,
    kept_nodes,
    kept_graph,
)
"""What graphs keep, arrays of NumPy among it over which there are tensors."""
TORCH_LEAKS = (
    *GRAPH_LEAKS,
    modules_grow,
    optimizer_outlives_params,
    shared_memory_kept,
    tensor_view_pins_base,
)
