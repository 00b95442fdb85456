"""The end of ``tlmem attach`` inside the process: starts or stops a recording, and answers.

Covers: what runs there, between two instructions of the main thread. Does not cover: how it gets
there; see ``attach``.
"""

import os
import sys

from tlmem.recorder.api import Recorder
from tlmem.recorder.failure import CannotRecord

_running: "list[Recorder]" = []


def start(path: str, options: "dict[str, object]") -> "dict[str, object]":
    """Begins to record this process; what it has allocated before is not known."""
    recorder = Recorder(path, **options)  # type: ignore[arg-type]
    recorder.start()
    from tlmem.recorder import session

    if session.active is not None:
        session.active.note("attached", "1")
        session.active.note("command", " ".join(sys.orig_argv))
    _running.append(recorder)
    return {"path": os.path.abspath(path)}


def stop() -> "dict[str, object]":
    """Ends the recording that ``start`` began."""
    from tlmem.recorder import session

    active = session.active
    if not _running or active is None:
        raise CannotRecord("nothing was recording it; tlmem attach starts a recording.")
    path = active.path
    while _running:
        _running.pop().stop()
    return {"path": path}
