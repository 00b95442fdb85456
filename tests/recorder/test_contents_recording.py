"""Snapshots tell the largest containers and arrays over untracked memory; cells are one place.

Programs are recorded as they are, and what is asserted is what their file says.
"""

import json
from pathlib import Path

import pytest
from support.programs import assert_same, recorded

import tlmem
from tlmem.analysis import Analysis, analyse

NATIVE = """
import ctypes, time
import numpy as np
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
class Native:
    def __init__(self, count):
        address = libc.malloc(8 * count)
        ctypes.memset(address, 1, 8 * count)
        self.__array_interface__ = {
            "shape": (count,), "typestr": "<f8", "data": (address, False), "version": 3,
        }
"""


def contents(body: str, folder: Path) -> dict[str, dict[str, int]]:
    """What a program's last snapshot saw: items of containers, arrays and bytes, by words."""
    (folder / "held.py").write_text(body, encoding="utf-8")
    done = recorded(["held.py"], folder, options=("-q", "-o", "a.tlm"))
    assert (done.returncode, done.stderr) == (0, b"")
    recording = tlmem.read(folder / "a.tlm")
    assert recording.problems == []
    table = recording.contents
    table = table[table["snapshot"] == table["snapshot"].max()]
    found: dict[str, dict[str, int]] = {"items": {}, "arrays": {}, "cached": {}, "bytes": {}}
    for row in table.itertuples():
        found[row.what][row.name] = row.count
        if row.what == "arrays":
            found["bytes"][row.name] = row.held_bytes
    return found


@pytest.mark.parametrize(
    ("made", "name", "items"),
    [
        ("kept = list(range(70))", "list 'kept' (module __main__)", 70),
        ("kept = {i: str(i) for i in range(70)}", "dict 'kept' (module __main__)", 70),
        ("kept = set(range(70))", "set 'kept' (module __main__)", 70),
        ("kept = tuple(range(70))", "tuple 'kept' (module __main__)", 70),
        (
            "import collections\nkept = collections.deque(range(70))",
            "deque 'kept' (module __main__)",
            70,
        ),
        (
            "class Store: kept = list(range(70))",
            "list 'kept' (class attribute of Store)",
            70,
        ),
        (
            "def f(x, cache={i: i for i in range(70)}): pass",
            "dict (default argument of f())",
            70,
        ),
        (
            "class Odd(list):\n  def __len__(self): raise SystemExit(3)\n"
            "  __bool__ = __iter__ = __len__\nkept = Odd(range(70))",
            "Odd 'kept' (module __main__)",
            70,
        ),
    ],
    ids=["list", "dict", "set", "tuple", "deque", "class", "default", "hostile"],
)
def test_a_container_is_told_with_its_items(
    made: str, name: str, items: int, tmp_path: Path
) -> None:
    assert contents(made, tmp_path)["items"][name] == items


def test_namespaces_are_no_containers(tmp_path: Path) -> None:
    body = "class A: pass\na = A()\nfor i in range(200): setattr(a, f'x{i}', i)\n"
    body += "for i in range(200): globals()[f'y{i}'] = i"
    found = contents(body, tmp_path)["items"]

    assert not any("'a'" in name or name.startswith("dict 'y") for name in found)
    assert max(found.values(), default=0) < 200


def test_arrays_over_memory_that_is_not_tracked_are_counted(tmp_path: Path) -> None:
    body = NATIVE + (
        "mine = [np.asarray(Native(100)) for _ in range(30)]\n"
        "packets = {i: np.frombuffer(bytes(500), np.uint8)[7:] for i in range(20)}\n"
    )
    found = contents(body, tmp_path)

    assert found["arrays"]["list 'mine' (module __main__)"] == 30
    assert found["bytes"]["list 'mine' (module __main__)"] == 30 * 800
    (packets,) = [name for name in found["arrays"] if "packets" in name]
    assert (found["arrays"][packets], found["bytes"][packets]) == (20, 20 * 500)


