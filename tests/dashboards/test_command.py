"""``tlmem tui`` and ``tlmem live`` in a terminal: exit codes, refusals, the terminal afterwards."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from support.screens import LONGEST_S
from support.story import write_story

TLMEM = [sys.executable, "-m", "tlmem"]
ESCAPES = re.compile(r"\x1b\[[0-9;?:<>=]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class Terminal:
    """A command in a pseudo-terminal of 100 x 30."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.output = ""
        self.latest = time.monotonic() + LONGEST_S
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            for name in ("COLUMNS", "LINES"):
                os.environ.pop(name, None)
            os.environ.update({"TERM": "xterm-256color", **environment})
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
            os.execv(TLMEM[0], [*TLMEM, *words])

    def read(self) -> bool:
        """Takes what has been written; False at the end. A command that hangs is killed."""
        if time.monotonic() > self.latest:
            os.kill(self.pid, signal.SIGKILL)
        if not select.select([self.file], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self.file, 1 << 16)
        except OSError:
            return False
        self.output += data.decode("utf-8", "replace")
        return bool(data)

    def until(self, text: str) -> None:
        while text not in ESCAPES.sub("", self.output) and self.read():
            pass
        assert text in ESCAPES.sub("", self.output)

    def end(self, *keys: str) -> int:
        """Presses keys, and returns the exit code once the command has ended."""
        for key in keys:
            os.write(self.file, key.encode())
        while self.read():
            pass
        os.close(self.file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TLMEM, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("environment", [{}, {"TERM": "linux"}, {"NO_COLOR": "1"}])
def test_q_restores_the_terminal_and_exits_with_0(story: Path, environment: dict[str, str]) -> None:
    terminal = Terminal("tui", str(story), **environment)
    terminal.until("leak at train.py:12")
    code = terminal.end("q")

    assert code == 0
    assert "\x1b[?1049h" in terminal.output
    assert terminal.output.rindex("\x1b[?1049l") > terminal.output.rindex("\x1b[?1049h")
    assert "\x1b[?25h" in terminal.output[terminal.output.rindex("\x1b[?1049h") :]
    assert "Traceback" not in terminal.output


def test_after_a_stop_all_of_the_screen_is_drawn_again(story: Path) -> None:
    terminal = Terminal("tui", str(story))
    terminal.until("leak at train.py:12")
    os.write(terminal.file, b"\x1a")
    while not os.WIFSTOPPED(os.waitpid(terminal.pid, os.WNOHANG | os.WUNTRACED)[1]):
        terminal.read()
    terminal.output = ""
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.until("leak at train.py:12")
    terminal.until("[1 Overview]")
    terminal.until("findings")
    terminal.output = ""
    os.write(terminal.file, b"\x03")
    terminal.until("q quits")

    assert terminal.end("q") == 0


def test_a_stop_that_nobody_asked_for_leaves_keys_and_terminal_as_they_were(story: Path) -> None:
    terminal = Terminal("tui", str(story))
    terminal.until("leak at train.py:12")
    for _ in range(3):
        os.kill(terminal.pid, signal.SIGSTOP)
        os.waitpid(terminal.pid, os.WUNTRACED)
        terminal.output = ""
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.until("leak at train.py:12")
        terminal.until("[1 Overview]")
    os.write(terminal.file, b"2")
    terminal.until("[2 Timeline]")
    os.write(terminal.file, b"q")
    while "\x1b[?1049l" not in terminal.output.rpartition("\x1b[?1049h")[2] and terminal.read():
        pass
    # It leaves the screen first and gives the terminal back then.
    for _ in range(500):
        after = termios.tcgetattr(terminal.file)
        if after == untouched():
            break
        time.sleep(0.01)

    assert (terminal.end(), after) == (0, untouched())


def untouched() -> list[object]:
    """The state of a terminal that no command has changed."""
    controlling, line = pty.openpty()
    state = termios.tcgetattr(controlling)
    os.close(controlling)
    os.close(line)
    return state


@pytest.mark.parametrize(
    ("command", "content", "code", "words"),
    [
        ("tui", None, 2, "does not exist"),
        ("tui", b"not a recording", 2, "is not a tlmem recording"),
        ("tui", b"", 3, "is empty"),
        ("tui", b"TLMEM\r\n\x1a" + bytes(20), 3, "cut inside its header"),
        ("live", b"not a recording", 2, "is not a tlmem recording"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_the_screen_is_taken(
    tmp_path: Path, command: str, content: bytes | None, code: int, words: str
) -> None:
    path = tmp_path / "x.tlm"
    if content is not None:
        path.write_bytes(content)
    terminal = Terminal(command, str(path))

    assert terminal.end() == code
    assert words in terminal.output
    assert "\x1b[?1049h" not in terminal.output and "Traceback" not in terminal.output


def test_without_a_terminal_no_report_of_a_process_number_is_named() -> None:
    done = run("live", "4711")

    assert (done.returncode, done.stdout) == (2, "")
    assert "tlmem report FILE prints" in done.stderr


def test_without_a_terminal_the_report_is_named(story: Path) -> None:
    done = run("tui", str(story))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tlmem: this needs a terminal to draw on; "
        f"tlmem report {story} prints what it would show.\n"
    )


@pytest.mark.parametrize("command", ["tui", "live"])
def test_help_is_there(command: str) -> None:
    done = run(command, "--help")

    assert done.returncode == 0 and f"usage: tlmem {command}" in done.stdout


def test_live_without_anything_to_follow_says_so(tmp_path: Path) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        terminal = Terminal("live")
    finally:
        os.chdir(here)

    assert terminal.end() == 2
    assert "no recording is being written" in terminal.output


def test_a_killed_program_is_shown_with_what_became_of_it(tmp_path: Path) -> None:
    path = write_story(tmp_path / "x.tlm", "compact", pid=999_999_7)
    terminal = Terminal("live", str(path))
    terminal.until("process 9999997 killed?")
    terminal.until("train.py:12 train")

    assert terminal.end("q") == 0


def test_one_can_quit_while_it_is_still_being_read(story: Path) -> None:
    terminal = Terminal("tui", str(story))
    terminal.until("train.py")

    assert terminal.end("q") == 0
