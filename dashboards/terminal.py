"""The terminal is taken once, whatever stops and continues the process.

Covers: a process that is continued without the application having stopped. Does not cover: what the
application draws; see ``app``. See also: ``escape``, for keys.
"""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver


class TerminalDriver(LinuxDriver):
    """Textual's driver, which also outlives ``kill -STOP`` and ``kill -CONT``.

    Ctrl+Z gives the terminal back before the process stops. Nobody asks before SIGSTOP, and behind
    it SIGCONT would take the terminal a second time: two threads would read keys, of which the
    first to be waited for never ends, and what would be restored at the end is the state in which
    keys are not echoed.
    """

    _has_terminal = False

    def start_application_mode(self) -> None:
        """Takes the terminal; one that was never released is released first."""
        if self._has_terminal:
            self.stop_application_mode()
            self._must_signal_resume = True  # the application draws all of its screen again
        self._has_terminal = True
        super().start_application_mode()

    def stop_application_mode(self) -> None:
        """Releases the terminal as it was."""
        self._has_terminal = False
        super().stop_application_mode()
