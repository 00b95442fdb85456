"""How the recorded program ended, where it did not end well.

Covers: an exit code other than 0, an uncaught exception, a recording without an end.
Does not cover: what ends a process after its recording, such as a signal in an exit handler.
"""

from __future__ import annotations

from tlmem.analysis.lifetimes import is_imported
from tlmem.recording.reader import Recording

EXIT = "exit"
"""Key of the note of how the program ended: its exit code, or the name of an exception."""
WELL = "0"


def exit_of(recording: Recording) -> str | None:
    """The exit code, or the exception's class; None when the recording does not know."""
    return recording.info.get(EXIT)


def ending_sentence(recording: Recording) -> str:
    """One sentence on how the program ended; empty if it ended with 0 or that is not known."""
    ended = exit_of(recording)
    if ended is None:
        if recording.sealed or recording.state != "open" or is_imported(recording):
            return ""
        return (
            "The end of the program is not in the recording: it was killed, it left by os._exit, "
            "or it is still running."
        )
    if ended == WELL:
        return ""
    if ended.isdecimal():
        return f"The program ended with exit code {ended}."
    return f"The program ended with an uncaught exception: {ended}."
