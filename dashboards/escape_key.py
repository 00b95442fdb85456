"""Escape is answered as soon as it is certain that no other key's sequence follows.

Textual looks whether the time for the rest of a sequence is over only when its wait for input ends,
which is after a tenth of a second. Here the wait that follows a key ends when that time does.
"""

from __future__ import annotations

import selectors
from types import SimpleNamespace
from typing import Any

SLACK_S = 0.002
"""The parser looks at its clock this much after its time is over."""


def answer_escape_soon(escape_s: float) -> None:
    """Makes Textual's terminal look for Escape so long after a key; to be called before it starts.

    Where Textual waits in another way, nothing changes.
    """
    from textual.drivers import linux_driver

    def selector() -> SoonAfterKeys:
        return SoonAfterKeys(escape_s + SLACK_S)

    named = {**vars(selectors), "SelectSelector": selector}
    linux_driver.selectors = SimpleNamespace(**named)  # type: ignore[assignment]


class SoonAfterKeys(selectors.SelectSelector):
    """Waits as long as the caller asks, but after input at most ``soon_s``."""

    def __init__(self, soon_s: float) -> None:
        super().__init__()
        self._soon_s = soon_s
        self._after_input = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, Any]]:
        """What can be read."""
        if self._after_input:
            timeout = self._soon_s if timeout is None else min(timeout, self._soon_s)
        found = super().select(timeout)
        self._after_input = bool(found)
        return found
