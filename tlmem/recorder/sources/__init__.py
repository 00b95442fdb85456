"""The sources of events, a module for each.

In: the options of a recording. Out: events and samples in the log, and notes about them.
May import: recorder.
Third-party: none.

What tlmem's own runtime does needs no module here: the C core records it in every recording.
NumPy's and PyTorch's are installed when they are imported.
"""

from typing import TYPE_CHECKING, Any

from tlmem.recorder.bound import STEADY

if TYPE_CHECKING:
    from tlmem.recorder.options import Options

globals()["__builtins__"] = STEADY  # of the functions below

NAMES = ("runtime", "numpy", "torch")
"""What ``--source`` can name. ``runtime`` is recorded in any case."""


class Source:
    """One source: ``prepare`` and ``install`` when a recording starts, then ``end`` and ``remove``.

    The methods of this class do nothing.
    """

    name = ""

    def prepare(self, request: Any) -> None:
        """Before the recording starts; ``request`` is the ``tlm_recording_options`` it gets."""

    def cancel(self) -> None:
        """Instead of ``install``, when the recording cannot be started: undoes ``prepare``."""

    def install(self) -> None:
        """After the recording has started: events may come from here on."""

    def notes(self) -> dict[str, str]:
        """Texts for the file about how the source is set up."""
        return {}

    def end(self) -> None:
        """When the program's code has ended, while what it used is still there."""

    def remove(self) -> None:
        """Before the file is sealed: no event comes after this."""


def chosen(options: "Options") -> list[Source]:
    """The sources of one recording, in the order in which they are installed."""
    if not _classes:
        _load()
    found: list[Source] = [_classes["python heap"](), _classes["resident"](options)]
    found += [_classes[name]() for name in ("numpy", "torch") if name in options.sources]
    if options.heap_rate_bytes:
        found.append(_classes["heap"](options))
    if options.quarantine_bytes:
        if "quarantine" not in _classes:  # a child has what its parent has, and imports nothing
            from tlmem.recorder.sources.quarantine import Quarantine

            _classes["quarantine"] = Quarantine
        found.append(_classes["quarantine"](options))
    return found


_classes: dict[str, Any] = {}


def _load() -> None:
    from tlmem.recorder.sources.heap import Heap
    from tlmem.recorder.sources.numpy import Numpy
    from tlmem.recorder.sources.python_heap import PythonHeap
    from tlmem.recorder.sources.resident import ResidentMemory
    from tlmem.recorder.sources.torch import Torch

    _classes.update({"python heap": PythonHeap, "resident": ResidentMemory, "heap": Heap})
    _classes.update({"numpy": Numpy, "torch": Torch})
