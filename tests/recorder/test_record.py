"""``tlmem record``: options, the file it writes, what it says; ``Recorder`` and ``mark``."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import plain, recorded

import tlmem
from tlmem.recorder import summary

ARRAYS = """
import sys
import numpy as np
kept = [np.empty(3000, np.uint8) for _ in range(500)]
for _ in range(300):
    np.empty(5000, np.uint8)
del kept[250:]
print("done")
sys.exit(4)
"""


def record_arrays(folder: Path, *options: str, code: int = 4) -> Path:
    """Records ``ARRAYS`` to ``folder/a.tlm``."""
    (folder / "arrays.py").write_text(ARRAYS, encoding="utf-8")
    done = recorded(["arrays.py"], folder, options=("-q", "-f", "-o", "a.tlm", *options))

    assert (done.returncode, done.stdout, done.stderr) == (code, b"done\n", b"")
    return folder / "a.tlm"


def test_every_array_is_in_the_recording(tmp_path: Path) -> None:
    recording = tlmem.read(record_arrays(tmp_path))
    objects = recording.objects
    kept = objects[objects.size_bytes == 3000]
    dropped = objects[objects.size_bytes == 5000]

    assert recording.sealed and recording.complete and not recording.problems
    assert (len(kept), len(dropped)) == (500, 300)
    # The list dies with the module, after the recording: what was alive then is alive in it.
    assert int((kept.died_ns < 0).sum()) == 250
    assert int((dropped.died_ns < 0).sum()) == 0


def test_stacks_lead_to_the_script_and_hold_no_frame_of_ours(tmp_path: Path) -> None:
    recording = tlmem.read(record_arrays(tmp_path))
    site = recording.objects[recording.objects.size_bytes == 3000].born_site.iloc[0]
    stack = recording.stack(int(site))

    assert {frame["file"] for frame in stack} == {str(tmp_path / "arrays.py")}
    assert stack[-1]["function"] == "<module>"
    assert stack[-1]["line"] == 4


def test_notes_say_how_the_recording_was_made(tmp_path: Path) -> None:
    info = tlmem.read(record_arrays(tmp_path, "--stack-depth", "7", "--rss-interval", "20")).info

    assert info["command"] == "arrays.py"
    assert info["script"] == str(tmp_path / "arrays.py")
    assert info["cwd"] == str(tmp_path)
    assert info["executable"] == sys.executable
    assert info["python"] == sys.version.split()[0]
    assert info["tlmem"] == tlmem.__version__
    assert info["exit"] == "4"
    assert (info["stack_depth"], info["rss_interval_ms"]) == ("7", "20")
    assert "numpy" in info and info["platform"].startswith(
        "Linux" if sys.platform == "linux" else ""
    )


@pytest.mark.parametrize(
    ("ending", "note"),
    [
        ("", "0"),
        ("raise SystemExit", "0"),
        ("raise SystemExit('text')", "1"),
        ("raise SystemExit(300)", "44"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_the_end_of_the_program_is_noted(ending: str, note: str, tmp_path: Path) -> None:
    recorded(["-c", ending], tmp_path, options=("-q", "-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")

    assert recording.info["exit"] == note
    assert 0 <= recording.begin_ns <= recording.end_ns
    assert recording.sealed


def test_os_exit_leaves_an_open_file_with_everything_in_it(tmp_path: Path) -> None:
    program = (
        "import numpy as np, os\nkept = [np.empty(3000, np.uint8) for _ in range(500)]\nos._exit(3)"
    )
    done = recorded(["-c", program], tmp_path, options=("-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")

    assert (done.returncode, done.stderr) == (3, b"")
    assert recording.state == "open"
    assert int((recording.objects.size_bytes == 3000).sum()) == 500


def test_arrays_of_threads_that_outlive_the_main_code_are_recorded(tmp_path: Path) -> None:
    program = """
import threading
import numpy as np
ended = threading.Event()
def work():
    ended.wait()
    for _ in range(100):
        np.empty(3000, np.uint8)
