"""The way into the C core: statuses become exceptions, texts become labels, places get names.

Covers: ``check``, holders, labels, names of devices, where the program is, what is remembered of
scopes that were left, and the sentences of errors. Does not cover: what a device does (``device``),
what the objects are (``tensors``, ``ownership``).

Nothing here makes a string before an error needs it.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tlmem._native import ffi, lib
from tlmem.runtime import errors

Place = tuple[CodeType, int]
"""A code object and an instruction in it: where something happened."""

NULL_OBJECT = 0
"""The object that owns nothing; every operation accepts it and does nothing."""

NONE, FLOATING, SCOPE, HANDLE, FIELD, VIEW = range(6)
REGISTRY, POOL, FRAME, TAPE, EXPORT, FOREIGN = range(6, 12)
"""Kinds of holders, as in ``tlmem.h``."""

_KIND_SHIFT = 56
_NUMBER = (1 << _KIND_SHIFT) - 1
FLOATING_HOLDER = FLOATING << _KIND_SHIFT


def holder(kind: int, number: int) -> int:
    """The holder of a kind with a number, as the core knows it."""
    return kind << _KIND_SHIFT | number


def new_holder(kind: int) -> int:
    """A holder of the kind HANDLE, EXPORT or FIELD with a number of its own."""
    return kind << _KIND_SHIFT | lib.tlm_holder_number(1)


_labels: dict[str, int] = {}


def label(text: str | None) -> int:
    """The core's number of a text; 0 for an empty one. The same text has the same number.

    Raises:
        TypeError: it is not a string.
    """
    if not text:
        return 0
    number = _labels.get(text)
    if number is None:
        number = lib.tlm_label_of(_label_bytes(text))
        if number == 0:
            raise MemoryError(f"no memory for the label {text!r}")
        _labels[text] = number
    return number


def _label_bytes(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a name is a text, not {text!r}")
    text = text.replace("\0", "\\0")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a character
        return text.encode("utf-8", "backslashreplace")


def label_text(number: int) -> str:
    """The text of a label."""
    return ffi.string(lib.tlm_label_text(number)).decode("utf-8", "surrogateescape")


# ---- devices by name and number, as every argument ``device=`` is understood ----

CPU: int = lib.TLM_DEVICE_CPU
_device_numbers: dict[str, int] = {"cpu": CPU}
_device_names: dict[int, str] = {CPU: "cpu"}


def device_number(device: Any) -> int:
    """The number of a device that is given by name, number or ``Device``; None is the CPU.

    Raises:
        NoSuchDevice: there is none of this name, or it is not available here.
    """
    if device is None:
        return CPU
    if isinstance(device, str):
        found = _device_numbers.get(device)
        return _find_device(device) if found is None else found
    number = getattr(device, "number", device)
    is_number = isinstance(number, int) and 0 <= number < 1 << 32
    if is_number and lib.tlm_device_name(number) != ffi.NULL:
        return number
    raise errors.NoSuchDevice(f"no device {device!r}; tlmem.devices() lists them")


def _find_device(name: str) -> int:
    for number in (lib.TLM_DEVICE_CPU, lib.TLM_DEVICE_METAL, lib.TLM_DEVICE_SIM_METAL):
        if device_name(number) != name:
            continue
        why = ffi.new("const char **")
        if lib.tlm_device_available(number, why):
            _device_numbers[name] = number
            return number
        reason = ffi.string(why[0]).decode() if why[0] != ffi.NULL else "no reason is known"
        raise errors.NoSuchDevice(f"device {name!r} is not available here: {reason}")
    raise errors.NoSuchDevice(f"no device {name!r}; tlmem.devices() lists them")


def device_name(number: int) -> str:
    """The name of a device; ``device 40`` when it has none (any more)."""
    found = _device_names.get(number)
    if found is None:
        text = lib.tlm_device_name(number)
        found = ffi.string(text).decode() if text != ffi.NULL else f"device {number}"
    return found


# ---- what the extension module gives ----

_OURS = __file__.rpartition(os.sep)[0] + os.sep
_types: list[Any] = []
if lib.tlm_python_types(id(_OURS), id(_types)):
    raise MemoryError("no memory for the types of the runtime")
if TYPE_CHECKING:
    from tlmem._native import Lent, Operand, Reference, engine
else:
    Reference, Lent, Operand, engine = _types


def escape_to_handle(thing: Reference) -> int:
    """Gives the count of a thing's scope to its handle; the status."""
    holder = new_holder(HANDLE)
    try:
        status: int = lib.tlm_escape(thing.handle, holder)
        if not status:
            thing._holder = holder
    except BaseException:  # Ctrl-C between the two
        if holder in holders_of(thing.handle):
            thing._holder = holder
        raise
    return status


