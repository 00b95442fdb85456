"""Runtimes in other languages: probes that find tlmem, programs that link it, one log with Python.

The programs are those of ``native/examples`` and ``tests/support/endings.c``, built here against
the headers and the library as they are installed. See also: test_environment.py.
"""

import subprocess
from pathlib import Path

import pytest
from support import programs
from support.foreign import (
    ENDINGS,
    STEPS,
    TRAIN,
    WARNINGS,
    Run,
    compiler,
    line_with,
    probes,
    report_of,
)

import tlmem
from tlmem.events import Device, Kind
from tlmem.recorder import linking

STEPS_OF_A_SECOND = 9000
"""Of the example, each of 0.1 ms: enough to be judged, also when the machine stalls."""

# ---- a process without Python ----


def test_a_healthy_foreign_runtime_is_recorded_and_judged_stable(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(steps, STEPS_OF_A_SECOND)
    recording = tlmem.read(tmp_path / "run.tlm")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert (recording.complete, recording.totals.current_count) == (True, 0)
    assert report_of(tmp_path / "run.tlm")["verdict"]["outcome"] == "stable"


def test_an_over_retained_object_is_reported_at_its_line_of_c(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(steps, "leak", STEPS_OF_A_SECOND)
    told = report_of(tmp_path / "run.tlm")
    first = told["findings"][0]["site"]

    assert told["verdict"]["outcome"] == "leak"
    assert (first["file"], first["line"]) == (str(STEPS), line_with("leaks here"))


def test_the_report_says_who_retained_it_and_where(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(steps, "leak", STEPS_OF_A_SECOND)
    holder = report_of(tmp_path / "run.tlm")["findings"][0]["holders"][0]

    # The first few may be put down to warm-up when the machine stalls behind them.
    assert 0.97 * STEPS_OF_A_SECOND < holder["count"] <= STEPS_OF_A_SECOND
    assert (holder["name"], holder["site"]["line"]) == ("look", line_with("retained here"))


def test_the_acquire_without_a_release_names_its_line_and_its_holder(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(steps, "leak", 50)
    recording = tlmem.read(tmp_path / "run.tlm")
    acquired, released = probes(recording, Kind.ACQUIRE), probes(recording, Kind.RELEASE)
    (holder,) = set(acquired["arg"])
    of_look = released[released["arg"] == holder]

    assert (len(acquired), len(of_look)) == (50, 0)
    assert set(acquired["line"]) == {line_with("retained here")}
    assert holder >> 56 == 11


def test_memory_given_back_to_another_allocator_is_reported_at_its_line(
    endings: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(endings, "allocators")
    told = [
        each for each in report_of(tmp_path / "run.tlm")["findings"] if each["severity"] == "error"
    ]
    recording = tlmem.read(tmp_path / "run.tlm")

    assert len(recording.misuses) == 1
    assert recording.misuses.holder.tolist() == ["heap"]
    assert [each["site"]["line"] for each in told] == [line_with("wrong here", ENDINGS)]


def test_scopes_are_numbered_and_left_in_pairs(steps: Path, recorded: Run, tmp_path: Path) -> None:
    recorded(steps, 40)
    recording = tlmem.read(tmp_path / "run.tlm")
    entered, left = probes(recording, Kind.SCOPE_ENTER), probes(recording, Kind.SCOPE_EXIT)

    assert entered["address"].tolist() == left["address"].tolist()
    assert (entered["address"].nunique(), set(entered["count"]), set(left["arg"])) == (40, {1}, {2})


def test_without_tlmem_a_program_with_probes_is_as_it_was(steps: Path, tmp_path: Path) -> None:
    plain = programs.run([str(steps), "20"], tmp_path)
    missing = programs.run(
        [str(steps), "20"],
        tmp_path,
        environment={"TLMEM_RECORD": "run.tlm", "TLMEM_LIBRARY": str(tmp_path / "no-such.so")},
    )
    told = [(ended.returncode, ended.stdout, ended.stderr) for ended in (plain, missing)]

    assert told == [(0, b"", b"")] * 2
    assert list(tmp_path.iterdir()) == []


# ---- a program that links the library ----


def test_a_program_in_c_runs_on_the_runtime_and_everything_ends(
    train: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(train)
    recording = tlmem.read(tmp_path / "run.tlm")
    events = recording.events
    kinds = {kind: int((events["kind"] == kind).sum()) for kind in (Kind.SCOPE_ENTER, Kind.ESCAPE)}

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == b"999 pool hits, 2004 allocated, 2004 freed, 0 bytes alive\n"
    assert (recording.complete, recording.totals.current_bytes) == (True, 0)
    assert kinds == {Kind.SCOPE_ENTER: 1000, Kind.ESCAPE: 1000}


def test_its_leak_is_reported_at_its_line_of_c(train: Path, recorded: Run, tmp_path: Path) -> None:
    ended = recorded(train, "leak")
    told = report_of(tmp_path / "run.tlm")
    first = told["findings"][0]["site"]

    assert (ended.returncode, told["verdict"]["outcome"]) == (1, "leak")
    assert (first["file"], first["line"]) == (str(TRAIN), line_with("leaks here", TRAIN))
    assert told["findings"][0]["holders"][0]["name"] == "trainer"


def test_it_runs_the_same_when_nothing_records_it(train: Path, tmp_path: Path) -> None:
    ended = programs.run([str(train)], tmp_path)

    assert (ended.returncode, ended.stdout.split()[-3:]) == (0, [b"0", b"bytes", b"alive"])
    assert list(tmp_path.iterdir()) == []


# ---- Python in the process ----

BOTH = """
import ctypes, numpy, sys
library = ctypes.CDLL(sys.argv[1])
library.steps_run.restype = ctypes.c_double
kept = []

def call(leaks):
    library.steps_run(10, leaks)

def run(steps, leaks):
    for _ in range(steps // 10):
        kept.append(numpy.ones(10))
        call(leaks)

run(int(sys.argv[2]), 1)
"""


def test_python_and_a_foreign_runtime_share_one_log(steps_library: Path, tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(BOTH)
    words = ["both.py", str(steps_library), "3000"]
    environment = {"TLMEM_RECORD": "other.tlm", "TLMEM_LIBRARY": linking.get_library()}
    ended = programs.recorded(
        words, tmp_path, environment=environment, options=("-q", "-o", "run.tlm")
    )
    recording = tlmem.read(tmp_path / "run.tlm")
    allocs = probes(recording, Kind.ALLOC)
    devices = set(recording.events["device"])
    first = report_of(tmp_path / "run.tlm")["findings"][0]["site"]

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both.py", "run.tlm"]
    assert {Device.NUMPY, Device.PROBE} <= devices
    assert (allocs["line"] == line_with("leaks here")).sum() == 3000
    assert (first["file"], first["line"]) == (str(STEPS), line_with("leaks here"))


def test_the_stack_of_python_stands_around_the_line_of_c(
    steps_library: Path, tmp_path: Path
) -> None:
    (tmp_path / "both.py").write_text(BOTH)
    programs.recorded(
        ["both.py", str(steps_library), "100"], tmp_path, options=("-q", "-o", "run.tlm")
    )
    recording = tlmem.read(tmp_path / "run.tlm")
    sites = set(probes(recording, Kind.ACQUIRE)["site"])
    functions = [[frame["function"] for frame in recording.stack(site)] for site in sites]

    assert functions == [["look", "call", "run", "<module>"]]


def test_in_a_python_process_the_environment_opens_no_log(
    steps_library: Path, tmp_path: Path
) -> None:
    script = "import ctypes, sys\nctypes.CDLL(sys.argv[1]).steps_run(10, 0)\n"
    environment = {"TLMEM_RECORD": "run.tlm", "TLMEM_LIBRARY": linking.get_library()}
    ended = programs.plain(["-c", script, str(steps_library)], tmp_path, environment=environment)

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == []


LATE = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
library.steps_run(10, 0)
import tlmem
with tlmem.Recorder("run.tlm"):
    for _ in range(100):
        library.steps_run(10, 0)
    time.sleep(1.1)
    library.steps_run(300, 0)
"""


def test_probes_find_a_library_that_comes_after_them(steps_library: Path, tmp_path: Path) -> None:
    ended = programs.plain(["-c", LATE, str(steps_library)], tmp_path)
    recording = tlmem.read(tmp_path / "run.tlm")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert len(probes(recording, Kind.ALLOC)) >= 300


# ---- the header ----

EVERYTHING = """
#include "tlmem_probe.h"
static int twice(int number) { return 2 * number; }
int main(void)
{
    static int it, other;
    uint64_t scope;
    int result = 0;
    TLM_PROBE_LOOK();
    TLM_PROBE_SCOPE_ENTER(scope, "scope");
    TLM_PROBE_ALLOC(&it, sizeof it);
    TLM_PROBE_ACQUIRE(&it, tlm_probe_owner(&other), 2);
    TLM_PROBE_MOVE(&it, tlm_probe_owner(&other), tlm_probe_name("cache"), 2);
    TLM_PROBE_RELEASE(&it, tlm_probe_name("cache"), 1);
    TLM_PROBE_REGISTER(&it, scope, 1);
    TLM_PROBE_UNREGISTER(&it, scope, 1);
    TLM_PROBE_PROMOTE(&it, scope, 1);
    TLM_PROBE_ESCAPE(&it, tlm_probe_name("cache"), 1);
    TLM_PROBE_MARK("here", 1);
    TLM_PROBE_MISUSE(&it, 0, TLM_PROBE_USE_AFTER_FREE);
    TLM_PROBE_FREE(&it);
    TLM_PROBE_ALLOC_WITH(&it, sizeof it, "heap");
    TLM_PROBE_FREE_WITH(&it, "heap");
    TLM_PROBE_CALL(result = twice(21); TLM_PROBE_ACQUIRE(&it, tlm_probe_owner(&other), result));
    TLM_PROBE_SCOPE_EXIT(scope, 1);
    return result != 42;
}
"""


@pytest.mark.parametrize("extra", [(), ("-DTLM_PROBE_OFF",), ("-flto", "-fno-common")])
@pytest.mark.parametrize("language, standard", [("c", "c99"), ("c", "gnu17"), ("c++", "c++11")])
def test_the_header_is_clean_alone_in_two_files_of_a_program(
    language: str, standard: str, extra: tuple[str, ...], tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(EVERYTHING)
    two.write_text(EVERYTHING.replace("int main(void)", "int other_main(void)"))
    strict = ["-pedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wundef"]
    flags = [f"-std={standard}", *strict, "-O2", "-x", language, *WARNINGS, *extra]
    command = [*compiler(language), *flags, f"-I{linking.get_include()}", str(one), str(two)]
    made = subprocess.run(
        [*command, "-ldl", "-o", str(tmp_path / "out")], capture_output=True, text=True
    )
    ended = subprocess.run([tmp_path / "out"], check=False)

    assert (made.returncode, made.stderr) == (0, "")
    assert ended.returncode == 0
