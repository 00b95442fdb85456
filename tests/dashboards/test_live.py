"""Following programs that run: finding their files, looking again, the sum of a family."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.story import STEPS, write_story
from tlmem.dashboards.model import live
from tlmem.dashboards.model.layers import PARTS
from tlmem.dashboards.model.live import (
    Follower,
    find_recording,
    is_running,
    line_table,
    lines_at,
    process_table,
    together,
    wait_for_events,
)

from tlmem.errors import EmptyRecording, MissingFile


@pytest.fixture
def follower(story: Path) -> Follower:
    found = Follower(story)
    found.look()
    while found.read():
        pass
    return found


def test_a_path_is_followed_as_it_is(tmp_path: Path) -> None:
    assert find_recording("some/x.tlm", tmp_path) == Path("some/x.tlm")


def test_a_process_is_found_by_its_recording_in_the_directory(tmp_path: Path) -> None:
    write_story(tmp_path / "other.tlm", "compact", pid=5)
    path = write_story(tmp_path / "mine.tlm", "compact", pid=999_999_7)

    assert find_recording("9999997", tmp_path) == path


def test_a_process_is_found_by_what_it_has_mapped(tmp_path: Path) -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not tell what a process has mapped")
    path = tmp_path / "elsewhere.tlm"
    code = (
        "import mmap, sys\n"
        "f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0)\n"
        "print('mapped', flush=True); sys.stdin.read()\n"
    )
    write_story(path, "compact", pid=1)
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        data = bytearray(path.read_bytes())
        write_story(tmp_path / "header.tlm", "compact", pid=process.pid)
        data[:16384] = (tmp_path / "header.tlm").read_bytes()[:16384]
        with open(path, "r+b") as file:
            file.write(data)
        found = find_recording(str(process.pid), tmp_path / "nowhere")
        process.stdin.close()

    assert found == path


def test_without_a_name_it_is_the_newest_that_is_being_written(tmp_path: Path) -> None:
    for name, form, pid, age in (
        ("old.tlm", "compact", os.getpid(), 50),
        ("new.tlm", "compact", os.getpid(), 10),
        ("sealed.tlm", "sealed", os.getpid(), 1),
        ("killed.tlm", "compact", 999_999_7, 1),
    ):
        path = write_story(tmp_path / name, form, pid=pid)
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))

    assert find_recording(None, tmp_path) == tmp_path / "new.tlm"


def test_nothing_to_follow_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="name a FILE or a PID"):
        find_recording(None, tmp_path)
    with pytest.raises(MissingFile, match="name the file instead"):
        find_recording("9999997", tmp_path)


def test_an_empty_recording_is_waited_for_while_its_program_runs(tmp_path: Path) -> None:
    path = tmp_path / "x.tlm"
    whole = write_story(path, "compact", pid=os.getpid()).read_bytes()
    path.write_bytes(whole[:16384])
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            path.write_bytes(whole)

    assert wait_for_events(path, sleep).script == "train.py"
    assert len(slept) == 3


def test_an_empty_recording_of_a_program_that_has_ended_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_story(tmp_path / "x.tlm", "compact")
    path.write_bytes(path.read_bytes()[:10_000])
    monkeypatch.setattr(live, "is_running", lambda pid: False)

    with pytest.raises(EmptyRecording):
        wait_for_events(path)


def test_processes_that_are_there_are_known() -> None:
    assert is_running(os.getpid())
    assert not is_running(999_999_7)


def test_lines_at_a_moment_are_those_that_were_alive_then(follower: Follower) -> None:
    end = lines_at(follower, None, follower.end_ns, "alive")
    half = lines_at(follower, None, follower.end_ns // 2, "alive")

    assert str(end[0].frame) == "/home/ada/train.py:12"
    assert (end[0].alive_count, end[0].made) == (STEPS, STEPS)
    assert 0 < half[0].alive_count < STEPS
    assert lines_at(follower, None, 0, "alive") == []
    assert line_table(end).rows[0][-1] == "train.py:12 train"


@pytest.mark.parametrize("seconds", [10.0, 0.25])
def test_growth_is_what_came_in_the_last_seconds_over_their_length(
    follower: Follower, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(live, "GROWTH_S", seconds)
    until = 500_000_000
    since = max(until - int(seconds * 1e9), 0)
    before = {str(line.frame): line for line in lines_at(follower, None, since, "alive")}

    for line in lines_at(follower, None, until, "alive"):
        held = before[str(line.frame)].alive_bytes if str(line.frame) in before else 0.0
        expected = (line.alive_bytes - held) * 1e9 / (until - since)
        assert line.growth == pytest.approx(expected)


@pytest.mark.parametrize("sort", ["alive", "made", "objects", "growth"])
def test_lines_are_sorted(follower: Follower, sort: str) -> None:
    attribute = {"alive": "alive_bytes", "objects": "alive_count"}.get(sort, sort)
    values = [getattr(line, attribute) for line in lines_at(follower, None, 10**9, sort)]

    assert values == sorted(values, reverse=True)


def test_a_family_adds_up(tmp_path: Path) -> None:
    path = write_story(tmp_path / "x.tlm")
    child = write_story(tmp_path / "x.7.tlm", pid=7)
    data = bytearray(child.read_bytes())
    header = tmp_path / "header"
    from support import writer

    about = writer.Header(pid=7, parent_pid=100, state=writer.SEALED)
    header.write_bytes(about.pack())
    data[:64] = about.pack()[:64]
    child.write_bytes(data)
    both = Follower(path)
    both.look()
    while both.read():
        pass
    one = both.members[0]

    assert [member.look.pid for member in both.members] == [100, 7]
    assert both.layers(None).layers == PARTS
    middle = both.end_ns // 2
    alone, together_ = both.layers(one).at(middle), both.layers(None).at(middle)
    assert alone is not None and together_ is not None
    assert together_.sum() == pytest.approx(2 * alone.sum())
    assert "in 2 processes" in together(both, None, middle)
    assert "processes" not in together(both, one, middle)
    assert lines_at(both, None, both.end_ns, "alive")[0].alive_count == 2 * STEPS
    assert [row[0] for row in process_table(both).rows] == ["100", "7"]


def test_a_file_that_grows_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x.tlm"
    whole = write_story(path, "raw", pid=os.getpid()).read_bytes()
    slots = (len(whole) - 16384) // 262144
    path.write_bytes(whole[: 16384 + (slots - 1) * 262144])
    follower = Follower(path)
    follower.look()
    assert follower.read(clock=0.0)
    before = follower.members[0].look.events
    assert not follower.read(clock=0.1)

    path.write_bytes(whole)
    follower.look()
    assert follower.members[0].look.events > before
    assert not follower.read(clock=0.2)
    assert follower.read(clock=1e6)
    assert not follower.ended


def test_a_file_that_is_replaced_by_another_run_is_followed_from_its_begin(tmp_path: Path) -> None:
    path = write_story(tmp_path / "x.tlm", "compact", pid=os.getpid())
    follower = Follower(path)
    follower.look()
    assert follower.read()
    other = write_story(tmp_path / "y.tlm", "compact", leaks=False, pid=os.getpid())
    other.replace(path)
    follower.look()

    (member,) = follower.members
    assert member.full is None and follower.runs == 2
    assert follower.read()
    lines = {str(line.frame): line for line in lines_at(follower, None, follower.end_ns, "alive")}
    assert lines["/home/ada/train.py:12"].alive_count == 0

    path.write_bytes(write_story(tmp_path / "z.tlm", "compact", pid=7).read_bytes())
    follower.look()
    assert follower.members[0].look.pid == 7 and follower.runs == 3


def test_a_file_that_vanishes_while_it_is_read_ends_nothing(tmp_path: Path) -> None:
    path = write_story(tmp_path / "x.tlm", "compact", pid=os.getpid())
    follower = Follower(path)
    follower.look()
    path.unlink()

    assert not follower.read()
    assert follower.read_until_ns(None) == 0
    with pytest.raises(MissingFile):
        Follower(path).look()
