"""What the command line refuses: one sentence, the right exit code, never a traceback of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import command, plain, recorded, run

import tlmem

TLMEM = [sys.executable, "-m", "tlmem"]


def assert_refused(done: "subprocess.CompletedProcess[bytes]", words: str, code: int = 2) -> None:
    """Asserts one sentence on stderr that holds ``words``, nothing on stdout, and the exit code."""
    text = done.stderr.decode()

    assert done.returncode == code
    assert done.stdout == b""
    assert text.startswith("tlmem: ") and text.count("\n") == 1 and text.endswith(".\n")
    assert words in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "nothing to record"),
        (("-m",), "-m needs a value"),
        (("-o",), "-o needs a value"),
        (("--nonsense", "x.py"), "'--nonsense' is not an option of record"),
        (("--zombie=big", "x.py"), "'big' is not a size"),
        (("--zombie=0", "x.py"), "'0' leaves no room"),
        (("--quiet=1", "x.py"), "'--quiet=1' is not an option of record"),
        (("--stack-depth", "deep", "x.py"), "--stack-depth needs a whole number, not 'deep'"),
        (("--stack-depth", "1025", "x.py"), "1025 is not between 0 and 1024"),
        (("--rss-interval", "-1", "x.py"), "--rss-interval needs a whole number, not '-1'"),
        (("--rss-interval", "99999999", "x.py"), "99999999 ms is not between"),
        (("--max-file", "big", "x.py"), "'big' is not a size"),
        (("--max-file", "0", "x.py"), "'0' leaves no room"),
        (("--ring", "1MB", "x.py"), "too small"),
        (("--ring", "9MB", "--max-file", "9MB", "x.py"), "give one of them"),
        (("--source", "cuda", "x.py"), "'cuda' is not a source"),
        (("absent.py",), "cannot open the script 'absent.py'"),
        (("absent/",), "cannot open the script 'absent/'"),
        (("-o", "taken", "x.py"), "'taken' exists; give -f"),
        (("-o", "folder", "x.py"), "'folder'"),
        (("-f", "-o", "folder", "x.py"), "'folder' (Is a directory)"),
        (("-o", "absent/a.tlm", "x.py"), "'absent/a.tlm' (No such file or directory)"),
        (("-o", "taken/a.tlm", "x.py"), "'taken/a.tlm' (Not a directory)"),
        (("-o", "", "x.py"), "-o needs a value"),
    ],
)
def test_record_refuses(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print('started')", encoding="utf-8")
    (tmp_path / "taken").write_bytes(b"precious")
    (tmp_path / "folder").mkdir()

    assert_refused(recorded([], tmp_path, options=options), words)
    assert (tmp_path / "taken").read_bytes() == b"precious"
    assert {path.name for path in tmp_path.iterdir()} == {"x.py", "taken", "folder"}


def test_folder_without_permission_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "closed"
    target.mkdir()
    target.chmod(0o500)
    try:
        path = "closed/a.tlm" if os.geteuid() else "/proc/a.tlm"
        assert_refused(recorded(["-c", "print(1)"], tmp_path, options=("-o", path)), f"'{path}' (")
    finally:
        target.chmod(0o700)


def test_script_without_permission_or_in_another_form_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "sub")
    (tmp_path / "old.pyc").write_bytes(b"\0" * 32)
    os.symlink("nowhere", tmp_path / "link.py")

    assert_refused(recorded(["old.pyc"], tmp_path), "was compiled by another Python")
    assert_refused(recorded(["link.py"], tmp_path), "cannot open the script 'link.py'")


def test_folder_without_a_main_is_reported_by_python(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = recorded(["empty"], tmp_path)
    expected = plain(["empty"], tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (1, b"", expected.stderr)


def test_force_overwrites(tmp_path: Path) -> None:
    (tmp_path / "a.tlm").write_bytes(b"x" * 1000)
    done = recorded(["-c", "print(1)"], tmp_path, options=("-q", "-f", "-o", "a.tlm"))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")
    assert tlmem.read(tmp_path / "a.tlm").sealed


@pytest.mark.parametrize(
    ("words", "code", "where"),
    [
        ([], 2, "err"),
        (["--help"], 0, "out"),
        (["record", "--help"], 0, "out"),
        (["record", "-q", "-h"], 0, "out"),
        (["report", "--help"], 0, "out"),
        (["doctor", "--help"], 0, "out"),
        (["nonsense"], 2, "err"),
        (["report"], 2, "err"),
        (["report", "--format", "picture", "x"], 2, "err"),
        (["report", "--explain", "--format", "html", "x"], 2, "err"),
        (["report", "--explain", "--format", "markdown", "x"], 2, "err"),
        (["doctor", "x"], 2, "err"),
    ],
)
def test_usage(words: list[str], code: int, where: str, tmp_path: Path) -> None:
    done = command(words, tmp_path)
    said, silent = (done.stdout, done.stderr) if where == "out" else (done.stderr, done.stdout)

    assert (done.returncode, silent) == (code, b"")
    assert b"usage: tlmem" in said and b"Traceback" not in said


@pytest.mark.parametrize(
    ("allocator", "how"),
    [
        ("pymalloc", b"sampled where they are allocated\n"),
        ("debug", b"sampled where they are allocated and freed, which is slower\n"),
        ("malloc", b"sampled in Python's raw domain, where all of them come from\n"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="nothing is sampled on this system")
def test_doctor_says_how_the_heap_is_sampled(allocator: str, how: bytes, tmp_path: Path) -> None:
    done = run([*TLMEM, "doctor"], tmp_path, environment={"PYTHONMALLOC": allocator})

    assert b"\nheap:        slots (" in done.stdout
    assert b"\nobjects:     " + how in done.stdout


def test_version(tmp_path: Path) -> None:
    done = run([*TLMEM, "--version"], tmp_path)

    assert (done.returncode, done.stdout) == (0, f"tlmem {tlmem.__version__}\n".encode())


def test_report_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"no recording\n" * 5000)
    (tmp_path / "empty").write_bytes(b"")

    for name, code in (("text", 2), ("absent", 2), ("empty", 3)):
        done = command(["report", name], tmp_path)
        assert done.returncode in {code, 2}
        assert done.stdout == b"" and b"Traceback" not in done.stderr
        assert name.encode() in done.stderr and done.stderr.count(b"\n") == 1


def test_doctor_finds_this_machine_fit(tmp_path: Path) -> None:
    done = run([*TLMEM, "doctor"], tmp_path)
    lines = dict(line.split(":", 1) for line in done.stdout.decode().splitlines())

    assert (done.returncode, done.stderr) == (0, b"")
    assert lines["recording"].strip() == lines["reading"].strip() == "works"
    assert lines["numpy hook"].strip() == "found"
    assert lines["holders"].strip() == "found"
    assert "anon" in lines["samples"] and "python_arena" in lines["samples"]
    assert lines["cpu"].strip() == lines["sim-metal"].strip() == "device, works"
    assert lines["metal"].strip() == "device, works" or "Metal" in lines["metal"]
    assert list(tmp_path.iterdir()) == []


def test_recording_without_the_extension_module_is_refused(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['tlmem._native'] = None\n"
        "from tlmem.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    refused = plain(["-c", code, "record", "-c", "print(1)"], tmp_path)
    doctor = plain(["-c", code, "doctor"], tmp_path)

    assert_refused(refused, "install tlmem where a C compiler is")
    assert (doctor.returncode, doctor.stderr) == (1, b"")
    assert doctor.stdout.decode().splitlines()[-1].split() == ["reading:", "works"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of its own size (tmpfs)")
def test_full_disk_stops_the_recording_and_not_the_program(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.decode().strip()}")
    program = """
