"""Which stack of scopes is in force: the thread's own, or that of the asyncio task that runs.

The C core keeps the contexts and which one each thread uses; Python knows when a task runs. Nothing
reports that a task is resumed, so whatever uses the innermost scope calls ``settle`` first.

Covers: asyncio and every loop that keeps ``asyncio.current_task``. Does not cover: other task
libraries; there, all tasks of a thread share its context.
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


class TaskContext:
    """The stack of scopes of one asyncio task. It ends with the last reference to it.

    A thread holds the context that it has in force (``_here``), so a context is never destroyed
    under a thread that the core would still let use it.
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
    """What the calling thread has in force; None is its own context."""

    context: TaskContext | None = None


_here = _Here()
_modules = sys.modules
_contexts: WeakKeyDictionary[Any, TaskContext] = WeakKeyDictionary()
_running_loop: Callable[[], Any] | None = None
_current_task: Callable[[Any], Any] = NotImplemented


def settle() -> None:
    """Puts the context of the running task in force, or the thread's own outside any task.

    Costs next to nothing while asyncio was not imported by the program.

    Raises:
        MemoryError: there is no memory for a new task's context.
    """
    if _running_loop is None and ("asyncio" not in _modules or not _find_asyncio()):
        return
    loop = _running_loop()  # type: ignore[misc]
    task = None if loop is None else _current_task(loop)
    context = _here.context
    if context is None:
        if task is not None:
            put_in_force(_context_of(task))
    elif task is None:
        put_in_force(None)
    elif context.task() is not task:
        put_in_force(_context_of(task))


def in_force() -> TaskContext | None:
    """The context that the calling thread uses; None: its own."""
    return _here.context


def put_in_force(context: TaskContext | None) -> None:
    """Lets the calling thread use a context; None: its own."""
    try:
        lib.tlm_context_switch(NULL if context is None else context.pointer)
    finally:  # Ctrl-C between the two
        _here.context = context


@contextmanager
def using(context: TaskContext | None) -> Iterator[None]:
    """Puts a context in force for a block, for what was begun in one task and ends in another."""
    before = _here.context
    put_in_force(context)
    try:
        yield
    finally:
        put_in_force(before)


def _context_of(task: Any) -> TaskContext:
    context = _contexts.get(task)
    if context is None:
        context = _contexts[task] = TaskContext(task)
    return context


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
