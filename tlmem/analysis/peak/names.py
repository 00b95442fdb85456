"""What snapshots of holders know of blocks: parameters, gradients, states of optimizers.

Covers: roles of the blocks that a snapshot names, and of those that it must have seen without
naming them; paths of modules in chains. Does not cover: roles from stacks (``roles``); chains of
other holders, as a dict of tensors may be anything.

A snapshot names at most some of a chain's blocks, and says how many there are and how many bytes
they have. Blocks that were allocated where the named ones were are the others, if they make up
just this number and these bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import TORCH_DEVICES, Blocks, Ints, Mask, numbers_in
from tlmem.analysis.peak.passes import Passes
from tlmem.analysis.peak.phases import Phase
from tlmem.analysis.peak.roles import Named, Role
from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.recording.tables.chain_text import class_name
from tlmem.recording.tables.torch_text import GRADIENT, held_by

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Steps = list[ChainStep]
_ROLE_OF = {
    "parameter": Role.WEIGHTS,
    "buffer": Role.WEIGHTS,
    "state": Role.OPTIMIZER_STATE,
}
"""By what ``held_by`` says that a chain holds."""
_TENSORS = "torch."
"""Classes of tensors begin so; another class may have an attribute ``grad`` as well."""
_GUESSED = (Phase.USER, Phase.INIT, Phase.COPY, Phase.DATA)
"""Phases of a birth that leave a role open: a checkpoint is loaded, a model is copied."""
_event = attrgetter("event")
_KINDS = {kind.name.lower(): int(kind) for kind in StepKind}


@dataclass(frozen=True)
class _Seen:
    """One chain in one snapshot: the places of the blocks that it names, and how many it has.

    A place is -1 where the recording does not know the block. ``count`` and ``bytes`` are of all
    blocks of the chain; ``about`` is None of a chain that tells no role.
    """

    event: int
    named: Ints
    count: int
    bytes: int
    about: Named | None
    whole: bool


def names_of(recording: Recording, blocks: Blocks, passes: Passes) -> dict[int, Named]:
    """What snapshots know of blocks, by the numbers of the objects.

    Of several snapshots that name a block the last one counts.
    """
    seen = list(_chains(recording, blocks))
    if not any(chain.about for chain in seen):
        return {}
    found: dict[int, Named] = {}
    for event, chains in groupby(sorted(seen, key=_event), key=_event):
        of_snapshot = list(chains)
        for chain in of_snapshot:
            if chain.about is not None:
                found.update(dict.fromkeys(chain.named[chain.named >= 0].tolist(), chain.about))
        found.update(_unnamed(blocks, event, of_snapshot))
    found.update(_alike(blocks, passes, seen, found))
    return {int(blocks.number[place]): about for place, about in found.items()}


def role_of_chain(steps: Steps) -> Named | None:
    """What a chain says of the tensor at its end; None of one that is nothing of PyTorch's.

    Of a cycle it is not known by which of its objects the tensor is held.
    """
    if steps and steps[0].kind == StepKind.CYCLE:
        return None
    last = steps[-1] if steps else None
    gradient = last is not None and last.kind == StepKind.INSTANCE and last.edge == GRADIENT
    held = held_by(steps[:-1] if gradient else steps)
    if gradient and last is not None and (held is not None or last.type.startswith(_TENSORS)):
        return Named(Role.GRADIENTS)
    if gradient or held is None:
        return None
    if held.optimizer:
        return Named(_ROLE_OF[held.what])
    root = steps[held.at]
    names = held.path[:-1] if held.whole else held.path
    place = tuple((step.kind, step.type, step.edge) for step in steps[: held.at])
    return Named(_ROLE_OF[held.what], path=(class_name(root.type), *names), root=str(place))


def _chains(recording: Recording, blocks: Blocks) -> Iterator[_Seen]:
    """The chains of PyTorch's memory in all snapshots, in their order."""
    table = recording.holdings
    mine = table["device"].isin([int(device) for device in TORCH_DEVICES]).to_numpy(bool)
    if not mine.any():
        return
    steps: dict[tuple[int, int], Steps] = {}
    rows = recording.holding_steps
    texts = (rows[name].tolist() for name in ("kind", "type", "edge"))
    keys = zip(rows["snapshot"].tolist(), rows["group"].tolist(), strict=True)
    for key, kind, of, edge, items in zip(keys, *texts, rows["items"].tolist(), strict=True):
        steps.setdefault(key, []).append(ChainStep(_KINDS.get(kind, 0), of, edge, int(items)))
    objects: dict[tuple[int, int], list[int]] = {}
    named = recording.holding_objects
    keys = zip(named["snapshot"].tolist(), named["group"].tolist(), strict=True)
    for key, number in zip(keys, named["object"].tolist(), strict=True):
        objects.setdefault(key, []).append(number)
    for chain in table[mine].to_dict("records"):
        key = int(chain["snapshot"]), int(chain["group"])
        about = role_of_chain(steps.get(key, []))
        yield _Seen(
            event=blocks.event_before(int(chain["time_ns"])),
            named=numbers_in(blocks, objects.get(key, [])),
            count=int(chain["arrays"]),
            bytes=int(chain["held_bytes"]),
            about=about and Named(about.role, str(chain["words"]), about.path, about.root),
            whole=bool(chain["complete"]),
        )


