"""Zombie mode: freed memory stays unreadable for a while, and a use after free is an event."""

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.options import Options
from tlmem.recorder.sources import Source

globals()["__builtins__"] = STEADY  # of the functions below


class Quarantine(Source):
    """Freed memory in quarantine.

    Attributes:
        count, bytes: freed into quarantine.
        left_count: of these, oldest ones that made room before the end.
        unguarded_count: could not have pages of their own, for want of mappings.
        touches: reads and writes caught in the act, and survived.
        written: small ones that had been written after they had been freed.

    All of them are known once it is removed.
    """

    name = "quarantine"

    def __init__(self, options: Options) -> None:
        self._limit_bytes = options.quarantine_bytes
        self._nth = options.quarantine_nth
        self.count = self.bytes = self.left_count = self.unguarded_count = 0
        self.touches = self.written = 0

    def install(self) -> None:
        core.lib.tlm_quarantine_start(self._limit_bytes, self._nth)

    def remove(self) -> None:
        core.lib.tlm_quarantine_stop()
        counters = core.ffi.new("tlm_quarantine_statistics *")
        core.lib.tlm_quarantine_stats(counters)
        self.count = int(counters.count)
        self.bytes = int(counters.bytes)
        self.left_count = int(counters.left_count)
        self.unguarded_count = int(counters.unguarded_count)
        self.touches = int(counters.touches)
        self.written = int(counters.written)
