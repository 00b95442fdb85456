"""A program in a pseudo-terminal, as people run it: keys in, texts out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

COLUMNS, ROWS = 120, 40
LONGEST_S = 120.0
_ESCAPES = re.compile(
    r"\x1b\[[0-9;?:<>=]*[a-zA-Z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[()][A-Z0-9]"
)


@dataclass
class Screen:
    """A program in a pseudo-terminal, and what it has written since it was last asked."""

    pid: int
    terminal: int
    written: str = ""
    answers_s: list[float] = field(default_factory=list)

    @classmethod
    def start(cls, command: Sequence[str]) -> Screen:
        """Starts a program in a terminal of a fixed size."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
            os.execv(command[0], list(command))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        return cls(pid, terminal)

    def until(self, pattern: str) -> float:
        """Seconds until a text has been written.

        Raises:
            RuntimeError: it was not within two minutes.
        """
        began = time.perf_counter()
        while time.perf_counter() - began < LONGEST_S:
            if re.search(pattern, _ESCAPES.sub("", self.written)):
                return time.perf_counter() - began
            if select.select([self.terminal], [], [], 1.0)[0]:
                self.written += os.read(self.terminal, 1 << 16).decode("utf-8", "replace")
        raise RuntimeError(f"'{pattern}' was not shown; the last that was: {self.written[-500:]}")

    def press(self, key: str, pattern: str) -> float:
        """Seconds from a key to the text that it leads to."""
        self.written = ""
        os.write(self.terminal, key.encode())
        taken = self.until(pattern)
        self.answers_s.append(taken)
        return taken

    def end(self) -> int:
        """Presses ``q`` and returns the exit code."""
        os.write(self.terminal, b"q")
        try:
            while os.read(self.terminal, 1 << 16):
                pass
        except OSError:
            pass  # the other end of the terminal is closed
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