def require_not_moved(thing: Reference, doing: str) -> None:
    """Raises UseAfterMove for a name whose ownership ``move`` gave to another one."""
    if thing._moved:
        thing._require(doing)  # type: ignore[attr-defined]


INNERMOST = 0
"""Taken by the innermost scope; outside any, by the handle."""
NO_SCOPE = 2**64 - 1
"""Taken by the handle, scope or not."""


def scope_id(scope: Any) -> int:
    """The number of a scope that is given by number or as an object with ``id``; None: innermost.

    Raises:
        TypeError: it is neither.
    """
    if scope is None:
        return INNERMOST
    number = getattr(scope, "id", scope)
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < NO_SCOPE:
        return number
    raise TypeError(f"a scope is meant by its number or as an object, not {scope!r}")


# ---- where the program is ----


def is_own(code: CodeType) -> bool:
    """Whether it is the runtime's own."""
    return code.co_filename.startswith(_OURS)


def here() -> Place | None:
    """The innermost frame that is not the runtime's own."""
    frame = sys._getframe(1)
    while is_own(frame.f_code):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def place_text(place: Place | None) -> str:
    """``file:line`` of a place; empty for none."""
    if place is None:
        return ""
    code, instruction = place
    for begin, end, line in code.co_lines():
        if begin <= instruction < end and line is not None:
            return f"{code.co_filename}:{line}"
    return f"{code.co_filename}:{code.co_firstlineno}"


# ---- scopes that were left, so that an error can name the one that freed an object ----

_REMEMBERED_SCOPES = 4096
_scopes: OrderedDict[int, tuple[str, str, Place | None]] = OrderedDict()
"""Of a scope: its kind as a word, its label, where it was left."""


def remember_scope_left(scope: int, label: str, left: Place | None, word: str = "scope") -> None:
    """Keeps what an error will say of a scope, ``left`` None while it is entered.

    The latest 4096 are kept."""
    _scopes[scope] = (word, label, left)
    if len(_scopes) > _REMEMBERED_SCOPES:
        try:
            _scopes.popitem(last=False)
        except KeyError:
            pass  # another thread took the last one out


def remember_scope_ended(scope: int) -> None:
    """Keeps that a scope ended here, because one around it was left before it."""
    if scope in _scopes:
        word, label, _ = _scopes[scope]
        _scopes[scope] = (word, label, here())


def scope_text(scope: int) -> str:
    """``scope 'epoch' (#12), left at FILE:LINE``, as far as it is known."""
    if scope not in _scopes:
        return f"scope #{scope}"
    word, label, left = _scopes[scope]
    name = _scope_name(scope, word, label)
    return f"{name}, left at {place_text(left)}" if left else name


def _scope_name(scope: int, word: str, label: str) -> str:
    return f"{word} {label!r} (#{scope})" if label else f"{word} #{scope}"


# ---- what errors say ----


class Subject(Protocol):
    """What an error can be about."""

    @property
    def handle(self) -> int: ...
    def _name(self) -> str:
        """Such as ``tensor float32[2,3]``."""

    def _allocated_at(self) -> str:
        """``file:line``, or empty."""

    def _freed_by(self) -> str:
        """Such as ``at the exit of scope 'epoch' (#3), left at FILE:LINE``; empty when alive."""


def subject_text(subject: object) -> str:
    """``tensor float32[2,3] (object 268435457, allocated at train.py:12)``."""
    if subject is None:
        return ""
    if isinstance(subject, str):
        return subject
    if isinstance(subject, int):
        return f"object {subject}"
    name = getattr(subject, "_name", None)
    if name is None:
        number = getattr(subject, "handle", None)
        text = type(subject).__name__
        return f"{text} (handle {number})" if number is not None else text
    place = subject._allocated_at()  # type: ignore[attr-defined]
    where = f", allocated at {place}" if place else ""
    return f"{name()} (object {subject.handle}{where})"  # type: ignore[attr-defined]


