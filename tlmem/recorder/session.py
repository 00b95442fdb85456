"""The recording that this process makes: start, notes, sources, end. At most one at a time.

Covers: the life of one file in one process. Does not cover: which children get files of their own
(``children``), running a script (``runner``), what is printed (``summary``).
"""

import atexit
import os
import sys
from gc import get_freeze_count, get_threshold
from os import fsencode, getcwd, getpid
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from tlmem.recorder.bound import STEADY, core, shelter
from tlmem.recorder.failure import CannotRecord, refusal
from tlmem.recorder.identity import identity, identity_within
from tlmem.recorder.options import Options
from tlmem.recorder.others import package_note, process_note, sums_now, worker_note
from tlmem.recorder.sources import chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tlmem.recorder.sources.quarantine import Quarantine

globals()["__builtins__"] = STEADY  # of the functions below

IDLE_BYTES = 50_000_000
"""A process that never had more, and neither NumPy nor PyTorch, explains no problem."""

active: "Session | None" = None
_modules = sys.modules


class Statistics:
    """Counters of the C core when a recording ended.

    Attributes:
        events: recorded in all.
        lost_events: could not be recorded.
        ended: why it ended before the program did, a ``tlm_early_end``; 0 when it did not.
        errno: of the operating system, when the disk was full or failed.
        sealed: the file was compacted and closed.
        moved: the file has another name by now, or none.
        inode: its number.
        quarantine: what zombie mode did; None without it.
    """

    def __init__(
        self,
        events: int,
        lost: int,
        ended: int,
        errno: int,
        sealed: bool,
        moved: bool = False,
        inode: int = 0,
        quarantine: "Quarantine | None" = None,
    ) -> None:
        self.events = events
        self.lost_events = lost
        self.ended = ended
        self.errno = errno
        self.sealed = sealed
        self.moved = moved
        self.inode = inode
        self.quarantine = quarantine


