"""The lines that ``tlmem record`` adds to stderr when the program is over; each begins ``tlmem:``.

The verdict comes from the reading side, in a process of its own: the recorded program may have
changed this one in any way, and its memory is not to grow at the end. A recording that would take
long to judge is not judged here; the line says so and the next one gives the command.
"""

import os
import sys

from tlmem.recorder.session import Session, Statistics

# One verdict costs about 0.6 s to load the reading side and 1.5 us an event.
JUDGED_EVENTS = 2_000_000
PATIENCE_S = 30.0
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


def tell(recording: Session, result: Statistics, seconds: float) -> None:
    """Says whether the program leaks, what was lost, and which command comes next.

    Args:
        recording: stopped.
        result: what ``stop`` returned.
        seconds: how long the program ran.
    """
    import shlex

    say(_verdict(recording.path, result.events, seconds), False)
    if result.stopped or result.lost_events:
        reason = f" ({os.strerror(result.errno)})" if result.errno else ""
        early = " and the recording stopped before the program ended" if result.stopped else ""
        say(
            f"{result.lost_events} events could not be recorded{reason}{early}; give -o FILE on a "
            "disk with more room, or --max-file SIZE.",
            False,
        )
    elif not result.sealed:
        reason = f" ({os.strerror(result.errno)})" if result.errno else ""
        say(f"every event is in the file, but it could not be sealed{reason}.", False)
    say(f"next: tlmem report {shlex.quote(recording.shown_path)}", False)


def _verdict(path: str, events: int, seconds: float) -> str:
    if events > JUDGED_EVENTS and events * NANOSECONDS_PER_EVENT > seconds * 1e8:
        return f"recorded {events} events in {seconds:.1f} s; not judged yet, as they are many."
    import json
    import subprocess

    import tlmem

    root = os.path.dirname(os.path.dirname(os.path.abspath(tlmem.__file__)))
    program = (
        f"import sys; sys.path.insert(0, {root!r}); from tlmem.cli import main; del sys.path[0]; "
        "sys.exit(main())"
    )
    command = [sys.executable, "-P", "-c", program, "report", "--format", "json", "--", path]
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            timeout=PATIENCE_S,
            check=False,
        )
        sentence = json.loads(finished.stdout)["verdict"]["sentence"]
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        KeyboardInterrupt,
        subprocess.SubprocessError,
    ):
        return f"recorded {events} events in {seconds:.1f} s; not judged yet."
    return " ".join(str(sentence).split())
