"""What a recording says about itself; time ranges, stacks, checkpoints, families."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import writer

from tlmem.recording import family
from tlmem.recording.format import timeline
from tlmem.recording.format.symbols import Code, Names
from tlmem.recording.reader import read
from tlmem.recording.tables.blame import is_users, site_table

HOME = "/home/user/train.py"
NUMPY = "/usr/lib/python3/site-packages/numpy/lib.py"
STDLIB = "/usr/lib/python3.11/threading.py"
TICKS_PER_S = 2_000_000_000
START = 1_000_000


def at(seconds: float) -> int:
    """Ticks at this time."""
    return START + int(seconds * TICKS_PER_S) // 4 * 4


def names() -> list[bytes]:
    """A stack of the standard library, the user's code and NumPy: sites 2, 3, 4."""
    files = {
        1: (STDLIB, "Thread.run"),
        2: (HOME, "train"),
        3: (NUMPY, "pad"),
        4: (HOME, "<module>"),
    }
    return [
        *(writer.code(number, file, function, 9) for number, (file, function) in files.items()),
        *(writer.site(2, 0, 1, 982), writer.site(3, 2, 2, 14), writer.site(4, 3, 3, 70)),
        *(writer.site(5, 1, 4, 3), writer.site(6, 0, 1, 5)),
        *(writer.thread(1, "MainThread", True, 77, START), writer.thread(2, os_id=78)),
        *(writer.label(1, "tlmem:begin"), writer.label(2, "epoch"), writer.label(3, "tlmem:end")),
        *(
            writer.note("command", "python x.py"),
            writer.note("exit", "0"),
            writer.note("exit", "3"),
        ),
    ]


def sample_threads() -> dict[int, np.ndarray]:
    """Two threads with allocations, marks and samples in the first second."""
    main = [
        (at(0.05), 1, 0, 0, 0, 32, 0),
        (at(0.1), 4096, 1000, 4, 0, 1, 1),
        (at(0.2), 8192, 500, 3, 0, 1, 1),
        (at(0.3), 2, 2**64 - 5, 3, 0, 32, 0),
        (at(0.4), 4096, 0, 5, 0, 2, 1),
        (at(0.9), 3, 0, 0, 0, 32, 0),
    ]
    service = [
        (at(0.0), 1, 10_000, 0, 0, 33, 0),
        (at(0.0) + 4, 7, 77, 0, 0, 33, 0),
        (at(0.25), 1, 20_000, 0, 0, 33, 0),
        (at(0.5), 1, 30_000, 0, 0, 33, 0),
        (at(0.501), 3, 5_000, 0, 0, 33, 0),
        (at(0.55), 3, 6_000, 0, 0, 33, 0),
    ]
    return {1: writer.events(main), 2: writer.events(service)}


