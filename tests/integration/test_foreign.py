"""Runtimes in other languages: probes that find tlmem, a process without Python, one log for all.

The programs are those of ``native/examples`` and ``tests/support/endings.c``, built here against
the headers and the library as they are installed.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from support import programs

import tlmem
from tlmem import linking
from tlmem.errors import EmptyRecording
from tlmem.events import Device, Kind

ROOT = Path(__file__).resolve().parents[2]
OVERRETAIN = ROOT / "native" / "examples" / "overretain"
TRAIN = ROOT / "native" / "examples" / "runtime" / "train.c"
STEPS = OVERRETAIN / "steps.c"
ENDINGS = ROOT / "tests" / "support" / "endings.c"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
ROUNDS = 20000

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


def compiler(language: str = "c") -> list[str]:
    """The compiler as a command; skips where there is none."""
    given, usual = os.environ.get("CXX" if language == "c++" else "CC"), ("g++", "c++")
    usual = usual if language == "c++" else ("gcc", "cc")
    found = shlex.split(given or "") or [name for name in usual if shutil.which(name)][:1]
    if not found:
        pytest.skip(f"no compiler for {language} here; set {'CXX' if language == 'c++' else 'CC'}")
    return found


def build(out: Path, sources: list[Path], *flags: str) -> Path:
    """Builds a program against the installed headers."""
    command = [*compiler(), "-g", "-O1", "-pthread", *WARNINGS, f"-I{linking.get_include()}"]
    command += [*map(str, sources), *flags, "-o", str(out)]
    command += ["-ldl"] if sys.platform == "linux" else []
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"{shlex.join(command)}\n{made.stderr}"
    return out


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are built."""
    return tmp_path_factory.mktemp("foreign")


@pytest.fixture(scope="module")
def steps(place: Path) -> Path:
    """The example with the leak that can be switched on."""
    return build(place / "steps", [STEPS, OVERRETAIN / "refs.c"])


@pytest.fixture(scope="module")
def steps_library(place: Path) -> Path:
    """The same as a library."""
    sources = [STEPS, OVERRETAIN / "refs.c"]
    return build(place / "libsteps.so", sources, "-shared", "-fPIC")


@pytest.fixture(scope="module")
def endings(place: Path) -> Path:
    """A program that ends in many ways."""
    return build(place / "endings", [ENDINGS])


@pytest.fixture
def recorded(tmp_path: Path) -> Run:
    """Runs a program that the environment records to ``run.tlm``."""

    def run(*command: object, **changes: str) -> "subprocess.CompletedProcess[bytes]":
        environment = {
            "TLMEM_RECORD": "run.tlm",
            "TLMEM_LIBRARY": linking.get_library(),
            **changes,
        }
        return programs.run([str(word) for word in command], tmp_path, environment=environment)

    return run


@pytest.fixture(scope="module")
def train(place: Path) -> Path:
    """The example that links the library."""
    return build(place / "train", [TRAIN], "-std=c11", *shlex.split(linking.link_flags()))


def line_with(words: str, source: Path = STEPS) -> int:
    """The line of a program that says so."""
    lines = source.read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if words in line)


def report_of(path: Path) -> dict:
    """What ``tlmem report`` says about a recording."""
    told = programs.run(
        [sys.executable, "-m", "tlmem", "report", "--format", "json", str(path)], path.parent
    )
    assert told.returncode == 0, told.stderr.decode()
    return json.loads(told.stdout)


def probes(recording: tlmem.Recording, kind: Kind) -> pd.DataFrame:
    """Events of this kind that came from probes, with file and line."""
    events = recording.events
    events = events[(events["kind"] == kind) & (events["device"] == Device.PROBE)]
    return events.join(recording.sites[["file", "line", "function", "parent"]], on="site")


# ---- a process without Python ----


