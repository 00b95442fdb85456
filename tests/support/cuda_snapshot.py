"""Memory snapshots as PyTorch writes them, from a simulated allocator whose truth is known.

Covers: rounding and splitting, segments of both pools, expandable ones, private pools, streams that
delay a free, a ring that overflows, annotations, running out of memory, several devices, stacks
with and without frames of C++, and the older forms of the file.
Does not cover: an allocator of any other kind. Imports nothing of tlmem.
"""

from __future__ import annotations

import copy
import pickle
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MB, GB = 1 << 20, 1 << 30
SMALL, SMALL_SEGMENT, LARGE_SEGMENT, ROUND_SEGMENT = MB, 2 * MB, 20 * MB, 2 * MB
TORCH = "/opt/env/lib/python3.11/site-packages/torch"
START_US = 1_759_252_584_000_000

Frames = list[dict[str, Any]]


def frame(filename: str, line: int, name: str) -> dict[str, Any]:
    """One frame."""
    return {"filename": filename, "line": line, "name": name}


CPP = [
    frame("??", 0, "torch::unwind::unwind()"),
    frame("??", 0, "torch::CapturedTraceback::gather(bool, bool, bool)"),
    frame("CUDACachingAllocator.cpp", 0, "c10::cuda::CUDACachingAllocator::malloc(void**)"),
    frame("??", 0, "at::detail::empty_generic(c10::ArrayRef<long>)"),
]
OUTER_CPP = [frame("??", 0, "_PyEval_EvalFrameDefault"), frame("??", 0, "__libc_start_main")]
MAIN = frame("/home/u/train.py", 90, "<module>")
LOOP = frame("/home/u/train.py", 61, "main")
CALL = [
    frame(f"{TORCH}/nn/modules/module.py", 1747, "_call_impl"),
    frame(f"{TORCH}/nn/modules/module.py", 1736, "_wrapped_call_impl"),
]
BACKWARD = [
    frame(f"{TORCH}/autograd/graph.py", 823, "_engine_run_backward"),
    frame(f"{TORCH}/_tensor.py", 581, "backward"),
]


@dataclass
class Block:
    """A part of a segment."""

    address: int
    size: int
    state: str = "inactive"
    requested: int = 0
    frames: Frames = field(default_factory=list)


@dataclass
class Segment:
    """What the driver gave."""

    address: int
    total: int
    stream: int
    small: bool
    pool: tuple[int, int]
    frames: Frames
    blocks: list[Block] = field(default_factory=list)


class Stopped(Exception):
    """The snapshot is taken here."""


