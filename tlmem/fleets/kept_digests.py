"""The digest of each recording of a fleet, kept beside it: the second look reads no events.

One recording is analysed in a second; a thousand take minutes, again for each command. So a digest
is kept of short recordings, too, in ``X.tlm.sums`` (``recording.kept_answers``).

Covers: when a digest is kept and found. Does not cover: what it is (``digest``), the file.
See also: docs/decisions/sums.md.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.fleets.digest import Digest, digest_file
from tlmem.recording.format.remote import url_of
from tlmem.recording.format.segments import OPEN, Source, read_header
from tlmem.recording.kept_answers import KeptAnswers

QUESTION = ("fleet digest",)
REST_S = 60.0
"""A recording that is not sealed may go on, unless nothing was written to it for so long."""


def kept_digest(path: str | Path) -> Digest | None:
    """What an earlier command has kept; None where there is nothing, or it is of other bytes."""
    return _found(_answers(path))


def digest_and_keep(path: str | Path) -> Digest:
    """The digest that is kept, or a new one, kept for the next command.

    Raises:
        TlmemError: as ``tlmem.read``.
    """
    answers = _answers(path)
    found = _found(answers)
    if found is None:
        found = digest_file(path)
        if answers:
            answers.keep({QUESTION: found}, None)
    return found


def _found(answers: KeptAnswers | None) -> Digest | None:
    found = answers.find(QUESTION, None) if answers else None
    return found if isinstance(found, Digest) else None


def _answers(path: str | Path) -> KeptAnswers | None:
    """What is kept of a recording that has ended; None of one that goes on or cannot be read."""
    try:
        source = Source(Path(path))
        is_open = read_header(source).state == OPEN
    except TlmemError:
        return None
    if is_open and (url_of(source.path) or _is_written(source.path)):
        return None
    return KeptAnswers(source, ())


def _is_written(path: Path) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < REST_S
    except OSError:
        return True
