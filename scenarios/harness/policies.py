"""What the compiler's policies cost: one program recorded under each, and as Python runs it.

``tlmem scenario run policies`` prints the table; ``docs/policies.md`` shows it beside the figures
of the systems that tlmem grew out of. Counts are exact and the same on every machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tlmem.scenarios.programs.healthy.nqueens import ANTI, MAIN, RATE, SIZE

import tlmem
from tlmem.events import HolderKind, Kind
from tlmem.units import format_bytes

EPOCHS, WARM = 200, 100
EAGER = "eager"
POLICIES = (EAGER, "default", "v1", "v2", "v3", "v5", "v3-overretain")
OWN_DEVICES = 16
Step = Callable[[Any], Any]
Compile = Callable[[Any], Any]


@dataclass
class Layer:
    w: Any
    b: Any


@dataclass
class Net:
    first: Layer
    second: Layer


def nqueens(compiled: Compile) -> tuple[Any, Step]:
    """A board, and an epoch of the N-Queens training, with its functions compiled."""

    @compiled
    def crowding(p, mask):
        on_each = tlmem.sum(tlmem.sum(tlmem.reshape(p, 1, SIZE, SIZE) * mask, 2), 1)
        return tlmem.sum(tlmem.relu(on_each - 1) ** 2)

    @compiled
    def total_loss(p):
        columns = tlmem.sum((tlmem.sum(p, 0) - 1) ** 2)
        undecided = 0.05 * tlmem.sum(p * (1 - p))
        return columns + crowding(p, ANTI) + crowding(p, MAIN) + undecided

    @compiled
    def epoch(board):
        p = tlmem.softmax(board, 1)
        loss = total_loss(p)
        loss.backward()
        return tlmem.detach(board - RATE * board.grad).requires_grad_()

    return tlmem.randn((SIZE, SIZE), "float64", seed=22, requires_grad=True), epoch


def structs(compiled: Compile) -> tuple[Any, Step]:
    """A net of structs, and a step that makes a new one of it."""

    @compiled
    def advanced(layer, x):
        h = tlmem.tanh(x @ layer.w + layer.b)
        w = layer.w * 0.75 + h * 0.25
        return Layer(w, layer.b)

    @compiled
    def epoch(net):
        first = advanced(net.first, net.second.w)
        seen = first
        second = advanced(net.second, seen.w)
        scale = second.w * 0.5
        second.w = scale + seen.w
        return Net(first, second)

    first, second = (Layer(tlmem.randn((32, 32), seed=s), tlmem.ones(32)) for s in (1, 2))
    return tlmem.struct(Net(first, second)), epoch


PROGRAMS = {"N-Queens": nqueens, "structs": structs}


@dataclass(frozen=True)
class PolicyRow:
    """One program under one policy, of ``EPOCHS`` epochs.

    Attributes:
        acquires, releases: counts taken and given back by others than views
            and tapes, which take theirs under every policy.
        events: all events of tlmem's own objects.
        growth_bytes: by how much what lives grew in the last 100 epochs.
    """

    program: str
    policy: str
    acquires: int
    releases: int
    objects: int
    events: int
    peak_bytes: int
    growth_bytes: int


def compile_under(policy: str) -> Compile:
    """What decorates the functions of a program."""
    return (lambda function: function) if policy == EAGER else tlmem.compile(policy=policy)


def measured(program: str, policy: str) -> PolicyRow:
    """Runs and records a program under a policy."""
    state, epoch = PROGRAMS[program](compile_under(policy))
    state = epoch(state)  # what is planned once is planned before
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.tlm"
        with tlmem.Recorder(file, rss_interval=0):
            for number in range(EPOCHS):
                tlmem.mark("epoch", number)
                state = epoch(state)
        return row_of(tlmem.read(file), program, policy)


def row_of(recording: Any, program: str, policy: str) -> PolicyRow:
    """What a recording says."""
    events, objects = recording.events, recording.objects
    own = events[(events["device"] >= OWN_DEVICES) | (events["kind"] >= int(Kind.ACQUIRE))]
    own = own[(own["kind"] != int(Kind.MARK)) & (own["kind"] != int(Kind.SAMPLE))]
    holders = own["arg"].to_numpy(np.uint64) >> np.uint64(56)
    others = own[~np.isin(holders, [int(HolderKind.VIEW), int(HolderKind.TAPE)])]
    mine = objects[objects["device"] >= OWN_DEVICES]
    marks = recording.marks
    warm = int(marks.loc[marks["index"] == WARM, "time_ns"].iloc[0])
    first = int(marks["time_ns"].iloc[0])
    died = mine["died_ns"].where(mine["died_ns"] >= 0, np.iinfo(np.int64).max)

    def alive_at(time: int) -> int:
        return int(mine.loc[(mine["born_ns"] <= time) & (died > time), "size_bytes"].sum())

    end = int(marks["time_ns"].iloc[-1])
    sizes = mine["size_bytes"].to_numpy(np.int64)
    times = np.concatenate([mine["born_ns"], died])
    changes = np.concatenate([sizes, -sizes])[np.lexsort((np.repeat([1, 0], len(sizes)), times))]
    return PolicyRow(
        program,
        policy,
        acquires=int((others["kind"] == int(Kind.ACQUIRE)).sum()),
        releases=int((others["kind"] == int(Kind.RELEASE)).sum()),
        objects=int((mine["born_ns"] >= first).sum()),
        events=len(own),
        peak_bytes=int(np.cumsum(changes).max(initial=0)),
        growth_bytes=alive_at(end) - alive_at(warm),
    )


def lines(rows: list[PolicyRow]) -> Iterator[str]:
    """The table in Markdown."""
    yield "| program | policy | acquires | releases | objects | events | peak | growth |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        counts = (row.acquires, row.releases, row.objects, row.events)
        each = " | ".join(f"{count / EPOCHS:.2f}".rstrip("0").rstrip(".") for count in counts)
        sizes = f"{format_bytes(row.peak_bytes)} | {format_bytes(row.growth_bytes)}"
        yield f"| {row.program} | `{row.policy}` | {each} | {sizes} |"


def table() -> str:
    """Every program under every policy, as Markdown."""
    rows = [measured(program, policy) for program in PROGRAMS for policy in POLICIES]
    return "\n".join([*lines(rows), ""])


def main() -> None:
    sys.stdout.write(f"Per epoch, of {EPOCHS} epochs; growth: of the last {EPOCHS - WARM}.\n\n")
    sys.stdout.write(table())


if __name__ == "__main__":
    main()
