"""Python's own heap: how many bytes its allocators have handed out."""

from typing import Any

from tlmem.recorder.bound import STEADY, core
from tlmem.recorder.sources import Source

globals()["__builtins__"] = STEADY  # of the functions below


class PythonHeap(Source):
    """Counters around Python's allocators, which memory samples read."""

    _is_ours = False

    def prepare(self, request: Any) -> None:
        # Before the recording starts, so that its first sample knows Python's heap.
        self._is_ours = core.lib.tlm_pyheap_install() == core.lib.TLM_OK

    def cancel(self) -> None:
        if self._is_ours:  # else a recording that is running counts it
            core.lib.tlm_pyheap_uninstall()

    def remove(self) -> None:
        core.lib.tlm_pyheap_uninstall()