def sample_file(path: Path, form: str = "sealed", **header: int) -> Path:
    """A small recording with everything in it."""
    about = writer.Header(**header)
    file = writer.RecordingWriter(header=about, form=form, meta=names(), threads=sample_threads())
    return file.write(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return sample_file(tmp_path / "x.tlm")


def test_a_sealed_recording_is_complete(path: Path) -> None:
    recording = read(str(path))

    assert (recording.state, recording.sealed, recording.complete) == ("sealed", True, True)
    assert (recording.pid, recording.parent_pid, recording.limit_bytes) == (100, 0, 0)
    assert recording.problems == []
    assert recording.event_count == 12
    assert recording.info == {"command": "python x.py", "exit": "3"}
    assert recording.seconds == pytest.approx(1.0)
    assert recording.fold is None and recording.folded_events == 0


def test_an_open_recording_is_not_complete_but_whole(tmp_path: Path) -> None:
    recording = read(sample_file(tmp_path / "x.tlm", "compact"))

    assert recording.state == "open" and not recording.complete
    assert recording.problems == []
    assert recording.event_count == 12


def test_the_last_of_repeated_notes_counts_wherever_its_slot_lies(tmp_path: Path) -> None:
    slots = [
        writer.slot(3, writer.note("exit", "1"), seq=9),
        writer.slot(3, writer.note("exit", "0"), seq=4),
        writer.events_slot(sample_threads()[1], thread=1, seq=5),
    ]
    path = tmp_path / "x.tlm"
    path.write_bytes(writer.Header().pack() + b"".join(slots))

    assert read(path).info == {"exit": "1"}


def test_lost_events_are_said_and_excuse_no_completeness(tmp_path: Path) -> None:
    recording = read(sample_file(tmp_path / "x.tlm", lost_events=3))

    assert recording.lost_events == 3 and not recording.complete
    assert recording.problems == ["3 events could not be recorded"]


def test_marks_leave_out_the_recorder_s_own(path: Path) -> None:
    recording = read(path)

    assert recording.marks.label.tolist() == ["epoch"]
    assert recording.marks["index"].tolist() == [-5]
    assert recording.begin_ns == 50_000_000
    assert recording.end_ns == 900_000_000


def test_samples_have_one_row_for_each_visit_and_tracked_memory_from_events(path: Path) -> None:
    samples = read(path).samples

    assert samples.time_ns.tolist() == [0, 250_000_000, 501_000_000, 550_000_000]
    assert samples.anon.tolist()[:3] == [10_000, 20_000, 30_000]
    assert np.isnan(samples.anon[3])
    assert samples.malloc_used.tolist()[2:] == [5_000, 6_000]
    assert samples.recorder[0] == 77
    assert samples.tracked.tolist() == [0, 1500, 500, 500]
    assert samples.tracked_count.tolist() == [0, 2, 1, 1]


def test_a_time_range_holds_its_events_and_calls_older_memory_unknown(path: Path) -> None:
    part = read(path, start=0.15, stop=0.45)

    assert part.events.time_ns.tolist() == [2e8, 2.5e8, 3e8, 4e8]
    assert len(part.objects) == 1
    assert part.unknown_frees == 1
    assert part.problems == []
    assert len(read(path, start=0.15).events) == 8
    assert len(read(path, stop=0.1).events) == 3
    assert len(read(path, start=5).events) == 0


def test_a_time_range_decodes_only_what_it_needs(tmp_path: Path, monkeypatch) -> None:
    rows = np.zeros(8000, writer.EVENT)
    rows["ticks"], rows["object"], rows["kind"], rows["device"] = at(0), 64, 1, 1
    rows["ticks"] += np.arange(8000, dtype=np.uint64) * 200_000
    path = writer.RecordingWriter(form="sealed", per_slot=100, threads={1: rows}).write(
        tmp_path / "x.tlm"
    )
    decoded = []
    plain = timeline.decode_events
    monkeypatch.setattr(timeline, "decode_events", lambda *a: decoded.append(1) or plain(*a))
    part = read(path, start=0.2, stop=0.3)

    assert len(part.events) == 1000
    assert len(decoded) <= 12


def test_a_stack_is_the_path_to_the_root_innermost_first(path: Path) -> None:
    recording = read(path)

    assert recording.stack(4) == [
        {"file": NUMPY, "line": 70, "function": "pad"},
        {"file": HOME, "line": 14, "function": "train"},
        {"file": STDLIB, "line": 982, "function": "Thread.run"},
    ]
    assert recording.stack(0) == recording.stack(999) == []
    assert recording.sites.depth.to_dict() == {0: 0, 1: 0, 2: 1, 3: 2, 4: 3, 5: 1, 6: 1}


def test_blamed_is_the_innermost_frame_of_the_user(path: Path) -> None:
    recording = read(path)

    assert recording.blame_table.to_dict() == {0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 5, 6: 6}
    assert recording.blame(4) == {"file": HOME, "line": 14, "function": "train"}
    assert recording.blame(6) == {"file": STDLIB, "line": 5, "function": "Thread.run"}
    assert recording.blame(0) is None


def test_of_operations_that_a_class_of_the_user_s_passes_on_the_caller_is_blamed() -> None:
    """What such a class makes itself is its own."""
    torch = "/opt/py/lib/python3.12/site-packages/torch/_tensor.py"
    names = Names()
    names.codes = {
        1: Code("/home/u/train.py", "train", 1),
        2: Code("/home/u/named.py", "Named.__torch_function__", 1),
        3: Code(torch, "Tensor.__torch_function__", 1),
        4: Code(torch, "Tensor.clone", 1),
    }
    train, named, passed_on, own = 2, 3, 4, 5
    names.sites = {train: (1, 1, 10), named: (train, 2, 5)}
    names.sites |= {passed_on: (named, 3, 90), own: (named, 4, 95)}

    table = site_table(names)

    blamed = dict(zip(table.site.tolist(), table.blamed.tolist(), strict=True))
    assert (blamed[passed_on], blamed[own], blamed[named]) == (train, named, named)


@pytest.mark.parametrize(
    "file, users",
    [
        ("/home/u/train.py", True),
        ("<string>", True),
        ("<frozen importlib._bootstrap>", False),
        ("/opt/py/lib/python3.12/json/decoder.py", False),
        ("/opt/py/lib/python3.12/site-packages/numpy/x.py", False),
        ("/opt/py/lib/python3.12-mine/x.py", True),
        ("/home/u/venv/lib/python3.12/site-packages/pandas/x.py", False),
        ("/home/u/venv/lib/python3.12/site-packages/tlmem/scenarios/a.py", True),
        ("/opt/tlmem/recorder/run.py", False),
        ("/tmp/torchinductor_me/64/c644q6.py", False),
        ("<eval_with_key>.12", False),
        ("/home/u/torchinductor_notes.py", True),
        ("", False),
    ],
)
def test_the_notes_say_which_files_are_the_user_s(file: str, users: bool) -> None:
    notes = {
        "python.stdlib": os.pathsep.join(["/opt/py/lib/python3.12", "/opt/py/lib64/python3.12"]),
        "python.sites": "/home/u/venv/lib/python3.12/site-packages",
        "tlmem.path": "/opt/tlmem",
        "script": "/home/u/venv/lib/python3.12/site-packages/tlmem/scenarios/a.py",
    }

    assert is_users(file, notes) is users


def test_a_stack_without_the_site_s_record_is_empty_not_an_error(tmp_path: Path) -> None:
    rows = writer.events([(START + 4, 64, 8, 4_000_000_000, 0, 1, 1)])
    path = writer.RecordingWriter(threads={1: rows}).write(tmp_path / "x.tlm")
    recording = read(path)

    assert recording.site_totals.live_bytes.to_dict() == {0: 8}
    assert recording.stack(4_000_000_000) == [] and recording.blame(4_000_000_000) is None


def test_an_address_used_again_without_a_free_ends_the_object_before(tmp_path: Path) -> None:
    rows = [(at(0.1 * i), 64, 10 * i, 0, 0, 1, 1) for i in (1, 2, 3)]
    path = writer.RecordingWriter(threads={1: writer.events(rows)}).write(tmp_path / "x.tlm")
    recording = read(path)

    assert recording.totals.current_bytes == 30
    assert recording.totals.freed_count == 2
    assert recording.objects.died_ns.tolist() == [2e8, 3e8, -1]


def test_a_partial_live_list_counts_the_rest_by_its_mean(tmp_path: Path) -> None:
    totals = [0] * 18
    totals[0], totals[2], totals[3], totals[7], totals[8] = 40, 40, 4000, 4000, 40
    totals[12], totals[13], totals[14] = 40, 2, 1
    live = np.array([[0, START, 64, 100, 0]], "<u8")
    live.view("u1").reshape(1, 40)[0, 38] = 1
    sections = {
        0: np.array(totals, "<u8").tobytes(),
        2: np.array([[40, 1]], "<u8").tobytes(),
        5: live.tobytes(),
    }
    rows = np.zeros(43, writer.EVENT)
    rows["ticks"], rows["object"], rows["kind"], rows["device"] = at(0.1), 640, 2, 1
    file = writer.RecordingWriter(per_slot=50, threads={1: rows}, consumed={1: 40})
    file.fold, file.header.fold_number = writer.fold_blocks(1, sections), 1
    recording = read(file.write(tmp_path / "x.tlm"))

    assert recording.totals.current_count == 37
    assert recording.totals.current_bytes == 4000 - 300
    assert recording.totals.unknown_frees == 0
    assert not recording.totals.exact


def test_a_checkpoint_that_is_not_whole_is_replaced_by_the_one_before(tmp_path: Path) -> None:
    rows = sample_threads()[1]
    old = {0: np.array([1] + [0] * 17, "<u8").tobytes(), 2: np.array([[1, 1]], "<u8").tobytes()}
    new = writer.fold_blocks(8, {**old, 0: np.array([3] + [0] * 17, "<u8").tobytes()})[:-1]
    file = writer.RecordingWriter(threads={1: rows}, meta=names())
    file.fold, file.header.fold_number = [*new, *writer.fold_blocks(7, old)], 8
    recording = read(file.write(tmp_path / "x.tlm"))

    assert recording.folded_events == 1
    assert recording.event_count == len(rows)
    assert recording.problems == ["checkpoint 8 cannot be used: 1 of its 2 blocks are there"]


def test_the_family_is_found_by_name_and_confirmed_by_process_ids(tmp_path: Path) -> None:
    first = sample_file(tmp_path / "run.tlm", pid=10)
    child = sample_file(tmp_path / "run.11.tlm", pid=11, parent_pid=10)
    grandchild = sample_file(tmp_path / "run.11.12.tlm", pid=12, parent_pid=11)
    sample_file(tmp_path / "run.13.tlm", pid=13, parent_pid=99)
    sample_file(tmp_path / "run.14.tlm", pid=15, parent_pid=10)
    sample_file(tmp_path / "run.16.tlm", pid=16, parent_pid=10, created_unix_ns=5)
    sample_file(tmp_path / "runner.17.tlm", pid=17, parent_pid=10)
    (tmp_path / "run.18.tlm").write_text("not a recording")

    assert read(first).family == [child, grandchild]
    assert family.find(child) == [grandchild]
    assert family.find(tmp_path / "none.tlm") == []


def test_the_child_of_a_process_without_a_file_belongs_to_the_nearest_one(tmp_path: Path) -> None:
    first = sample_file(tmp_path / "run.tlm", pid=10)
    child = sample_file(tmp_path / "run.11.tlm", pid=11, parent_pid=10)
    below = sample_file(tmp_path / "run.12.13.tlm", pid=13, parent_pid=12)
    far = sample_file(tmp_path / "run.11.14.15.16.tlm", pid=16, parent_pid=15)
    sample_file(tmp_path / "run.12.17.tlm", pid=17, parent_pid=10)
    sample_file(tmp_path / "run.12.18.tlm", pid=18, parent_pid=12, created_unix_ns=5)
    sample_file(tmp_path / "other.12.19.tlm", pid=19, parent_pid=12)

    assert family.find(first) == [child, far, below]
    assert family.find(child) == [far]


def test_a_child_that_may_not_be_opened_for_the_count_of_open_files_is_said(
    tmp_path: Path,
) -> None:
    """A report keeps all files of a family open; what was beyond the limit used to be left out."""
    first = sample_file(tmp_path / "run.tlm", pid=10)
    for pid in range(11, 51):
        sample_file(tmp_path / f"run.{pid}.tlm", pid=pid, parent_pid=10)
    code = (
        "import resource, sys, tlmem.cli, tlmem.analysis, tlmem.report.summary\n"
        "from tlmem.export import perfetto\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\n"
        "sys.exit(tlmem.cli.main(sys.argv[1:]))"
    )
    for words in (["report", "--format", "json"], ["export", "--to", "perfetto", "-o", "x.json"]):
        command = [sys.executable, "-c", code, *words, str(first)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

        assert (words[0], done.returncode) == (words[0], 2), done.stderr
        assert "raise the limit of open files" in done.stderr


def test_a_clock_that_was_never_calibrated_is_said(tmp_path: Path) -> None:
    recording = read(sample_file(tmp_path / "x.tlm", last_ticks=START, last_ns=5_000_000))

    assert [p for p in recording.problems if "calibrated" in p]
    assert (np.diff(recording.events.time_ns) >= 0).all()


def test_reading_needs_neither_the_extension_nor_the_recorder(path: Path) -> None:
    code = (
        "import sys; sys.modules['tlmem._native'] = None; import tlmem\n"
        f"r = tlmem.read({str(path)!r}); print(len(r.events), len(r.objects), r.complete)\n"
        "print([m for m in sys.modules if m.startswith('tlmem.recorder') or m == 'cffi'])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert out.stdout.splitlines() == ["12 2 True", "[]"]