class Device:
    """One device with its allocator and the ring of its trace; every figure is counted here."""

    def __init__(self, number: int, ring: int, expandable: bool = False, cpp: bool = False) -> None:
        self.number, self.ring, self.expandable, self.cpp = number, ring, expandable, cpp
        self.segments: list[Segment] = []
        self.trace: list[dict[str, Any]] = []
        self.history: list[tuple[int, int, int]] = []
        """In use, asked for and reserved after each entry."""
        self.allocated = self.requested = self.reserved = 0
        self.where: dict[int, tuple[Segment, Block]] = {}
        self.waiting: list[int] = []
        self.top = 0x7F00_0000_0000 + number * 0x100_0000
        self.now = START_US
        self.stacks: dict[Any, Frames] = {}
        self.metadata = ""
        self.stop = 0

    # ---- the trace ----

    def stack(self, *frames: dict[str, Any]) -> Frames:
        """Frames, innermost first; equal stacks are one object, as in files of PyTorch."""
        inner = [*CPP, *frames, *OUTER_CPP] if self.cpp else list(frames)
        return self.stacks.setdefault(tuple(map(id, frames)), inner)

    def entry(self, action: str, addr: int, size: int, stream: int, frames: Frames) -> None:
        """One more entry; time goes on."""
        self.now += 7
        made: dict[str, Any] = {"action": action, "size": size, "stream": stream}
        made["device_free" if action == "oom" else "addr"] = addr
        made |= {"time_us": self.now, "frames": frames, "pool_id": (0, 0)}
        made |= {"compile_context": "N/A", "user_metadata": self.metadata}
        self.trace.append(made)
        self.history.append((self.allocated, self.requested, self.reserved))
        if len(self.trace) == self.stop:
            raise Stopped

    @property
    def kept(self) -> int:
        """Entries that the ring still has."""
        return min(self.ring, len(self.trace))

    # ---- the allocator ----

    def alloc(
        self,
        size: int,
        frames: Frames,
        stream: int = 0,
        pool: tuple[int, int] = (0, 0),
    ) -> int:
        """Allocates; returns the address."""
        room = max(512, (size + 511) // 512 * 512)
        small = room <= SMALL
        found = self._best(room, small, stream, pool)
        if found is None:
            found = self._reserve(room, small, stream, pool, frames)
        segment, block = found
        rest = block.size - room
        if rest >= 512 if small or self.expandable else rest > SMALL:
            at = segment.blocks.index(block)
            segment.blocks.insert(at + 1, Block(block.address + room, rest))
            block.size = room
        block.state, block.requested, block.frames = "active_allocated", size, frames
        self.where[block.address] = segment, block
        self.allocated += block.size
        self.requested += size
        self.entry("alloc", block.address, size, stream, frames)
        return block.address

    def _best(self, room: int, small: bool, stream: int, pool: tuple[int, int]) -> Any:
        fits = [
            (block.size, segment.address, block.address, segment, block)
            for segment in self.segments
            if (segment.small, segment.stream, segment.pool) == (small, stream, pool)
            for block in segment.blocks
            if block.state == "inactive" and block.size >= room
        ]
        return min(fits, key=lambda fit: fit[:3])[3:] if fits else None

    def _reserve(
        self, room: int, small: bool, stream: int, pool: tuple[int, int], frames: Frames
    ) -> Any:
        if self.expandable:
            return self._map(room, small, stream, pool, frames)
        total = SMALL_SEGMENT if small else LARGE_SEGMENT
        if not small and room >= LARGE_SEGMENT // 2:
            total = (room + ROUND_SEGMENT - 1) // ROUND_SEGMENT * ROUND_SEGMENT
        segment = Segment(self.top, total, stream, small, pool, frames)
        self.top += total + 4 * MB
        segment.blocks.append(Block(segment.address, total))
        self.segments.append(segment)
        self.reserved += total
        self.entry("segment_alloc", segment.address, total, stream, frames)
        return segment, segment.blocks[0]

    def _map(
        self, room: int, small: bool, stream: int, pool: tuple[int, int], frames: Frames
    ) -> Any:
        """Grows the expandable segment of this kind, or makes it."""
        page = SMALL_SEGMENT if small else LARGE_SEGMENT
        kind = (small, stream, pool)
        own = [s for s in self.segments if (s.small, s.stream, s.pool) == kind]
        if not own:
            own = [Segment(self.top, 0, stream, small, pool, frames)]
            self.top += 1 << 40
            self.segments += own
        segment = own[0]
        last = segment.blocks[-1] if segment.blocks else None
        have = last.size if last is not None and last.state == "inactive" else 0
        more = (room - have + page - 1) // page * page
        at = segment.address + segment.total
        if have:
            last.size += more
        else:
            segment.blocks.append(Block(at, more))
        segment.total += more
        self.reserved += more
        self.entry("segment_map", at, more, stream, frames)
        return segment, segment.blocks[-1]

    def free(self, address: int, frames: Frames, wait: bool = False) -> None:
        """Frees; with ``wait`` another stream still uses the block, until ``complete``."""
        segment, block = self.where[address]
        self.allocated -= block.size
        self.requested -= block.requested
        block.state = "active_pending_free"
        self.waiting.append(address)
        self.entry("free_requested", address, block.requested, segment.stream, frames)
        if not wait:
            self.complete(frames, address)

    def complete(self, frames: Frames, address: int | None = None) -> None:
        """Ends the wait of one block, or of all."""
        for each in [address] if address is not None else list(self.waiting):
            self.waiting.remove(each)
            segment, block = self.where.pop(each)
            asked, block.state, block.requested = block.requested, "inactive", 0
            self.merge(segment, block)
            self.entry("free_completed", each, asked, segment.stream, frames)

    @staticmethod
    def merge(segment: Segment, block: Block) -> None:
        """Makes a free block one with free neighbours."""
        at = segment.blocks.index(block)
        for other in (at + 1, at - 1):
            if 0 <= other < len(segment.blocks) and segment.blocks[other].state == "inactive":
                first, second = sorted((segment.blocks[other], block), key=lambda b: b.address)
                first.size += second.size
                segment.blocks.remove(second)
                block = first

    def empty_cache(self, frames: Frames) -> None:
        """Gives whole free segments, and free ends of expandable ones, back."""
        for segment in list(self.segments):
            last = segment.blocks[-1]
            if last.state != "inactive" or (not self.expandable and len(segment.blocks) > 1):
                continue
            segment.blocks.pop()
            segment.total -= last.size
            self.reserved -= last.size
            if not segment.blocks:
                self.segments.remove(segment)
            action = "segment_unmap" if self.expandable else "segment_free"
            self.entry(action, last.address, last.size, segment.stream, frames)

    # ---- the truth ----

    def truth(self) -> dict[str, int]:
        """What a correct reader finds."""
        first = len(self.history) - self.kept
        before = self.history[first - 1] if first else (0, 0, 0)
        levels = [before, *self.history[first:]]
        blocks = [block for segment in self.segments for block in segment.blocks]
        used = [b for b in blocks if b.state == "active_allocated"]
        waiting = sum(b.size for b in blocks if b.state == "active_pending_free")
        whole = sum(s.total for s in self.segments if all(b.state == "inactive" for b in s.blocks))
        free = sum(b.size for b in blocks if b.state == "inactive")
        return {
            "reserved": sum(s.total for s in self.segments),
            "allocated": sum(b.size for b in used),
            "requested": sum(b.requested for b in used),
            "rounding": sum(b.size - b.requested for b in used),
            "waiting": waiting,
            "split_free": free - whole,
            "whole_free": whole,
            "blocks": len(blocks),
            "live_blocks": len(used),
            "base": before[0],
            "base_requested": before[1],
            "base_reserved": before[2],
            "peak": max(level[0] for level in levels),
            "peak_requested": max(level[1] for level in levels),
            "peak_reserved": max(level[2] for level in levels),
            "entries": self.kept,
        }


@dataclass
class Simulation:
    """Devices, annotations, and the forms in which they are written."""

    devices: list[Device]
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def annotate(self, stage: str, name: str, device: int = 0) -> None:
        """The begin or end of a phase, now."""
        time_us = self.devices[device].now
        self.annotations.append(
            {"stage": stage, "name": name, "device": device, "time_us": time_us}
        )

    def snapshot(self) -> dict[str, Any]:
        """As ``torch.cuda.memory._snapshot()`` gives it."""
        return {
            "segments": [
                self.segment(device, segment)
                for device in self.devices
                for segment in sorted(device.segments, key=lambda s: s.address)
            ],
            "device_traces": [device.trace[-device.ring :] for device in self.devices],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": "",
                "max_split_size": -1,
                "garbage_collection_threshold": 0.0,
                "expandable_segments": self.devices[0].expandable,
                "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
            },
            "external_annotations": self.annotations,
        }

    @staticmethod
    def segment(device: Device, segment: Segment) -> dict[str, Any]:
        """One segment."""
        active = [b for b in segment.blocks if b.state != "inactive"]
        return {
            "device": device.number,
            "address": segment.address,
            "total_size": segment.total,
            "allocated_size": sum(b.size for b in active if b.state == "active_allocated"),
            "active_size": sum(b.size for b in active),
            "requested_size": sum(b.requested for b in active),
            "stream": segment.stream,
            "segment_type": "small" if segment.small else "large",
            "segment_pool_id": segment.pool,
            "is_expandable": device.expandable,
            "frames": segment.frames,
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": block.state,
                    "frames": block.frames,
                }
                for block in segment.blocks
            ],
        }

    def write(self, path: Path) -> Path:
        """Writes the snapshot and returns its path."""
        path.write_bytes(pickle.dumps(self.snapshot(), protocol=4))
        return path


