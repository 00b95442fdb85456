"""Offsets for buffers whose lives are known beforehand, so that they share one block of memory.

Covers: ``plan``, the planner of the C core as a function. Does not cover: where lives come from.
See also: docs/decisions/planner.md, ``native/include/tlmem_plan.h``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlmem import _native
from tlmem.errors import TlmemError

SLICE_NS = 200_000_000
"""CPU time of a step, after which an interrupt is heard."""

MOST_BYTES = 2**62
"""No plan is higher: more is refused."""


class BadBuffer(TlmemError, ValueError):
    """A buffer that no plan can have."""


@dataclass(frozen=True)
class Plan:
    """Where each buffer goes.

    ``offsets`` are bytes, uint64, in the order of the buffers. ``peak_bytes`` is the end of the
    highest buffer; no plan at all has a peak below ``lower_bound_bytes``, and when ``proven`` is
    true none has one below ``peak_bytes``.
    """

    offsets: NDArray[np.uint64]
    peak_bytes: int
    lower_bound_bytes: int
    proven: bool


def plan(buffers: Iterable[Any], *, capacity: int | None = None, seconds: float = 0.0) -> Plan:
    """Places buffers in one block so that none overlaps another that lives at the same time.

    Args:
        buffers: rows of ``(first, last, size)`` or ``(first, last, size, alignment)``: a buffer
            lives from ``first`` to ``last`` on any integer clock, both ends inclusive, and takes
            ``size`` bytes at a multiple of ``alignment``, a power of two (1 when left out). A
            sequence, an integer array of shape (n, 3) or (n, 4), or a table with such columns.
        capacity: a peak in bytes that is good enough: the search ends when it is reached. When it
            cannot be, the best plan that was found is returned, whose ``peak_bytes`` is larger.
        seconds: CPU time for finding a lower peak than the first quick plan. With 0 the same
            buffers give the same offsets everywhere.

    Returns:
        A valid plan, always; the lowest that was found.

    Raises:
        BadBuffer: a row is not of that form, its life ends before it begins, its size is negative
            or its alignment no power of two, or all sizes together pass 2**62 bytes.
        ValueError: a capacity or a time below 0.
        MemoryError: no memory for the planner's own bookkeeping.
    Source:
        docs/seed-map.md, S5 and S17: slots of frames are decided before a function runs.
    """
    if capacity is not None and capacity < 0:
        raise ValueError(f"capacity={capacity!r} is not a number of bytes; leave it out for none.")
    if not seconds >= 0:
        raise ValueError(f"seconds={seconds!r} is not a time; give 0 or more.")
    table = rows_of(buffers)
    ffi, lib = _native.ffi, _native.lib
    given = ffi.from_buffer("tlm_plan_buffer[]", table) if len(table) else ffi.NULL
    out, wrong = ffi.new("tlm_plan **"), ffi.new("uint64_t *")
    status = lib.tlm_plan_create(given, len(table), min(capacity or 0, MOST_BYTES), out, wrong)
    if status == lib.TLM_NO_MEMORY:
        raise MemoryError(f"no memory to plan {len(table)} buffers")
    if status != lib.TLM_OK:
        raise BadBuffer(what_is_wrong(table, int(wrong[0])))
    made = ffi.gc(out[0], lib.tlm_plan_destroy)
    result = ffi.new("tlm_plan_result *")
    lib.tlm_plan_look(made, result)
    while not (result.placed or result.finished):
        step(made, result, SLICE_NS)
    improve(made, result, seconds)
    offsets = np.zeros(len(table), dtype=np.uint64)
    if len(table):
        lib.tlm_plan_offsets(made, ffi.from_buffer("uint64_t[]", offsets))
    return Plan(offsets, int(result.peak_bytes), int(result.lower_bound_bytes), bool(result.proven))


def improve(made: Any, result: Any, seconds: float) -> None:
    """Spends CPU time on a lower plan; ``result`` is what is known of it then."""
    end_ns = time.thread_time_ns() + seconds * 1e9
    while seconds and not result.finished:
        left_ns = end_ns - time.thread_time_ns()
        if left_ns <= 0:
            return
        step(made, result, int(min(left_ns, SLICE_NS)))


def step(made: Any, result: Any, cpu_ns: int) -> None:
    """One step of the planner; between steps an interrupt is heard."""
    lib = _native.lib
    if lib.tlm_plan_improve(made, cpu_ns) != lib.TLM_OK:
        raise MemoryError("no memory to improve a plan")
    lib.tlm_plan_look(made, result)


ROW = np.dtype([("first", "<i8"), ("last", "<i8"), ("size", "<u8"), ("alignment", "<u8")])


def rows_of(buffers: Iterable[Any]) -> NDArray[np.void]:
    """The buffers as the C core takes them: one structured row each.

    Raises:
        BadBuffer: a row has another number of fields, or something that is no whole number.
    """
    columns = getattr(buffers, "to_numpy", None)
    given = columns() if columns is not None else buffers
    if not isinstance(given, np.ndarray):
        given = [tuple(row) for row in given]
        for number, row in enumerate(given):
            if len(row) not in (3, 4):
                raise BadBuffer(
                    f"buffer {number} has {len(row)} fields; give first, last, size and, if need "
                    "be, alignment."
                )
        given = np.array([row if len(row) == 4 else (*row, 1) for row in given], dtype=object)
    if given.size == 0:
        return np.zeros(0, dtype=ROW)
    if given.ndim != 2 or given.shape[1] not in (3, 4):
        raise BadBuffer(
            f"buffers have the shape {given.shape}; give (n, 3) or (n, 4): first, last, size and, "
            "if need be, alignment."
        )
    table = np.ones(len(given), dtype=ROW)
    for column, name in zip(range(given.shape[1]), ROW.names or (), strict=False):
        table[name] = whole_numbers(given[:, column], name)
    return table


def whole_numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """One field of all buffers, checked.

    Raises:
        BadBuffer: one is no whole number, or outside the range of the field.
    """
    lowest, highest = (0, MOST_BYTES) if name in ("size", "alignment") else (-(2**63), 2**63 - 1)
    if values.dtype.kind in "iu":
        wrong = np.flatnonzero((values < lowest) | (values > highest))
        if len(wrong):
            raise BadBuffer(out_of_range(int(wrong[0]), name, values[wrong[0]], lowest, highest))
        return values
    for number, value in enumerate(values):
        whole = hasattr(value, "__index__") or (isinstance(value, float) and value.is_integer())
        if not whole:
            raise BadBuffer(f"buffer {number}: {name} is {value!r}, which is not a whole number.")
        if not lowest <= int(value) <= highest:
            raise BadBuffer(out_of_range(number, name, value, lowest, highest))
    return np.array([int(value) for value in values], dtype=ROW[name])


def out_of_range(number: int, name: str, value: Any, lowest: int, highest: int) -> str:
    """The sentence about a number that no buffer can have."""
    return f"buffer {number}: {name} is {value}; give {lowest} to {highest}."


def what_is_wrong(table: NDArray[np.void], number: int) -> str:
    """The sentence about the buffer that the C core refused."""
    first, last, size, alignment = (int(field) for field in table[number])
    if first > last:
        return f"buffer {number} ends at {last}, before it begins at {first}; swap them."
    if alignment == 0 or alignment & (alignment - 1) or alignment > 2**32:
        return (
            f"buffer {number}: alignment is {alignment}; give a power of two up to 4,294,967,296."
        )
    return (
        f"buffer {number} of {size} bytes: all sizes together pass 2**62 bytes; no machine has "
        "that much."
    )
