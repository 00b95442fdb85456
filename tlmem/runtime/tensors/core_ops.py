"""The way to the tape: ops of the core by name, errors of the tape in words, what may be written.

Covers: computing with an op of the core or, where that cannot be, saying so; the tape in force;
exceptions of passes and records. Does not cover: what a tensor offers (``differentiable``), tapes
as objects (``autograd.tape``), the functions themselves.

A function with a gradient asks ``apply`` first. NotImplemented means that NumPy computes it; when
an operand needs a gradient, ``recorded`` converts what can be converted, or raises.
See also: docs/reference/tape.md.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from tlmem.runtime import contexts, core, errors
from tlmem.runtime.core import engine, ffi, lib, place_text
from tlmem.runtime.dtypes import RANK, floating, kind_of_number

apply = engine.apply
apply_strictly = engine.apply_strictly
apply_apart = engine.apply_apart
apply_along = engine.along
apply_reducing = engine.reduce
apply_into = engine.apply_into
apply_seen = engine.apply_seen
seen_part = engine.seen_part
apply_unrecorded = engine.apply_unrecorded
apply_into_strictly = engine.apply_into_strictly
needs = engine.needs
row = engine.row

NOT_HERE, WRONG_SHAPE, WRONG_VALUE, WRONG_OUT = 1000, 1001, 1002, 1003
"""Statuses of ops, as in ``ops.h``."""

MOST_OP_AXES = 8
"""Axes of a tensor that an op of the core, or a record of the tape, can have."""

NO_ROW = -1
"""Of a function that has no gradient: comparisons and the like."""
LOST = -2
"""Of a function that has one in mathematics, and no rule here: refused where one is needed."""

DTYPE_NUMBER = {"float32": 1, "float64": 2, "int64": 3, "bool": 4, "int32": 5}
CAST = row("cast")
INDEXED = ("gather", "take", "embedding", "scatter_add", "cross_entropy")


# ---- computing ----


def recorded(number: int, name: str, operands: tuple[Any, ...], *params: Any) -> Any:
    """The result of an op whose operands are of several dtypes, or arrays; on the tape.

    Raises:
        NotDifferentiable: the op cannot be recorded all the same.
    """
    dtype = "bool"
    for each in operands:
        known = getattr(each, "dtype", None)
        found = str(known) if known is not None else kind_of_number(each)
        if found in RANK and RANK[found] > RANK[dtype]:
            dtype = found
    cast = [as_tensor(each, floating(dtype)) for each in operands]
    if number < 0:
        require_no_gradient(name, *operands)
    return apply_strictly(number, len(cast), *cast, *params)


def as_tensor(value: Any, dtype: str) -> Any:
    """An operand in a dtype: a tensor of it, or the number it is."""
    if isinstance(value, np.ndarray):
        value = from_array(value)
    if isinstance(value, core.Operand) and value.dtype != dtype:
        return apply_apart(CAST, 1, value, DTYPE_NUMBER[dtype], 0)
    return value


def require_no_gradient(doing: str, *operands: Any) -> None:
    """Raises NotDifferentiable when a gradient would be lost, silently, with the result."""
    if needs(*operands):
        about = next(each for each in operands if needs(each))
        raise errors.NotDifferentiable(
            f"cannot {doing_text(doing)} {core.subject_text(about)}: it needs a gradient, and there"
            " is no rule for this; use t.detach() where no gradient is wanted",
            object=about.handle,
            allocated=about._allocated_at(),
            advice="use t.detach() where no gradient is wanted",
        )


def doing_text(doing: str) -> str:
    """``compute add of`` for a name of a function; a phrase as it is."""
    return doing if " " in doing else f"compute {doing} of"


def require_out_without_gradient(doing: str, out: Any, *operands: Any) -> None:
    """Raises NotDifferentiable when a result with a gradient was to be written into ``out``."""
    if out is not None and needs(*operands):
        before_writing(out)
        about = next(each for each in operands if needs(each))
        raise errors.NotDifferentiable(
            f"cannot write {doing} of {core.subject_text(about)} into "
            f"{core.subject_text(out)}: it needs a gradient, which memory that is written in place "
            "cannot have; leave out= away, or use x = x + y instead of x += y",
            object=about.handle,
            allocated=about._allocated_at(),
            advice="leave out= away, or use x = x + y instead of x += y",
        )


def before_writing(tensor: Any) -> None:
    """Finds that a tensor may be written in place, and lets the tape know that it will be.

    Raises:
        InPlaceOnSaved: it needs a gradient, or a tape saved it for a rule; nothing was written.
    Source: docs/seed-map.md, S65.
    """
    refused = engine.write(tensor)
    if refused is None:
        return
    reason, holder = refused
    lib.tlm_misuse_record(lib.TLM_MISUSE_IN_PLACE_ON_SAVED, tensor.handle, holder)
    if reason == 1:
        why = "it needs a gradient"
        advice = "compute a new tensor instead, or write under tlmem.no_grad()"
    else:
        saved = place_text(engine.holder_place(holder))
        why = f"{saver_text(holder)} saved it{f' at {saved}' if saved else ''} for its gradient"
        advice = "write to a copy (t.copy()), or run backward() first"
    here = place_text(core.here())
    raise errors.InPlaceOnSaved(
        f"cannot write to {core.subject_text(tensor)} in place at {here}: {why}; {advice}",
        object=tensor.handle,
        allocated=tensor._allocated_at(),
        advice=advice,
    )


def saver_text(holder: int) -> str:
    """``multiply``: the op of a holder of kind TAPE."""
    name = ffi.string(lib.tlm_op_name(holder >> 40 & 0xFFFF)).decode()
    return name or "an operation"


# ---- the tape in force ----

process_tape: Any = None
"""Makes the Tape of Python that the process's own tape is; ``tape`` puts it here."""
_process: Any = None