def holder_text(value: int) -> str:
    """A holder in words, such as ``scope #3`` or ``export #7``."""
    kind, number = value >> _KIND_SHIFT, value & _NUMBER
    if kind == SCOPE:
        word, label, left = _scopes.get(number, ("", "", None))
        return _scope_name(number, word, label) if left else _entered_scope_text(number)
    if kind in (REGISTRY, FOREIGN) and 0 < number < 1 << 32:
        text = label_text(number)
        if text:
            return f"parameter {text!r}" if kind == REGISTRY else text
    if kind in (NONE, FLOATING):
        return "nobody" if kind == NONE else "floating"
    word = _HOLDER_WORDS.get(kind, "holder")
    return f"{word} {number}" if kind == VIEW else f"{word} #{number}"


_HOLDER_WORDS = {
    HANDLE: "handle",
    FIELD: "field",
    VIEW: "view",
    REGISTRY: "parameter",
    POOL: "pool",
    FRAME: "frame",
    TAPE: "tape node",
    EXPORT: "export",
    FOREIGN: "foreign holder",
}


def _entered_scope_text(scope: int) -> str:
    found = ffi.new("tlm_scope_statistics *")
    if lib.tlm_scope_stats(scope, found) == 0 and found.label:
        return f"scope {label_text(found.label)!r} #{scope}"
    return f"scope #{scope}"


def holders_of(handle: int) -> list[int]:
    """The holders of an object, one for each count; none when it is freed."""
    room = 8
    while True:
        out = ffi.new("tlm_holder[]", room)
        count = lib.tlm_object_holders(handle, out, room)
        if count <= room:
            return [int(out[i]) for i in range(count)]
        room = count + 8


# status -> (exception, advice)
_MISUSE: dict[int, tuple[type[errors.RuntimeMisuse], str]] = {
    lib.TLM_FREED: (
        errors.UseAfterFree,
        "escape it before its scope ends, register it in an outer scope, or copy it",
    ),
    lib.TLM_NOT_A_HOLDER: (
        errors.NotAHolder,
        "release only what was acquired, once, with the same holder",
    ),
    lib.TLM_NOT_IN_SCOPE: (errors.NotInScope, "enter one first: with tlmem.scope('name'): ..."),
    lib.TLM_NOT_REGISTERED: (
        errors.NotRegistered,
        "register it first, or leave it to who holds it",
    ),
    lib.TLM_ALREADY_REGISTERED: (
        errors.AlreadyRegistered,
        "unregister it from its scope first",
    ),
    lib.TLM_UNBALANCED: (
        errors.UnbalancedScope,
        "leave scopes in the reverse order of entering; the inner ones were left now",
    ),
    lib.TLM_NO_FRAME: (
        errors.NoFrame,
        "call function_enter(slots) first, or use @framed(slots)",
    ),
    lib.TLM_BAD_SLOT: (errors.BadSlot, "ask for more slots when the frame is entered"),
    lib.TLM_IN_ARENA: (errors.InArena, "copy it to memory of its own: t.copy()"),
    lib.TLM_STILL_HELD: (errors.StillHeld, "let the other holders release it first"),
    lib.TLM_ALREADY_POOLED: (errors.AlreadyPooled, "release it to the pool once"),
    lib.TLM_WRONG_DEVICE: (errors.WrongDevice, "copy one of them: t.to(device)"),
}
_OTHER: dict[int, type[Exception]] = {
    lib.TLM_NO_MEMORY: MemoryError,
    lib.TLM_OVERFLOW: errors.SizeOverflow,
    lib.TLM_NO_DEVICE: errors.NoSuchDevice,
    lib.TLM_BAD_ARGUMENT: ValueError,
    lib.TLM_WRONG_TYPE: TypeError,
    lib.TLM_UNSUPPORTED: NotImplementedError,
}


