"""The text of source lines is in the recording: as the program ran, after a kill, within bounds.

And the program does not notice that its files are read: no lock of its own is given up, no pipe is
opened, no descriptor is left.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.programs import environment_of, plain, recorded

import tlmem
from tlmem.recording.reader import Recording

FILL = "import numpy as np\nkept = []\n"


def lines_of(recording: Recording, name: str) -> dict[int, str]:
    """What was recorded of a file, by line."""
    codes, lines = recording._names.codes, recording._names.lines
    return {line: text for (code, line), text in lines.items() if codes[code].file.endswith(name)}


def record(folder: Path, program: str | bytes, *options: str) -> Recording:
    """Records ``program.py``."""
    path = folder / "program.py"
    path.write_bytes(program if isinstance(program, bytes) else program.encode())
    done = recorded([str(path)], folder, options=("-q", "-o", "run.tlm", *options))
    assert done.returncode == 0, done.stderr.decode()
    return tlmem.read(folder / "run.tlm")


def test_reports_print_lines_of_a_file_that_is_gone(tmp_path: Path) -> None:
    record(
        tmp_path,
        FILL
        + "import time\nfor i in range(300):\n    time.sleep(0.001)\n"
        + "    kept.append(np.ones(500))  # here\n",
    )
    (tmp_path / "program.py").unlink()
    for form in ("text", "html"):
        done = plain(["-m", "tlmem", "report", "--format", form, "run.tlm"], tmp_path)
        assert b"kept.append(np.ones(500))  # here" in done.stdout
    assert (
        b"kept.append(np.ones(500))  # here"
        in plain(["-m", "tlmem", "check", "run.tlm"], tmp_path).stdout
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=repr)
def test_lines_are_counted_as_python_counts_them(end: bytes, tmp_path: Path) -> None:
    rows = [b"\xef\xbb\xbfimport numpy as np", b"", b"kept = [np.ones(9)]", b"if kept:"]
    rows += ["\tkept.append(np.ones(8))\t# \N{SNOWMAN}".encode(), b"", b"kept.append(np.ones(7))"]
    found = lines_of(record(tmp_path, end.join(rows)), "program.py")

    assert found[3] == "kept = [np.ones(9)]"
    assert found[5] == "kept.append(np.ones(8)) # \N{SNOWMAN}"
    assert found[7] == "kept.append(np.ones(7))"


def test_a_long_line_is_cut_between_characters(tmp_path: Path) -> None:
    for pad in range(4):
        line = f"np.ones(9); '{'x' * pad}{chr(0x1F600) * 5000}'"
        text = lines_of(record(tmp_path, f"import numpy as np\n{line}\n", "--force"), "program.py")
        assert line.startswith(text[2]) and 252 < len(text[2].encode()) <= 256


def test_a_line_of_a_kill_is_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        FILL + "import time\nkept.append(np.ones(500))  # first\nprint('made', flush=True)\n"
        "while True:\n    time.sleep(0.05)\n    kept.append(np.ones(500))  # second\n"
    )
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "run.tlm", str(program)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment_of(None), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"made\n"
        for _ in range(100):
            time.sleep(0.1)
            if len(lines_of(tlmem.read(tmp_path / "run.tlm"), "program.py")) >= 3:
                break
        os.kill(process.pid, signal.SIGKILL)
    found = lines_of(tlmem.read(tmp_path / "run.tlm"), "program.py")

    assert found[4] == "kept.append(np.ones(500))  # first"
    assert found[8] == "kept.append(np.ones(500))  # second"


def test_a_file_that_changes_while_it_runs_gives_no_wrong_line(tmp_path: Path) -> None:
    """Lines that were read before stay; those that come later are of another text."""
    program = FILL + (
        "import os, time\n"
        "kept.append(np.ones(500))  # as it ran\n"
        "time.sleep(2)\n"
        "text = open(__file__).read().replace('as it ' + 'ran', 'as it is')\n"
        "open(__file__ + 'new', 'w').write('#\\n' + text)\n"
        "os.replace(__file__ + 'new', __file__)\n"
        "kept.append(np.ones(500))  # as it ran\n"
    )
    found = lines_of(record(tmp_path, program), "program.py")

    assert "as it is" in (tmp_path / "program.py").read_text()
    assert found[4] == "kept.append(np.ones(500))  # as it ran"
    assert 9 not in found


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list locks")
def test_a_lock_on_the_script_stays(tmp_path: Path) -> None:
    """Closing any descriptor of a file gives up the record locks that the process has on it."""
    program = FILL + (
        "import fcntl, subprocess, sys, time\n"
        "script = open(__file__, 'r+')\n"
        "fcntl.lockf(script, fcntl.LOCK_EX)\n"
        "kept.append(np.ones(500))\n"
        "time.sleep(0.4)\n"
        "other = 'import fcntl; fcntl.lockf(open(%r, \"r+\"), fcntl.LOCK_EX | fcntl.LOCK_NB)'\n"
        "refused = subprocess.run([sys.executable, '-c', other % __file__], stderr=-3).returncode\n"
        "sys.exit(0 if refused else 'the lock is gone')\n"
    )
    record(tmp_path, program)


def test_names_of_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    program = FILL + (
        "import time\n"
        "for name in ('pipe.py', '/dev/zero', '/proc/self/mem', '/proc/self/status', '.'):\n"
        "    exec(compile('kept.append(np.ones(500))', name, 'exec'))\n"
        "time.sleep(0.4)\n"
    )
    recording = record(tmp_path, program)

    for name in ("pipe.py", "/dev/zero", "/proc/self/mem", "/proc/self/status"):
        assert any(code.file.endswith(name) for code in recording._names.codes.values())
        assert lines_of(recording, name) == {}


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    program = FILL + (
        "import os, time\n"
        "for n in range(50):\n"
        "    open(f'm{n}.py', 'w').write('kept.append(np.ones(9))')\n"
        "    exec(compile(open(f'm{n}.py').read(), f'm{n}.py', 'exec'))\n"
        "time.sleep(0.5)\n"
        "numbers = [f'/dev/fd/{n}' for n in os.listdir('/dev/fd')]\n"
        "left = [os.readlink(n) for n in numbers if os.path.lexists(n)]\n"
        "assert not any(name.endswith('.py') or 'locks' in name for name in left), left\n"
    )
    recording = record(tmp_path, program)

    assert all(
        lines_of(recording, f"/m{n}.py") == {1: "kept.append(np.ones(9))"} for n in range(50)
    )


def test_a_program_without_a_free_descriptor_gets_its_lines_later(tmp_path: Path) -> None:
    program = FILL + (
        "import resource, time\n"
        "before = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))\n"
        "kept.append(np.ones(500))\n"
        "time.sleep(0.5)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, before)\n"
    )
    assert lines_of(record(tmp_path, program), "program.py")[6] == "kept.append(np.ones(500))"


def test_children_have_lines_of_their_own(tmp_path: Path) -> None:
    program = FILL + (
        "import os\n"
        "if os.fork() == 0:\n"
        "    kept.append(np.ones(500))  # child\n"
        "else:\n"
        "    os.wait()\n"
        "    kept.append(np.ones(500))  # parent\n"
    )
    recording = record(tmp_path, program)
    (child,) = (lines_of(tlmem.read(path), "program.py") for path in recording.family)

    assert child[5] == "kept.append(np.ones(500))  # child" and 8 not in child
    assert lines_of(recording, "program.py")[8] == "kept.append(np.ones(500))  # parent"


def test_lines_keep_to_their_share_of_a_small_file(tmp_path: Path) -> None:
    many = "".join(f"kept.append(np.ones(9))  # {n:0200}\n" for n in range(2_000))
    recording = record(tmp_path, FILL + many, "--max-file", "8MiB")
    lines = recording._names.lines.values()

    assert 100 < len(lines) < 2_000
    assert sum(40 + len(text.encode()) for text in lines) <= (8 << 20) // 64
    assert (tmp_path / "run.tlm").stat().st_size <= 8 << 20


CELLS = """
import linecache
def cell(number, source):
    name = f"<ipython-input-{number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), globals())
