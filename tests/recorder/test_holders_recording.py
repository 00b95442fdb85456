"""Who holds arrays is found in the program's own objects, while it runs and at its end.

Programs are recorded as they are; what is asserted is what their file says of chains.
"""

import sys
from pathlib import Path

import pytest
from support.programs import recorded, run

import tlmem

BYTES = 8000
"""Of ``numpy.ones(1000)``."""

HOLDERS = {
    "module variable": ("x = np.ones(1000)", "module __main__ x"),
    "list": ("rows = [np.ones(1000)]", "module __main__ rows / list list [0]"),
    "list of several": (
        "rows = [np.ones(500), np.ones(500)]",
        "module __main__ rows / list list []",
    ),
    "tuple in dict": (
        "kept = {'a': (None, np.ones(1000))}",
        "module __main__ kept / dict dict ['a'] / tuple tuple [1]",
    ),
    "keys": (
        "kept = {3: np.ones(500), 4: np.ones(500)}",
        "module __main__ kept / dict dict []",
    ),
    "set": (
        "class A(np.ndarray):\n  __hash__ = object.__hash__\n"
        "kept = {np.ones(1000).view(A)}\nkept = frozenset(kept)",
        "module __main__ kept / set frozenset [] / view __main__.A base",
    ),
    "deque": (
        "import collections\nkept = collections.deque([np.ones(1000)])",
        "module __main__ kept / deque collections.deque []",
    ),
    "defaultdict": (
        "import collections\nkept = collections.defaultdict(list)\nkept[1].append(np.ones(1000))",
        "module __main__ kept / dict collections.defaultdict [1] / list list [0]",
    ),
    "instance": (
        "class A: pass\na = A()\na.grid = np.ones(1000)",
        "module __main__ a / instance __main__.A grid",
    ),
    "instance with a dict": (
        "class A: pass\na = A()\na.grid = np.ones(1000)\na.__dict__",
        "module __main__ a / instance __main__.A grid",
    ),
    "slots": (
        "class A: __slots__ = ('b', 'grid')\na = A()\na.grid = np.ones(1000)",
        "module __main__ a / instance __main__.A grid",
    ),
    "list subclass": (
        "class L(list): pass\nkept = L()\nkept.extra = np.ones(1000)",
        "module __main__ kept / instance __main__.L extra",
    ),
    "class": (
        "class A: pool = [np.ones(1000)]",
        "module __main__ A / class __main__.A pool / list list [0]",
    ),
    "closure": (
        "def make():\n  store = [np.ones(1000)]\n  return lambda: store\nf = make()",
        "module __main__ f / closure __main__.make.<locals>.<lambda> store / list list [0]",
    ),
    "default": (
        "def f(x=[np.ones(1000)]): pass",
        "module __main__ f / instance function __main__.f __defaults__ / tuple tuple [0] "
        "/ list list [0]",
    ),
    "lru_cache": (
        "import functools\n@functools.lru_cache\ndef load(n): return np.ones(n)\nload(1000)",
        "module __main__ load / lru_cache __main__.load []",
    ),
    "unbounded cache": (
        "import functools\n@functools.cache\ndef load(n): return np.ones(n)\nload(1000)",
        "module __main__ load / lru_cache __main__.load []",
    ),
    "partial": (
        "import functools\nf = functools.partial(print, np.ones(1000))",
        "module __main__ f / method functools.partial args / tuple tuple [0]",
    ),
    "bound method": (
        "class A:\n  def __init__(self): self.grid = np.ones(1000)\n  def m(self): pass\nf = A().m",
        "module __main__ f / method method __self__ / instance __main__.A grid",
    ),
    "view": ("head = np.ones(1000)[:3]", "module __main__ head / view numpy.ndarray base"),
    "memoryview": ("m = memoryview(np.ones(1000))", "module __main__ m / view memoryview base"),
    "array of objects": (
        "box = np.empty(3, dtype=object)\nbox[2] = np.ones(1000)",
        "module __main__ box / object_array numpy.ndarray [2]",
    ),
    "thread-local": (
        "import threading\nlocal = threading.local()\nlocal.grid = np.ones(1000)",
        "module __main__ local / thread _thread._local grid",
    ),
    "exception": (
        "def f():\n  grid = np.ones(1000)\n  raise ValueError\n"
        "try: f()\nexcept ValueError as e: kept = e",
        "module __main__ kept / exception ValueError __traceback__ / local f:5 grid",
    ),
    "frame": (
        "import sys\ndef f():\n  grid = np.ones(1000)\n  sys.exit()\nf()",
        "exception SystemExit __traceback__ / local f:6 grid",
    ),
    "generator": (
        "def g():\n  grid = np.ones(1000)\n  yield 1\nit = g()\nnext(it)",
        "module __main__ it / generator g:5 grid",
    ),
    "coroutine": (
        "import types\n@types.coroutine\ndef pause(): yield\n"
        "async def c():\n  grid = np.ones(1000)\n  await pause()\nit = c()\nit.send(None)",
        "module __main__ it / generator c:8 grid",
    ),
    "cycle": (
        "import gc\ngc.disable()\n"
        "class N: pass\ndef f():\n  a, b = N(), N()\n  a.b = b\n  b.kept = [a]\n"
        "  a.grid = np.ones(9000)\nf()",
        "cycle __main__.N N.b -> N.kept[] -> N / instance __main__.N grid",
    ),
}


