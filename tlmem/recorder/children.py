"""Gives the processes that a recorded program makes recordings of their own.

Covers: ``os.fork`` and what is built on it, ``multiprocessing`` with fork, spawn and forkserver;
where all are followed, also what tells other interpreters to record themselves, see ``startup``.

The child of ``X.tlm`` with process number P records to ``X.P.tlm``. A forked child starts in
``os.register_at_fork``. A spawned one learns it from its command line: a prelude is put before the
``-c`` program that ``multiprocessing`` starts it with, so nothing is left in the environment. It is
caught where all command lines leave Python, at ``_posixsubprocess.fork_exec``, so that nothing has
to be imported for it or waited for.

With ``follow="all"`` the environment of new processes has ``TLMEM_FOLLOW``. ``os.environ`` does not
show it: it stands in the C library's environment, and is put into those that ``subprocess`` gets.
"""

import os
import sys
from os import fsencode, getpid
from sys import modules
from typing import Any

from tlmem.recorder import session, summary
from tlmem.recorder.bound import STEADY, core, shelter
from tlmem.recorder.failure import CannotRecord
from tlmem.recorder.options import FOLLOW, Options
from tlmem.recorder.session import Session

globals()["__builtins__"] = STEADY  # of the functions below

HOOK = "tlmem-follow.pth"
"""The file in a site folder that makes an interpreter look for the variable when it starts."""
SERVER = (
    "from multiprocessing.forkserver import",
    "import sys; from multiprocessing.forkserver import",
)
"""How the program of a fork server begins; the second is that of Python 3.14."""
FOLLOWED = ("from multiprocessing.spawn import", *SERVER)
# Below every priority a program would choose, so that sealing is the last thing a worker does.
LAST = -(10**9)

_hooked = False
_root = ""
"""The folder that tlmem is imported from."""
_version = ""
_interpreters: set[bytes] = set()
"""Paths of interpreters that surely record themselves when they get the variable."""
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

    def variable(self) -> str:
        """The value of ``TLMEM_FOLLOW``, which ``of_variable`` reads."""
        return f"{_version};{self.pid};{self.options.as_text()};{self.path}"

    @staticmethod
    def of_variable(text: str, notes: dict[str, str]) -> "Lineage":
        """What a parent wrote into the environment.

        Raises:
            ValueError: it is another text, or of another version of tlmem.
        """
        import tlmem

        version, pid, options, path = text.split(";", 3)
        if version != tlmem.__version__:
            raise ValueError(f"tlmem {version} started this process, and this is another one")
        return Lineage(path, int(pid), Options.from_text(options), notes)

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
    global _hooked, _root, _version
    if _hooked:
        return
    _hooked = True
    import tlmem

    _version = tlmem.__version__
    _interpreters.update(_alike(sys.executable or ""))

    _root = os.path.dirname(os.path.dirname(os.path.abspath(tlmem.__file__)))
    core.load()
    made: list[Any] = []
    core.lib.tlm_fork_functions(id(_after_in_child), id(made))
    before, in_parent, in_child = made
    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
    core.lib.tlm_follow_commands(id(_with_prelude))


def require_hook(options: Options) -> None:
    """Raises CannotRecord when other interpreters are to be followed and would not notice."""
    if options.follow == "all" and not find_hook():
        raise CannotRecord(
            f"--follow all needs the file {HOOK} in a site folder of {sys.executable}, and there "
            "is none; install tlmem there with pip, or leave the option out."
        )


def find_hook() -> str:
    """The path of the start-up file of this interpreter; empty when there is none."""
    site: Any = modules.get("site")
    folders = [*site.getsitepackages(), site.getusersitepackages()] if site is not None else []
    folders += [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
    paths = [os.path.join(folder, HOOK) for folder in folders]
    return next((path for path in paths if os.path.isfile(path)), "")


def announce() -> None:
    """Lets new processes know what this one does with its children from now on.

    Called again when that has changed: after a fork, and when a recording has ended.
    """
    lineage = _lineage()
    which = "fork" if lineage is None else lineage.options.follow
    value = None
    if lineage is not None and which == "all":
        value = core.ffi.new("char[]", fsencode(lineage.variable()))
    core.lib.tlm_follow_variable(FOLLOW.index(which), core.ffi.NULL if value is None else value)


def _alike(executable: str) -> list[bytes]:
    """Paths of this interpreter: of a virtual environment it has several."""
    folder, slash, _ = executable.rpartition("/")
    names = ["python", "python3", "python" + ".".join(map(str, sys.version_info[:2]))]
    others = names if sys.prefix != sys.base_prefix else []
    return [fsencode(executable), *(fsencode(f"{folder}{slash}{name}") for name in others)]


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
    announce()


def begin_followed(lineage: Lineage) -> None:
    """Records an interpreter that has just started, before it has read its program."""
    session.seal_at_exit()
    _begin(lineage)
    follow()
    announce()
    if session.active is not None:
        session.active.may_be_idle = True


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
    if lineage.options.follow != "none":
        _begin(lineage)
    announce()
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


def _with_prelude(arguments: list[Any], interpreter: bytes | None) -> tuple[list[Any], int]:
    """The command line of a new process, with our prelude before a ``-c`` that we know.

    Args:
        arguments: as the program gave them.
        interpreter: the Python that is started; empty when it is searched for, None when it does
            not look like one.

    Returns:
        The command line, and what becomes of the process as a ``tlm_child_fate``.
    """
    unseen: int = core.lib.TLM_CHILD_OTHER if interpreter is None else core.lib.TLM_CHILD_UNSEEN
    lineage = _lineage()
    if lineage is None or lineage.options.follow == "none":
        return arguments, unseen
    if (at := _prelude_place(arguments)) > 0:
        prelude = lineage.prelude(arguments[at].startswith(SERVER))
        changed = [*arguments[:at], prelude + arguments[at], *arguments[at + 1 :]]
        return changed, core.lib.TLM_CHILD_FOLLOWED
    if lineage.options.follow == "fork" or interpreter is None:
        return arguments, unseen
    words = [_text_of(word) for word in arguments]
    if words and words[0].rpartition("/")[2].startswith("python") and _is_isolated(words[1:]):
        return arguments, unseen
    if interpreter in _interpreters:
        return arguments, core.lib.TLM_CHILD_FOLLOWED
    return arguments, core.lib.TLM_CHILD_UNCERTAIN


def _prelude_place(arguments: list[Any]) -> int:
    """Where the program of a process of multiprocessing stands; 0 when it is none."""
    spawn: Any = modules.get("multiprocessing.spawn")
    if spawn is None or "-c" not in arguments or arguments[0] != vars(spawn).get("_python_exe"):
        return 0
    at = arguments.index("-c") + 1
    program = arguments[at] if at < len(arguments) else None
    return at if isinstance(program, str) and program.startswith(FOLLOWED) else 0


def _text_of(word: Any) -> str:
    if type(word) is bytes:
        return word.decode("utf-8", "replace")
    return word if type(word) is str else ""


def _is_isolated(words: list[str]) -> bool:
    """Whether an interpreter with this command line does not look for the variable."""
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        if not word.startswith("-") or word in ("-", "--") or word[1] in "cm-":
            return False
        for at, letter in enumerate(word[1:], 1):
            if letter in "EIS":
                return True
            if letter in "WX":
                skip = at == len(word) - 1
                break
            if letter in "cm":
                return False
    return False
