"""What a recorded program would have needed under another allocator, and what keeps it from less.

In: a recording. Out: what an allocator would have reserved for its allocations and frees, on a
roomy device and on the smallest one; how well that was proven; which lines strand segments.
``settings``, ``trace`` (from the recording) < ``cuda``, ``pools`` (the C core) < ``proof``,
``answers``, ``stranded``, ``layout``. Only ``cuda`` and ``pools`` call the extension module.
``host_trace``, ``host_allocators`` < ``hosts`` run the malloc of a process in one of its own.
May import: errors, units, events, analysis, planning, _native.
Third-party: numpy, pandas.

See also: docs/how-to/replay.md, docs/decisions/replay.md, ``native/include/tlmem_replay.h``.
"""

from __future__ import annotations