def program(body: str) -> str:
    """A program: ``body`` below the import of NumPy, which is line 2."""
    return f"\nimport numpy as np\n{body}\n"


def chains(path: Path, trigger: str = "end") -> dict[str, tuple[int, int, int]]:
    """Chain in words -> arrays, held and used bytes, of the last snapshot of a kind in a file."""
    recording = tlmem.read(path)
    groups = recording.holdings[recording.holdings.trigger == trigger]
    groups = groups[groups.snapshot == groups.snapshot.max()]
    steps = recording.holding_steps.groupby(["snapshot", "group"])
    found = {}
    for group in groups.itertuples():
        texts = []
        for step in steps.get_group((group.snapshot, group.group)).itertuples():
            name, _, place = step.type.partition("\n")
            line = ":" + place.rpartition("\n")[2] if place else ""
            texts.append(f"{step.kind} {name}{line} {step.edge}".rstrip())
        found[" / ".join(texts)] = (group.arrays, group.held_bytes, group.used_bytes)
    return found


@pytest.mark.parametrize(("body", "expected"), HOLDERS.values(), ids=HOLDERS)
def test_a_chain_names_what_holds(body: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    found = chains(tmp_path / "a.tlm")

    assert (done.returncode, done.stderr) == (0, b"")
    assert expected in found
    assert found[expected][1] in (BYTES, 9 * BYTES)


@pytest.mark.parametrize(
    ("made", "most"),
    [
        ("collections.deque([np.ones(1000)] * 3, maxlen=7)", 7),
        ("collections.deque([np.ones(1000)] * 3)", 0),
        ("type('Replay', (collections.deque,), {})([np.ones(1000)] * 3, 7)", 0),
        ("functools.lru_cache(lambda n: np.ones(n + 1000))", 128),
        ("functools.lru_cache(9)(lambda n: np.ones(n + 1000))", 9),
        ("functools.lru_cache(9, True)(lambda n: np.ones(n + 1000))", 9),
        ("functools.cache(lambda n: np.ones(n + 1000))", 0),
    ],
)
def test_the_bound_of_a_container_is_known(made: str, most: int, tmp_path: Path) -> None:
    body = f"import collections, functools\nkept = {made}\nif callable(kept): kept(1), kept(2)"
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    table = tlmem.read(tmp_path / "a.tlm").holdings
    (bound,) = table[table["chain"].str.startswith("module __main__: kept")]["most"].unique()

    assert (done.returncode, done.stderr) == (0, b"")
    assert bound == most


def test_views_use_less_than_they_hold(tmp_path: Path) -> None:
    body = (
        "heads = [np.ones(1000)[:10] for _ in range(300)]\nwhole = np.ones(1000)\npart = whole[1:]"
    )
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    found = chains(tmp_path / "a.tlm")

    heads = found["module __main__ heads / list list [] / view numpy.ndarray base"]
    assert heads == (300, 300 * BYTES, 300 * 80)
    assert found["module __main__ whole"] == (1, BYTES, BYTES)


def test_sampled_addresses_are_objects_of_the_recording(tmp_path: Path) -> None:
    body = "rows = []\nfor i in range(200): rows.append(np.ones(1000))"
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")
    sampled = recording.holding_objects
    sampled = sampled[(sampled.snapshot == sampled.snapshot.max()) & (sampled.group == 0)]
    made = recording.objects[recording.objects.size_bytes == BYTES]

    assert len(sampled) == 64
    assert set(sampled.object) <= set(made.index)


def test_a_linked_list_of_any_length_is_one_chain(tmp_path: Path) -> None:
    body = """
class Node: pass
first = None
for i in range(50_000):
    node = Node()
    node.next, node.grid = first, np.ones(2)
    first = node
del node
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    found = chains(tmp_path / "a.tlm")

    linked = {chain: rows for chain, rows in found.items() if "Node next" in chain}
    assert sum(rows[0] for rows in linked.values()) == 49_999
    assert len(linked) <= 12


def test_tensors_of_the_runtime_have_chains_too(tmp_path: Path) -> None:
    body = """
import tlmem
class Model: pass
m = Model()
m.weights = [tlmem.zeros(1000, dtype='float64')]
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")
    group = recording.holdings[recording.holdings.device == 16].iloc[-1]
    sampled = recording.holding_objects
    sampled = sampled[(sampled.snapshot == group.snapshot) & (sampled.group == group.group)]
    tensor = recording.objects.loc[sampled.object.iloc[0]]

    assert (group.arrays, group.held_bytes) == (1, BYTES)
    assert "list" in group.chain and "weights" in group.chain
    assert tensor.size_bytes == BYTES


@pytest.mark.parametrize(
    "made",
    ["tlmem.struct({'rows': tlmem.zeros(1000)})", "tlmem.from_numpy(np.ones(1000))"],
    ids=["struct", "adopted"],
)
def test_structs_and_adopted_memory_have_chains_too(made: str, tmp_path: Path) -> None:
    body = f"import tlmem\nkept = [{made} for _ in range(30)]"
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")
    table = recording.holdings
    group = table[(table.chain == "module __main__: kept -> list of 30[] -> array")].iloc[-1]
    sampled = recording.holding_objects
    sampled = sampled[(sampled.snapshot == group.snapshot) & (sampled.group == group.group)]

    assert (group.arrays, group.device, len(sampled)) == (30, 16, 30)
    assert (recording.objects.loc[sampled.object].device == 16).all()


def test_names_that_are_not_ascii_are_whole(tmp_path: Path) -> None:
    body = "class Größe: pass\nx = Größe()\nx.länge = {'ключ': np.ones(1000)}"
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))

    expected = "module __main__ x / instance __main__.Größe länge / dict dict ['ключ']"
    assert expected in chains(tmp_path / "a.tlm")