def _unnamed(blocks: Blocks, event: int, chains: list[_Seen]) -> dict[int, Named]:
    """What the snapshot at an event saw in these chains, all that it has, and did not name."""
    free = blocks.torch & blocks.alive(event)
    for chain in chains:
        free[chain.named[chain.named >= 0]] = False
    lacking = [chain for chain in chains if chain.about and 0 < len(chain.named) < chain.count]
    lacking = [chain for chain in lacking if (chain.named >= 0).all()]
    found: dict[int, Named] = {}
    for together in _batches(lacking):
        rows = _others(blocks, free, together)
        about = together[0].about
        if len(rows) and about is not None:
            free[rows] = False
            of_all = about if len(together) == 1 else Named(about.role)
            found.update(dict.fromkeys(rows.tolist(), of_all))
    return found


def _batches(lacking: list[_Seen]) -> Iterator[list[_Seen]]:
    """Each chain, then those of one role: what they share is known only of all of them."""
    yield from ([chain] for chain in lacking)
    for role in dict.fromkeys(chain.about.role for chain in lacking if chain.about):
        several = [chain for chain in lacking if chain.about and chain.about.role == role]
        if len(several) > 1:
            yield several


def _others(blocks: Blocks, free: Mask, chains: list[_Seen]) -> Ints:
    """The blocks of the chains that are not named, if there is one choice of them; else none."""
    named = np.concatenate([chain.named for chain in chains])
    count = sum(chain.count for chain in chains) - len(named)
    size = sum(chain.bytes for chain in chains) - int(blocks.size[named].sum())
    rows = np.flatnonzero(free & np.isin(blocks.born_site, blocks.born_site[named]))
    first, last = blocks.born[named].min(), blocks.born[named].max()
    later = rows[blocks.born[rows] >= first]
    for choice in (rows, later, later[blocks.born[later] <= last]):
        if len(choice) == count and int(blocks.size[choice].sum()) == size:
            return choice
    return np.zeros(0, np.int64)


def _alike(
    blocks: Blocks, passes: Passes, seen: list[_Seen], found: dict[int, Named]
) -> dict[int, Named]:
    """Blocks that no snapshot was there for, and that are as others: of one stack and one size.

    So it is where a program resumes again and again. All of the others that a snapshot could see
    must be known and have one role, and those that follow them must be there when a step begins.
    """
    events = np.unique([chain.event for chain in seen if chain.about and chain.whole])
    after = np.searchsorted(events, blocks.born)
    looked_at = np.append(events, NEVER)[after] < blocks.died
    known = np.fromiter(found, np.int64, len(found))
    is_known = np.zeros(len(blocks), bool)
    is_known[known] = True
    first = np.searchsorted(passes.steps, blocks.born, side="right")
    steps = np.searchsorted(passes.steps, blocks.died, side="left") - first
    open_rows = np.flatnonzero(
        blocks.torch
        & ~is_known
        & (looked_at | (steps > 0))
        & np.isin(blocks.born_phase, _GUESSED)
        & np.isin(blocks.born_site, blocks.born_site[known])
    )
    of_key: dict[tuple[int, int], set[Role]] = {}
    sites, sizes = blocks.born_site, blocks.size
    for place, about in found.items():
        of_key.setdefault((int(sites[place]), int(sizes[place])), set()).add(about.role)
    keys = list(zip(sites[open_rows].tolist(), sizes[open_rows].tolist(), strict=True))
    for key, was_seen in zip(keys, looked_at[open_rows].tolist(), strict=True):
        if was_seen:
            of_key.pop(key, None)
    return {
        place: Named(next(iter(of_key[key])))
        for place, key in zip(open_rows.tolist(), keys, strict=True)
        if len(of_key.get(key, ())) == 1
    }
