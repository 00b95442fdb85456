"""Which stack of scopes is in force: the thread's own, or that of the asyncio task that runs.

The C core knows strands and which one each thread uses; Python knows when a task runs. Nobody tells
anyone when a task is resumed, so whoever is about to use the innermost scope settles it first.

Covers: asyncio and every loop that keeps ``asyncio.current_task``. Does not cover: other task
libraries; there, all tasks of a thread share its strand.
See also: docs/reference/runtime.md, "Tasks and threads".
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, ref

from tlmem._native import ffi, lib

NULL = ffi.NULL


class Strand:
    """The stack of scopes of one asyncio task. It ends with the last reference to it.

    A thread holds the strand that it has in force (``_here``), so a strand is never destroyed under
    a thread that the core would still let use it.
    """

    __slots__ = ("pointer", "task")

    def __init__(self, task: Any) -> None:
        self.pointer: Any = NULL
        self.task = ref(task)
        made = ffi.new("tlm_context **")
        if lib.tlm_context_create(made):
            raise MemoryError("no memory for the scopes of a task; end tasks that are done")
        self.pointer = made[0]

    def __del__(self) -> None:
        if lib is None or self.pointer == NULL:  # the interpreter is ending, or it was never made
            return
        in_force = lib.tlm_context_switch(NULL)
        if in_force not in (NULL, self.pointer):
            lib.tlm_context_switch(in_force)
        lib.tlm_context_destroy(self.pointer)


class _Here(threading.local):
    """What the calling thread has in force; None is its own strand."""

    strand: Strand | None = None


_here = _Here()
_modules = sys.modules
_strands: WeakKeyDictionary[Any, Strand] = WeakKeyDictionary()
_running_loop: Callable[[], Any] | None = None
_current_task: Callable[[Any], Any] = NotImplemented


def settle() -> None:
    """Puts the strand of the running task in force, or the thread's own outside any task.

    Costs next to nothing while asyncio was not imported by the program.

    Raises:
        MemoryError: there is no memory for a new task's strand.
    """
    if _running_loop is None and ("asyncio" not in _modules or not _find_asyncio()):
        return
    loop = _running_loop()  # type: ignore[misc]
    task = None if loop is None else _current_task(loop)
    strand = _here.strand
    if strand is None:
        if task is not None:
            put_in_force(_strand_of(task))
    elif task is None:
        put_in_force(None)
    elif strand.task() is not task:
        put_in_force(_strand_of(task))


def in_force() -> Strand | None:
    """The strand that the calling thread uses; None: its own."""
    return _here.strand


def put_in_force(strand: Strand | None) -> None:
    """Lets the calling thread use a strand; None: its own."""
    try:
        lib.tlm_context_switch(NULL if strand is None else strand.pointer)
    finally:  # Ctrl-C between the two
        _here.strand = strand


@contextmanager
def using(strand: Strand | None) -> Iterator[None]:
    """A strand is in force inside the block, for what was begun in one task and ends in another."""
    before = _here.strand
    put_in_force(strand)
    try:
        yield
    finally:
        put_in_force(before)


def _strand_of(task: Any) -> Strand:
    strand = _strands.get(task)
    if strand is None:
        strand = _strands[task] = Strand(task)
    return strand


def _find_asyncio() -> bool:
    """Whether the program has imported asyncio, whole."""
    global _running_loop, _current_task
    module = _modules.get("asyncio")
    running_loop = getattr(module, "_get_running_loop", None)
    current_task = getattr(module, "current_task", None)
    if running_loop is None or current_task is None:
        return False
    _current_task = current_task
    _running_loop = running_loop
    return True
