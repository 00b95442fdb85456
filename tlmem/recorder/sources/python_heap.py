"""Python's own heap: how many bytes its allocators have handed out."""

from typing import Any

from tlmem.recorder.sources import Source


class PythonHeap(Source):
    """Counters around Python's allocators, which memory samples read."""

    _is_ours = False

    def prepare(self, request: Any) -> None:
        # Before the recording starts, so that its first sample knows Python's heap.
        from tlmem._native import lib

        self._is_ours = lib.tlm_pyheap_install() == lib.TLM_OK

    def cancel(self) -> None:
        from tlmem._native import lib

        if self._is_ours:  # else a recording that is running counts it
            lib.tlm_pyheap_uninstall()

    def remove(self) -> None:
        from tlmem._native import lib

        lib.tlm_pyheap_uninstall()
