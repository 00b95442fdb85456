"""The stack of every allocation and free is the one the program itself sees at that moment.

The recorded program writes down its own stacks. An array's size, a number used once, says which
event a stack belongs to.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support import programs

import tlmem

PROGRAM = r"""
import asyncio, concurrent.futures, json, os, sys, threading
import numpy as np

here = os.getcwd()
truth = []
sizes = iter(range(4001, 10**6))

def stack(frame, moved):
    found = []
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        path = name if name[0] in "/<" else os.path.normpath(os.path.join(here, name))
        found.append([path, frame.f_lineno - moved, code.co_qualname])
        frame, moved = frame.f_back, 0
    return found

def array():
    size = next(sizes)
    made = np.empty(size, np.uint8)
    truth.append(["alloc", size, stack(sys._getframe(), 1)])
    made = None
    truth.append(["free", size, stack(sys._getframe(), 1)])

def down(n):
    if n:
        return down(n - 1)
    array(); array()

def numbers(n):
    for i in range(n):
        array()
        yield i

class Value:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        array()
        return self.value < other.value

    @property
    def größe(self):
        return [array() for _ in range(2)]

async def wait(n):
    array()
    await asyncio.sleep(0)
    if n:
        await wait(n - 1)
    array()

async def main():
    await asyncio.gather(*(wait(3) for _ in range(3)))

def made_at_run_time(i):
    text = "\n" * (i % 4) + "def f(call):\n    call()\nf(array)\n"
    exec(compile(text, ["<made>", "beside/made.py", "./made.py"][i % 3], "exec"), {"array": array})

def everything(n):
    for i in range(n):
        down(i % 40)
        list(numbers(2))
        sorted([Value(3), Value(1), Value(2)])
        Value(0).größe
        made_at_run_time(i)
        list(map(down, range(3)))
    asyncio.run(main())

everything(45)
os.chdir("/")  # relative file names are meant as they were at the start
made_at_run_time(1)
team = [threading.Thread(target=everything, args=(15,)) for _ in range(3)]
for one in team:
    one.start()
for one in team:
    one.join()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(down, range(30)))
with open(os.path.join(here, sys.argv[1]), "w") as file:
    json.dump(truth, file)
"""


def record(
    folder: Path, program: str, *arguments: str, options: tuple[str, ...] = ()
) -> tlmem.Recording:
    """The recording of a program kept in a file of its own."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    result = programs.recorded(
        ["program.py", *arguments], folder, options=("-q", "-o", "made.tlm", *options)
    )
    assert (result.returncode, result.stderr.decode()) == (0, "")
    return tlmem.read(folder / "made.tlm")


def recorded_stacks(recording: tlmem.Recording) -> dict[tuple[str, int], list[list[Any]]]:
    """Stack by what happened and the array's size, of arrays that have a size of their own."""
    objects = recording.objects
    once = objects[~objects.size_bytes.duplicated(keep=False)]
    sites = {row.Index: row for row in recording.sites.itertuples()}

    def frames(site: int) -> list[list[Any]]:
        found = []
        while site > 1:
            row = sites[site]
            found.append([row.file, row.line, row.function])
            site = row.parent
        return found

    found = {("alloc", row.size_bytes): frames(row.born_site) for row in once.itertuples()}
    found |= {("free", row.size_bytes): frames(row.died_site) for row in once.itertuples()}
    return found


@pytest.mark.parametrize("depth", [64, 5])
def test_stacks_are_those_the_program_sees(tmp_path: Path, depth: int) -> None:
    recording = record(tmp_path, PROGRAM, "truth.json", options=("--stack-depth", str(depth)))
    found = recorded_stacks(recording)
    truth = json.loads((tmp_path / "truth.json").read_text())

    assert len(truth) > 2000
    wrong = [
        (kind, size, found.get((kind, size)), expected[:depth])
        for kind, size, expected in truth
        if found.get((kind, size)) != expected[:depth]
    ]
    assert wrong[:2] == []


def test_no_depth_means_no_stacks(tmp_path: Path) -> None:
    program = "import numpy as np\nkept = [np.empty(5001) for _ in range(10)]\n"
    recording = record(tmp_path, program, options=("--stack-depth", "0"))

    assert set(recording.events.site) == {0}
    assert (recording.objects.size_bytes == 8 * 5001).sum() == 10


