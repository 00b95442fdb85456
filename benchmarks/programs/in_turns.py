"""Works when it is asked to: ``in_turns.py PROGRAM WORDS...``.

The program's ``prepare(*words)`` returns its loops by name: functions that do as many units as they
are given. Each line of standard input is a name and a number; the answer is ``turn SPENT``, CPU
seconds of the process. A program with a function ``spent`` says itself how long the work of the
last turn took: what it starts and stops around the work is left out.
"""

import importlib.util
import sys
import time
from types import ModuleType


def load(path: str) -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answers until standard input ends."""
    program = load(sys.argv[1])
    loops = program.prepare(*sys.argv[2:])
    spent = getattr(program, "spent", None)
    print("turn ready", flush=True)
    for line in sys.stdin:
        name, count = line.split()
        began = time.process_time()
        loops[name](int(count))
        print("turn", spent() if spent else time.process_time() - began, flush=True)


main()