@pytest.mark.parametrize("name", ["module", "code"])
def test_modules_and_pieces_of_code_are_searched_as_scripts_are(name: str, tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(program("rows = [np.ones(1000)]"), encoding="utf-8")
    words = ["-m", "held"] if name == "module" else ["-c", program("rows = [np.ones(1000)]")]
    recorded(words, tmp_path, options=("-q", "-o", "a.tlm"))

    assert "module __main__ rows / list list [0]" in chains(tmp_path / "a.tlm")


def test_locals_of_other_threads_are_seen(tmp_path: Path) -> None:
    body = """
import threading
there, go = threading.Event(), threading.Event()
def work():
    grid = np.ones(1000)
    there.set()
    go.wait()
threading.Thread(target=work).start()
there.wait()
import tlmem
tlmem.snapshot()
go.set()
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))

    found = chains(tmp_path / "a.tlm", "asked")
    assert [chain for chain in found if chain.startswith("local work:") and "grid" in chain]


def test_a_snapshot_is_taken_when_it_is_asked_for(tmp_path: Path) -> None:
    body = """
import tlmem
tlmem.snapshot()
with tlmem.Recorder("a.tlm"):
    rows = [np.ones(1000)]
    tlmem.snapshot()
    rows.append(np.ones(1000))
tlmem.snapshot()
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = run([sys.executable, "held.py"], tmp_path)
    name = "module __main__ rows / list list [{}]"

    assert (done.returncode, done.stderr) == (0, b"")
    assert chains(tmp_path / "a.tlm", "asked")[name.format(0)][0] == 1
    assert chains(tmp_path / "a.tlm", "end")[name.format("")][0] == 2


def test_a_killed_program_has_the_snapshots_that_were_taken(tmp_path: Path) -> None:
    body = """
import os, signal, tlmem
rows = [np.ones(1000) for _ in range(5)]
tlmem.snapshot()
os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))

    assert done.returncode == -9
    assert chains(tmp_path / "a.tlm", "asked")["module __main__ rows / list list []"][0] == 5


def test_memory_that_doubles_is_looked_at_while_the_program_runs(tmp_path: Path) -> None:
    body = """
import tlmem, time
from tlmem._native import ffi, lib
rows, counters = [], ffi.new("tlm_holders_statistics *")
deadline = time.monotonic() + 120
lib.tlm_holders_stats(counters)
first = counters.snapshots
while counters.snapshots < first + 4 and time.monotonic() < deadline:
    if len(rows) < 8 * 4 ** (counters.snapshots - first): rows.append(np.ones(20_000))
    else: time.sleep(0.001)
    lib.tlm_holders_stats(counters)
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    taken = tlmem.read(tmp_path / "a.tlm").holdings

    assert len(set(taken.snapshot[taken.trigger.isin(["doubled", "time"])])) >= 4
    assert "doubled" in set(taken.trigger)


def test_a_short_run_keeps_some_of_its_time_for_searches_for_later(tmp_path: Path) -> None:
    """Memory doubles again and again from the begin on; no search comes before 5 % may be spent."""
    body = """
import time
from tlmem._native import ffi, lib
counters, spent = ffi.new("tlm_holders_statistics *"), [0]
rows, many, size = [np.ones(40_000)], [{"n": n} for n in range(20_000)], 100_000
deadline = time.monotonic() + 0.3
while time.monotonic() < deadline:
    size = min(size * 5 // 4, 2**24)
    passing = np.empty(size)
    time.sleep(0.001)
    lib.tlm_holders_stats(counters)
    while len(spent) <= counters.snapshots: spent.append(counters.unasked_ns)
print(*spent)
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    taken = tlmem.read(tmp_path / "a.tlm").holdings
    began = taken[taken.trigger.isin(["doubled", "time"])].groupby("snapshot").time_ns.first()
    spent = [int(word) for word in done.stdout.split()]

    assert done.returncode == 0 and spent[1] > 0 and len(began) >= 1
    for number, time_ns in began.items():
        assert spent[number - 1] <= min(time_ns / 20, 20_000_000)


def test_work_much_shorter_than_the_import_before_it_is_searched(tmp_path: Path) -> None:
    """Half as long again is measured from the end of a long import, before which is no work."""
    slow = "import time\nfor _ in range(58): time.sleep(0.05)\n"
    (tmp_path / "large_library.py").write_text(slow, encoding="utf-8")
    body = """
import time
import large_library
def main():
    kept = []
    for _ in range(70):
        kept.append(np.ones(1000))
        time.sleep(0.01)
main()
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    taken = tlmem.read(tmp_path / "a.tlm").holdings
    chains = taken[taken.chain.str.contains("kept")]

    assert set(chains.trigger) == {"time"}
    assert chains.arrays.max() >= 20


def test_a_program_that_never_lets_go_of_the_gil_is_looked_at_as_it_runs(tmp_path: Path) -> None:
    """Its own look at the counters goes past cffi, which would release the lock around the call."""
    body = """
import ctypes, time
from tlmem._native import ffi, lib
counters, rows = ffi.new("tlm_holders_statistics *"), []
there = ctypes.c_void_p(int(ffi.cast("uintptr_t", counters)))
address = int(ffi.cast("uintptr_t", ffi.addressof(lib, "tlm_holders_stats")))
look = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address)
deadline = time.monotonic() + 120
look(there)
first = counters.snapshots
while counters.snapshots < first + 2 and time.monotonic() < deadline:
    if len(rows) < 300 * 4 ** (counters.snapshots - first): rows.append(np.ones(500))
    look(there)
rows += [np.ones(500) for _ in range(9000)]
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    taken = tlmem.read(tmp_path / "a.tlm").holdings
    early = taken[taken.trigger.isin(["doubled", "time"])]

    assert (done.returncode, done.stderr) == (0, b"")
    assert len(set(early.snapshot)) >= 2
    assert early.arrays.min() < taken.arrays.max() / 4


def test_what_was_asked_for_before_the_end_is_not_done_after_it(tmp_path: Path) -> None:
    """From the growth to the search at the end no bytecode runs that could let the request in."""
    body = """
import ctypes, functools, operator
from tlmem._native import ffi, lib
address = int(ffi.cast("uintptr_t", ffi.addressof(lib, "tlm_holders_now")))
search = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint64)(address)
wait, rows = ctypes.PyDLL(None).usleep, [np.empty(20_000) for _ in range(10)]
search(0, 0)
grow = functools.partial(rows.extend, map(np.empty, [20_000] * 100))
steps = [grow, functools.partial(wait, 300_000), functools.partial(search, 1, 0)]
assert list(map(operator.call, steps)) == [None, 0, 0]
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    done = recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    taken = tlmem.read(tmp_path / "a.tlm").holdings
    first_end = taken.snapshot[taken.trigger == "end"].min()

    assert (done.returncode, done.stderr) == (0, b"")
    assert "doubled" not in set(taken.trigger[taken.snapshot > first_end])


