"""Who holds arrays in Python, from real recordings: whole, live and killed ones."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support import programs

import tlmem
from tlmem.analysis import analyse
from tlmem.analysis.model import Finding
from tlmem.recording.tables.chain_text import without_numbers

GROWING = """
import os, shutil, signal, sys, time
import numpy as np
import tlmem

heads = []

def table():
    return np.ones(5_000)

def main(steps):
    for step in range(steps):
        heads.append(table()[:4])
        float(np.ones(3_000).sum())
        if step % 10 == 0:
            time.sleep(0.003)

main(4000)
{ending}
"""
ON_REQUEST = """
import numpy as np
import tlmem

class Model:
    def __init__(self):
        self.cache = {}

def work():
    model = Model()
    for step in range(3000):
        model.cache[step] = np.ones(400)
        float(np.ones(3_000).sum())
    tlmem.snapshot()
    return len(model.cache)

work()
"""
WORDS = "list 'heads' (module __main__) through the view's base"


def recorded(folder: Path, text: str, *options: str) -> Path:
    """The recording of a program."""
    (folder / "program.py").write_text(text)
    programs.recorded(["program.py"], folder, options=("-q", "-f", "-o", "run.tlm", *options))
    return folder / "run.tlm"


def findings(path: Path) -> list[Finding]:
    return list(analyse(tlmem.read(path)).findings)


def holder_of(path: Path) -> str:
    """The first holder of the growing line, without numbers that change."""
    (found,) = [finding for finding in findings(path) if finding.kind == "growing-site"]
    return without_numbers(found.holders[0].name) if found.holders else ""


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "raise ValueError('over')"])
def test_the_end_of_a_run_names_who_holds_however_it_ends(tmp_path: Path, ending: str) -> None:
    path = recorded(tmp_path, GROWING.format(ending=ending))

    assert holder_of(path) == WORDS
    assert "view-pins-base" in {finding.kind for finding in findings(path)}


def test_a_killed_run_has_its_latest_snapshot(tmp_path: Path) -> None:
    ending = "os.kill(os.getpid(), signal.SIGKILL)"
    path = recorded(tmp_path, GROWING.format(ending=ending))
    recording = tlmem.read(path)

    assert not recording.sealed
    assert "end" not in set(recording.holdings["trigger"])
    assert holder_of(path) == WORDS


def told(found: Finding) -> tuple[object, ...]:
    """What a finding says of objects; samples, and the clock, go on while a file is copied."""
    holders = [replace(holder, seen_ns=None) for holder in found.holders]
    return found.kind, found.site, found.count, found.bytes, found.object, holders


TIGHT = """
import os, signal
import numpy as np

heads = []

def main():
    for _ in range(60_000):
        heads.append(np.ones(200)[:3])
        for _ in range(8):
            np.ones(30).sum()
    os.kill(os.getpid(), signal.SIGKILL)

main()
"""


def test_a_loop_that_never_gives_up_the_gil_is_searched_as_well(tmp_path: Path) -> None:
    """Before Python 3.13 the main thread does not see by itself that another one asks."""
    path = recorded(tmp_path, TIGHT)

    taken = tlmem.read(path).holdings

    assert len(taken), "no search while it ran; killed, it has none at its end"
    assert set(taken["trigger"]) <= {"doubled", "time"}
    assert holder_of(path) == WORDS


def test_a_live_file_and_the_killed_one_name_the_same_holders(tmp_path: Path) -> None:
    ending = """
tlmem.snapshot()
shutil.copy("run.tlm", "live.tlm")
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = recorded(tmp_path, GROWING.format(ending=ending))
    live = findings(tmp_path / "live.tlm")

    assert [told(found) for found in live if found.site] == [
        told(found) for found in findings(killed) if found.site
    ]
    (found,) = [finding for finding in live if finding.kind == "growing-site"]
    assert (found.holders[0].count, found.holders[0].kind) == (4000, "python")
    assert found.holders[0].name == (
        "list 'heads' (module __main__, 4,000 items) through the view's base"
    )


def test_a_snapshot_on_request_sees_what_is_gone_at_the_end(tmp_path: Path) -> None:
    path = recorded(tmp_path, ON_REQUEST)
    table = tlmem.read(path).holdings
    asked = table[table["trigger"] == "asked"].sort_values("arrays").iloc[-1]

    assert asked["words"] == (
        "dict 'cache' of Model (local variable 'model' of work() at program.py:14, 3,000 items)"
    )
    assert (asked["arrays"], asked["held_bytes"], asked["used_bytes"]) == (
        *(3000, 9_600_000, 9_600_000),
    )


def test_reports_and_histories_tell_it(tmp_path: Path) -> None:
    path = recorded(tmp_path, GROWING.format(ending="tlmem.snapshot()"))
    report = json.loads(tlmem_output(tmp_path, "report", path.name, "--format", "json"))
    growing = next(f for f in report["findings"] if f["kind"] == "growing-site")
    life = tlmem_output(tmp_path, "history", path.name, str(growing["object"]))

    assert growing["holders"][0]["kind"] == "python"
    assert growing["holders"][0]["used_bytes"] < 0.01 * growing["holders"][0]["held_bytes"]
    assert "Held in Python by list 'heads' (module __main__, 4,000 items)" in life
    assert "held by list 'heads'" in tlmem_output(tmp_path, "report", path.name)


def test_switched_off_nobody_is_named(tmp_path: Path) -> None:
    path = recorded(tmp_path, GROWING.format(ending=""), "--holders", "off")

    assert len(tlmem.read(path).holdings) == 0
    assert holder_of(path) == ""


def tlmem_output(folder: Path, *words: str) -> str:
    """What a command of tlmem prints."""
    done = programs.command(words, folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


AT_EXIT = """
import atexit, time
import numpy as np

def flush(rows, name):
    pass

class Client:
    def __init__(self, number):
        self.rows = np.ones(4_000)
        {register}
    def close(self):
        pass

def forgotten():
    pass

atexit.register(forgotten)
for number in range(400):
    client = Client(number)
    float(np.ones(3_000).sum())
    if number % 10 == 0:
        time.sleep(0.02)
    if number == 200:
        atexit.unregister(forgotten)
"""


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="what atexit calls is not known from 3.14 on"
)
@pytest.mark.parametrize(
    ("register", "holder"),
    [
        (
            "atexit.register(self.close)",
            "attribute 'rows' of Client (a bound method registered with atexit)",
        ),
        (
            "atexit.register(flush, self.rows, 'one')",
            "tuple (registered with atexit) through item 0",
        ),
        (
            "atexit.register(flush, name='one', rows=self.rows)",
            "dict (registered with atexit) through key 'rows'",
        ),
        (
            "atexit.register(lambda: self.rows)",
            "attribute 'rows' of Client (closure variable 'self' of <lambda>())",
        ),
    ],
    ids=["method", "arguments", "keywords", "closure"],
)
def test_functions_registered_with_atexit_hold_what_they_are_called_with(
    tmp_path: Path, register: str, holder: str
) -> None:
    path = recorded(tmp_path, AT_EXIT.format(register=register))
    fixes = [found.fix for found in findings(path) if found.kind == "cache-only-grows"]

    assert holder_of(path) == holder
    assert all("atexit.unregister()" in fix for fix in fixes) and fixes
