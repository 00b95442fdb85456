"""What can go wrong with a recording, as exceptions that carry an exit code.

Covers: the errors of reading. Every message is one sentence that names the file and the next step.
Does not cover: damage inside a readable file; that is listed in ``Recording.problems``.
"""

from __future__ import annotations


class TlmemError(Exception):
    """Base of all errors tlmem raises on purpose; the command line exits with ``exit_code``.

    ``from_program`` is set on one that ended a program while it was recorded: it is that program's.
    """

    exit_code = 2
    from_program = False


class MissingFile(TlmemError):
    """The path does not exist or cannot be opened."""

    exit_code = 2


class TooManyFiles(TlmemError):
    """A recording cannot be opened because too many files are open already."""

    exit_code = 2


class NotARecording(TlmemError):
    """The path is something else than a tlmem recording."""

    exit_code = 2


class EmptyRecording(TlmemError):
    """A recording without an event: nothing was recorded, or the file was cut too early."""

    exit_code = 3


class DamagedRecording(TlmemError):
    """A recording, but so damaged that nothing in it can be trusted."""

    exit_code = 3


class UnsupportedVersion(TlmemError):
    """A recording in a format newer than this tlmem."""

    exit_code = 3


class TablesTooLarge(TlmemError):
    """Tables would take more memory than is available; a recording can be read in parts."""

    exit_code = 3


class MissingLibrary(TlmemError):
    """Something needs a package that is not installed."""

    exit_code = 2


class TooManyEvents(TlmemError):
    """A range of time has more events than a file of its length may take memory for."""

    exit_code = 3