cell(1, "def f():\\n    kept.append(np.ones(500))  # a cell\\n")
cell(2, "f()\\n")
"""


def test_cells_have_lines(tmp_path: Path) -> None:
    recording = record(tmp_path, FILL + CELLS)

    assert lines_of(recording, "<ipython-input-1>") == {2: "kept.append(np.ones(500))  # a cell"}
    assert recording.source_line("<ipython-input-2>", 1, "<module>") == "f()"


def test_a_cache_of_lines_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    program = FILL + (
        "import linecache\n"
        "class Odd(str):\n"
        "    def __hash__(self): raise SystemError\n"
        "    def __iter__(self): raise SystemError\n"
        "linecache.cache = {1: 2, '<a>': None, '<b>': (1, None), '<c>': (1, None, 3, 4),\n"
        "    '<d>': (1, None, [b'x', Odd('y')], ''), '\\udcff': (1, None, ['\\udcff'], '')}\n"
        "for name in ('<a>', '<b>', '<c>', '<d>', '\\udcff'):\n"
        "    exec(compile('kept.append(np.ones(9))', name, 'exec'))\n"
    )
    recording = record(tmp_path, program)

    assert lines_of(recording, "program.py")[10].startswith("exec(compile(")
    assert all(lines_of(recording, f"<{name}>") == {} for name in "abcd")


def test_code_of_a_command_line_and_of_standard_input_has_lines(tmp_path: Path) -> None:
    source = FILL + "kept.append(np.ones(500))  # given\n"
    for words, stdin, name in (
        (["-c", source], b"", "<string>"),
        (["-"], source.encode(), "<stdin>"),
    ):
        done = recorded(words, tmp_path, None, stdin, options=("-q", "--force", "-o", "run.tlm"))
        assert done.returncode == 0
        recording = tlmem.read(tmp_path / "run.tlm")
        assert recording.source_line(name, 3, "<module>") == "kept.append(np.ones(500))  # given"


def test_what_else_is_called_string_has_no_line_of_the_program(tmp_path: Path) -> None:
    source = FILL + "def f():\n    pass\nnp.ones(9)\nexec('def g():\\n\\n\\n np.ones(9)\\ng()')\n"
    recorded(["-c", source], tmp_path, options=("-q", "-o", "run.tlm"))
    recording = tlmem.read(tmp_path / "run.tlm")

    assert 4 not in lines_of(recording, "<string>")
    assert recording.source_line("<string>", 4, "g") == ""


def test_the_recorder_of_a_program_has_lines(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, tlmem\n"
        "with tlmem.Recorder('run.tlm', rss_interval=0):\n"
        "    kept = np.ones(500)  # in it\n"
    )
    assert plain([str(program)], tmp_path).returncode == 0
    found = lines_of(tlmem.read(tmp_path / "run.tlm"), "program.py")

    assert found[3] == "kept = np.ones(500)  # in it"
