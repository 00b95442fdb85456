"""Gives the processes that a recorded program makes recordings of their own.

Covers: ``os.fork`` and what is built on it, ``multiprocessing`` with fork, spawn and forkserver.
Does not cover: programs started by ``subprocess`` or ``os.exec``; they are other programs, even
when they are Python.

The child of ``X.tlm`` with process number P records to ``X.P.tlm``. A forked child starts in
``os.register_at_fork``. A spawned one learns it from its command line: a prelude is put before the
``-c`` program that ``multiprocessing`` starts it with, so nothing is left in the environment. It is
caught where all command lines leave Python, at ``_posixsubprocess.fork_exec``, so that nothing has
to be imported for it or waited for.
"""

import os
from os import getpid
from sys import modules
from typing import Any

from tlmem.recorder import session, summary
from tlmem.recorder.bound import STEADY, core, shelter
from tlmem.recorder.failure import CannotRecord
from tlmem.recorder.options import Options
from tlmem.recorder.session import Session

globals()["__builtins__"] = STEADY  # of the functions below

FOLLOWED = ("from multiprocessing.spawn import", "from multiprocessing.forkserver import")
# Below every priority a program would choose, so that sealing is the last thing a worker does.
LAST = -(10**9)

_hooked = False
_root = ""
"""The folder that tlmem is imported from."""
_armed: "Lineage | None" = None


class Lineage:
    """What the children of a process need to record themselves.

    Args:
        path: absolute, the recording that theirs are named after.
        pid: the process that makes it.
        options: how to record.
        notes: texts that the whole family has in common.
    """

    def __init__(self, path: str, pid: int, options: Options, notes: dict[str, str]) -> None:
        self.path = path
        self.pid = pid
        self.options = options
        self.notes = notes

    def session(self) -> Session:
        """The recording of the calling process, not started."""
        stem = self.path.removesuffix(".tlm")
        options = Options(**{**self.options.as_dict(), "overwrite": True})  # type: ignore[arg-type]
        return Session(f"{stem}.{getpid()}.tlm", options, self.pid, self.notes)

    def prelude(self, server: bool) -> str:
        """Python code that makes a new interpreter record itself, or a server only its children."""
        values = (self.path, self.pid, self.options.as_dict(), self.notes, server)
        return (
            f"import sys; sys.path.insert(0, {_root!r}); "
            "from tlmem.recorder.children import adopt; del sys.path[0]; "
            f"adopt(*{values!r}); del sys, adopt; "
        )


def follow() -> None:
    """Follows the children of this process from now on, as long as it is being recorded."""
    global _hooked, _root
    if _hooked:
        return
    _hooked = True
    import tlmem

    _root = os.path.dirname(os.path.dirname(os.path.abspath(tlmem.__file__)))
    core.load()
    made: list[Any] = []
    core.lib.tlm_fork_functions(id(_after_in_child), id(made))
    before, in_parent, in_child = made
    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
    core.lib.tlm_follow_commands(id(_with_prelude))


def adopt(
    path: str, pid: int, options: dict[str, Any], notes: dict[str, str], server: bool
) -> None:
    """In a spawned interpreter: records it, or only its children when it is a fork server."""
    global _armed
    lineage = Lineage(path, pid, Options(**options), notes)
    if server:
        _armed = lineage
    else:
        session.seal_at_exit()
        _begin(lineage)
    follow()


def _lineage() -> "Lineage | None":
    current = session.active
    if current is None:
        return _armed
    return Lineage(current.path, current.pid, current.options, current.notes)


def _begin(lineage: Lineage) -> None:
    """Starts the recording of a child. A program does not end because that is impossible."""
    child = lineage.session()
    try:
        child.start()
    except CannotRecord as refused:
        summary.say(f"process {getpid()} is not recorded: {refused}", lineage.options.quiet)
        return
    child.mark("tlmem:begin")


def _after_in_child() -> None:
    global _armed
    lineage = _lineage()
    if lineage is None:
        return
    _armed = None
    session.forget_after_fork()
    _begin(lineage)
    util: Any = modules.get("multiprocessing.util")
    if util is not None and session.active is not None:
        # A worker clears the inherited finalizers first, then runs these, then its own work.
        util.register_after_fork(session.active, _seal_worker_last)


def _seal_worker_last(recording: Session) -> None:
    util: Any = modules["multiprocessing.util"]
    # It has done its work; a program that counts what is registered counts its own.
    registered = util._afterfork_registry
    for key in [key for key in registered if key[2] is _seal_worker_last]:
        del registered[key]
    util.Finalize(None, shelter(_seal_worker), args=(recording,), exitpriority=LAST)


def _seal_worker(recording: Session) -> None:
    """Seals a multiprocessing worker, which leaves by ``os._exit``: no exit handler runs."""
    if session.active is not recording or recording.pid != getpid():
        return
    threading: Any = modules["threading"]
    threading._shutdown()  # what the worker does next: its threads belong to the recording
    recording.sample()
    recording.mark("tlmem:end")
    summary.say_fate(recording, recording.stop())


def _with_prelude(arguments: Any) -> Any:
    """The command line of a new interpreter, with our prelude before a ``-c`` that we know."""
    lineage = _lineage()
    if lineage is None or type(arguments) is not list or "-c" not in arguments:
        return arguments
    spawn: Any = modules.get("multiprocessing.spawn")
    if spawn is None or not arguments or arguments[0] != vars(spawn).get("_python_exe"):
        return arguments
    at = arguments.index("-c") + 1
    program = arguments[at] if at < len(arguments) else None
    if not isinstance(program, str) or not program.startswith(FOLLOWED):
        return arguments
    server = "forkserver" in program.split("import", 1)[0]
    return [*arguments[:at], lineage.prelude(server) + program, *arguments[at + 1 :]]
