"""Sampled blocks of native code and of Python's heap, of real programs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.heap_programs import (
    COMPILER,
    USING_IT,
    move_dynamic_section,
    with_library,
    with_library_that_is_looked_at,
)
from support.programs import plain, recorded, run

from tlmem.analysis import analyse
from tlmem.analysis.heap_samples import estimate
from tlmem.recording.reader import Recording, read

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="libraries have no slots that are known on this system"
)
STRINGS = """\
kept = []
for i in range(6000):
    kept.append("x" * 1100 + str(i))
"""

CALL = "        library.pattern(sizes, blocks, len(bytes))"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder with a library in C that allocates."""
    return with_library(tmp_path)


def heap_of(
    folder: Path, program: str, *options: str, **environment: str
) -> tuple[Recording, pd.DataFrame]:
    """The recording of a program, and its blocks with the line of the program they are from."""
    (folder / "program.py").write_text(program)
    words = ["-f", "-o", "r.tlm", *options, "program.py"]
    result = recorded(words, folder, environment=environment)
    assert result.returncode == 0, result.stderr.decode()
    recording = read(folder / "r.tlm")
    sites = recording.sites
    line = dict.fromkeys(recording.heap["born_site"].unique(), 0)
    for site in line:
        frames = [frame for frame in recording.stack(int(site)) if "program.py" in frame["file"]]
        line[site] = int(frames[0]["line"]) if frames else 0
    assert len(sites)
    return recording, recording.heap.assign(line=recording.heap["born_site"].map(line))


def test_every_block_of_native_code_is_seen_until_it_is_freed(library: Path) -> None:
    program = USING_IT + "blocks = [library.keep(1000 + i) for i in range(300)]\n"
    program += "blocks = [library.grow(block, 5000) for block in blocks]\n"
    program += "for block in blocks[:200]:\n    library.drop(block)\n"
    recording, heap = heap_of(library, program, "--heap=all")
    native = heap[~heap["is_python"]]
    made, grown = native[native["line"] == 8], native[native["line"] == 9]

    assert not recording.problems
    assert sorted(made["size_bytes"]) == list(range(1000, 1300))
    assert (made["died_ns"] > 0).all()
    assert len(grown) == 300 and (grown["size_bytes"] == 5000).all()
    assert (grown["died_ns"] > 0).sum() == 200
    assert (heap["weight"] == 1).all()


RUNS = 4_000
"""Intervals hold 95 to 95.6%: 1,000 leave the bounds once in 27 times, 4,000 once in 100,000."""
PATTERNS = {
    "few samples": [1_000] * 2_000,
    "half the rate": [100_000] * 50,
    "as large as the rate": [268_000] * 100,
    "mixed": [500] * 2_000 + [5_000] * 200 + [300_000] * 20,
}
ALLOCATING_THEM = """\
import tlmem
blocks = (ctypes.c_void_p * 3_000)()
for name, bytes in {patterns}.items():
    sizes = (ctypes.c_size_t * len(bytes))(*bytes)
    for _ in range({runs}):
        tlmem.mark(name)
        library.pattern(sizes, blocks, len(bytes))
tlmem.mark("end")
"""


