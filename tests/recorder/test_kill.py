"""``kill -9`` at random moments: every event that was committed is read back.

The program counts its own allocations and frees in a mapped file of its own, after each of them.
What the recording holds may be one more per thread, the one under way, and is never less.
"""

import os
import random
import signal
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.programs import LONGEST_S, environment_of

import tlmem
from tlmem.recording.reader import read_for_command

KILLS = 100
THREADS = 2
LONGEST_RUN_S = 0.2
FOLDED_EVENTS = 144  # where the file's header has their number
PROGRAM = """
import mmap, os, sys, threading
import numpy as np

with open("counts", "r+b") as file:
    counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")

def work(thread):
    size = 7001 + thread
    kept = []
    while True:
        kept.append(np.empty(size, np.uint8))
        counts[2 * thread] += 1
        if len(kept) > 40:
            del kept[0]
            counts[2 * thread + 1] += 1

for thread in range(1, THREADS):
    threading.Thread(target=work, args=(thread,), daemon=True).start()
os.write(1, b"ready\\n")
work(0)
"""


def has_folded(path: Path) -> bool:
    """Whether the file says that its oldest events are in sums by now."""
    with path.open("rb") as file:
        file.seek(FOLDED_EVENTS)
        return file.read(8) != bytes(8)


def let_run(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Waits, while the program must not end by itself."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)


def kill_once(folder: Path, wait_s: float, limit: str | None = None, *more: str) -> tuple[int, ...]:
    """Runs the program in ``folder``, kills it after a while and returns what it had counted.

    With a size limit, the while begins when the oldest events have been folded. ``more`` are
    options of the recorder.
    """
    folder.mkdir()
    (folder / "counts").write_bytes(bytes(16 * THREADS))
    program = PROGRAM.replace("THREADS", str(THREADS))
    if limit:  # sizes that do not repeat fill the file sooner
        program = program.replace("np.empty(size,", "np.empty(counts[0] * 40503 % 7000,")
    (folder / "program.py").write_text(program, encoding="utf-8")
    options = ["--max-file", limit] if limit else ["--rss-interval", "1"]
    options += more
    process = subprocess.Popen(
        [sys.executable, "-m", "tlmem", "record", "-q", "-o", "a.tlm", *options, "program.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        env=environment_of(None),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    while limit and not has_folded(folder / "a.tlm"):
        let_run(process, 0.02)
    let_run(process, wait_s)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(LONGEST_S) == -signal.SIGKILL
    process.stdout.close()
    return struct.unpack(f"<{2 * THREADS}Q", (folder / "counts").read_bytes())


def missing(folder: Path, counted: tuple[int, ...]) -> list[str]:
    """What the recording lacks, or has too much, beside what the program counted."""
    recording = tlmem.read(folder / "a.tlm")
    objects = recording.objects
    wrong = [*recording.problems] + [f"state {recording.state}"] * (recording.state != "open")
    for thread in range(THREADS):
        own = objects[objects.size_bytes == 7001 + thread]
        for what, seen, count in (
            ("allocations", len(own), counted[2 * thread]),
            ("frees", int((own.died_ns >= 0).sum()), counted[2 * thread + 1]),
        ):
            if not count <= seen <= count + 1:
                wrong.append(f"thread {thread}: {count} {what} counted, {seen} recorded")
    if recording.lost_events:
        wrong.append(f"{recording.lost_events} events lost")
    return wrong


def missing_of_folded(folder: Path, counted: tuple[int, ...]) -> list[str]:
    """The same where the oldest events are only in sums: sums per line of the program."""
    recording = tlmem.read(folder / "a.tlm")
    made = sum(counted[::2])
    total = recording.totals.total_count
    wrong = [*recording.problems]
    if recording.lost_events or not recording.folded_events:
        wrong.append(f"{recording.lost_events} events lost, {recording.folded_events} folded")
    line = 1 + PROGRAM.splitlines().index("        kept.append(np.empty(size, np.uint8))")
    sites = recording.sites
    of_line = sites.index[(sites.line == line) & sites.file.str.endswith("program.py")]
    totals = recording.site_totals.reset_index()
    seen = int(totals.alloc_count[totals.site.isin(of_line)].sum())
    if not made <= seen <= made + THREADS:
        wrong.append(f"{made} allocations counted, {seen} recorded of {total}")
    return wrong


def test_killed_program_has_lost_nothing(tmp_path: Path) -> None:
    draw = random.Random(20240)
    waits = [draw.uniform(0, LONGEST_RUN_S) for _ in range(KILLS)]

    def trial(number: int) -> list[str]:
        folder = tmp_path / str(number)
        heap = ("--heap=2kB",) if number % 4 == 0 else ()  # every few blocks
        counted = kill_once(folder, waits[number], None, *heap)
        found = missing(folder, counted)
        (folder / "a.tlm").unlink()
        return [f"kill {number} after {waits[number]:.3f} s: {text}" for text in found]

    with ThreadPoolExecutor(2) as pool:
        assert [text for found in pool.map(trial, range(KILLS)) for text in found] == []


@pytest.mark.parametrize("number", range(3))
def test_program_killed_while_its_oldest_events_are_folded_has_lost_nothing(
    number: int, tmp_path: Path
) -> None:
    counted = kill_once(tmp_path / "run", random.Random(number).uniform(0, 0.5), "8.4MB")

    assert missing_of_folded(tmp_path / "run", counted) == []
    assert (tmp_path / "run" / "a.tlm").stat().st_size <= 8_400_000


def test_a_program_of_many_threads_that_leaves_without_its_end_is_read(tmp_path: Path) -> None:
    """Each thread has a slot of its own in the file, which has room for far more events."""
    code = """
import os, threading
import numpy as np
never, kept = threading.Event(), []
def wait():
    kept.append(np.zeros(1000))
    never.wait()
for _ in range(300):
    threading.Thread(target=wait, daemon=True).start()
while len(kept) < 300:
    pass
os._exit(3)
"""
    words = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "many.tlm", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=environment_of(None), timeout=LONGEST_S)
    recording = read_for_command(tmp_path / "many.tlm")

    assert done.returncode == 3
    assert (recording.objects["size_bytes"] == 8000).sum() == 300
    assert not recording.missing_events