def test_memory_that_is_tracked_or_of_a_file_is_not_counted(tmp_path: Path) -> None:
    body = """
import mmap
import numpy as np
import tlmem
made = [np.ones(1000) for _ in range(5)]
views = [memoryview(a) for a in made]
kept = [np.asarray(v) for v in views] + [a[3:] for a in made]
kept += [np.frombuffer(v, np.uint8) for v in views]
kept += [tlmem.zeros(1000).numpy() for _ in range(5)]
kept += [np.asarray(tlmem.zeros(1000)) for _ in range(5)]
tensors = [tlmem.zeros(1000) for _ in range(5)]
kept += [np.frombuffer(mmap.mmap(-1, 4096), np.uint8)]
kept += [np.ndarray(4096, np.uint8, mmap.mmap(-1, 4096))]
"""
    assert contents(body, tmp_path)["arrays"] == {}


def test_programs_without_arrays_are_looked_at_as_they_run(tmp_path: Path) -> None:
    body = "import time\nkept = []\n"
    body += "while time.monotonic() % 1e9 and len(kept) < 400: kept.append('x'); time.sleep(0.005)"
    contents(body, tmp_path)
    table = tlmem.read(tmp_path / "a.tlm").contents
    counts = table[table["name"] == "list 'kept' (module __main__)"]["count"].tolist()

    assert len(counts) >= 3
    assert counts == sorted(counts)


def test_objects_are_counted_by_type_also_where_nothing_refers_to_them(tmp_path: Path) -> None:
    body = """
import ctypes, gc
class Node:
    pass
class Kept:
    def __init__(self): self.more = [self]
for _ in range(300):
    node = Node()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(node))
del node
kept = [Kept() for _ in range(200)]
texts = [str(i) for i in range(1000)]
"""
    contents(body, tmp_path)
    table = tlmem.read(tmp_path / "a.tlm").object_types
    last = table[table["snapshot"] == table["snapshot"].max()]
    found = dict(zip(last["type"], last["count"], strict=True))

    assert (found["__main__.Node"], found["__main__.Kept"]) == (300, 200)
    assert found["list"] >= 200
    assert "str" not in found
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert len(found) <= 64