def check(status: int, doing: str, subject: object = None) -> None:
    """Raises the exception of a status that is not success.

    Args:
        status: what a function of the core returned.
        doing: what was tried, as a verb phrase: ``"release"``, ``"enter a scope"``.
        subject: the tensor, handle or text it was tried with.
    """
    if status:
        raise_for(status, doing, subject)


def raise_for(status: int, doing: str, subject: object = None) -> NoReturn:
    """Raises the exception of a status, in words; call it right after what failed."""
    failure = ffi.new("tlm_failure *")
    lib.tlm_failure_last(failure)
    about = subject_text(subject)
    begin = f"cannot {doing} {about}" if about else f"cannot {doing}"
    if status == lib.TLM_OUT_OF_MEMORY:
        raise out_of_memory(begin, failure)
    why = ffi.string(lib.tlm_status_text(status)).decode()
    if status not in _MISUSE:
        raise _OTHER.get(status, RuntimeError)(f"{begin}: {why}")
    kind, advice = _MISUSE[status]
    freed = ""
    if status == lib.TLM_FREED and getattr(subject, "_moved", False):
        kind, advice = errors.UseAfterMove, "use what move returned"
        freed = _ask(subject, "_freed_by")
        why = f"this name of it was {freed}, and is used at {place_text(here())}"
    elif status == lib.TLM_FREED:
        freed = _freed_by(subject)
        if freed and not freed.startswith("at the exit of"):
            advice = "use it before it is freed, or keep a copy: t.copy()"
        used = place_text(here())
        it = "it" if about or not failure.object else f"object {failure.object}"
        why = f"{it} was freed {freed}" if freed else f"{it} was freed"
        why += f", and is used at {used}" if used else ""
    elif status == lib.TLM_NOT_A_HOLDER and failure.holder:
        why = f"{holder_text(failure.holder)} is not one of its holders"
    elif status == lib.TLM_IN_ARENA and hasattr(subject, "_part_text"):
        part = subject._part_text(failure.detail)
        why = f"the memory of {part} ends with its frame or scope"
        advice = f"put a copy of {part} there instead"
    elif status == lib.TLM_STILL_HELD and isinstance(getattr(subject, "handle", None), int):
        others = [holder_text(each) for each in holders_of(subject.handle)]  # type: ignore[attr-defined]
        why = f"it is held by {', '.join(others)}"
    raise kind(
        f"{begin}: {why}; {advice}",
        object=_handle_of(subject) or failure.object,
        allocated=_ask(subject, "_allocated_at"),
        freed=freed,
        advice=advice,
    )


def out_of_memory(begin: str, failure: Any) -> errors.DeviceOutOfMemory:
    """The error of a device that has no memory, from what the core says of the last failure."""
    device = device_name(failure.detail)
    return errors.DeviceOutOfMemory(
        f"{begin}: device {device!r} has no memory for {failure.bytes} bytes; free something, "
        "raise the device's limit, or use smaller pieces",
        requested_bytes=failure.bytes,
        device=device,
    )


def ended_by_hand(subject: Reference) -> str:
    """Where the program moved or freed it itself; empty when it did neither."""
    if subject._moved:
        return f"moved at {place_text(subject._ended)}"
    return f"by free() at {place_text(subject._ended)}" if subject._ended is not None else ""


def _freed_by(subject: object) -> str:
    said = _ask(subject, "_freed_by")
    handle = _handle_of(subject)
    return said or (freed_by(handle) if handle else "")


def freed_by(handle: int) -> str:
    """Who freed an object, in words; empty when it is alive or its slot has a new tenant."""
    info = ffi.new("tlm_object_info *")
    if lib.tlm_object_describe(handle, info) != 0 or info.alive or not info.last:
        return ""
    kind, number = info.last >> _KIND_SHIFT, info.last & _NUMBER
    if kind in (SCOPE, FRAME):
        return f"at the exit of {scope_text(number)}"
    return f"when {holder_text(info.last)} let go of it"


def _handle_of(subject: object) -> int:
    value = subject if isinstance(subject, int) else getattr(subject, "handle", 0)
    return value if isinstance(value, int) else 0


def _ask(subject: object, what: str) -> str:
    method = getattr(subject, what, None)
    return method() if callable(method) else ""
