"""The lines that ``tlmem record`` adds to stderr when the program is over; each begins ``tlmem:``.

The verdict comes from the reading side, in a process of its own: the recorded program may have
changed this one in any way, and its memory is not to grow at the end. A recording that would take
long to judge is not judged here, and one that takes longer than ``PATIENCE_S`` is given up; the
line says why, and the next one gives the command.
"""

import os
import re
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from os import fsencode, scandir, stat, strerror
from typing import TYPE_CHECKING, Any

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.session import Session, Statistics
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recorder.sources.quarantine import Quarantine

globals()["__builtins__"] = STEADY  # of the functions below

# One verdict costs about 0.6 s to load the reading side and 1.5 us an event.
JUDGED_EVENTS = 2_000_000
"""More than these are only judged where that takes less than a tenth of the program's time."""
PATIENCE_S = 30
NANOSECONDS_PER_EVENT = 1500
UNSAFE = re.compile(r"[^\w@%+=:,./-]", re.ASCII)


def say(sentence: str, quiet: bool) -> None:
    """Writes one line to stderr, unless the program has closed or replaced what stderr was."""
    if quiet or not core.lib.tlm_stderr_is_open():
        return
    flush_if_plain(vars(sys).get("stderr"))
    try:
        _write(2, f"tlmem: {sentence}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return


_write = os.write


def flush_if_plain(stream: Any) -> None:
    """Flushes a stream of Python's own; the program's objects would notice."""
    if type(stream) is not TextIOWrapper:
        return
    buffer = stream.buffer
    if type(buffer) is not BufferedWriter or type(buffer.raw) is not FileIO:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        return  # Python meets the same failure in a moment and reports it its own way


class Closing:
    """What is said at the end, prepared before the program runs: afterwards names may be others.

    Args:
        recording: of the program.
    """

    def __init__(self, recording: Session) -> None:
        import tlmem

        root = os.path.dirname(os.path.dirname(os.path.abspath(tlmem.__file__)))
        words = [sys.executable, "-P", "-c", _JUDGE, root, recording.path, str(PATIENCE_S), ""]
        ffi = core.ffi
        self._recording = recording
        self._texts = [ffi.new("char[]", os.fsencode(word)) for word in words]
        self._judge = ffi.new("char *[]", [*self._texts, ffi.NULL])
        core.lib.tlm_remember_stderr()

    def write(self, result: Statistics, seconds: float) -> None:
        """Has it written when the interpreter is gone: the verdict, what was lost, what next.

        Args:
            result: what ``stop`` returned.
            seconds: how long the program ran.
        """
        place, shown = _place_of(self._recording, result)
        lines = _losses(self._recording, result)
        if result.quarantine is not None:
            lines.insert(0, _zombies(result.quarantine))
        if shown:
            lines.append(f"next: tlmem report {_quoted(shown)}")
        many = result.events > JUDGED_EVENTS
        many = many and result.events * NANOSECONDS_PER_EVENT > seconds * 1e8
        recorded = f"recorded {count_text(result.events)} events in {seconds:.1f} s"
        instead = f"{recorded}; not judged here: "
        if many:
            needed = result.events * NANOSECONDS_PER_EVENT / 1e9
            why = f"{instead}so many take about {needed:.0f} s, so it was not tried"
        else:
            why = f"{instead}the process that judges ended without an answer"
        late = f"{instead}no verdict after {PATIENCE_S} s of trying."
        core.lib.tlm_last_words(
            core.ffi.NULL if many or not place else self._command(place, late),
            _bytes(f"{why if place else recorded}."),
            b"".join(b"tlmem: " + _bytes(line) + b"\n" for line in lines),
        )

    def _command(self, place: str, late: str) -> Any:
        """The words that start the judge, for a recording that may have been moved.

        Args:
            late: what it says when its time is over.
        """
        for back, word in ((3, fsencode(place)), (1, _bytes(late))):
            at = len(self._texts) - back
            self._texts[at] = core.ffi.new("char[]", word)
            self._judge[at] = self._texts[at]
        return self._judge


def say_fate(recording: Session, result: Statistics) -> None:
    """Says what happened to the file of a child from outside; else a child says nothing."""
    if fate := fate_of(recording, result):
        say(f"process {recording.pid}: {fate}", recording.options.quiet)


def fate_of(recording: Session, result: Statistics) -> str:
    """What happened to the file of a recording from outside, as a sentence; empty: nothing."""
    lib = core.lib
    name = f"'{recording.shown_path}'"
    early = "and the recording stopped before the program ended"
    other = "give -o FILE a place"
    if result.ended == lib.TLM_ENDED_CUT:
        return (
            f"another program cut {name} short, {early}; {other} where nothing truncates or "
            "rotates files."
        )
    if result.ended == lib.TLM_ENDED_REMOVED:
        return (
            f"{name} was removed, {early}; {other} where it stays for as long as the program runs."
        )
    if result.ended == lib.TLM_ENDED_FAILED:
        return f"the disk of {name} failed, {early}; {other} on another disk."
    if result.moved:
        _, shown = _place_of(recording, result)
        where = f"it is '{shown}' now" if shown else "its place is unknown now"
        return f"{name} was moved while the program was recorded; {where}."
    return ""


def _place_of(recording: Session, result: Statistics) -> tuple[str, str]:
    """Where the recording is: its path, and as it is shown; both empty when it is nowhere.

    A file that was moved is looked for beside its old place, where a log is rotated to.
    """
    if not result.moved:
        try:
            empty = stat(recording.path).st_size == 0
        except OSError:
            empty = True
        return ("", "") if empty else (recording.path, recording.shown_path)
    folder, slash, _ = recording.path.rpartition("/")
    try:
        with scandir(folder or "/") as entries:
            names = [each.name for each in entries if each.inode() == result.inode]
    except OSError:
        names = []
    if not names:
        return "", ""
    beside = recording.shown_path.rpartition("/")
    return folder + slash + names[0], beside[0] + beside[1] + names[0]


def _quoted(text: str) -> str:
    """A word for a shell, as ``shlex.quote`` writes it."""
    if text and not UNSAFE.search(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _steady(function: Any) -> Any:
    """The same function with built-in functions of its own."""
    return type(function)(function.__code__, {**function.__globals__, "__builtins__": STEADY})


count_text = _steady(format_count)
bytes_text = _steady(format_bytes)


def _losses(recording: Session, result: Statistics) -> list[str]:
    if fate := fate_of(recording, result):
        return [fate]
    reason = f" ({strerror(result.errno)})" if result.errno else ""
    if result.ended or result.lost_events:
        early = " and the recording stopped before the program ended" if result.ended else ""
        return [
            f"{count_text(result.lost_events)} events could not be recorded{reason}{early}; give "
            "-o FILE on a disk with more room, or --max-file SIZE."
        ]
    if not result.sealed:
        return [f"every event is in the file, but it could not be sealed{reason}."]
    return []


def _zombies(quarantine: "Quarantine") -> str:
    """What zombie mode did and found."""
    found = quarantine.touches + quarantine.written
    left = quarantine.left_count
    sentence = (
        f"zombie: {count_text(quarantine.count)} freed objects of "
        f"{bytes_text(quarantine.bytes)} went into quarantine"
    )
    if left:
        sentence += f", {count_text(left)} of them left it early to make room"
    if quarantine.unguarded_count:
        sentence += (
            f", {count_text(quarantine.unguarded_count)} had no pages of their own, as "
            "16,384 others had them"
        )
    if not found:
        return f"{sentence}; none was touched."
    return f"{sentence}; {count_text(found)} uses after a free were found, see the report."


_JUDGE = """
import contextlib, faulthandler, io, json, os, signal, sys
root, path, patience, late = sys.argv[1:]

def give_up(*about):
    os.write(1, os.fsencode(late))
    os._exit(0)

signal.signal(signal.SIGALRM, give_up)
signal.alarm(int(patience))
# The handler waits for code in C to return; this does not.
faulthandler.dump_traceback_later(int(patience) + 5, exit=True)
os.chdir("/")
sys.path.insert(0, root)
from tlmem.cli import main
del sys.path[0]
text = io.StringIO()
with contextlib.redirect_stdout(text):
    code = main(["report", "--format", "json", "--", path])
if code == 0:
    sentence = json.loads(text.getvalue())["verdict"]["sentence"]
    sys.stdout.buffer.write(sentence.encode("utf-8", "replace"))
"""