threading.Thread(target=work).start()
threading._register_atexit(ended.set)  # when the main code is over, before joins
"""
    (tmp_path / "late.py").write_text(program, encoding="utf-8")
    recorded(["late.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")
    made = recording.objects[recording.objects.size_bytes == 3000]

    assert len(made) == 100
    assert (made.born_ns > recording.end_ns).all()
    assert recording.sealed


def test_file_limit_is_kept(tmp_path: Path) -> None:
    program = "import numpy as np\nfor _ in range(600_000): np.empty(3000, np.uint8)"
    done = recorded(["-c", program], tmp_path, options=("-q", "-o", "a.tlm", "--max-file", "8.4MB"))
    recording = tlmem.read(tmp_path / "a.tlm")

    assert done.returncode == 0
    assert (tmp_path / "a.tlm").stat().st_size <= 8_400_000
    assert recording.totals.total_count >= 600_000


@pytest.mark.parametrize("option", [("--smaps",), ("--source", "numpy"), ("--source=auto",)])
def test_other_options_are_accepted(option: tuple[str, ...], tmp_path: Path) -> None:
    assert tlmem.read(record_arrays(tmp_path, *option)).sealed


def test_run_is_another_name_of_record(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tlmem", "run", "-qo", "a.tlm", "-c", "print(1)"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")
    assert (tmp_path / "a.tlm").exists()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["script.py"], "script.py"),
        (["-m", "script"], "script"),
        (["-c", "pass"], "string"),
    ],
)
def test_default_file_is_named_after_the_program(
    arguments: list[str], name: str, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text("import os; os.chdir('/')", encoding="utf-8")
    recorded(arguments, tmp_path)
    (made,) = tmp_path.glob("*.tlm")

    assert made.name == f"tlmem-{name}.{tlmem.read(made).pid}.tlm"


def test_stderr_gets_a_verdict_and_the_next_command_at_the_end(tmp_path: Path) -> None:
    program = "import sys; print('mine', file=sys.stderr); 1 / 0"
    python = plain(["-c", program], tmp_path)
    ours = recorded(["-c", program], tmp_path, options=("-o", "my recording.tlm"))
    added = ours.stderr.removeprefix(python.stderr).decode().splitlines()

    assert ours.stderr.startswith(python.stderr)
    assert (ours.returncode, ours.stdout) == (python.returncode, python.stdout)
    assert len(added) == 2 and all(line.startswith("tlmem: ") for line in added)
    assert added[1] == "tlmem: next: tlmem report 'my recording.tlm'"


def test_verdict_names_the_leaking_line(tmp_path: Path) -> None:
    program = (
        "import time\nimport numpy as np\nkept = []\nfor _ in range(300):\n"
        "    kept.append(np.empty(3000, np.uint8))\n    np.ones(1000)\n    time.sleep(0.003)\n"
    )
    (tmp_path / "leak.py").write_text(program, encoding="utf-8")
    done = recorded(["leak.py"], tmp_path, options=())

    assert "leak.py:5" in done.stderr.decode().splitlines()[0]


def judged(folder: Path, body: str, patience: str = "30") -> str:
    """What the process that judges answers when ``tlmem.cli.main`` has a body of its own."""
    (folder / "tlmem").mkdir()
    (folder / "tlmem" / "__init__.py").touch()
    source = f"import time\ndef main(words):\n    {body}\n"
    (folder / "tlmem" / "cli.py").write_text(source, encoding="utf-8")
    words = [str(folder), "x.tlm", patience, "recorded 7 events; not judged here: too late."]
    done = subprocess.run(
        [sys.executable, "-P", "-c", summary._JUDGE, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_the_judge_answers_with_the_verdict(tmp_path: Path) -> None:
    body = """print('{"verdict": {"sentence": "No leak found."}}'); return 0"""

    assert judged(tmp_path, body) == "No leak found."


def test_the_judge_says_that_its_time_was_over(tmp_path: Path) -> None:
    answer = judged(tmp_path, "time.sleep(600)", patience="1")

    assert answer == "recorded 7 events; not judged here: too late."


def test_the_judge_that_fails_answers_nothing(tmp_path: Path) -> None:
    assert judged(tmp_path, "return 3") == ""


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            "JUDGED_EVENTS, summary.NANOSECONDS_PER_EVENT = 10, 10**10",
            r"so many take about \d+ s, so it was not tried",
        ),
        ("_JUDGE = 'import sys; sys.exit(1)'", "the process that judges ended without an answer"),
    ],
)
def test_a_recording_that_is_not_judged_says_why(settings: str, why: str, tmp_path: Path) -> None:
    code = f"""
from tlmem.recorder import summary
summary.{settings}
from tlmem.recorder.options import Options
from tlmem.recorder.run import record
import sys
program = "import numpy as np\\nfor _ in range(40):\\n    np.ones(10)"
sys.exit(record("code", program, [], "x.tlm", Options()))
"""
    lines = run_code(code, tmp_path).stderr.decode().splitlines()

    assert re.fullmatch(
        rf"tlmem: recorded \d+ events in [\d.]+ s; not judged here: {why}\.", lines[0]
    )
    assert lines[1] == "tlmem: next: tlmem report x.tlm"


def run_code(code: str, folder: Path) -> "subprocess.CompletedProcess[bytes]":
    """Runs code that uses tlmem itself."""
    return plain(["-c", code], folder)


def test_recorder_records_a_block(tmp_path: Path) -> None:
    code = """
import numpy as np, tlmem
before = [np.empty(3000, np.uint8) for _ in range(10)]
with tlmem.Recorder("a.tlm", stack_depth=8, max_file="20MB", rss_interval=5):
    tlmem.mark("inside", 7)
    kept = [np.empty(3000, np.uint8) for _ in range(20)]
    del before