import numpy as np
sizes = np.random.default_rng(1).integers(1, 3000, 300_000).tolist()
kept = [None] * 3000
for size in sizes:
    kept[size] = np.empty(size, np.uint8)
print(sum(array is not None for array in kept))
"""
    try:
        done = recorded(["-c", program], tmp_path, options=("-o", "small/a.tlm"))
        quiet = recorded(["-c", program], tmp_path, options=("-q", "-o", "small/b.tlm"))
        recording = tlmem.read(small / "a.tlm")
        lost, folded = recording.lost_events, recording.folded_events
        del recording  # closes the file, or the file system could not be taken away
    finally:
        subprocess.run(["umount", str(small)], check=True)

    assert (done.returncode, done.stdout) == (0, b"2999\n")
    assert all(line.startswith("tlmem: ") for line in done.stderr.decode().splitlines())
    assert lost or folded
    assert ("could not be recorded" in done.stderr.decode()) == bool(lost)
    assert (quiet.returncode, quiet.stdout) in {(0, b"2999\n"), (2, b"")}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["reprot", "x"], "'reprot' is not a command of tlmem; did you mean report?"),
        (["report"], "FILE is missing (tlmem report --help explains)."),
        (["report", "--fromat", "json", "x"], "'--fromat' is not an option of report; did you"),
        (["report", "--format", "jsn", "x"], "--format cannot be 'jsn'; did you mean json?"),
        (["plot", "--kind", "cake", "x"], "--kind cannot be 'cake'; choose from memory, "),
        (["diff", "a", "b", "c"], "'c' is one word too many for diff"),
        (["stats", "x", "--lines", "few"], "--lines needs a count, not 'few'"),
        (["check", "--budget"], "--budget needs a value (tlmem check --help explains)."),
        (["doctor", "--flags"], "'--flags' is not an option of doctor; did you mean --cflags?"),
        (["record", "python", "a.py"], "leave it out: tlmem record a.py."),
        (["record", "/usr/bin/python3.11"], "'/usr/bin/python3.11' is not a script"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_with_the_next_step(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    done = command(words, tmp_path)

    last = done.stderr.decode().splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, b"")
    assert last.startswith("tlmem: ") and sentence in last
    assert "error:" not in done.stderr.decode()