def test_intervals_of_what_is_sampled_hold_the_truth_in_93_to_97_of_100_runs(
    library: Path,
) -> None:
    program = USING_IT + ALLOCATING_THEM.format(patterns=PATTERNS, runs=RUNS)
    recording, heap = heap_of(library, program, "--heap", "--heap-seed=11")
    native = heap[~heap["is_python"] & (heap["line"] == program.splitlines().index(CALL) + 1)]
    size, weight = native["size_bytes"].to_numpy(float), native["weight"].to_numpy(float)
    begins = recording.marks["time_ns"].to_numpy()
    cuts = np.searchsorted(native["born_ns"].to_numpy(), begins)
    runs = [estimate(size[a:b], weight[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]

    for number, (name, blocks) in enumerate(PATTERNS.items()):
        found = runs[number * RUNS : (number + 1) * RUNS]
        hits = sum(each.low <= sum(blocks) <= each.high for each in found)
        mean = np.mean([each.bytes for each in found])
        assert 0.93 * RUNS <= hits <= 0.97 * RUNS, name
        assert mean == pytest.approx(sum(blocks), rel=0.03), name


def test_samples_stand_for_all_blocks(library: Path) -> None:
    program = USING_IT + "blocks = [library.keep(1000) for i in range(40_000)]\n"
    _, heap = heap_of(library, program, "--heap=64kB", "--heap-seed=3")
    kept = heap[(heap["line"] == 8) & ~heap["is_python"]]

    assert 400 < len(kept) < 900
    assert (kept["weight"] * kept["size_bytes"]).sum() == pytest.approx(40e6, rel=0.15)


def test_a_native_leak_is_named_by_its_line(library: Path) -> None:
    program = (
        USING_IT + "for i in range(4_000):\n    library.storm(300)\n    library.keep(10_000)\n"
    )
    program += "    time.sleep(0.0002)\n"
    recording, _ = heap_of(library, program, "--heap")
    analysis = analyse(recording)
    lines = [finding for finding in analysis.findings if finding.kind == "native-site"]

    assert analysis.verdict.outcome == "native"
    assert "program.py:10" in analysis.verdict.sentence
    assert [finding.site.line for finding in lines] == [10]
    assert lines[0].bytes == pytest.approx(analysis.verdict.grown_bytes, rel=0.4)


def test_large_python_objects_are_pythons(tmp_path: Path) -> None:
    _, heap = heap_of(tmp_path, STRINGS, "--heap=all")
    strings = heap[(heap["line"] == 3) & (heap["size_bytes"] > 1100)]

    assert strings["is_python"].all() and strings["of_malloc"].all()
    small = heap[heap["is_python"] & (heap["size_bytes"] <= 512)]
    assert (~small["of_malloc"]).mean() > 0.9
    grown = heap[heap["is_resize"] & (heap["size_bytes"] > 40_000)]
    assert grown["of_malloc"].all() and 3 in grown["line"].to_list()
    assert (strings["died_ns"] < 0).sum() >= 6000


def test_arrays_are_not_counted_twice(tmp_path: Path) -> None:
    program = "import numpy as np\nkept = [np.ones(5000) for i in range(200)]\n"
    recording, heap = heap_of(tmp_path, program, "--heap=all")

    assert (recording.objects["size_bytes"] == 40_000).sum() == 200
    assert not (heap["size_bytes"] == 40_000).any()


def test_a_child_of_a_fork_counts_its_own_blocks(library: Path) -> None:
    program = USING_IT + "import os\nblocks = [library.keep(7_000) for i in range(50)]\n"
    program += "child = os.fork()\n"
    program += "if child == 0:\n    for block in blocks: library.drop(block)\n"
    program += "    mine = [library.keep(9_000) for i in range(30)]\n"
    program += "else:\n    os.waitpid(child, 0)\n"
    recording, heap = heap_of(library, program, "--heap=all")
    child = read(recording.family[0])

    assert (heap["size_bytes"] == 7_000).sum() == 50
    assert (heap.loc[heap["size_bytes"] == 7_000, "died_ns"] < 0).all()
    assert (child.heap["size_bytes"] == 9_000).sum() == 30
    assert not (child.heap["size_bytes"] == 7_000).any()
    assert child.info["heap.rate"] == recording.info["heap.rate"]


def test_a_library_in_the_place_of_one_that_was_unloaded_is_met(library: Path) -> None:
    shutil.copy(library / "library.so", library / "second.so")
    program = "import _ctypes\n" + USING_IT + "handle = library._handle\ndel library\n"
    program += "for _ in range(2):\n    _ctypes.dlclose(handle)\n    time.sleep(0.1)\n"
    program += "    library = ctypes.CDLL('./second.so')\n    handle = library._handle\n"
    program += "    time.sleep(0.1)\n    library.keep(ctypes.c_size_t(4321))\n"
    recording, heap = heap_of(library, program, "--heap=all")

    assert not recording.problems
    assert (heap["size_bytes"] == 4321).sum() == 2


def test_a_library_is_met_when_its_first_function_is_looked_up(library: Path) -> None:
    at_once = USING_IT.replace("time.sleep(0.1)", "pass")
    program = at_once + "blocks = [library.keep(1000 + i) for i in range(300)]\n"
    _, heap = heap_of(library, program, "--heap=all")

    kept = heap[(heap["line"] == 8) & ~heap["is_python"]]

    assert sorted(kept["size_bytes"]) == list(range(1000, 1300))


def test_what_ctypes_allocates_and_frees_is_seen(library: Path) -> None:
    program = USING_IT + "libc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
    program += "libc.free.argtypes = [ctypes.c_void_p]\n"
    program += "own = [libc.malloc(ctypes.c_size_t(5_000)) for _ in range(50)]\n"
    program += "blocks = [library.keep(7_000) for _ in range(50)]\n"
    program += "for block in blocks + own[:20]: libc.free(block)\n"
    _, heap = heap_of(library, program, "--heap=all")
    own, blocks = heap[heap["size_bytes"] == 5_000], heap[heap["size_bytes"] == 7_000]

    assert (len(own), (own["died_ns"] >= 0).sum()) == (50, 20)
    assert (len(blocks), (blocks["died_ns"] >= 0).sum()) == (50, 50)


def test_the_linker_sees_who_looks_a_function_up(tmp_path: Path) -> None:
    with_library(tmp_path)
    outer = "#define _GNU_SOURCE\n#include <dlfcn.h>\nint which(void) { return 2; }\n"
    outer += 'int next(void) { int (*f)(void) = (int (*)(void))dlsym(RTLD_NEXT, "which");\n'
    outer += "    return f ? f() : 0; }\n"
    (tmp_path / "inner.c").write_text("int which(void) { return 1; }\n")
    (tmp_path / "outer.c").write_text(outer)
    compiler = [str(COMPILER), "-shared", "-fPIC", "-Wl,--no-as-needed"]
    subprocess.run([*compiler, "inner.c", "-o", "libinner.so"], cwd=tmp_path, check=True)
    command = [*compiler, "outer.c", "-o", "outer.so", "-L.", "-linner", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = "import ctypes, time\nouter = ctypes.CDLL('./outer.so')\ntime.sleep(0.1)\n"
    (tmp_path / "program.py").write_text(program + "outer.which\nprint(outer.next())\n")
    result = recorded(["-q", "-f", "-o", "r.tlm", "--heap", "program.py"], tmp_path)

    assert (result.returncode, result.stdout, result.stderr) == (0, b"1\n", b"")


def test_a_block_that_cannot_be_had_disturbs_no_count(library: Path) -> None:
    program = USING_IT + "libc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
    program += "libc.malloc.argtypes = libc.calloc.argtypes = [ctypes.c_size_t] * 2\n"
    program += "libc.calloc.restype = ctypes.c_void_p\n"
    program += "for size in (2**63 - 1, 2**63, 2**63 + 3, 2**64 - 1, 2**64 - 10**15):\n"
    program += "    assert libc.malloc(size, 0) is None and libc.calloc(size, 3) is None\n"
    program += "blocks = [library.keep(1000) for i in range(20_000)]\n"
    _, heap = heap_of(library, program, "--heap=64kB", "--heap-seed=3")
    kept = heap[(heap["line"] == 14) & ~heap["is_python"]]

    assert (kept["weight"] * kept["size_bytes"]).sum() == pytest.approx(20e6, rel=0.2)


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc_minimal", "mimalloc"])
def test_an_allocator_that_is_preloaded_is_seen(name: str, library: Path) -> None:
    found = sorted(Path("/usr/lib").glob(f"*/lib{name}.so.*"))
    if not found:
        pytest.skip(f"lib{name} is not installed")
    program = (
        USING_IT + "import numpy as np\nblocks = [library.keep(1000 + i) for i in range(300)]\n"
    )
    program += "for block in blocks[:100]: library.drop(block)\n"
    program += "strings = [bytes(7_000) for _ in range(100)]\narray = np.ones(3_000)\n"
    recording, heap = heap_of(library, program, "--heap=all", LD_PRELOAD=str(found[0]))
    made = heap[(heap["line"] == 9) & ~heap["is_python"]]

    assert not recording.problems
    assert sorted(made["size_bytes"]) == list(range(1000, 1300))
    assert (made["died_ns"] >= 0).sum() == 100
    assert (heap["size_bytes"] == sys.getsizeof(bytes(7_000))).sum() == 100
    assert (recording.objects["size_bytes"] == 24_000).sum() == 1


def test_an_allocator_linked_into_a_library_is_seen_by_its_mappings(tmp_path: Path) -> None:
    with_library(tmp_path)
    own = "#include <sys/mman.h>\nstatic char *at, *end;\n"
    own += "static void *malloc(unsigned long bytes) {\n    if (end - at < (long)bytes) {\n"
    own += (
        "        at = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
    )
    own += "\n        end = at + (1 << 20); }\n    at += bytes; return at - bytes; }\n"
    own += "void *keep(unsigned long bytes) { return malloc(bytes); }\n"
    (tmp_path / "own.c").write_text(own)
    command = [str(COMPILER), "-w", "-shared", "-fPIC", "-fno-builtin", "own.c", "-o", "own.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = "import ctypes\nown = ctypes.CDLL('./own.so')\nown.keep.restype = ctypes.c_void_p\n"
    program += "blocks = [own.keep(ctypes.c_ulong(1 << 10)) for _ in range(5 << 10)]\n"
    _, heap = heap_of(tmp_path, program, "--heap")
    mapped = heap[(heap["line"] == 4) & ~heap["is_python"] & (heap["size_bytes"] == 1 << 20)]

    assert 3 <= len(mapped) <= 5 and not mapped["of_malloc"].any()


def test_a_library_that_is_being_loaded_is_left_to_the_linker(tmp_path: Path) -> None:
    with_library(tmp_path)
    row = "(void *)malloc, " + "(void *)strlen, (void *)memcpy, " * 50
    table = "#include <stdlib.h>\n#include <string.h>\n"
    table += f"void *const table[] = {{{row * 100}}};\n"
    table += "void *keep(size_t bytes) { return malloc(bytes + !table[bytes]); }\n"
    (tmp_path / "table.c").write_text(table)
    command = [str(COMPILER), "-shared", "-fPIC", "-Wl,-z,relro,-z,now", "table.c"]
    subprocess.run([*command, "-o", "table.so"], cwd=tmp_path, check=True)
    program = "import ctypes, shutil, time\nfor i in range(150):\n"
    program += "    shutil.copy('table.so', f'copy{i}.so')\n    time.sleep(i % 10 / 10_000)\n"
    program += "    keep = ctypes.CDLL(f'./copy{i}.so').keep\n    keep.restype = ctypes.c_void_p\n"
    program += "    keep(ctypes.c_size_t(3_333))\n"
    _, heap = heap_of(tmp_path, program, "--heap=all", "--rss-interval=1")

    assert (heap["size_bytes"] == 3_333).sum() == 150


@pytest.mark.parametrize("dynamic_section", ["read-only", "writable"])
def test_slots_that_the_linker_has_not_filled_in_stay_writable(
    dynamic_section: str, library: Path
) -> None:
    with_library_that_is_looked_at(library)
    if dynamic_section == "writable":
        move_dynamic_section(library / "looked_at.so")
    program = "import ctypes\nlooking = ctypes.CDLL('./looking.so')\nlooking.look()\n"
    program += "keep = ctypes.CDLL('./looked_at.so').keep\nkeep.restype = ctypes.c_void_p\n"
    program += "keep(ctypes.c_size_t(3_333))\n"
    _, heap = heap_of(library, program, "--heap=all")

    assert (heap["size_bytes"] == 3_333).sum() == 1


def test_threads_count_for_themselves(library: Path) -> None:
    program = USING_IT + "from concurrent.futures import ThreadPoolExecutor\n"
    program += "def work(i): return [library.keep(3_000) for _ in range(2_000)]\n"
    program += "with ThreadPoolExecutor(4) as pool: kept = list(pool.map(work, range(8)))\n"
    _, heap = heap_of(library, program, "--heap=50kB")
    kept = heap[(heap["line"] == 9) & ~heap["is_python"]]

    assert (kept["weight"] * kept["size_bytes"]).sum() == pytest.approx(48e6, rel=0.2)


def test_the_stack_of_each_thread_is_seen_where_its_first_frame_is(tmp_path: Path) -> None:
    program = """\
import _thread, time
ended = []
def work(i):
    mine = [i, i + 1]
    while len(ended) < 1:
        time.sleep(0.01)
for i in range(50):
    _thread.start_new_thread(work, (i,))
time.sleep(0.3)
ended.append(1)
time.sleep(0.2)
"""
    recording, heap = heap_of(tmp_path, program, "--heap=all")
    pieces = heap[heap["size_bytes"] == os.sysconf("SC_PAGESIZE")]

    assert not recording.problems
    assert pieces["line"].isin([4, 5, 6]).sum() == 50
    assert (pieces.loc[pieces["line"].isin([4, 5, 6]), "died_ns"] > 0).all()


def test_without_the_option_nothing_is_sampled(tmp_path: Path) -> None:
    recording, heap = heap_of(tmp_path, STRINGS)

    assert not len(heap) and "heap.rate" not in recording.info


def test_a_size_limit_folds_samples_and_keeps_sums(tmp_path: Path) -> None:
    count = 700_000  # more than the limit has room for, however fast compaction is
    program = f"import numpy as np, zlib\nkept = []\nfor i in range({count}):\n"
    program += "    kept.append(np.ones(10 + i * 7919 % 40))\n"
    program += "    zlib.crc32(b'x' * (3000 + i * 7907 % 999))\n"
    recording, _ = heap_of(tmp_path, program, "--heap=all", "--max-file=8.4MB")

    assert recording.folded_events > 0
    assert recording.totals.current_count >= count
    assert recording.totals.total_bytes < (8 * 29.5 + 16) * count + 5_000_000


def test_the_program_is_not_disturbed(library: Path) -> None:
    program = USING_IT + "import sys\nlibrary.storm(10_000)\nblock = library.keep(10)\n"
    program += "library.drop(block)\nprint(len('x' * 5_000), sys.getrefcount(block))\nsys.exit(3)\n"
    (library / "program.py").write_text(program)
    there = recorded(["-q", "-f", "-o", "r.tlm", "--heap=1", "program.py"], library)
    without = plain(["program.py"], library)

    assert (there.returncode, there.stdout, there.stderr) == (3, without.stdout, without.stderr)


@pytest.mark.parametrize("word", ["--heap=much", "--heap=-1", "--heap=2TB"])
def test_a_rate_that_is_none_is_told(word: str, tmp_path: Path) -> None:
    result = run([sys.executable, "-m", "tlmem", "record", word, "-c", "0"], tmp_path)

    assert result.returncode == 2
    assert b"Traceback" not in result.stderr and len(result.stderr.splitlines()) == 1
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tlm")]


def test_a_rate_in_a_damaged_note_is_not_believed() -> None:
    from tlmem.recording.format.timeline import Timeline
    from tlmem.recording.tables.memory import heap_table

    columns = dict.fromkeys(("ticks", "object", "arg"), np.array([5, 9], np.uint64))
    small = dict.fromkeys(
        ("site", "count", "kind", "device", "thread", "role"), np.ones(2, np.uint8)
    )
    events = Timeline(**columns, **{**small, "role": np.zeros(2, np.uint8)})
    for rate in ("", "0", "-5", "1e99", "9" * 400, "inf"):
        table = heap_table(events, {"heap.rate": rate}, lambda ticks: ticks.astype(np.int64))
        assert (table["weight"] == 1).all(), rate
