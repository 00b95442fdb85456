"""Samples of what else the C allocator and Python's raw allocator hand out."""

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.options import Options
from tlmem.recorder.sources import Source

globals()["__builtins__"] = STEADY  # of the functions below


class Heap(Source):
    """One block for each so many bytes, with its stack; blocks of other sources are left out.

    The notes ``heap.rate`` and ``heap.hook`` of the recording say how they are seen.
    """

    def __init__(self, options: Options) -> None:
        self._rate_bytes, self._seed = options.heap_rate_bytes, options.heap_seed

    def install(self) -> None:
        core.lib.tlm_heap_install(self._rate_bytes, self._seed)

    def remove(self) -> None:
        core.lib.tlm_heap_uninstall()
