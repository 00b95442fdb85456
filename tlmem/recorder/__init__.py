"""Records a program: runs it as Python would, installs the sources of events, seals the file.

In: a program and the options of a recording. Out: a file for each of its processes, and a few lines
on stderr.
May import: errors, units, recorder.sources. Inside functions: tlmem, _native.
Third-party: none.

``run`` is the command ``tlmem record``, ``api`` is for use inside a program; both start a
``session``. ``runner`` runs programs, ``children`` follows processes, ``startup`` is
what those of ``subprocess`` begin with, ``identity`` says who they are, ``summary`` writes the
lines at the end, ``attach`` records a process from outside, ``linking`` is for programs in other
languages; ``bound`` holds what the rest uses while a program runs. The log itself is in
``native/``.
See also: docs/how-to/record.md, docs/format.md.
"""

from tlmem.recorder.api import Recorder, mark, snapshot
from tlmem.recorder.failure import CannotRecord

__all__ = ["CannotRecord", "Recorder", "mark", "snapshot"]
