"""The lines that ``tlmem record`` adds to stderr when the program is over; each begins ``tlmem:``.

The verdict comes from the reading side, in a process of its own: the recorded program may have
changed this one in any way, and its memory is not to grow at the end. A recording that would take
long to judge is not judged here; the line says so and the next one gives the command.
"""

import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from tlmem.recorder.session import Session, Statistics
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recorder.sources.quarantine import Quarantine

# One verdict costs about 0.6 s to load the reading side and 1.5 us an event.
JUDGED_EVENTS = 2_000_000
PATIENCE_S = 30
NANOSECONDS_PER_EVENT = 1500


def say(sentence: str, quiet: bool) -> None:
    """Writes one line to stderr, unless the program has closed or replaced what stderr was."""
    if quiet or not _stderr_is_open():
        return
    text = f"tlmem: {sentence}\n".encode("utf-8", "backslashreplace")
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
        os.write(2, text)
    except (OSError, ValueError):
        return


_stderr_at_start: "tuple[int, int] | None" = None


def remember_stderr() -> None:
    """Notes what stderr is now. A program may reuse its number for a file of its own."""
    global _stderr_at_start
    _stderr_at_start = _stderr_identity()


def _stderr_identity() -> "tuple[int, int] | None":
    try:
        status = os.fstat(2)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _stderr_is_open() -> bool:
    identity = _stderr_identity()
    return identity is not None and _stderr_at_start in (None, identity)


def write(recording: Session, result: Statistics, seconds: float) -> None:
    """Writes whether the program leaks, what was lost, and which command comes next.

    Args:
        recording: stopped.
        result: what ``stop`` returned.
        seconds: how long the program ran.
    """
    place, shown = _place_of(recording, result)
    say(_verdict(place, result.events, seconds), False)
    if result.quarantine is not None:
        say(_zombies(result.quarantine), False)
    if fate := fate_of(recording, result):
        say(fate, False)
    elif result.ended or result.lost_events:
        reason = f" ({os.strerror(result.errno)})" if result.errno else ""
        early = " and the recording stopped before the program ended" if result.ended else ""
        say(
            f"{format_count(result.lost_events)} events could not be recorded{reason}{early}; give "
            "-o FILE on a disk with more room, or --max-file SIZE.",
            False,
        )
    elif not result.sealed:
        reason = f" ({os.strerror(result.errno)})" if result.errno else ""
        say(f"every event is in the file, but it could not be sealed{reason}.", False)
    if shown:
        say(f"next: tlmem report {shlex.quote(shown)}", False)


def say_fate(recording: Session, result: Statistics) -> None:
    """Says what happened to the file of a child from outside; else a child says nothing."""
    if fate := fate_of(recording, result):
        say(f"process {recording.pid}: {fate}", recording.options.quiet)


def fate_of(recording: Session, result: Statistics) -> str:
    """What happened to the file of a recording from outside, as a sentence; empty: nothing."""
    from tlmem._native import lib

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
        where = f"it is '{shown}' now" if shown else "where it is now is not known"
        return f"{name} was moved while the program was recorded; {where}."
    return ""


def _place_of(recording: Session, result: Statistics) -> tuple[str, str]:
    """Where the recording is: its path, and as it is shown; both empty when it is nowhere.

    A file that was moved is looked for beside its old place, where a log is rotated to.
    """
    if not result.moved:
        try:
            empty = os.path.getsize(recording.path) == 0
        except OSError:
            empty = True
        return ("", "") if empty else (recording.path, recording.shown_path)
    folder = os.path.dirname(recording.path)
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if each.inode() == result.inode]
    except OSError:
        names = []
    if not names:
        return "", ""
    return (
        os.path.join(folder, names[0]),
        os.path.join(os.path.dirname(recording.shown_path), names[0]),
    )


def _zombies(quarantine: "Quarantine") -> str:
    """What zombie mode did and found."""
    found = quarantine.touches + quarantine.written
    left = quarantine.left_count
    sentence = (
        f"zombie: {format_count(quarantine.count)} freed objects of "
        f"{format_bytes(quarantine.bytes)} went into quarantine"
    )
    if left:
        sentence += f", {format_count(left)} of them left it early to make room"
    if quarantine.unguarded_count:
        sentence += (
            f", {format_count(quarantine.unguarded_count)} had no pages of their own, as "
            "16 384 others had them"
        )
    if not found:
        return f"{sentence}; none was touched."
    return f"{sentence}; {format_count(found)} uses after a free were found, see the report."


def _verdict(path: str, events: int, seconds: float) -> str:
    recorded = f"recorded {format_count(events)} events in {seconds:.1f} s; not judged yet"
    if not path:
        return recorded.partition(";")[0] + "."
    if events > JUDGED_EVENTS and events * NANOSECONDS_PER_EVENT > seconds * 1e8:
        return f"{recorded}, as they are many."
    return _ask_reading_side(path) or f"{recorded}."


def _ask_reading_side(path: str) -> str:
    """The verdict's sentence; empty when there is none.

    Nothing is imported for it here: what the program has put on ``sys.path`` would be found first.
    """
    import tlmem

    root = os.path.dirname(os.path.dirname(os.path.abspath(tlmem.__file__)))
    words = [sys.executable, "-P", "-c", _JUDGE, root, path, str(PATIENCE_S)]
    try:
        # A handler of the program must not hear of a child that is not its own.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    except ValueError:
        return ""
    try:
        answer, other_end = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        duplicates = [(os.POSIX_SPAWN_DUP2, nothing, fd) for fd in (0, 2)]
        duplicates.append((os.POSIX_SPAWN_DUP2, other_end, 1))
        child = os.posix_spawn(
            sys.executable,
            words,
            os.environ,
            file_actions=duplicates,
            setsigmask=[],
            setsigdef=[signal.SIGALRM],
        )
        os.close(other_end)
        text = b""
        while piece := os.read(answer, 65536):
            text += piece
        os.close(answer)
        os.close(nothing)
        os.waitpid(child, 0)
    except (OSError, KeyboardInterrupt):
        return ""
    return " ".join(text.decode("utf-8", "replace").split())


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
