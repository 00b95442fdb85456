"""The vocabulary of a recording: what an event is, and the numbers its fields hold.

Covers: kinds, devices, metrics and the layout of one event, as in ``docs/format.md``.
Does not cover: how events are stored (``recording.format``), or what follows from them
(``recording.tables``). The same numbers stand in ``native/include`` for C; a test compares them.
May import: nothing.
Third-party: numpy.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Kind(IntEnum):
    """What happened. The numbers are part of the file format: appended, never renumbered."""

    ALLOC = 1
    FREE = 2
    REALLOC = 3
    ACQUIRE = 4
    RELEASE = 5
    REGISTER = 6
    UNREGISTER = 7
    PROMOTE = 8
    ESCAPE = 9
    SCOPE_ENTER = 10
    SCOPE_EXIT = 11
    FRAME_ENTER = 12
    FRAME_EXIT = 13
    SLOT_GET = 14
    SLOT_GROW = 15
    POOL_HIT = 16
    POOL_MISS = 17
    POOL_PUT = 18
    POOL_DROP = 19
    POOL_PRUNE = 20
    POOL_RESERVE = 21
    DEVICE_ALLOC = 22
    DEVICE_FREE = 23
    TAPE_RECORD = 24
    TAPE_SAVE = 25
    TAPE_UNSAVE = 26
    BACKWARD_BEGIN = 27
    BACKWARD_END = 28
    DETACH = 29
    RESET = 30
    CLEAR_GRADS = 31
    MARK = 32
    SAMPLE = 33
    MISUSE = 34
    HOLDERS = 35
    COPY = 36
    MODULE_PATH = 37
    AUTOGRAD = 38


class Device(IntEnum):
    """Whose memory an event speaks of.

    1 to 15 is foreign memory, known by its address. From 16 on it is the runtime's, known by
    handles: 19 is memory that no device gave, from 32 on are devices that limit another one.
    """

    NONE = 0
    NUMPY = 1
    TORCH = 2
    PROBE = 3
    TORCH_MAPPED = 4
    TORCH_ACCELERATOR = 5
    HEAP = 6
    CPU = 16
    METAL = 17
    SIM_METAL = 18
    FOREIGN = 19


class HolderKind(IntEnum):
    """Who holds an object: the highest byte of a holder, whose other 56 bits are its number."""

    NONE = 0
    FLOATING = 1
    SCOPE = 2
    HANDLE = 3
    FIELD = 4
    VIEW = 5
    REGISTRY = 6
    POOL = 7
    FRAME = 8
    TAPE = 9
    EXPORT = 10
    FOREIGN = 11


class ObjectType(IntEnum):
    """What an object of the runtime is; views and structs have no bytes of their own."""

    TENSOR = 1
    VIEW = 2
    STRUCT = 3
    FOREIGN = 4
    BUFFER = 5


class Misuse(IntEnum):
    """What a misuse event says was done; its ``count``."""

    USE_AFTER_FREE = 1
    DOUBLE_FREE = 2
    OVER_RELEASE = 3
    STALE_RECORD = 4
    DOUBLE_REGISTER = 5
    UNPAIRED_REGISTER = 6
    NO_FRAME = 7
    UNBALANCED_SCOPE = 8
    UNBALANCED_FRAME = 9
    OUTLIVES_FRAME = 10
    DOUBLE_POOL = 11
    POOLED_WHILE_HELD = 12
    WRONG_DEVICE = 13
    NOT_IN_SCOPE = 14
    IN_PLACE_ON_SAVED = 15
    SECOND_BACKWARD = 16
    PAST_THE_END = 17
    WRITTEN_AFTER_FREE = 18


class Metric(IntEnum):
    """What a sample measured: bytes, page faults, tracked objects, modules (counts), or ns."""

    ANON = 1
    FILE = 2
    MALLOC_USED = 3
    MALLOC_FREE = 4
    PYTHON_ARENA = 5
    PYTHON_LARGE = 6
    RECORDER = 7
    HIGH_WATER = 8
    MINOR_FAULTS = 9
    MAJOR_FAULTS = 10
    UNTOUCHED = 11
    TRACKED = 12
    TRACKED_COUNT = 13
    PSS = 14
    PRIVATE = 15
    SWAP = 16
    MODULES = 17
    DRIVER = 18
    TAPES = 19
    LIBRARY_DATA = 20
    STACKS = 21
    ALLOCATOR_RESIDENT = 22
    MAPPED = 23
    LOG_FILE = 24
    SHARED = 25
    DATA_FILES = 26
    MALLOC_MAPPED = 27
    RECORDER_RESIDENT = 28
    SHARED_SIZE = 29
    DELAYED = 30


KIND_NAMES: dict[int, str] = {int(kind): kind.name.lower() for kind in Kind}
DEVICE_NAMES: dict[int, str] = {
    int(device): device.name.lower().replace("_", "-") for device in Device
}
METRIC_NAMES: dict[int, str] = {int(metric): metric.name.lower() for metric in Metric}
HOLDER_NAMES: dict[int, str] = {int(kind): kind.name.lower() for kind in HolderKind}
MISUSE_NAMES: dict[int, str] = {
    int(misuse): misuse.name.lower().replace("_", "-") for misuse in Misuse
}

TORCH_DEVICES = (Device.TORCH, Device.TORCH_MAPPED, Device.TORCH_ACCELERATOR)
NOT_ANONYMOUS = (Device.TORCH_MAPPED, Device.TORCH_ACCELERATOR)
"""Devices whose memory is no anonymous memory of the process: mapped or shared, or elsewhere."""
FIRST_FOREIGN_DEVICE = 1
LAST_FOREIGN_DEVICE = 15
FIRST_RUNTIME_DEVICE = 16
HOLDER_NUMBER_BITS = 56
"""Bits of a holder below its kind."""
TAPE_OP_BITS = 40
"""Bits of the number of a holder of kind tape below the op; they are the sequence of the value."""
FIRST_TAPE_OP = 16
"""Ops below it are what the tape itself holds: gradients, values computed again."""
FIELD_NUMBER_BITS = 40
"""Bits of the argument of a ``holders`` event below the label of the layout."""
SATURATED_COUNT = 65535
"""``count`` of an event that says "at least"."""
LAST_KIND = max(Kind)

RESIZE_FREE = 1
"""``arg`` of a free that is the first half of a resize."""
RESIZE_FAILED = 2**64 - 1
"""``arg`` of a realloc: the resize failed, the object freed just before is alive as it was."""

EVENT_DTYPE = np.dtype(
    [
        ("ticks", "<u8"),
        ("object", "<u8"),
        ("arg", "<u8"),
        ("site", "<u4"),
        ("count", "<u2"),
        ("kind", "u1"),
        ("device", "u1"),
    ]
)
"""One event as it lies in an events slot: 32 bytes."""

BEGIN_LABEL = "tlmem:begin"
END_LABEL = "tlmem:end"
INTERNAL_LABEL_PREFIX = "tlmem:"
OUT_OF_MEMORY, SNAPSHOT_LABEL = "out of memory on ", "snapshot"
"""Marks of an imported snapshot: the first is followed by the name of the device."""

CPLUSPLUS = "C++"
"""File of frames that are not Python's and have no line; the function tells them apart."""
ENGINE = "torch::autograd::Engine::thread_init"
"""Function of the root of stacks of PyTorch's threads that run backward passes."""
WORKSPACE, OLDER = "cuBLAS workspace", "older than the trace"
"""Functions of frames of ``CPLUSPLUS`` that an imported snapshot has for blocks of no line: those
that PyTorch keeps for cuBLAS, and those whose allocation the trace does not have."""
