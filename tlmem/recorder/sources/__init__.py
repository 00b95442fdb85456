"""The sources of events, a module for each.

In: the options of a recording. Out: events and samples in the log, and notes about them.
May import: recorder. Inside functions: _native.
Third-party: none.

What tlmem's own runtime does needs no module here: the C core records it in every recording.
``imports`` calls a source when the extension module that it waits for has been loaded.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tlmem.recorder.options import Options

NAMES = ("runtime", "numpy")
"""What ``--source`` can name. ``runtime`` is recorded in any case."""


class Source:
    """One source: ``prepare`` and ``install`` when a recording starts, ``remove`` when it ends.

    The methods of this class do nothing.
    """

    def prepare(self, request: Any) -> None:
        """Before the recording starts; ``request`` is the ``tlm_recording_options`` it gets."""

    def cancel(self) -> None:
        """Instead of ``install``, when the recording cannot be started: undoes ``prepare``."""

    def install(self) -> None:
        """After the recording has started: events may come from here on."""

    def notes(self) -> dict[str, str]:
        """Texts for the file about how the source is set up."""
        return {}

    def remove(self) -> None:
        """Before the file is sealed: no event comes after this."""


def chosen(options: "Options") -> list[Source]:
    """The sources of one recording, in the order in which they are installed."""
    from tlmem.recorder.sources.python_heap import PythonHeap
    from tlmem.recorder.sources.resident import ResidentMemory

    found: list[Source] = [PythonHeap(), ResidentMemory(options)]
    if "numpy" in options.sources:
        from tlmem.recorder.sources.numpy import Numpy

        found.append(Numpy())
    if options.quarantine_bytes:
        from tlmem.recorder.sources.quarantine import Quarantine

        found.append(Quarantine(options))
    return found
