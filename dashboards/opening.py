"""From file names to an application that runs: what ``tlmem tui`` and ``tlmem live`` do.

Covers: refusing files before the screen is taken over, exit codes. Textual is imported only once a
file can be shown.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tlmem.errors import MissingFile, TlmemError
from tlmem.fleets.members import files_of

from .escape_key import answer_escape_soon
from .model.fleet import FleetIndex
from .model.live import Follower, find_recording, wait_for_events
from .model.loading import Loaded, family_of

if TYPE_CHECKING:
    from .app import TlmemApp

SWITCH_S = 0.001
"""A thread that works gives way to keys this often."""
YOUNGEST = 20_000
"""So many new objects are looked through for cycles at once; drawing one screen makes thousands."""
ESCAPE_MS = 30
"""So long Escape waits for the rest of another key's sequence, unless ESCDELAY says otherwise."""
FRAMES_PER_S = 120
"""So often at most something is drawn, unless TEXTUAL_FPS says otherwise."""


def browse(file: str, other: str | None = None, source_roots: Sequence[str] = ()) -> int:
    """Shows a recording until the reader quits.

    Args:
        other: a recording to compare it with.
        source_roots: folders whose files may be read for source lines.
    Returns:
        0.
    Raises:
        TlmemError: a file is missing, no recording, empty or damaged beyond use; the exit code is
            the error's own.
    """
    members = [Loaded(path, source_roots) for path in family_of(Path(file))]
    if other is not None:
        Loaded(Path(other))
    _set_terminal()
    from .app import TlmemApp

    # What was read stays until the end. Left to the garbage collector, its next full run, at
    # whatever key, would go through all of it for a tenth of a second.
    app = TlmemApp(members, Path(other) if other else None, read=gc.freeze, hurried=True)
    return _run(app)


def browse_fleet(
    paths: Sequence[str], source_roots: Sequence[str] = (), jobs: int | None = None
) -> int:
    """Shows many recordings until the reader quits: a map of all processes, and each of them.

    Args:
        paths: files with their families, folders, patterns.
        jobs: processes that analyse them; None: one for each core.
    Returns:
        0.
    Raises:
        TlmemError: none of them can be read; of the first of them.
    """
    files = files_of(paths)
    fleet = FleetIndex(files, jobs)
    first = first_readable(files, source_roots)
    _set_terminal()
    from .app import FleetApp

    try:
        return _run(FleetApp(fleet, first, source_roots, read=gc.freeze))
    finally:
        fleet.stop()
        for child in multiprocessing.active_children():
            child.terminate()  # nothing waits for their results


def first_readable(files: Sequence[Path], source_roots: Sequence[str] = ()) -> Loaded:
    """The first of some recordings that can be read.

    Raises:
        TlmemError: none can; that of the first one.
    """
    error: TlmemError | None = None
    for file in files:
        try:
            return Loaded(file, source_roots)
        except TlmemError as refused:
            error = error or refused
    raise error or MissingFile("there is nothing to show; name a recording")


def _set_terminal() -> None:
    """What Textual reads from the environment when it is imported, and how it waits for keys."""
    os.environ.setdefault("ESCDELAY", str(ESCAPE_MS))
    os.environ.setdefault("TEXTUAL_FPS", str(FRAMES_PER_S))
    from textual import constants

    answer_escape_soon(constants.ESCAPE_DELAY)


def _run(app: TlmemApp) -> int:
    """Runs the application until the reader quits; returns its exit code."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(YOUNGEST, *gc.get_threshold()[1:])
    app.keeps_theme = True
    app.run()
    return app.return_code or 0


def follow(target: str | None) -> int:
    """Follows a program that runs, or looks at one that has ended, until the reader quits.

    Args:
        target: a file, the number of a process, or None for the newest recording of this directory
            that is being written.
    Returns:
        0.
    Raises:
        TlmemError: there is no such recording, or it is damaged beyond use, or it is empty and its
            program has ended.
    """
    path = find_recording(target, Path.cwd())
    wait_for_events(path)
    follower = Follower(path)
    follower.look()
    _set_terminal()
    from .app import LiveApp

    return _run(LiveApp([Loaded(path)], follower=follower))
