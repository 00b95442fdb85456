"""A recording with a size limit: single old events are gone, every sum and the live set are right.

The program keeps its own account and writes it down just before it ends or kills itself.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tlmem.recording import reader

LIMIT_BYTES = 8_400_000
PROGRAM = """
import json, os, random, signal, sys, threading
import numpy as np

STEPS, THREADS = 600_000, 3
kept = [{} for _ in range(THREADS)]
leaked = [[] for _ in range(THREADS)]
made = [0] * THREADS

def churn(number):
    chance = random.Random(number)
    mine = kept[number]
    for step in range(STEPS):
        mine[chance.randrange(500)] = np.empty(chance.randrange(1, 3000), np.uint8)  # kept
        made[number] += 1
        if step % 20 == 0:
            leaked[number].append(np.empty(chance.randrange(1, 100), np.uint8))  # leaked
            made[number] += 1
        if step % 50 == 0:
            grown = np.empty(100, np.uint8)  # resized from
            grown.resize(5000, refcheck=False)  # resized to
            made[number] += 2

threads = [threading.Thread(target=churn, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
arrays = {"kept": [a for d in kept for a in d.values()], "leaked": [a for l in leaked for a in l]}
truth = {name: [len(l), sum(a.nbytes for a in l)] for name, l in arrays.items()}
truth["made"] = sum(made)
with open(sys.argv[1], "w") as file:
    json.dump(truth, file)
if len(sys.argv) > 2:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def record(folder: Path, *arguments: str) -> tuple[reader.Recording, dict]:
    """The recording of the program and what it says of itself."""
    script, truth, path = folder / "program.py", folder / "truth.json", folder / "limited.tlm"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", str(path)]
    command += ["--max-file", str(LIMIT_BYTES), str(script), str(truth), *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == (-9 if arguments else 0), result.stderr
    assert path.stat().st_size <= LIMIT_BYTES
    return reader.read(path), json.loads(truth.read_text())


def live_at(recording, comment: str) -> tuple[int, int]:
    """Objects and bytes alive, allocated on the program's line with this comment."""
    line = 1 + next(
        i for i, text in enumerate(PROGRAM.splitlines()) if text.endswith(f"# {comment}")
    )
    sites = recording.sites
    here = sites.index[(sites["line"] == line) & sites["file"].str.endswith("program.py")]
    totals = recording.site_totals
    rows = totals[totals.index.isin(here)]
    return int(rows["live_count"].sum()), int(rows["live_bytes"].sum())


@pytest.mark.parametrize("end", [(), ("killed",)], ids=["sealed", "killed"])
def test_limited_recording_keeps_every_sum(tmp_path, end):
    """More was recorded than the file holds; totals and the live set are those of the program."""
    recording, truth = record(tmp_path, *end)

    assert recording.folded_events > 0
    assert recording.lost_events == 0
    assert recording.problems == []
    assert live_at(recording, "kept") == tuple(truth["kept"])
    assert live_at(recording, "leaked") == tuple(truth["leaked"])
    assert live_at(recording, "resized from") == (0, 0)
    totals = recording.totals
    assert totals.total_count - totals.freed_count == totals.current_count
    assert totals.total_count >= truth["made"]
    # NumPy makes a few hundred arrays of its own at import and while it resizes.
    assert totals.total_count - truth["made"] < 1000


def test_limited_recording_lists_the_live_set(tmp_path):
    """Each object that is alive is a row, however old, with its size and its place."""
    recording, truth = record(tmp_path)

    alive = recording.objects[recording.objects["died_ns"] < 0]
    assert alive["folded"].any()
    assert recording.fold["live_stride"] == 1
    assert len(alive) == recording.totals.current_count
    assert int(alive["size_bytes"].sum()) == recording.totals.current_bytes
    assert alive["address"].is_unique
    assert len(alive) >= truth["kept"][0] + truth["leaked"][0]