def create_tape(label: int) -> Any:
    """A tape of the core, as a pointer.

    Raises:
        MemoryError, SizeOverflow: there is no memory for it, or there are 255 already.
    """
    return ffi.cast("tlm_tape *", engine.create_tape(label))


def tape_in_force() -> Any:
    """The Tape that records in this context."""
    global _process
    chosen = engine.chosen_tape()
    if chosen is not None and chosen[0]:
        return chosen[1]
    if _process is None:
        _process = process_tape(ffi.cast("tlm_tape *", engine.tape()))
    return _process


def put_in_force(tape: Any) -> Any:
    """Lets a Tape record in this context; what to give ``put_back``."""
    return engine.choose_tape(tape._chosen)


def put_back(token: Any) -> None:
    """The tape before is in force again; nothing changes here when the block was begun in another
    context, as a generator's may be."""
    with suppress(ValueError):
        engine.leave_tape(token)


def detached(tensor: Any) -> Any:
    """The same memory under a name that no tape knows; recorded as a detach.

    Raises:
        UseAfterFree: it is freed.
    """
    tensor._require("detach")
    contexts.settle()
    made = engine.detach(tensor)
    return view_of_all(tensor) if made is NotImplemented else made


# ---- errors ----

_TAPE: dict[int, tuple[type[errors.RuntimeMisuse], str, str]] = {
    lib.TLM_STALE_SLOT: (
        errors.StaleSlot,
        "it was computed on a tape that was reset or has ended",
        "compute it again, or use t.detach() as a new beginning",
    ),
    lib.TLM_WRONG_TAPE: (
        errors.WrongTape,
        "values of two tapes meet",
        "compute both under one tape, or use t.detach() of one",
    ),
    lib.TLM_BUSY: (
        errors.BackwardRunning,
        "a backward pass is under way on the tape",
        "wait until backward() has returned",
    ),
    lib.TLM_SECOND_BACKWARD: (
        errors.SecondBackward,
        "a backward pass has run through here, and what it needs is gone",
        "compute it again, or give the first one retain_graph=True",
    ),
}


def check(status: int, doing: str, subject: Any = None) -> None:
    """Raises what a status of the tape says; right after what failed."""
    if status:
        raise_for(status, doing, subject)


raise_stashed: Any = None
"""Raises again what a rule of the program ended with; ``user_ops`` puts it here."""


def raise_for(status: int, doing: str, subject: Any = None) -> NoReturn:
    """The exception of a status of the tape, or of any other of the core."""
    if status == lib.TLM_RULE_FAILED:
        raise_stashed()
    if status == lib.TLM_CHANGED:
        raise changed(doing, subject)
    if status == lib.TLM_FREED and (freed := freed_saved(doing, subject)) is not None:
        raise freed
    if status not in _TAPE:
        core.raise_for(status, doing, subject)
    kind, why, advice = _TAPE[status]
    about = core.subject_text(subject)
    begin = f"cannot {doing} {about}" if about else f"cannot {doing}"
    raise kind(
        f"{begin}: {why}; {advice}",
        object=getattr(subject, "handle", 0),
        allocated=_allocated(subject),
        advice=advice,
    )


def _allocated(subject: Any) -> str:
    return subject._allocated_at() if isinstance(subject, core.Reference) else ""  # type: ignore[attr-defined]


def changed(doing: str, subject: Any) -> errors.InPlaceOnSaved:
    """The error of a pass that found something written in place since it was saved."""
    handle, holder, saved, written = engine.conflict()
    advice = "write to a copy (t.copy()), or run backward() before"
    saved_at, written_at = place_text(saved), place_text(written)
    return errors.InPlaceOnSaved(
        f"cannot {doing} {core.subject_text(subject)}: object {handle}, which {saver_text(holder)} "
        f"saved{f' at {saved_at}' if saved_at else ''}, was written in place"
        f"{f' at {written_at}' if written_at else ''} since; {advice}",
        object=handle,
        allocated=_allocated(subject),
        advice=advice,
    )


