"""The one exception of the recording side, and the sentences for what the C core refuses."""

from errno import EISDIR
from os import lstat, strerror
from stat import S_ISDIR, S_ISLNK, S_ISREG

from tlmem.errors import TlmemError
from tlmem.recorder.bound import STEADY, core

globals()["__builtins__"] = STEADY  # of the functions below


class CannotRecord(TlmemError):
    """Recording cannot start; the message is one sentence with the next step.

    Attributes:
        exit_code: what the command exits with, always 2.
    """

    exit_code = 2


def refusal(status: int, errno: int, path: str, text: str) -> CannotRecord:
    """The exception for a status of ``tlm_recording_start``.

    Args:
        status: a ``tlm_status`` other than 0.
        errno: of the operating system, for the statuses that have one; 0 if none.
        path: the recording, as the user wrote it.
        text: ``tlm_status_text(status)``.
    """
    lib = core.lib
    mode = _mode_of(path) if status == lib.TLM_EXISTS else 0
    if S_ISLNK(mode):
        return CannotRecord(
            f"'{path}' is a symbolic link, and recordings are not written through links; give -o "
            "FILE with the path that it leads to, or remove it."
        )
    if S_ISDIR(mode):
        status, errno = lib.TLM_IO, EISDIR
    elif mode and not S_ISREG(mode):
        return CannotRecord(
            f"'{path}' exists and is not a regular file; give -o FILE to write somewhere else."
        )
    if status == lib.TLM_EXISTS:
        return CannotRecord(
            f"'{path}' exists; give -f to overwrite it, or -o FILE to write somewhere else."
        )
    if status == lib.TLM_ALREADY_RUNNING:
        return CannotRecord(
            f"this process is being recorded already, so '{path}' cannot be started; "
            "stop the other recording first."
        )
    if status == lib.TLM_NO_SPACE:
        return CannotRecord(
            f"no room on the disk for '{path}'; free some space, or give -o FILE on another disk."
        )
    if status == lib.TLM_IO and errno:
        return CannotRecord(
            f"cannot write '{path}' ({strerror(errno)}); give -o FILE with a path that can be "
            "written."
        )
    return CannotRecord(f"cannot record to '{path}': {text}.")


def _mode_of(path: str) -> int:
    """What kind of file a path is, links not followed; 0 when there is none."""
    try:
        return lstat(path).st_mode
    except OSError:
        return 0