def training(
    steps: int = 12,
    layers: int = 8,
    *,
    ring: int = 10**9,
    unit: int = 3_000_001,
    weight: int = 4_000_003,
    leak: int = 0,
    devices: int = 1,
    expandable: bool = False,
    cpp: bool = False,
    free_stacks: bool = True,
    waits: bool = False,
    oom: bool = False,
    pool: tuple[int, int] = (0, 0),
    cache: int = 0,
    step_us: int = 300_000,
    stop: int = 0,
) -> Simulation:
    """A training run: weights and optimizer state, then steps of forward, backward and optimizer.

    Args:
        unit, weight: bytes asked for by an activation and by a weight.
        leak: so many bytes are kept for good in each step, at line 66 of train.py.
        free_stacks: else frees repeat the stack of the allocation, as with context='alloc'.
        waits: whether some frees wait for another stream, the last ones to the end.
        stop: the snapshot is taken after so many entries of each device; 0: at the end.
        step_us: pause between steps, in microseconds.
        cache: bytes that are allocated and freed at the begin: they stay reserved.
    """
    made = Simulation([Device(n, ring, expandable, cpp) for n in range(devices)])
    for device in made.devices:
        device.stop = stop
        with suppress(Stopped):
            _train(made, device, steps, layers, unit, weight, leak, free_stacks, waits, pool, cache,
                   step_us)  # fmt: skip
        if oom:
            stack = device.stack(frame("/home/u/train.py", 70, "main"), MAIN)
            device.entry("oom", 512 * MB, 4 * GB, 0, stack)
    return made


