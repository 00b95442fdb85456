"""While the main thread waits and others work, what they hold is found; all else is the same."""

import signal
from pathlib import Path

import pytest
from support.programs import assert_same, recorded

import tlmem
from tlmem.analysis import analyse

WORKER = """
import os
import queue
import signal
import threading
import time

import numpy as np


def work():
    kept = []
    for number in range(1500):
        kept.append(np.full(1000, number))
        time.sleep(0.001)


thread = threading.Thread(target=work, daemon=True)
thread.start()
"""
WAYS = {
    "join": "thread.join()",
    "event": "threading.Event().wait(1.4)",
    "queue": "try:\n    queue.Queue().get(timeout=1.4)\nexcept queue.Empty:\n    pass",
    "sleep": "time.sleep(1.4)",
    "pipe": "ends = os.pipe()\n"
    "threading.Timer(1.4, os.write, (ends[1], b'.')).start()\n"
    "os.read(ends[0], 1)",
}


@pytest.mark.parametrize("wait", WAYS.values(), ids=WAYS)
def test_what_a_thread_holds_is_found_while_the_main_thread_waits(
    wait: str, tmp_path: Path
) -> None:
    (tmp_path / "x.py").write_text(f"{WORKER}{wait}\n")
    recorded(["x.py"], tmp_path, options=("-q", "-o", "x.tlm"))
    found = analyse(tlmem.read(tmp_path / "x.tlm"))

    names = [holder.name for finding in found.findings for holder in finding.holders]
    assert any("list 'kept' (local variable of work() at x.py:" in name for name in names), names


def test_of_a_program_that_is_killed_while_it_waits_holders_are_known(tmp_path: Path) -> None:
    killer = "threading.Timer(1.4, os.kill, (os.getpid(), signal.SIGKILL)).start()\nthread.join()\n"
    (tmp_path / "x.py").write_text(WORKER + killer)
    ended = recorded(["x.py"], tmp_path, options=("-q", "-o", "x.tlm"))
    holdings = tlmem.read(tmp_path / "x.tlm").holdings

    assert ended.returncode == -signal.SIGKILL
    assert len(holdings) > 0


FORKS = """
import os
import threading
import time

import numpy as np

kept, codes = [], []


def work():
    for number in range(300):
        kept.append(np.full(2000, number))
        time.sleep(0.003)


def fork():
    for number in range(60):
        child = os.fork()
        if child == 0:
            os._exit(number % 7)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        time.sleep(0.015)


threads = [threading.Thread(target=each) for each in (work, work, fork)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(kept), codes == [number % 7 for number in range(60)])
"""
FORKS_AFTER_A_PAUSE = """
import os
import time
import warnings

import numpy as np

kept, warned = [], 0
for number in range(12):
    kept.append(np.full(60_000 * (number + 1), number))
    time.sleep(0.13)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        warned += len(caught)
print(warned)
"""
ENDS = """
import threading
import time

import numpy as np


def work():
    kept = []
    while True:
        kept.append(np.full(3000, 1))
        time.sleep(0.0005)


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.9)
print("end")
"""
SIGNALS = """
import signal
import threading
import time

import numpy as np

seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.current_thread().name))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)


def work():
    kept = []
    for number in range(1000):
        kept.append(np.full(1000, number))
        time.sleep(0.0005)


thread = threading.Thread(target=work)
thread.start()
thread.join()
began = time.monotonic()
print(threading.Event().wait(0.5), time.monotonic() - began >= 0.5)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(seen) > 5, set(seen), sorted(each.name for each in threading.enumerate()))
"""


@pytest.mark.parametrize(
    "source",
    [FORKS, FORKS_AFTER_A_PAUSE, ENDS, SIGNALS],
    ids=["forks", "forks after a pause", "ends", "signals"],
)
def test_the_program_notices_nothing(source: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(source)

    assert_same(["x.py"], tmp_path, ["-W", "ignore::DeprecationWarning"])
