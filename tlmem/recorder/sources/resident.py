"""Samples of the process' memory: resident, and on request proportional, private and page faults.

The C core's service thread takes them; here it is only asked to.
"""

from typing import Any

from tlmem.recorder.bound import STEADY
from tlmem.recorder.options import Options
from tlmem.recorder.sources import Source

globals()["__builtins__"] = STEADY  # of the functions below


class ResidentMemory(Source):
    """Samples at the interval that the options name, and at start and end."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def prepare(self, request: Any) -> None:
        request.sample_ms = self._options.rss_interval_ms
        request.sample_smaps = self._options.smaps

    def notes(self) -> dict[str, str]:
        return {"rss_interval_ms": str(self._options.rss_interval_ms)}
