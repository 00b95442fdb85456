"""A recording with a size limit: single old events are gone, every sum and the live set are right.

So are estimates of sampled heap, and what is said of growth, also where the reader folds.

The program keeps its own account and writes it down just before it ends or kills itself.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tlmem.analysis import analyse
from tlmem.analysis.lifetimes import alive_at, lifetimes
from tlmem.analysis.model import HeapLine
from tlmem.analysis.places import Places
from tlmem.recording import reader
from tlmem.recording.format import checkpoint

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


KEEPING = """
import random
import numpy as np

chance, texts, arrays = random.Random(1), [], {}
for step in range(4_000_000):
    arrays[chance.randrange(500)] = np.empty(chance.randrange(1, 3000), np.uint8)
    if step % 40 == 0:
        texts.append("x" * 1000 + str(step))
"""
KEPT_BYTES, KEPT_LINE = 100_000 * 1056.0, 9


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same program, which keeps strings, recorded whole and with a size limit."""
    folder = tmp_path_factory.mktemp("keeping")
    (folder / "program.py").write_text(KEEPING)
    paths = {"whole": folder / "whole.tlm", "limited": folder / "limited.tlm"}
    limits = {"whole": [], "limited": ["--max-file", str(LIMIT_BYTES)]}
    for name, path in paths.items():
        command = [sys.executable, "-m", "tlmem", "record", "-q", "--heap", "--heap-seed", "5"]
        command += [*limits[name], "-o", str(path), str(folder / "program.py")]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    return paths


def kept_by_the_line(recording: reader.Recording) -> HeapLine:
    """What the line that keeps strings has of Python's heap when judged."""
    lines = [line for held in analyse(recording).heap for line in held.lines]
    (line,) = (one for one in lines if one.site.line == KEPT_LINE and "program" in one.site.file)
    return line


@pytest.mark.parametrize("how", ["limited", "folded by the reader"])
def test_sampled_blocks_that_are_alive_outlive_a_fold(keeping: dict[str, Path], how: str) -> None:
    whole = reader.read(keeping["whole"])
    folded = reader.read(keeping["limited"])
    if how != "limited":
        folded = reader.read(keeping["whole"], detail_events=100_000)

    assert whole.fold is None and folded.fold is not None and folded.folded_events > 1_000_000
    assert folded.event_count == folded.threads["events"].sum()
    about = kept_by_the_line(folded).about
    assert abs(about.bytes - KEPT_BYTES) < 0.3 * KEPT_BYTES  # 400 samples: six standard errors
    if how == "limited":
        assert folded.heap_from_ns > 0
    else:  # few enough that all of them are kept
        assert folded.heap_from_ns == 0
        pd.testing.assert_frame_equal(folded.heap, whole.heap)


@pytest.mark.parametrize("how", ["limited", "folded by the reader"])
def test_growth_is_judged_from_the_begin_of_the_run_whatever_was_folded(
    keeping: dict[str, Path], how: str
) -> None:
    folded = reader.read(keeping["limited"])
    if how != "limited":
        folded = reader.read(keeping["whole"], detail_events=100_000)
    verdict = analyse(folded).verdict

    assert verdict.outcome == "python", verdict.sentence
    assert f"program.py:{KEPT_LINE}" in verdict.sentence
    assert verdict.grown_bytes > 0.5 * KEPT_BYTES  # after a warm-up of 35% of the run


def test_of_many_sampled_blocks_a_reader_keeps_some_and_they_stand_for_all(
    keeping: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "MOST_HEAP", 200)
    folded = reader.read(keeping["whole"], detail_events=100_000)
    about = kept_by_the_line(folded).about

    assert folded.heap_from_ns > 0
    assert abs(about.bytes - KEPT_BYTES) < 0.8 * KEPT_BYTES  # 50 samples or more
    assert about.low < 1.5 * KEPT_BYTES and about.high > about.low
    old = folded.heap[folded.heap["born_ns"] < folded.heap_from_ns]
    stands_for = old["weight"] * -np.expm1(-old["size_bytes"] / folded.heap_rate)
    assert 2 <= stands_for.max() <= 32  # each for as many as the others, about


def test_samples_are_the_same_where_a_recording_is_read_in_parts(keeping: dict[str, Path]) -> None:
    """A part has the blocks that were alive at any time of it; the last one has all survivors."""
    limited = reader.read(keeping["limited"])
    *_, last = limited.parts(500_000)

    columns = ["address", "size_bytes", "weight", "born_ns", "born_site"]
    alive = [each.heap[each.heap["died_ns"] < 0][columns] for each in (limited, last)]
    pd.testing.assert_frame_equal(*(each.reset_index(drop=True) for each in alive))
    assert sum(part.event_count for part in limited.parts(500_000)) == (
        limited.event_count - limited.folded_events
    )


STAGES = """
import random
import numpy as np

chance = random.Random(3)

def passing(step):
    np.empty(chance.randrange(1, 3000), np.uint8), np.empty(chance.randrange(1, 3000), np.uint8)
    return step % 200 == 0

def load():
    return sum(len(p) for p in [np.full(800, 1.0) for step in range(300_000) if passing(step)])

def clean():
    return sum(len(p) for p in [np.arange(700) for step in range(300_000) if passing(step)])

def fit():
    return sum(len(p) for p in [np.ones(900) for step in range(300_000) if passing(step)])

print(load()); print(clean()); print(fit())
"""


@pytest.mark.parametrize("how", ["limited", "folded by the reader"])
def test_the_judge_knows_what_earlier_stages_kept_and_freed(tmp_path: Path, how: str) -> None:
    """Long-lived objects stay known after they were freed and folded."""
    (tmp_path / "program.py").write_text(STAGES)
    path = tmp_path / "r.tlm"
    limit = ["--max-file", str(LIMIT_BYTES)] if how == "limited" else []
    command = [sys.executable, "-m", "tlmem", "record", "-q", *limit, "-o", str(path)]
    result = subprocess.run(
        [*command, str(tmp_path / "program.py")], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    folded = reader.read(path, detail_events=None if how == "limited" else 200_000)

    assert folded.folded_events > 1_000_000
    places = Places.of(folded)
    lives = lifetimes(folded, places)
    for text in ("np.full", "np.arange"):
        line = 1 + next(n for n, code in enumerate(STAGES.splitlines()) if text in code)
        groups = [n for n, f in enumerate(places.frames) if f.line == line and "program" in f.file]
        (mine,) = np.nonzero(np.isin(lives.group, groups) & (lives.size > 1000))
        most = alive_at(lives.born[mine], lives.born[mine], lives.died[mine]).max()
        assert 1450 <= len(mine) <= 1520 and most >= 1440  # what it returns is made there, too
        assert (lives.died[mine] < lives.judged_ns).all()