def test_a_healthy_foreign_runtime_is_recorded_and_judged_stable(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(steps)
    recording = tlmem.read(tmp_path / "run.tlm")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert (recording.complete, recording.totals.current_count) == (True, 0)
    assert report_of(tmp_path / "run.tlm")["verdict"]["outcome"] == "stable"


def test_an_over_retained_object_is_reported_at_its_line_of_c(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(steps, "leak")
    told = report_of(tmp_path / "run.tlm")
    first = told["findings"][0]["site"]

    assert told["verdict"]["outcome"] == "leak"
    assert (first["file"], first["line"]) == (str(STEPS), line_with("leaks here"))


def test_the_report_says_who_retained_it_and_where(
    steps: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(steps, "leak")
    holder = report_of(tmp_path / "run.tlm")["findings"][0]["holders"][0]

    assert holder["count"] >= 2990
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


# ---- how it ends ----


def test_threads_that_outlive_main_do_not_stop_it_from_being_sealed(
    endings: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(endings, "threads")
    recording = tlmem.read(tmp_path / "run.tlm")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (recording.sealed, recording.problems, recording.lost_events) == (True, [], 0)
    assert len(probes(recording, Kind.ALLOC)) >= 5 * ROUNDS
    assert (recording.threads["events"] >= 2 * ROUNDS).sum() == 5


def test_what_exit_handlers_do_is_recorded(endings: Path, recorded: Run, tmp_path: Path) -> None:
    recorded(endings, "handler")
    recording = tlmem.read(tmp_path / "run.tlm")

    assert (recording.complete, len(probes(recording, Kind.ALLOC))) == (True, ROUNDS + 3)


@pytest.mark.parametrize("way, code", [("_exit", 0), ("kill", -signal.SIGKILL)])
def test_an_end_without_warning_loses_nothing(
    way: str, code: int, endings: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(endings, way)
    recording = tlmem.read(tmp_path / "run.tlm")
    counts = [len(probes(recording, kind)) for kind in (Kind.ALLOC, Kind.FREE)]

    assert ended.returncode == code
    assert (recording.state, recording.problems, counts) == ("open", [], [ROUNDS, ROUNDS])


def test_a_kill_at_any_moment_of_many_threads_leaves_a_whole_recording(
    endings: Path, tmp_path: Path
) -> None:
    wrong, seen = [], 0
    for attempt in range(20):
        path = tmp_path / f"{attempt}.tlm"
        environment = {"TLMEM_RECORD": str(path), "TLMEM_LIBRARY": linking.get_library()}
        ended = subprocess.Popen(
            [endings, "threads"], env=programs.environment_of(environment), cwd=tmp_path
        )
        while not path.exists():
            time.sleep(0.001)
        time.sleep(0.02 + attempt / 1000)
        ended.kill()
        ended.wait()
        try:
            recording = tlmem.read(path)
        except EmptyRecording:  # the machine is slow
            continue
        seen += 1
        events = recording.events[recording.events["device"] == Device.PROBE]
        wrong += recording.problems
        for _, kinds in events.groupby("thread")["kind"]:
            wrong += [] if set(kinds[::2]) | {Kind.ALLOC} == {Kind.ALLOC} else [kinds]
            wrong += [] if set(kinds[1::2]) | {Kind.FREE} == {Kind.FREE} else [kinds]

    assert (wrong, seen > 0) == ([], True)


def test_a_library_with_probes_may_be_closed_and_opened_again(
    endings: Path, steps_library: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(endings, "close", steps_library)
    recording = tlmem.read(tmp_path / "run.tlm")
    allocs = probes(recording, Kind.ALLOC)

    assert (ended.returncode, recording.complete) == (0, True)
    assert (allocs["file"] == str(STEPS)).sum() == 3 * 10 * 2


# ---- children ----


def test_a_forked_child_is_not_recorded_unless_asked_for(
    endings: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(endings, "children")
    recording = tlmem.read(tmp_path / "run.tlm")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["run.tlm"]
    assert (recording.complete, len(probes(recording, Kind.ALLOC))) == (True, ROUNDS + 5)


def test_forked_children_record_to_files_named_after_their_parents(
    endings: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(endings, "children", TLMEM_RECORD_CHILDREN="1")
    recording = tlmem.read(tmp_path / "run.tlm")
    family = [tlmem.read(path) for path in recording.family]
    allocs = [len(probes(each, Kind.ALLOC)) for each in (recording, *family)]

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert [each.complete for each in (recording, *family)] == [True] * 3
    assert allocs == [ROUNDS + 5, 10 + 5, 10]
    assert family[1].path.name == f"run.{family[0].pid}.{family[1].pid}.tlm"


# ---- what the environment says ----


def test_an_existing_file_is_left_alone(endings: Path, recorded: Run, tmp_path: Path) -> None:
    (tmp_path / "run.tlm").write_text("mine")
    ended = recorded(endings)

    assert ended.returncode == 0
    assert ended.stderr.decode().startswith("tlmem: this process is not recorded, for there is")
    assert (tmp_path / "run.tlm").read_text() == "mine"


def test_the_process_number_can_be_part_of_the_name(
    endings: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(endings, TLMEM_RECORD="a-%p.tlm")
    (path,) = tmp_path.iterdir()

    assert path.name == f"a-{tlmem.read(path).pid}.tlm"


@pytest.mark.parametrize(
    "text, limit",
    [("9MB", 9_000_000), ("9.5 mb", 9_500_000), ("16MiB", 16 << 20), ("20000000", 20_000_000)],
)
def test_the_file_can_be_limited(
    text: str, limit: int, endings: Path, recorded: Run, tmp_path: Path
) -> None:
    recorded(endings, TLMEM_RECORD_MAX_FILE=text)

    assert tlmem.read(tmp_path / "run.tlm").limit_bytes == limit


@pytest.mark.parametrize("text", ["12parsecs", "-5MB", "MB", "nan"])
def test_a_size_that_is_none_is_said_and_the_program_goes_on(
    text: str, endings: Path, recorded: Run, tmp_path: Path
) -> None:
    ended = recorded(endings, TLMEM_RECORD_MAX_FILE=text)

    assert (ended.returncode, list(tmp_path.iterdir())) == (0, [])
    assert ended.stderr.decode().startswith(f"tlmem: TLMEM_RECORD_MAX_FILE is '{text}'; ")


def test_a_place_that_cannot_be_written_is_said_and_the_program_goes_on(
    endings: Path, recorded: Run
) -> None:
    ended = recorded(endings, TLMEM_RECORD="no/such/folder/x.tlm")

    assert ended.returncode == 0
    assert b"No such file or directory" in ended.stderr


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
    TLM_PROBE_CALL(result = twice(21));
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
    flags = [f"-std={standard}", "-pedantic", "-O2", "-x", language, *WARNINGS, *extra]
    command = [*compiler(language), *flags, f"-I{linking.get_include()}", str(one), str(two)]
    made = subprocess.run(
        [*command, "-ldl", "-o", str(tmp_path / "out")], capture_output=True, text=True
    )
    ended = subprocess.run([tmp_path / "out"], check=False)

    assert (made.returncode, made.stderr) == (0, "")
    assert ended.returncode == 0
