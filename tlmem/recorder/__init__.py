"""Records a program: runs it, feeds the log from its sources of events, seals the file.

Covers: running a script as Python would, NumPy and Python-heap sources, forked and spawned
children, what is said at the end. Does not cover: the log itself (``native/``), reading it
(``tlmem.recording``).

See also: docs/how-to/record.md, docs/format.md.
"""

from tlmem.recorder.api import Recorder, mark, snapshot
from tlmem.recorder.failure import CannotRecord

__all__ = ["CannotRecord", "Recorder", "mark", "snapshot"]