def test_code_that_dies_is_not_kept_and_not_mistaken_for_its_successor(tmp_path: Path) -> None:
    program = """
import weakref
import numpy as np
alive, kept = [], []
for i in range(3000):
    scope = {"np": np}
    text = f"def made_{i}(): return np.empty({i} + 4001, np.uint8)"
    exec(compile(text, f"<made {i}>", "exec"), scope)
    made = scope.pop(f"made_{i}")
    kept.append(made())
    alive.append(weakref.ref(made.__code__))
del made
assert sum(code() is not None for code in alive) == 0
"""
    recording = record(tmp_path, program)
    found = recorded_stacks(recording)

    for i in range(3000):
        file, line, function = found["alloc", 4001 + i][0]
        assert (file, line, function) == (f"<made {i}>", 1, f"made_{i}")


def test_code_made_again_and_again_is_named_once(tmp_path: Path) -> None:
    program = """
import numpy as np
texts = ["kept = np.empty(8001)", "\\n\\nkept = np.empty(8002)"]
for i in range(2000):
    exec(texts[i % 2])
"""
    recording = record(tmp_path, program)
    found = recording.objects[recording.objects.size_bytes.isin([8 * 8001, 8 * 8002])]

    assert len(recording.sites) < 1000
    assert found.born_site.nunique() < 10  # an instruction that was specialised counts as another
    lines = {recording.stack(int(site))[0]["line"] for site in found.born_site.unique()}
    assert lines == {1, 3}


def test_names_of_any_characters_are_read_back(tmp_path: Path) -> None:
    names = ["größe", "変数", "𝒻", "x" * 2000]
    program = "import numpy as np\nkept = []\n"
    for number, name in enumerate(names):
        program += f"def {name}(): kept.append(np.empty({number} + 7001, np.uint8))\n{name}()\n"
    lone = r"exec(compile('kept.append(np.empty(7501, np.uint8))', 'ä\udc80.py', 'exec'))"
    found = recorded_stacks(record(tmp_path, program + lone))

    functions = [found["alloc", 7001 + number][0][2] for number in range(3)]
    assert functions == ["größe", "変数", "f"]  # Python itself writes the third one as f
    assert found["alloc", 7004][0][2].startswith("x" * 1000)
    assert found["alloc", 7501][0][0].startswith(str(tmp_path / "ä"))


def test_a_mark_has_the_stack_of_its_caller(tmp_path: Path) -> None:
    program = (
        "import tlmem\ndef never_seen_before():\n    tlmem.mark('here')\nnever_seen_before()\n"
    )
    recording = record(tmp_path, program)
    marks = recording.marks

    assert list(marks.label) == ["here"]
    callers = [f for f in recording.stack(marks.site[0]) if f["file"].endswith("program.py")]
    assert [(f["line"], f["function"]) for f in callers] == [
        (3, "never_seen_before"),
        (4, "<module>"),
    ]


def test_frees_after_the_last_frame_have_no_stack(tmp_path: Path) -> None:
    program = "import sys\nimport numpy as np\nsys.kept = np.empty(9001, np.uint8)\n"
    recording = record(tmp_path, program)
    row = recording.objects[recording.objects.size_bytes == 9001].iloc[0]

    assert recording.stack(int(row.born_site))[0]["line"] == 3
    assert row.died_ns == -1 or recording.stack(int(row.died_site)) == []


def test_a_profiler_and_a_tracer_change_nothing(tmp_path: Path) -> None:
    program = """
import sys
import numpy as np
def made(): return np.empty(8001, np.uint8)
def traced(frame, event, argument): return traced
sys.settrace(traced)
a = made()
sys.settrace(None)
sys.setprofile(lambda *all: None)
b = made()
"""
    recording = record(tmp_path, program)
    births = recording.objects[recording.objects.size_bytes == 8001]

    stacks = [[(f["line"], f["function"]) for f in recording.stack(s)] for s in births.born_site]
    assert stacks == [[(4, "made"), (7, "<module>")], [(4, "made"), (10, "<module>")]]


def test_functions_that_are_new_while_the_lock_is_released_are_in_the_stack(tmp_path: Path) -> None:
    program = """
import tlmem
from tlmem._native import ffi, lib
made = ffi.new("tlm_object *")
def inner():
    lib.tlm_object_alloc(lib.TLM_DEVICE_CPU, 64, made)
def outer():
    inner()
lib.tlm_object_alloc(lib.TLM_DEVICE_CPU, 64, made)
outer()
"""
    recording = record(tmp_path, program)
    births = recording.events.query("kind == 1 and device == 16")

    stacks = [[(f["line"], f["function"]) for f in recording.stack(s)] for s in births.site]
    assert stacks == [
        [(9, "<module>")],
        [(6, "inner"), (8, "outer"), (10, "<module>")],
    ]
