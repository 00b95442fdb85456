"""Programs recorded with the truth that they took inside themselves, and the two compared."""

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from support import programs

from tlmem.analysis.peak.explained import Known
from tlmem.analysis.peak.roles import NAMES as ROLE_NAMES
from tlmem.analysis.peak.roles import Role
from tlmem.events import Device
from tlmem.recording.reader import Recording, read

PROGRAMS = Path(__file__).resolve().parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "truth")
VARIABLE = "TLMEM_TEST_TRUTH"
OF_TORCH = (Device.TORCH, Device.TORCH_MAPPED)
HEADER_OF_SHARED = 64
"""Bytes that PyTorch puts before the data of a storage in shared memory with a reference count."""


@dataclass(frozen=True)
class Moment:
    """What the program said at one of its marks: bytes and roles of each storage address."""

    label: str
    index: int
    time_ns: int
    storages: dict[int, tuple[int, list[str]]]


@dataclass
class Difference:
    """Where the live set of a recording and the truth differ; addresses with bytes."""

    missing: dict[int, int] = field(default_factory=dict)
    """A tensor lies there, the recording knows of no block."""
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Bytes of the truth and of the recording, where they are not the same."""
    unexplained: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Blocks that are alive and that no tensor lies in: bytes and the inner frames of the stack."""


@dataclass(frozen=True)
class Recorded:
    """A program that ran plainly and under ``tlmem record``."""

    name: str
    folder: Path
    plain: Any
    recorded: Any

    @cached_property
    def recordings(self) -> dict[int, Recording]:
        """The recordings of all its processes, by process number."""
        return {one.pid: one for one in map(read, sorted(self.folder.glob("*.tlm")))}

    def moments(self, pid: int) -> list[Moment]:
        """The truth that one process took, each with the time of its mark."""
        path = self.folder / f"{pid}.jsonl"
        if not path.exists():
            return []
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        marks = self.recordings[pid].marks
        assert [(line["moment"], line["index"]) for line in lines] == list(
            zip(marks["label"], marks["index"].astype(int), strict=True)
        )
        return [
            Moment(
                line["moment"],
                line["index"],
                int(time_ns),
                {int(key): (size, roles) for key, (size, roles) in line["storages"].items()},
            )
            for line, time_ns in zip(lines, marks["time_ns"], strict=True)
        ]


def record(name: str, folder: Path) -> Recorded:
    """Runs a program plainly, then under ``tlmem record`` with the truth switched on."""
    script = str(PROGRAMS / f"{name}.py")
    plain = programs.plain([script], folder)
    recorded = programs.recorded(
        [script],
        folder,
        environment={VARIABLE: os.fspath(folder)},
        options=("-q", "-o", f"{name}.tlm"),
    )
    return Recorded(name, folder, plain, recorded)


def live(recording: Recording, time_ns: int) -> pd.DataFrame:
    """Blocks of PyTorch and arrays of NumPy that are alive at a time."""
    objects = recording.objects
    alive = (objects.born_ns <= time_ns) & ((objects.died_ns < 0) | (objects.died_ns > time_ns))
    return objects[alive]


def compare(recording: Recording, moment: Moment) -> Difference:
    """The live set at a moment beside the truth, address by address."""
    alive = live(recording, moment.time_ns)
    blocks = alive[alive.device.isin([int(device) for device in OF_TORCH])]
    known = {
        int(address): (int(size), int(device), int(site))
        for address, size, device, site in zip(
            blocks.address, blocks.size_bytes, blocks.device, blocks.born_site, strict=True
        )
    }
    arrays = alive[alive.device == int(Device.NUMPY)]
    begins = arrays.address.to_numpy(np.uint64)
    ends = begins + arrays.size_bytes.to_numpy(np.uint64)
    found = Difference()
    used = set()
    for address, (size, _) in moment.storages.items():
        begin = begin_of(address, known)
        if begin is None:
            if not np.any((begins <= address) & (address < ends)):
                found.missing[address] = size
            continue
        used.add(begin)
        recorded, device, _ = known[begin]
        if recorded != size and device == int(Device.TORCH):
            found.sizes[address] = (size, recorded)
        if device == int(Device.TORCH_MAPPED) and not size <= recorded + begin - address:
            found.sizes[address] = (size, recorded)
    for address, (size, _, site) in known.items():
        if address not in used and size:
            found.unexplained[address] = (size, frames(recording, site))
    return found


def begin_of(address: int, known: dict[int, tuple[int, int, int]]) -> int | None:
    """The block that a storage begins in: at its begin, or inside of a mapping."""
    if address in known:
        return address
    for begin, (size, device, _) in known.items():
        if device == int(Device.TORCH_MAPPED) and begin <= address < begin + size:
            return begin
    return None


def frames(recording: Recording, site: int, most: int = 6) -> str:
    """The innermost frames of a stack, on one line."""
    return " < ".join(
        f"{Path(file).name}:{line} {function}"
        for _, (file, line, function) in zip(range(most), recording.frames_of(site), strict=False)
    )


ROLES_OF = {
    "weights": {Role.WEIGHTS},
    "buffers": {Role.WEIGHTS},
    "gradients": {Role.GRADIENTS},
    "optimizer state": {Role.OPTIMIZER_STATE},
    "activations": {Role.ACTIVATIONS, Role.RECOMPUTED},
    "inputs": {Role.INPUTS},
    "variable": {Role.TEMPORARIES, Role.KEPT, Role.INPUTS},
    "other": {Role.TEMPORARIES, Role.KEPT},
}
"""The roles that the analysis may give a storage which is known inside the program as this."""


def allowed(roles: list[str]) -> set[Role]:
    """The roles that are right for a storage.

    A tensor of the program may be one thing to the graph and another to the program. Two kinds of
    them have two right names: a batch is an input, may be saved by the graph, and is kept by the
    variable that it came from; and what the graph saved may also be in a variable of the program.
    Everything else has one.
    """
    if "inputs" in roles and roles[0] not in ("weights", "buffers", "optimizer state"):
        return {
            Role.INPUTS,
            Role.KEPT,
            *(ROLES_OF["activations"] if "activations" in roles else ()),
        }
    if roles[0] == "activations" and "variable" in roles:
        return ROLES_OF["activations"] | {Role.KEPT, Role.INPUTS}
    return ROLES_OF[roles[0]]


def wrong_roles(known: Known, moment: Moment) -> list[tuple[int, list[str], str, str]]:
    """Blocks at a moment whose role is not one of the truth: bytes, truth, role, and the stack."""
    blocks, recording = known.blocks, known.recording
    rows = alive_at(known, moment.time_ns)
    addresses = recording.objects.address.loc[blocks.number[rows]].to_numpy()
    found = []
    for row, address in zip(rows.tolist(), addresses.tolist(), strict=True):
        if address not in moment.storages:
            continue  # test_live_blocks_are_the_storages_of_the_truth is about those
        roles = moment.storages[address][1]
        role = Role(int(known.role[row]))
        if role not in allowed(roles):
            stack = frames(recording, int(blocks.born_site[row]), 4)
            found.append((int(blocks.size[row]), roles, ROLE_NAMES[role], stack))
    return found


def alive_at(known: Known, time_ns: int) -> NDArray[np.int64]:
    """The rows of PyTorch's blocks that are alive at a time."""
    blocks = known.blocks
    died_ns = known.recording.objects["died_ns"].loc[blocks.number].to_numpy()
    lives = (blocks.born_ns <= time_ns) & ((died_ns < 0) | (died_ns > time_ns))
    return np.flatnonzero(lives & blocks.torch & (blocks.size > 0))
