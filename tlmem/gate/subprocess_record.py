"""``tlmem record`` in a process of its own, as if the caller were the program.

Covers: passing the program's end on, also one by a signal. Does not cover: judging (``check``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

LET_THROUGH = (signal.SIGTERM, signal.SIGHUP)
"""Signals that are handed to the program; those of the terminal reach it by themselves."""


def run(words: Sequence[str], after: Callable[[], None] = lambda: None) -> int:
    """Runs ``tlmem record WORDS`` with this process' streams and returns its exit code.

    A signal that ends it ends this process too, once ``after`` has been called.
    """
    # As multiprocessing does it: what was given to this interpreter holds for the program's too.
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    child = subprocess.Popen([sys.executable, *flags, "-m", "tlmem", "record", *words])
    before = {signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    for number in LET_THROUGH:
        before[number] = signal.signal(number, lambda got, _: child.send_signal(got))
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    after()
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        sys.stderr.flush()
        os.kill(os.getpid(), -code)
    return code