class Session:
    """One recording, from ``start`` to ``stop``.

    Args:
        path: where to write; made absolute, because programs change their directory.
        options: how to record.
        parent_pid: the recorded process that this one was made by, 0 for the first.
        notes: texts for the file, by key, beside those that every recording has.
    """

    def __init__(
        self, path: str, options: Options, parent_pid: int = 0, notes: dict[str, str] | None = None
    ) -> None:
        self.shown_path = path
        self.path = path if path.startswith("/") else os.path.abspath(path)
        self.options = options
        self.parent_pid = parent_pid
        self.notes = dict(notes or {})
        self.pid = 0
        self.ended = False
        self.may_be_idle = False
        self._made: dict[str, int] | None = None
        self._identity: dict[str, str] = {}
        self._sources = chosen(options)
        self._frozen = get_freeze_count()

    def start(self) -> None:
        """Creates the file and installs the sources.

        Raises:
            CannotRecord: nothing was started and no file is left behind.
        """
        global active
        core.load()
        ffi, lib = core.ffi, core.lib
        self._made = sums_now()
        path = ffi.new("char[]", fsencode(self.path))
        request = ffi.new("tlm_recording_options *")
        request.path = path
        request.overwrite = self.options.overwrite
        request.limit_bytes = self.options.limit_bytes
        request.stack_depth = self.options.stack_depth
        request.parent_pid = self.parent_pid
        request.mode = self.options.mode
        request.compact = 1
        for source in self._sources:
            source.prepare(request)
        status = lib.tlm_recording_start(request)
        if status != lib.TLM_OK:
            for source in reversed(self._sources):
                source.cancel()
            text = ffi.string(lib.tlm_status_text(status)).decode()
            raise refusal(status, lib.tlm_recording_errno(), self.shown_path, text)
        active = self
        self.pid = getpid()
        environment = environment_notes(self.options)
        of_sources = {key: text for each in self._sources for key, text in each.notes().items()}
        self._identity = identity()
        for key, value in {**environment, **of_sources, **self._identity, **self.notes}.items():
            self.note(key, value)
        self.note_collector(self._frozen)
        if self.options.holders != "off":
            lib.tlm_holders_start(_libraries(environment), self.options.limit_bytes)
        for source in self._sources:
            source.install()

    def note(self, key: str, value: str) -> None:
        """Adds a text to the file; a note that finds no room is left out, the program goes on."""
        core.lib.tlm_note(encode(key), encode(value))

    def offer_source(self, name: str, text: bytes, code: CodeType) -> None:
        """Gives the file the text of a program that is in no file.

        Args:
            name: what its code has as the name of its file; other code may have it, too.
            text: the whole program.
            code: what was compiled from it, which the text is of.
        """
        lib = core.lib
        if lib.tlm_source_offer(encode(name), text, len(text)) != lib.TLM_OK:
            return
        codes = [code]
        for each in codes:  # grows while it is gone through
            codes += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
            lib.tlm_source_code(encode(name), encode(each.co_qualname), each.co_firstlineno)

    def _offer_cached_lines(self) -> None:
        """Gives the file lines that only this interpreter has, such as those of cells.

        The cache is the program's, and so is every object in it: none of its methods is called.
        """
        lib, module = core.lib, _modules.get("linecache")
        cache = vars(module).get("cache") if type(module) is ModuleType else None
        for name, entry in list(cache.items()) if type(cache) is dict else []:
            if type(name) is not str or type(entry) is not tuple or len(entry) != 4:
                continue
            _, changed, lines, _ = entry
            if changed is not None or type(lines) is not list:
                continue  # a file, which is read where it lies
            if lib.tlm_source_missing(encode(name)):
                text = encode("".join([line for line in lines if type(line) is str]))
                lib.tlm_source_offer(encode(name), text, len(text))

    def note_collector(self, frozen: int) -> None:
        """Says when Python's garbage collector looks at everything, and what was frozen since.

        Args:
            frozen: objects that are frozen now. Python counts them one by one.
        """
        self.note("gc.threshold", ",".join(map(str, get_threshold())))
        self.note("gc.frozen", str(frozen - self._frozen))

    def mark(self, label: str, index: int = 0) -> None:
        """Records a point in time with the calling stack."""
        core.lib.tlm_mark(encode(label), index)

    def snapshot(self) -> None:
        """Finds out now which Python objects hold arrays."""
        core.lib.tlm_holders_now(0, 0)

    def offer_snapshot(self) -> None:
        """The same if it can be afforded."""
        core.lib.tlm_holders_offer()

    def end(self, error: "BaseException | None" = None) -> None:
        """Takes the last snapshot of holders, once: while what the program used is still there.

        Args:
            error: what ended the program; its tracebacks hold too.
        """
        if not self.ended:
            self.ended = True
            core.lib.tlm_holders_now(1, 0 if error is None else id(error))
            self.note_collector(get_freeze_count())
            self.note_others()
            self.note_identity()
            for source in self._sources:
                source.end()
            self._offer_cached_lines()

    def note_others(self) -> None:
        """Says what ran or held memory beside this recording."""
        if self._made is not None:
            self.note("processes", process_note(self.path, self._made))
        self.note("packages", package_note(_modules))
        if worker := worker_note(_modules):
            self.note("torch.worker", worker)

    def note_identity(self) -> None:
        """Says again who this process is, where its launcher said so after the start."""
        now = {**identity_within(_modules), **identity()}
        for key, value in now.items():
            if self._identity.get(key) != value:
                self.note(key, value)

    def sample(self) -> None:
        """Takes every memory sample now: a point that the report can rely on."""
        core.lib.tlm_sample_now()

    def stop(self) -> Statistics:
        """Removes the sources, seals the file and returns what was recorded."""
        global active
        ffi, lib = core.ffi, core.lib
        active = None
        lib.tlm_fork_settle()
        self.end()
        lib.tlm_holders_stop()
        lib.tlm_sample_now()  # while the sources can still be asked
        for source in reversed(self._sources):
            source.remove()
        status = lib.tlm_recording_stop(1)
        counters = ffi.new("tlm_recording_statistics *")
        lib.tlm_recording_stats(counters)
        return Statistics(
            events=counters.events,
            lost=counters.lost_events,
            ended=counters.stopped,
            errno=lib.tlm_recording_errno(),
            sealed=status == lib.TLM_OK,
            moved=bool(counters.moved),
            inode=counters.inode,
            quarantine=self._quarantine(),
        )

    def remove_if_idle(self, result: Statistics) -> None:
        """Removes the file of a process that was followed and has nothing to show.

        Args:
            result: what ``stop`` returned.
        """
        used = "numpy" in _modules or "torch" in _modules or self.options.heap_rate_bytes
        if not self.may_be_idle or used or result.moved:
            return
        if core.lib.tlm_peak_since_exec() < IDLE_BYTES:
            core.lib.tlm_remove_recording(fsencode(self.path))

    def _quarantine(self) -> "Quarantine | None":
        found = [each for each in self._sources if each.name == "quarantine"]
        return cast("Quarantine", found[0]) if found else None