def freed_saved(doing: str, subject: Any) -> errors.UseAfterFree | None:
    """The error of a pass that needs memory which was freed by hand; None: it is the subject's."""
    failure = core.ffi.new("tlm_failure *")
    lib.tlm_failure_last(failure)
    if not failure.object or failure.object == getattr(subject, "handle", 0):
        return None
    freed = core.freed_by(failure.object) or "by free()"
    advice = "leave freeing to the tape, or call free() after backward()"
    return errors.UseAfterFree(
        f"cannot {doing} {core.subject_text(subject)}: object {failure.object}, which a rule "
        f"needs, was freed {freed}; {advice}",
        object=failure.object,
        allocated=_allocated(subject),
        freed=freed,
        advice=advice,
    )


def different_devices(devices: list[int], tensor: Any) -> errors.WrongDevice:
    """The error of tensors on two devices; also recorded as misuse."""
    lib.tlm_misuse_record(lib.TLM_MISUSE_WRONG_DEVICE, tensor.handle, tensor._holder)
    one, other = (core.device_name(device) for device in devices)
    return errors.WrongDevice(
        f"{core.subject_text(tensor)} is used with one of a different device ({one}, {other}); "
        f"copy one of them: t.to({one!r})",
        object=tensor.handle,
        allocated=tensor._allocated_at(),
        advice=f"copy one of them: t.to({one!r})",
    )


MAKE_A_TAPE = "make a tape"
_AS_VERB = {"slice": "index", "cast": "copy", "matmul": "multiply"}
"""What an error calls an op that the program does not know by its name."""


def failed(status: int, what: str, operands: tuple[Any, ...], message: str) -> NoReturn:
    """Raises what an op, or what the core does around it, ended with; called from C."""
    about: Any = next((each for each in operands if isinstance(each, core.Operand)), None)
    if status == lib.TLM_FREED and about is not None:
        about._refuse(status, _AS_VERB.get(what, what))
    if what == MAKE_A_TAPE and status == lib.TLM_OVERFLOW:
        raise errors.SizeOverflow(
            "cannot make a tape: there are 255 already, the one of the process among them; close "
            "one, or reset() it and use it again"
        )
    if status == WRONG_SHAPE:
        raise errors.WrongShape(f"{what}: {message}")
    if status == WRONG_VALUE:
        raise (IndexError if what in INDEXED else ValueError)(f"{what}: {message}")
    if status == WRONG_OUT:
        raise errors.WrongShape(f"{what}: the result does not fit the destination that was planned")
    if status == NOT_HERE:
        for each in operands:
            if isinstance(each, core.Operand):
                each._require(what)  # type: ignore[attr-defined]
                if each._device != about._device:
                    raise different_devices([about._device, each._device], each)
        texts = " and ".join(core.subject_text(e) for e in operands if isinstance(e, core.Operand))
        raise errors.NotDifferentiable(
            f"cannot compute {what} of {texts} with a gradient: it needs float32 or float64, one "
            "device and at most 8 axes; use t.detach() where no gradient is wanted",
            object=getattr(about, "handle", 0),
            advice="use t.detach() where no gradient is wanted",
        )
    if status in _TAPE:
        raise_for(status, f"record {what} of", about)
    if status == lib.TLM_OUT_OF_MEMORY:
        core.raise_for(status, "allocate", f"the result of {what}" if operands else what)
    core.raise_for(status, f"compute {what} of" if operands else what, about)


# ---- floating-point errors, as NumPy's errstate governs them ----

_FLAGS = (
    (4, "divide", "divide by zero"),
    (8, "over", "overflow"),
    (16, "under", "underflow"),
    (1, "invalid", "invalid value"),
)


def float_error(name: str, flags: int) -> None:
    """Says that an op divided by zero and the like; called from C."""
    known = np.geterr()
    for bit, kind, text in _FLAGS:
        how = known[kind]  # type: ignore[literal-required]
        if flags & bit and how != "ignore":
            _say(how, kind, f"{text} encountered in {name}", bit)


def _say(how: str, kind: str, message: str, bit: int) -> None:
    if how == "raise":
        raise FloatingPointError(message)
    if how == "warn":
        warnings.warn(message, RuntimeWarning, stacklevel=_outside())
    elif how == "print":
        print(f"Warning: {message}", file=sys.stderr)
    else:
        handler: Any = np.geterrcall()
        if how == "log":
            handler.write(f"Warning: {message}\n")
        else:
            handler(message.partition(" encountered")[0], bit)


def _outside() -> int:
    """How far up the stack the program is, as ``warnings`` counts for ``_say``."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and core.is_own(frame.f_code):
        frame = frame.f_back
        level += 1
    return level


from_array: Any = None
view_of_all: Any = None
"""What making tensors is needed for here; ``connect`` puts them here."""


def connect(
    tensor_class: type, of_array: Callable[[Any], Any], of_all: Callable[[Any], Any]
) -> None:
    """Tells this file and the C side what they call; once, when all classes are there."""
    global from_array, view_of_all
    from_array, view_of_all = of_array, of_all
    threads = vars(threading)["_active"]
    engine.connect(tensor_class, np.generic, threads, contexts.settle, failed, float_error)
