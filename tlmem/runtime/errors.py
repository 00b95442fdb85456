"""What a program can do wrong with memory, as exceptions that say which memory and what to do.

Covers: the exceptions of the runtime. Each message names the object, its number, where it was
allocated, where it was freed as far as that is known, and the next step.
Does not cover: errors of recordings (``tlmem.errors``); those carry exit codes of the command, and
these are the program's own.
"""

from __future__ import annotations


class RuntimeMisuse(RuntimeError):
    """Base of what a program did wrong with an object's ownership; nothing has changed then.

    Attributes:
        object: handle of the object, 0 when it is about none.
        allocated: ``file:line`` where it was allocated; empty when not known.
        freed: where and by whom it was freed; empty when it is alive or that is not known.
        advice: the next step, a sentence.
    """

    def __init__(
        self,
        message: str,
        *,
        object: int = 0,
        allocated: str = "",
        freed: str = "",
        advice: str = "",
    ) -> None:
        super().__init__(message)
        self.object = object
        self.allocated = allocated
        self.freed = freed
        self.advice = advice


class UseAfterFree(RuntimeMisuse):
    """The memory of the object was freed before this use."""


class UseAfterMove(UseAfterFree):
    """The object lives, but this name of it gave its ownership away with ``move``."""


class DoubleFree(RuntimeMisuse):
    """The object was freed already."""


class NotAHolder(RuntimeMisuse):
    """Who releases the object, or hands it over, does not hold it."""


class NotInScope(RuntimeMisuse):
    """No scope is entered here, or the scope that was named has ended."""


class NotRegistered(RuntimeMisuse):
    """The object is registered in no scope."""


class AlreadyRegistered(RuntimeMisuse):
    """The object is registered in a scope already."""


class UnbalancedScope(RuntimeMisuse):
    """A scope or frame was left while inner ones were still entered; they were left first."""


class NoFrame(RuntimeMisuse):
    """No function frame is entered here."""


class BadSlot(RuntimeMisuse):
    """The frame has no slot of this number, or the struct no such field."""


class InArena(RuntimeMisuse):
    """The object's memory ends with its frame or scope and cannot be handed out."""


class StillHeld(RuntimeMisuse):
    """Others hold the object too, so it cannot be put away."""


class AlreadyPooled(RuntimeMisuse):
    """The pool holds the object already."""


class WrongDevice(RuntimeMisuse):
    """Objects of different devices were used together."""


class InPlaceOnSaved(RuntimeMisuse):
    """Memory that a gradient needs was written in place, or was about to be."""


class SecondBackward(RuntimeMisuse):
    """A backward pass ran through here before, and the graph was not retained."""


class StaleSlot(RuntimeMisuse):
    """The value was computed on a tape that was reset or has ended since."""


class WrongTape(RuntimeMisuse):
    """Values of two tapes were used together."""


class NotDifferentiable(RuntimeMisuse):
    """A gradient was asked for where there is none, or would have been lost silently."""


class BackwardRunning(RuntimeMisuse):
    """A backward pass is under way on the tape."""


class DeviceOutOfMemory(MemoryError):
    """The device has no memory for a payload; nothing was allocated.

    Attributes:
        requested_bytes: size of the payload that was asked for.
        device: name of the device.
    """

    def __init__(self, message: str, *, requested_bytes: int = 0, device: str = "") -> None:
        super().__init__(message)
        self.requested_bytes = requested_bytes
        self.device = device


class SizeOverflow(OverflowError):
    """A size that no device could have."""


class WrongShape(ValueError):
    """Shapes that do not fit each other or the operation."""


class WrongDtype(TypeError):
    """A dtype that tlmem does not have, or that does not fit the operation."""


class NoSuchDevice(ValueError):
    """No device of this name, or it is not available here."""