def encode(text: str) -> bytes:
    """UTF-8 for the file; lone surrogates, as in file names, are passed through."""
    return text.encode("utf-8", "surrogatepass")


_environment: dict[str, str] = {}
"""What was noted first. A forked child notes the same, whatever the program made of ``sys``."""


def environment_notes(options: Options) -> dict[str, str]:
    """What every recording says about the process that made it."""
    if not _environment:
        _environment.update(_of_this_process())
    try:
        directory = getcwd()
    except OSError:
        directory = ""
    return {
        **_environment,
        "cwd": directory,
        "stack_depth": str(options.stack_depth),
        "quarantine_bytes": str(options.quarantine_bytes),
        "holders": options.holders,
        "follow": options.follow,
    }


def _of_this_process() -> dict[str, str]:
    import tlmem

    system = os.uname()
    library = os.path.dirname(os.__file__)
    platform_library = os.path.join(
        sys.base_exec_prefix, sys.platlibdir, "python" + ".".join(map(str, sys.version_info[:2]))
    )
    site: Any = _modules.get("site")  # while it runs, sys.path has not all of them
    folders = [*sys.path, *(site.getsitepackages() if hasattr(site, "getsitepackages") else [])]
    sites = [p for p in folders if os.path.basename(p) in ("site-packages", "dist-packages")]
    return {
        "executable": sys.executable,
        "python": sys.version.split()[0],
        "platform": f"{system.sysname} {system.release} {system.machine}",
        "tlmem": tlmem.__version__,
        "python.stdlib": os.pathsep.join(dict.fromkeys([library, platform_library])),
        "python.sites": os.pathsep.join(dict.fromkeys(sites)),
        "tlmem.path": os.path.dirname(os.path.abspath(tlmem.__file__)),
    }


def _libraries(notes: dict[str, str]) -> bytes:
    """Folders of modules that are not the program's own, each on a line."""
    folders = [notes["tlmem.path"]]
    for key in ("python.stdlib", "python.sites"):
        folders += notes[key].split(":")
    return encode("\n".join(folder + "/" for folder in folders if folder))


def forget_after_fork() -> "Session | None":
    """In a forked child: what the parent was recording; this process records nothing now."""
    global active
    former, active = active, None
    return former


def seal_at_exit() -> None:
    """Arranges that a recording still running when the interpreter ends is sealed."""
    from tlmem.recorder.summary import say_fate

    atexit.register(shelter(lambda: _seal(say_fate)))
    core.lib.tlm_remember_stderr()


def _seal(say: "Callable[[Session, Statistics], None]") -> None:
    ending = active
    if ending is not None and ending.pid == getpid():
        result = ending.stop()
        say(ending, result)
        ending.remove_if_idle(result)


def require_native() -> None:
    """Raises CannotRecord when the extension module is missing; says how to get it."""
    try:
        core.load()
    except ImportError as error:
        raise CannotRecord(
            f"this installation can read recordings but not make them ({error}); install tlmem "
            "where a C compiler is."
        ) from None
