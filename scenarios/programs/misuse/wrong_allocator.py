"""An engine in another language takes blocks from its slab and gives some back to its heap (B18).

Engines say so by the probes of ``tlmem_probe.h``. This one is a few lines of Python that call what
those probes call, so that no compiler is needed.

Fixed: The engine of wrong-allocator gives each block back to the allocator that it came from.
"""

import ctypes
import sys

from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
COUNT = 60


class Place(ctypes.Structure):
    """``tlm_probe_place``: the line of a probe, and a word for tlmem."""

    _fields_ = [
        ("file", ctypes.c_char_p),
        ("function", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("cache", ctypes.c_uint64),
    ]


Word = ctypes.c_uint64
AllocWith = ctypes.CFUNCTYPE(None, ctypes.POINTER(Place), Word, Word, ctypes.c_char_p)
FreeWith = ctypes.CFUNCTYPE(None, ctypes.POINTER(Place), Word, ctypes.c_char_p)


class Table(ctypes.Structure):
    """``tlm_probe_functions``, as far as it is used here."""

    _fields_ = [
        ("version", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("on", ctypes.POINTER(ctypes.c_ubyte)),
        *((name, ctypes.c_void_p) for name in ("event", "move", "scope_enter", "mark")),
        ("alloc_with", AllocWith),
        ("free_with", FreeWith),
    ]


table = Table.in_dll(ctypes.CDLL(tlmem.get_library()), "tlm_probe_table")
places: dict[int, Place] = {}


def here() -> Place:
    """The line of the caller's caller."""
    caller = sys._getframe(2)
    if caller.f_lineno not in places:
        code = caller.f_code
        file, name = code.co_filename.encode(), code.co_name.encode()
        places[caller.f_lineno] = Place(file, name, caller.f_lineno, 0, 0)
    return places[caller.f_lineno]


class Engine:
    """Has memory in blocks, each from one of its allocators."""

    def __init__(self) -> None:
        self.blocks: dict[int, ctypes.Array] = {}

    def alloc(self, size: int, allocator: str) -> int:
        memory = ctypes.create_string_buffer(size)
        address = ctypes.addressof(memory)
        self.blocks[address] = memory
        if table.on[0]:
            table.alloc_with(here(), address, size, allocator.encode())
        return address

    def free(self, address: int, allocator: str) -> None:
        if table.on[0]:
            table.free_with(here(), address, allocator.encode())
        del self.blocks[address]


def main() -> None:
    engine, total = Engine(), 0
    for step in repeat(120_000, fixed=20_000):
        block = engine.alloc(256, "slab")
        total += block % 16
        to = "heap" if not FIXED and step % 2000 == 0 else "slab"
        engine.free(block, to)  # wrong-device here
    print(total)


if __name__ == "__main__":
    main()
