"""A process without Python that its environment records: how it ends, its children, what it says.

See also: tests/native/test_environment.c, the same under sanitizers.
"""

import signal
import subprocess
import time
from pathlib import Path

import pytest
from support import programs
from support.foreign import ROUNDS, STEPS, Run, probes

import tlmem
from tlmem.errors import EmptyRecording
from tlmem.events import Device, Kind
from tlmem.recorder import linking


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