def _train(
    made: Simulation,
    device: Device,
    steps: int,
    layers: int,
    unit: int,
    weight: int,
    leak: int,
    free_stacks: bool,
    waits: bool,
    pool: tuple[int, int],
    cache: int,
    step_us: int,
) -> None:
    where: dict[int, Frames] = {}

    def new(size: int, *frames: dict[str, Any], stream: int = 0) -> int:
        stack = device.stack(*frames)
        address = device.alloc(size, stack, stream, pool)
        where[address] = stack
        return address

    def drop(address: int, *frames: dict[str, Any], wait: bool = False) -> None:
        stack = device.stack(*frames) if free_stacks else where[address]
        device.free(address, stack, wait)

    init = frame("/home/u/model.py", 12, "__init__")
    build = frame("/home/u/train.py", 40, "build")
    step_line = frame("/home/u/train.py", 64, "main")
    adam = frame(f"{TORCH}/optim/adamw.py", 243, "step")
    zero = frame("/home/u/train.py", 63, "main")
    if cache:
        drop(new(cache, build, MAIN), build, MAIN)
    weights = [new(weight + 640 * n, init, build, MAIN) for n in range(layers)]
    states: list[int] = []
    forward = [frame("/home/u/model.py", 20 + n % 4, "forward") for n in range(4)]
    for step in range(steps):
        made.annotate("START", f"ProfilerStep#{step}", device.number)
        made.annotate("START", "## forward ##", device.number)
        activations = []
        for layer in range(layers):
            temporary = new(unit // 3 + layer, forward[0], *CALL, LOOP, MAIN)
            for part in range(3):
                activations.append(
                    new(unit + 1000 * part + layer, forward[1 + part], *CALL, LOOP, MAIN)
                )
            drop(temporary, forward[0], *CALL, LOOP, MAIN)
        loss = new(4, frame("/home/u/train.py", 62, "main"), MAIN)
        made.annotate("END", "## forward ##", device.number)
        gradients = []
        for layer in reversed(range(layers)):
            work = new(unit // 2 + layer, *BACKWARD, LOOP, MAIN)
            gradients.append(new(weight + 640 * layer, *BACKWARD, LOOP, MAIN))
            for activation in activations[3 * layer : 3 * layer + 3]:
                drop(activation, *BACKWARD, LOOP, MAIN)
            drop(work, *BACKWARD, LOOP, MAIN, wait=waits and layer % 2 == 0)
            if waits and layer % 4 == 1:
                device.complete(device.stack(*BACKWARD, LOOP, MAIN))
        made.annotate("START", "Optimizer.step#AdamW.step", device.number)
        if not states:
            states = [new(weight, adam, step_line, MAIN) for _ in weights for _ in "mv"]
        temporary = new(weight * 2, adam, step_line, MAIN)
        drop(temporary, adam, step_line, MAIN)
        made.annotate("END", "Optimizer.step#AdamW.step", device.number)
        for gradient in gradients:
            drop(gradient, zero, MAIN)
        drop(loss, zero, MAIN)
        if leak:
            new(leak, frame("/home/u/train.py", 66, "main"), MAIN)
        device.now += step_us
        made.annotate("END", f"ProfilerStep#{step}", device.number)


# ---- older and stranger forms ----


def bare_list(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """Segments alone, blocks with a history and without addresses, as before version 2.1."""
    segments = copy.deepcopy(snapshot["segments"])
    for segment in segments:
        for key in ("segment_pool_id", "is_expandable", "requested_size", "frames"):
            segment.pop(key)
        for block in segment["blocks"]:
            block.pop("address")
            frames, asked = block.pop("frames"), block.pop("requested_size")
            if block["state"] != "inactive":
                block["history"] = [
                    {"addr": 1, "real_size": asked, "frames": frames},
                    {"addr": 2, "real_size": 77, "frames": []},
                ]
    return segments


def without(snapshot: dict[str, Any], *keys: str) -> dict[str, Any]:
    """A copy whose entries, segments and blocks lack some keys."""
    made = copy.deepcopy(snapshot)
    for trace in made["device_traces"]:
        for entry in trace:
            for key in keys:
                entry.pop(key, None)
    for segment in made["segments"]:
        for part in (segment, *segment["blocks"]):
            for key in keys:
                part.pop(key, None)
    return made


def with_host(snapshot: dict[str, Any], size: int = 5_000_000) -> dict[str, Any]:
    """A copy with pinned memory of the host: one block in use, one that was freed."""
    made = copy.deepcopy(snapshot)
    stack = [frame("/home/u/data.py", 8, "pin"), MAIN]
    made["host_segments"] = [
        {
            "device": 0,
            "address": 0x5000_0000,
            "total_size": 1 << 23,
            "allocated_size": 1 << 23,
            "active_size": 1 << 23,
            "requested_size": size,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": stack,
            "blocks": [
                {
                    "address": 0x5000_0000,
                    "size": 1 << 23,
                    "requested_size": size,
                    "state": "active_allocated",
                    "frames": stack,
                }
            ],
        }
    ]
    time_us = START_US + 50
    made["host_traces"] = [
        {"action": "segment_alloc", "addr": 0x5000_0000, "size": 1 << 23, "stream": 0,
         "time_us": time_us, "frames": stack},
        {"action": "alloc", "addr": 0x5000_0000, "size": size, "stream": 0,
         "time_us": time_us + 1, "frames": stack},
    ]  # fmt: skip
    return made


# ---- stacks of the threads that run backward passes ----


def engine_stack(*inner: str) -> list[dict[str, Any]]:
    """A stack without Python, innermost first: ``inner`` are signatures below a pass's loop."""
    outer = (
        "torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask>&, Node*)",
        "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)",
        "torch::autograd::Engine::thread_init(int, std::shared_ptr<ReadyQueue> const&, bool)",
        "torch::autograd::python::PythonEngine::thread_init(int, bool)",
        "clone",
    )
    return [*CPP, *(frame("??", 0, name) for name in (*inner, *outer))]