def test_marks_are_occasions_for_snapshots(tmp_path: Path) -> None:
    body = """
import tlmem, time
from tlmem._native import ffi, lib
rows, counters = [np.ones(1000)], ffi.new("tlm_holders_statistics *")
deadline = time.monotonic() + 120
while counters.snapshots < 3 and time.monotonic() < deadline:
    tlmem.mark("step")
    lib.tlm_holders_stats(counters)
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm", "--rss-interval", "0"))
    found = chains(tmp_path / "a.tlm", "mark")

    assert found["module __main__ rows / list list [0]"] == (1, BYTES, BYTES)


def test_forked_children_have_snapshots_of_their_own(tmp_path: Path) -> None:
    body = """
import os
rows = [np.ones(1000)]
if os.fork() == 0:
    child = [np.ones(1000)]
else:
    os.wait()
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    (child,) = tmp_path.glob("a.*.tlm")

    assert "module __main__ child / list list [0]" in chains(child)
    assert "module __main__ child / list list [0]" not in chains(tmp_path / "a.tlm")


def test_a_file_limit_leaves_snapshots_their_share(tmp_path: Path) -> None:
    body = """
import tlmem
named = globals()
for i in range(3000): named[f"array_{i}"] = np.ones(10)
for i in range(100): tlmem.snapshot()
"""
    (tmp_path / "held.py").write_text(program(body), encoding="utf-8")
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm", "--max-file", "8.4MB"))
    recording = tlmem.read(tmp_path / "a.tlm")
    taken = set(recording.holdings.snapshot)

    assert (tmp_path / "a.tlm").stat().st_size <= 8_400_000
    assert 10 <= len(taken) < 100
    assert "end" in set(recording.holdings.trigger)


def test_nothing_is_searched_when_it_is_switched_off(tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(program("import tlmem\nx = np.ones(9)\ntlmem.snapshot()"))
    recorded(["held.py"], tmp_path, options=("-q", "-o", "a.tlm", "--holders", "off"))
    recording = tlmem.read(tmp_path / "a.tlm")

    assert recording.holdings.empty
    assert recording.info["holders"] == "off"


def test_a_wrong_word_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    done = recorded(["-c", "print(1)"], tmp_path, options=("--holders", "maybe"))

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"'maybe'" in done.stderr and b"Traceback" not in done.stderr
