"""The tape that records: the one of the process, and others for a block; what a tape holds.

Covers: ``tape``, ``Tape``, its statistics, letting go of gradients and of everything. Does not
cover: whether anything is recorded (``grad_mode``), what a tensor knows of its gradient
(``tensors.differentiable``), loops (``training_loop``).

The C core owns slots, records and gradients; a tensor refers to its slot. So a record lives while a
tensor that was computed from it does, and a tape that is never reset holds no more than that.
See also: docs/reference/tape.md.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tlmem.runtime import core
from tlmem.runtime.core import ffi, lib
from tlmem.runtime.errors import BackwardRunning, StaleSlot
from tlmem.runtime.tensors import core_ops


@dataclass(frozen=True, slots=True)
class OpStats:
    """Of one op on a tape.

    Attributes:
        records: how many of its records are on the tape now.
        saved_bytes: bytes that these hold for their rules; what two records saved counts for both.
        recorded: how many there ever were.
        rules: how often its rule ran.
    """

    records: int
    saved_bytes: int
    recorded: int
    rules: int


@dataclass(frozen=True, slots=True)
class TapeStats:
    """What a tape holds now, and what it has done.

    Attributes:
        records: operations on it now.
        leaves: tensors on it now whose gradients were asked for.
        recorded: operations there ever were.
        spent: operations whose rule has run and that let go of what they saved, ever.
        saved_bytes: bytes of the tensors that it holds for rules, each tensor once.
        saved_objects: how many tensors these are.
        peak_saved_bytes: the most bytes there were at once.
        peak_records: the most operations there were at once.
        grad_bytes: bytes of gradients of leaves and of those that are retained.
        grads: how many of these there are.
        rules: how many rules have run.
        replays: how many results were computed again.
        capacity: operations and leaves there is room for; a reset keeps it.
        own_bytes: bytes of bookkeeping.
        by_op: name of an op -> its share.
    """

    records: int
    leaves: int
    recorded: int
    spent: int
    saved_bytes: int
    saved_objects: int
    peak_saved_bytes: int
    peak_records: int
    grad_bytes: int
    grads: int
    rules: int
    replays: int
    capacity: int
    own_bytes: int
    by_op: dict[str, OpStats]


_COUNTERS = tuple(name for name in TapeStats.__slots__ if name != "by_op")


class Tape:
    """A tape of its own for a block: ``with Tape("name"): ...``; it ends with the block.

    Operations inside the block, in this thread or task, are recorded on it. What was computed on
    another tape cannot be mixed in (``WrongTape``). A tensor that only requires a gradient comes
    over to the tape that reads it, unless it has a gradient or a record on the other one.

    Args:
        name: its label in errors and recordings.
    Raises:
        MemoryError: there is no memory for it. SizeOverflow: there are 255 already.

    Attributes:
        name: its label, or empty.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name or ""
        self._outer: list[Any] = []
        self._final: TapeStats | None = None
        self._is_the_process = False
        self._pointer: Any = ffi.NULL
        self._pointer = core_ops.create_tape(core.label(self.name))
        self._chosen: list[Any] = [self._address, None]  # what is put in force; 0: it has ended

    # ---- its block ----

    def __enter__(self) -> Self:
        self._require("enter")
        self._chosen[1] = self
        before, entered = core.engine.chosen_tape(), len(self._outer)
        try:
            self._outer.append(core_ops.put_in_force(self))
        except BaseException:  # Ctrl-C: there will be no __exit__
            core.engine.choose_tape(before)
            del self._outer[entered:]
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Takes everything off the tape and ends it.

        Raises:
            BackwardRunning: a pass is under way on it; it stays as it is, and ends with its last
                name.
        """
        token = self._outer[-1]
        del self._outer[-1]
        try:
            core_ops.put_back(token)
        except BaseException:  # Ctrl-C
            with suppress(RuntimeError):  # it was done
                core_ops.put_back(token)
            raise
        if not self._outer and not self._is_the_process:
            self.close()

    def close(self) -> None:
        """Takes everything off it and ends it; what was on it needs no gradient any more.

        A second call does nothing. ``stats()`` still reports what was there.

        Raises:
            BackwardRunning: a pass is under way on it.
        """
        if self._is_the_process:
            raise ValueError("the tape of the process never ends; take everything off it: reset()")
        if self._pointer == ffi.NULL:
            return
        final = self.stats()
        self._check_busy(lib.tlm_tape_destroy(self._pointer), "close")
        self._chosen[:] = [0, None]
        self._pointer, self._final = ffi.NULL, final

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return bool(self._pointer == ffi.NULL)

    @property
    def _address(self) -> int:
        return int(ffi.cast("uintptr_t", self._pointer))

    def __del__(self) -> None:
        if lib is not None and not self._is_the_process and self._pointer != ffi.NULL:
            lib.tlm_tape_destroy(self._pointer)

    # ---- what is on it ----

    def stats(self) -> TapeStats:
        """What it holds now; of a tape that has ended, what it held then."""
        if self._final is not None:
            return self._final
        found = ffi.new("tlm_tape_statistics *")
        lib.tlm_tape_stats(self._pointer, found)
        counters = {name: getattr(found, name) for name in _COUNTERS}
        return TapeStats(**counters, by_op=self._by_op())

    def _by_op(self) -> dict[str, OpStats]:
        room = 16
        while True:
            rows = ffi.new("tlm_tape_op_row[]", room)
            count = lib.tlm_tape_op_rows(self._pointer, rows, room)
            if count <= room:
                break
            room = count + 16
        return {
            ffi.string(lib.tlm_op_name(row.op)).decode("utf-8", "replace"): OpStats(
                row.records, row.saved_bytes, row.recorded, row.rules
            )
            for row in rows[0:count]
        }

    def use_counts(self, *tensors: Any) -> list[int]:
        """How often values on it are still read by records whose rules have not run.

        A record that reads a value twice, as ``x * x`` does, counts twice; one that has one input
        counts once. A value with 0 is read by no rule any more: the tape holds nothing of it.

        Args:
            tensors: whose counts; without any, those of all leaves and results on the tape, in the
                order in which they came onto it.
        Returns:
            A count for each. A tensor that is not on the tape has 0.
        Source: docs/seed-map.md, S63.
        """
        rows = self._uses()
        if not tensors:
            return [uses for _, uses in rows]
        known = dict(rows)
        for each in tensors:
            if not isinstance(each, core.Operand):
                raise TypeError(f"use_counts takes tensors, not {type(each).__name__}")
        return [known.get(each._slot, 0) for each in tensors]

    def _uses(self) -> list[tuple[int, int]]:
        """Slot and count of each value, the oldest first."""
        if self._pointer == ffi.NULL:
            return []
        room = 64
        while True:
            rows = ffi.new("tlm_tape_use[]", room)
            count = lib.tlm_tape_use_counts(self._pointer, rows, room)
            if count <= room:
                break
            room = count + 64
        found = [(row.sequence, row.slot, row.uses) for row in rows[0:count] if row.slot]
        return [(slot, uses) for _, slot, uses in sorted(found)]

    def reset(self) -> None:
        """Takes everything off it: records, what they saved, gradients. Its capacity stays.

        A tensor that was computed on it cannot be used in a recorded operation any more: that
        raises ``StaleSlot``. Tensors that require a gradient by themselves go on as before.

        Raises:
            BackwardRunning: a pass is under way on it.
        Source: docs/seed-map.md, S55.
        """
        self._require("reset")
        self._check_busy(lib.tlm_tape_reset(self._pointer), "reset")

    def clear_grads(self) -> int:
        """Lets go of every gradient on it; returns how many there were.

        Source: docs/seed-map.md, S24.
        """
        self._require("clear the gradients of")
        return int(lib.tlm_tape_clear_grads(self._pointer))

    def zero_grad(self) -> int:
        """Fills every gradient on it with zeros; returns how many there were.

        One that others hold as well, such as a name of the program, is let go of instead.

        Source: docs/seed-map.md, S60.
        """
        self._require("zero the gradients of")
        return int(core.engine.zero_grads(self._address))

    def _require(self, doing: str) -> None:
        if self._pointer == ffi.NULL:
            raise StaleSlot(
                f"cannot {doing} {self._text()}: it has ended; make another one with tlmem.Tape()"
            )

    def _check_busy(self, status: int, doing: str) -> None:
        if status == lib.TLM_BUSY:
            raise BackwardRunning(
                f"cannot {doing} {self._text()}: a backward pass is under way on it; do it when "
                "backward() has returned"
            )
        core.check(status, doing, self._text())

    def _text(self) -> str:
        return f"tape {self.name!r}" if self.name else "the tape"

    def __repr__(self) -> str:
        about = self.stats()
        end = ", ended" if self.closed else ""
        name = f" {self.name!r}" if self.name else ""
        return f"<Tape{name}: {about.records} records, {about.saved_bytes} bytes saved{end}>"


def tape() -> Tape:
    """The tape in force in this thread or task: that of the innermost ``with Tape()``, else the
    one of the process, which never ends."""
    found: Tape = core_ops.tape_in_force()
    return found


def _process_tape(pointer: Any) -> Tape:
    """The name of the tape that the core makes when it is first needed."""
    made = object.__new__(Tape)
    made.name, made._outer, made._final = "", [], None
    made._is_the_process, made._pointer = True, pointer
    made._chosen = [made._address, made]
    return made


core_ops.process_tape = _process_tape


def clear_grads() -> int:
    """Lets go of every gradient on the tape in force; returns how many there were.

    A name that the program has of a gradient stays valid.

    Source: docs/seed-map.md, S24.
    """
    return tape().clear_grads()


def zero_grad() -> int:
    """Fills every gradient on the tape in force with zeros; returns how many there were."""
    return tape().zero_grad()


def backward(tensor: Any, gradient: Any = None, retain_graph: bool = False) -> None:
    """``tensor.backward(gradient, retain_graph)``."""
    tensor.backward(gradient, retain_graph)


def detach(tensor: Any) -> Any:
    """``tensor.detach()``: the same memory, without its history."""
    return tensor.detach()
