"""The lines that ``tlmem record`` adds to stderr when the program is over; each begins ``tlmem:``.

The verdict comes from the reading side, in a process of its own: the recorded program may have
changed this one in any way, and its memory is not to grow at the end. A recording that would take
long to judge is not judged here; the line says so and the next one gives the command.
"""

import os
import shlex
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from os import strerror
from typing import TYPE_CHECKING, Any

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.session import Session, Statistics
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recorder.sources.quarantine import Quarantine

globals()["__builtins__"] = STEADY  # of the functions below

# One verdict costs about 0.6 s to load the reading side and 1.5 us an event.
JUDGED_EVENTS = 2_000_000
PATIENCE_S = 30
NANOSECONDS_PER_EVENT = 1500


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
        words = [sys.executable, "-P", "-c", _JUDGE, root, recording.path, str(PATIENCE_S)]
        ffi = core.ffi
        self._texts = [ffi.new("char[]", os.fsencode(word)) for word in words]
        self._judge = ffi.new("char *[]", [*self._texts, ffi.NULL])
        self._next = f"next: tlmem report {shlex.quote(recording.shown_path)}"
        core.lib.tlm_remember_stderr()

    def write(self, result: Statistics, seconds: float) -> None:
        """Has it written when the interpreter is gone: the verdict, what was lost, what next.

        Args:
            result: what ``stop`` returned.
            seconds: how long the program ran.
        """
        recorded = f"recorded {count_text(result.events)} events in {seconds:.1f} s; not judged yet"
        many = result.events > JUDGED_EVENTS
        many = many and result.events * NANOSECONDS_PER_EVENT > seconds * 1e8
        lines = [*_losses(result), self._next]
        if result.quarantine is not None:
            lines.insert(0, _zombies(result.quarantine))
        core.lib.tlm_last_words(
            core.ffi.NULL if many else self._judge,
            _bytes(f"{recorded}, as they are many." if many else f"{recorded}."),
            b"".join(b"tlmem: " + _bytes(line) + b"\n" for line in lines),
        )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _steady(function: Any) -> Any:
    """The same function with built-in functions of its own."""
    return type(function)(function.__code__, {**function.__globals__, "__builtins__": STEADY})


count_text = _steady(format_count)
bytes_text = _steady(format_bytes)


def _losses(result: Statistics) -> list[str]:
    reason = f" ({strerror(result.errno)})" if result.errno else ""
    if result.stopped or result.lost_events:
        early = " and the recording stopped before the program ended" if result.stopped else ""
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
            "16 384 others had them"
        )
    if not found:
        return f"{sentence}; none was touched."
    return f"{sentence}; {count_text(found)} uses after a free were found, see the report."


_JUDGE = """
import contextlib, io, json, os, signal, sys
root, path, patience = sys.argv[1:]
signal.alarm(int(patience))
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