def test_each_object_is_counted_once_whatever_ring_of_the_collector_it_is_in(
    tmp_path: Path,
) -> None:
    """Old, young, between and frozen; from 3.14 on Python does not show what is frozen."""
    body = """
import email.mime.text, gc, json, sys, xml.dom.minidom
gc.disable()
kinds = [type(f"Kind{i}", (), {"__slots__": ("one",)}) for i in range(30)]
def make(count):
    return [[kinds[(i * i + j) % 30]() for j in range(3)] for i in range(count)]
def fill(things):
    for thing in (t for three in things for t in three): thing.one = [thing]
frozen = make(7000); fill(frozen)
if sys.version_info < (3, 14): gc.freeze()
old = make(5000); fill(old); gc.collect()
between = {i: make(1) for i in range(1000)}; gc.collect(0)
for three in between.values(): fill(three)
young = make(3000); fill(young[::2])
made = [0] * 30
for thing in gc.get_objects() + [t for three in frozen for t in three]:
    if type(thing) in kinds: made[kinds.index(type(thing))] += 1
print(made)
"""
    (tmp_path / "held.py").write_text(body, encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    assert (done.returncode, done.stderr) == (0, b"")
    table = tlmem.read(tmp_path / "a.tlm").object_types
    last = table[table["snapshot"] == table["snapshot"].max()]
    found = dict(zip(last["type"], last["count"], strict=True))

    made = json.loads(done.stdout)
    assert sum(made) == 3 * (7000 + 5000 + 1000 + 3000)
    assert [found.get(f"__main__.Kind{i}", 0) for i in range(30)] == made


def judged(body: str, folder: Path) -> Analysis:
    (folder / "held.py").write_text(body, encoding="utf-8")
    done = recorded(["held.py"], folder, options=("-q", "-o", "a.tlm"))
    assert (done.returncode, done.stderr) == (0, b"")
    return analyse(tlmem.read(folder / "a.tlm"))


CELLS = """
import time
import numpy as np
Out = {{}}
ns = {{"np": np, "Out": Out}}
for i in range(300):
    exec(compile(f"{cell}", f"<ipython-input-{{i}}-abc>", "exec"), ns)
    time.sleep(0.002)
"""


def test_cells_that_fill_a_dict_are_a_leak_that_the_dict_holds(tmp_path: Path) -> None:
    found = judged(CELLS.format(cell="Out[{i}] = np.ones(5000)"), tmp_path)
    (line,) = [finding for finding in found.findings if finding.kind == "growing-site"]

    assert found.verdict.outcome == "leak"
    assert "Leak at 300 cells run at held.py:7: " in found.verdict.sentence
    assert found.verdict.sentence.endswith(" Held by dict 'Out' (module __main__, 300 items).")
    assert any(frame.file.startswith("<ipython-input-") for frame in line.stack)


def test_cells_that_overwrite_a_variable_are_healthy(tmp_path: Path) -> None:
    assert judged(CELLS.format(cell="x = np.ones(5000)"), tmp_path).verdict.outcome == "stable"


def test_the_verdict_names_the_list_of_arrays_over_native_memory(tmp_path: Path) -> None:
    body = NATIVE + (
        "results = []\n"
        "for _ in range(300):\n    results.append(np.asarray(Native(4000)))\n    time.sleep(0.008)"
    )
    found = judged(body, tmp_path)

    assert found.verdict.outcome == "native"
    assert "NumPy did not allocate are held by list 'results' (module __main__" in (
        found.verdict.sentence
    )


def test_a_look_at_containers_changes_nothing(tmp_path: Path) -> None:
    """Sizes are read where containers have them: no method of the program is called."""
    body = """
import gc, sys
import tlmem
class Loud(dict):
    def __len__(self): print("len"); return 5
    def __iter__(self): print("iter"); return iter(())
    def __hash__(self): print("hash"); return 1
    def __eq__(self, other): print("eq"); return True
kept, others = Loud({i: i for i in range(50)}), {frozenset(range(n)) for n in range(40)}
counts = [sys.getrefcount(kept), sys.getrefcount(others), len(gc.get_referents(others))]
tlmem.snapshot()
print(counts == [sys.getrefcount(kept), sys.getrefcount(others), len(gc.get_referents(others))])
"""
    (tmp_path / "held.py").write_text(body, encoding="utf-8")
    assert_same(["held.py"], tmp_path)


CACHES = """
import functools, gc, time
@functools.lru_cache(maxsize=300)
def few(key): return {"key": key}
@functools.lru_cache(maxsize=None)
def all(key): return {"key": key}
@functools.lru_cache(maxsize=90_000)
def far(key): return [key]
@functools.lru_cache(maxsize=900, typed=True)
def typed(key, word=""): return [key]
for i in range(700):
    few(i), all(i), far(i), typed(i % 400, word="x")
kinds = [c for c in gc.get_objects() if type(c) is functools._lru_cache_wrapper]
infos = [c.cache_info() for c in kinds if c.cache_info().maxsize]
infos = [i for i in infos if i.currsize >= i.maxsize // 4]
with open("truth", "w") as file:
    print(sum(i.currsize for i in infos), sum(i.maxsize for i in infos), file=file)
"""


def test_what_caches_with_a_bound_have_is_counted(tmp_path: Path) -> None:
    found = contents(CACHES, tmp_path)
    (row,) = tlmem.read(tmp_path / "a.tlm").contents.query("what == 'cached'").tail(1).itertuples()
    items, most = map(int, (tmp_path / "truth").read_text().split())

    assert items >= 700 and found["cached"] == {"lru_caches with a bound": row.count}
    assert row.count == pytest.approx(items, abs=50)  # the recorder's end imports modules
    assert row.most == pytest.approx(most, rel=0.2)
    assert found["items"]["lru_cache of few() (module __main__)"] == 300
    assert found["items"]["lru_cache of typed() (module __main__)"] == 400


FILLING = """
import functools, random, time
@functools.lru_cache(maxsize=100_000)
def load(key): return {"key": str(key) * 20, "pair": [key, key + 1]}
kept = []
for _ in range(400):
    for _ in range(200):
        {work}
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("work", "outcome"),
    [
        ("load(random.random())", "cannot-judge"),
        ("kept.append({'key': str(load(1)) * 20, 'pair': [random.random()]})", "python"),
    ],
)
def test_objects_that_fill_an_lru_cache_are_not_called_a_leak(
    work: str, outcome: str, tmp_path: Path
) -> None:
    analysis = judged(FILLING.replace("{work}", work), tmp_path)

    assert analysis.verdict.outcome == outcome
    kinds = {finding.kind for finding in analysis.findings}
    assert ("filling-cache" in kinds) == (outcome == "cannot-judge")
