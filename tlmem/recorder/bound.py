"""What the recorder uses while a program runs, held where the program cannot replace it.

A program may put anything in the place of a built-in function, forget every module, or empty one.
A module whose functions run after the program has begun therefore makes ``STEADY`` its
``__builtins__`` before it defines them: Python takes a function's built-in names from there. It
takes functions of other modules by name when it is imported itself, and imports nothing later. The
extension module is ``core``, loaded when the first recording starts.
"""

import builtins
from typing import Any

STEADY: dict[str, Any] = dict(vars(builtins))
"""The built-in names as they are now."""
globals()["__builtins__"] = STEADY


class Core:
    """The extension module ``tlmem._native``, whose two names are None until it is loaded."""

    ffi: Any = None
    lib: Any = None

    def load(self) -> None:
        """Loads it; raises ImportError when it is missing."""
        if self.lib is None:
            from tlmem._native import ffi, lib

            self.ffi, self.lib = ffi, lib


core = Core()


def shelter(function: Any) -> Any:
    """A function in C that calls this one where no hook of the program sees it; returns None."""
    core.load()
    made: list[Any] = []
    _kept.append(function)
    core.lib.tlm_sheltered_function(id(function), id(made))
    return made[0]


_kept: list[Any] = []