tlmem.mark("outside")
after = [np.empty(3000, np.uint8) for _ in range(40)]
with tlmem.Recorder("b.tlm"):
    np.empty(3000, np.uint8)
"""
    done = run_code(code, tmp_path)
    recording = tlmem.read(tmp_path / "a.tlm")

    assert (done.returncode, done.stderr) == (0, b"")
    assert int((recording.objects.size_bytes == 3000).sum()) == 20
    assert recording.totals.unknown_frees == 10
    assert list(zip(recording.marks.label, recording.marks["index"], strict=True)) == [
        ("inside", 7)
    ]
    assert recording.limit_bytes == 20_000_000
    assert recording.sealed
    assert int((tlmem.read(tmp_path / "b.tlm").objects.size_bytes == 3000).sum()) == 1


def test_recorder_that_is_not_stopped_is_sealed_at_exit(tmp_path: Path) -> None:
    done = run_code("import tlmem; tlmem.Recorder('a.tlm').start()", tmp_path)

    assert (done.returncode, done.stderr) == (0, b"")
    assert tlmem.read(tmp_path / "a.tlm").sealed


def test_recorder_refuses_what_cannot_be_done(tmp_path: Path) -> None:
    code = """
import tlmem
from tlmem.recorder import CannotRecord
def refused(*arguments, **options):
    try:
        tlmem.Recorder(*arguments, **options).start()
    except (CannotRecord, ValueError) as error:
        print(error)
open("exists.tlm", "w").close()
refused("exists.tlm")
refused("a.tlm", stack_depth=2000)
refused("a.tlm", max_file="much")
refused("a.tlm", max_file=1000)
refused("absent/a.tlm")
with tlmem.Recorder("exists.tlm", force=True):
    refused("a.tlm")
"""
    done = run_code(code, tmp_path)
    lines = done.stdout.decode().splitlines()

    assert done.stderr == b""
    assert len(lines) == 6 and all(line.strip() for line in lines)
    assert not (tmp_path / "a.tlm").exists()
    assert tlmem.read(tmp_path / "exists.tlm").sealed


def test_mark_does_nothing_and_never_raises_without_a_recording(tmp_path: Path) -> None:
    code = """
import sys, tlmem
tlmem.mark("x"); tlmem.mark(None, "not a number"); tlmem.mark("y", 1 << 80)
print("numpy" in sys.modules, "pandas" in sys.modules)
"""
    done = run_code(code, tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"False False\n", b"")


def test_mark_that_cannot_be_recorded_does_not_disturb(tmp_path: Path) -> None:
    code = """
import tlmem
tlmem.mark(None, "not a number"); tlmem.mark("y", 1 << 80); tlmem.mark("\\udc80", -1)
tlmem.mark("step", 1); tlmem.mark("step", 2)
print("on")
"""
    done = recorded(["-c", code], tmp_path, options=("-q", "-o", "a.tlm"))
    marks = tlmem.read(tmp_path / "a.tlm").marks

    assert (done.returncode, done.stdout, done.stderr) == (0, b"on\n", b"")
    assert list(marks["index"]) == [-1, 1, 2]
    assert list(marks.label)[1:] == ["step", "step"]


def test_modules_of_the_program_are_not_taken_for_ours(tmp_path: Path) -> None:
    for name in ("shlex", "signal", "json", "subprocess", "contextlib", "io", "tempfile", "select"):
        (tmp_path / f"{name}.py").write_text(f"print('wrong {name}')", encoding="utf-8")
    (tmp_path / "script.py").write_text("print('right')", encoding="utf-8")
    done = recorded(["script.py"], tmp_path, options=("-o", "a.tlm"))

    assert (done.returncode, done.stdout) == (0, b"right\n")
    assert b"wrong" not in done.stderr and len(done.stderr.splitlines()) == 2


def test_handler_of_the_program_does_not_hear_of_our_child(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGCHLD, lambda *_: print('child'))"
    done = recorded(["-c", code], tmp_path, options=("-o", "a.tlm"))

    assert (done.returncode, done.stdout) == (0, b"")
    assert len(done.stderr.splitlines()) == 2


def test_a_file_that_another_program_records_into_is_replaced_and_that_program_goes_on(
    tmp_path: Path,
) -> None:
    goes_on = "import numpy as np\nprint(1, flush=True)\ninput()\n"
    goes_on += "kept = [np.empty(10) for n in range(300_000)]\n"
    words = [sys.executable, "-m", "tlmem", "record", "-q", "-f", "-o", "a.tlm"]
    with subprocess.Popen(
        [*words, "-c", goes_on], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        assert first.stdout is not None
        first.stdout.readline()
        subprocess.run([*words, "-c", "print(2)"], cwd=tmp_path, check=True, timeout=60)
        first.communicate(b"\n", timeout=60)

    assert first.returncode == 0
    recording = tlmem.read(tmp_path / "a.tlm")
    assert recording.sealed and recording.pid != first.pid
