"""The recording is cut short, moved, removed or overwritten while the program runs.

The program must not notice: same output, same exit code. Its recording ends with a message.
"""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.programs import LONGEST_S, assert_same, command, environment_of, plain, recorded

import tlmem

CUT = "another program cut 'a.tlm' short"
REMOVED = "'a.tlm' was removed"
WAYS = {
    "emptied": ('open("a.tlm", "w").close()', CUT),
    "halved": ('os.truncate("a.tlm", os.path.getsize("a.tlm") // 2)', CUT),
    "header_only": ('os.truncate("a.tlm", 16384)', CUT),
    "inside_its_header": ('os.truncate("a.tlm", 5000)', CUT),
    "emptied_and_long_again": ('os.truncate("a.tlm", 0); os.truncate("a.tlm", 1 << 22)', CUT),
    "written_over": ('open("a.tlm", "w").write("other text")', CUT),
    "copied_and_emptied": (
        'shutil.copy("a.tlm", "a.tlm.1"); open("a.tlm", "w").close()',
        CUT,
    ),
    "removed": ('os.unlink("a.tlm")', REMOVED),
    "replaced": ('open("b", "w").write("x"); os.rename("b", "a.tlm")', REMOVED),
    "moved": ('os.rename("a.tlm", "a.tlm.1")', "it is 'a.tlm.1' now"),
    "moved_and_made_anew": (
        'os.rename("a.tlm", "a.tlm.1"); open("a.tlm", "w").close()',
        "it is 'a.tlm.1' now",
    ),
}
PROGRAM = """
import os, shutil, sys, threading, time
import numpy as np

def churn(count):
    for size in range(count):
        np.empty(size % 50 + 1)

def churn_until(event):
    while not event.is_set():
        churn(100)

over = threading.Event()
threads = [threading.Thread(target=churn_until, args=(over,)) for _ in range(2)]
for thread in threads:
    thread.start()
churn(30_000)
assert os.path.getsize("a.tlm") > 100_000 if os.path.exists("a.tlm") else True
if os.path.exists("a.tlm"):
    LOSE
time.sleep(0.05)
kept = [np.ones(3) for _ in range(20_000)]
over.set()
for thread in threads:
    thread.join()
print("end", sum(each.sum() for each in kept))
sys.exit(7)
"""
OPTIONS = ("-o", "a.tlm")


def message(result: "subprocess.CompletedProcess[bytes]") -> str:
    """The line about the file; every line of stderr is ours."""
    lines = result.stderr.decode().splitlines()
    assert all(line.startswith("tlmem: ") for line in lines), lines
    return next((line for line in lines if "'a.tlm'" in line), "")


@pytest.mark.parametrize("way", WAYS)
def test_program_goes_on_when_its_recording_is(way: str, tmp_path: Path) -> None:
    """The same output and exit code, a message, and what is left is readable or explained."""
    lose, said = WAYS[way]
    (tmp_path / "program.py").write_text(PROGRAM.replace("LOSE", lose), encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=OPTIONS)

    assert (result.returncode, result.stdout) == (7, b"end 60000.0\n"), result.stderr
    assert said in message(result)
    report = command(["report", "a.tlm"], tmp_path)
    assert report.returncode in (0, 2, 3) and (report.stdout or report.stderr)
    if way == "halved":
        assert tlmem.read(tmp_path / "a.tlm").info["stopped"] == (
            "another program cut the file short"
        )
        assert b"because another program cut" in b" ".join(report.stdout.split())
    if way in ("moved", "moved_and_made_anew"):
        assert tlmem.read(tmp_path / "a.tlm.1").complete


@pytest.mark.parametrize("options", [("--rss-interval", "0"), ("--max-file", "8.4MB")])
def test_file_is_watched_without_samples_and_with_a_limit(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    lose = 'churn(150_000); open("a.tlm", "w").close(); churn(20_000)'
    (tmp_path / "program.py").write_text(PROGRAM.replace("LOSE", lose), encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=(*OPTIONS, *options))

    assert (result.returncode, result.stdout) == (7, b"end 60000.0\n"), result.stderr
    assert CUT in message(result)


def test_file_that_is_cut_again_and_again(tmp_path: Path) -> None:
    lose = """for length in (1 << 20, 1 << 22, 300_000, 20_000, 10, 1 << 21, 0):
        os.truncate("a.tlm", length)
        churn(3_000)"""
    (tmp_path / "program.py").write_text(PROGRAM.replace("LOSE", lose), encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=OPTIONS)

    assert (result.returncode, result.stdout) == (7, b"end 60000.0\n"), result.stderr
    assert CUT in message(result)


def test_file_of_a_child_is_cut_short(tmp_path: Path) -> None:
    """The child says so, and its parent's recording is whole."""
    program = """
        import glob, os, sys
        import numpy as np
        child = os.fork()
        if child == 0:
            for _ in range(2):
                for size in range(20_000):
                    np.empty(size % 50 + 1)
                for name in glob.glob("a.*.tlm"):
                    os.truncate(name, 0)
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        kept = [np.empty(10) for _ in range(3000)]
        """
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=OPTIONS)

    assert (result.returncode, result.stdout) == (0, b"3\n")
    lines = [line for line in result.stderr.decode().splitlines() if "cut '" in line]
    assert len(lines) == 1 and lines[0].startswith("tlmem: process ")
    assert tlmem.read(tmp_path / "a.tlm").complete


def test_file_of_a_worker_is_cut_short(tmp_path: Path) -> None:
    program = """
        import glob, multiprocessing, os
        import numpy as np

        def work(number):
            for size in range(20_000):
                np.empty(size % 50 + 1)
            for name in glob.glob("a.*.tlm"):
                os.truncate(name, 0)
            for size in range(20_000):
                np.empty(size % 50 + 1)
            return number

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
                pool.close()
                pool.join()
        """
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=OPTIONS)

    assert (result.returncode, result.stdout) == (0, b"[1, 2]\n"), result.stderr
    assert b"tlmem: process " in result.stderr and b"short" in result.stderr


# What the program sees of SIGBUS, with `cut()` to lose the recording at that moment.
SIGBUS = """
import ctypes, faulthandler, mmap, os, signal, sys, threading, time
import numpy as np

def churn():
    for size in range(20_000):
        np.empty(size % 50 + 1)
    time.sleep(0.03)

def cut():
    if os.path.exists("a.tlm"):
        os.truncate("a.tlm", 0)
    churn()

def bus_error():
    with open("own", "w+b") as file:
        file.truncate(mmap.PAGESIZE)
        page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        page[0]
"""
HANDLING = {
    "python_sees_no_handler": "churn(); print(signal.getsignal(signal.SIGBUS)); cut()",
    "its_own_fault_kills_it": "churn(); bus_error()",
    "its_own_fault_kills_it_later": "churn(); cut(); bus_error()",
    "faulthandler_speaks_of_its_own_fault": "faulthandler.enable(); churn(); bus_error()",
    "faulthandler_after_the_loss": "churn(); cut(); faulthandler.enable(); churn(); bus_error()",
    "faulthandler_hears_nothing_of_ours": "faulthandler.enable(); churn(); cut(); print('end')",
    "faulthandler_taken_away": """
        faulthandler.enable(); churn(); faulthandler.disable(); cut(); bus_error()
        """,
    "handler_of_its_own": """
        signal.signal(signal.SIGBUS, lambda number, frame: print("bus", number))
        churn(); cut()
        os.kill(os.getpid(), signal.SIGBUS); churn(); os.kill(os.getpid(), signal.SIGBUS); churn()
        print(signal.signal(signal.SIGBUS, signal.SIG_DFL) is not None)
        os.kill(os.getpid(), signal.SIGBUS)
        """,
    "signal_that_is_sent_kills": "churn(); os.kill(os.getpid(), signal.SIGBUS); print('not here')",
    "signal_that_is_ignored": """
        signal.signal(signal.SIGBUS, signal.SIG_IGN)
        churn(); os.kill(os.getpid(), signal.SIGBUS); cut(); os.kill(os.getpid(), signal.SIGBUS)
        print("end")
        """,
    "signal_that_is_waited_for": """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGBUS})
        churn()
        os.kill(os.getpid(), signal.SIGBUS)
        time.sleep(0.1)
        print(signal.sigpending(), signal.sigwaitinfo({signal.SIGBUS}).si_pid == os.getpid())
        """,
    "sender_is_known": """
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        signal.signal(signal.SIGBUS, lambda number, frame: None)
        churn()
        os.kill(os.getpid(), signal.SIGBUS)
        print(os.read(read, 1))
        """,
    "child_after_a_loss": """
        churn(); cut()
        child = os.fork()
        if child == 0:
            churn(); bus_error()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    "program_that_is_started": """
        churn()
        import subprocess
        code = "import os; print([l for l in open('/proc/self/status') if l.startswith('Sig')][1:])"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
        """,
}


@pytest.mark.parametrize("name", HANDLING)
def test_sigbus_is_the_programs_own(name: str, tmp_path: Path) -> None:
    """Its handlers get its faults and signals, and none of ours; without one it dies as before."""
    if name == "program_that_is_started" and sys.platform != "linux":
        pytest.skip("reads /proc/self/status")
    text = SIGBUS + textwrap.dedent(HANDLING[name])
    (tmp_path / "program.py").write_text(text, encoding="utf-8")

    first = plain(["program.py"], tmp_path)
    second = recorded(["program.py"], tmp_path, options=("-q", *OPTIONS))

    def outcome(result: "subprocess.CompletedProcess[bytes]") -> tuple[int, bytes, list[str]]:
        # faulthandler numbers threads by their addresses.
        lines = [line.partition("0x")[0] for line in result.stderr.decode().splitlines()]
        return result.returncode, result.stdout, [x for x in lines if "Extension modules" not in x]

    assert outcome(second) == outcome(first)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of its own size (tmpfs)")
def test_page_that_the_disk_cannot_give_back(tmp_path: Path) -> None:
    """A hole is punched into the file on a disk that is full: SIGBUS, though the file is long."""
    small = tmp_path / "small"
    small.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8m", "tmpfs", str(small)]
    mounted = subprocess.run(["mount", *options], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.decode().strip()}")
    program = """
        import ctypes, os
        import numpy as np
        libc = ctypes.CDLL(None, use_errno=True)
        punch = libc.fallocate
        punch.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64
        def churn():
            for size in range(30_000):
                np.empty(size % 50 + 1)
        churn()
        number = os.open("a.tlm", os.O_RDWR)
        assert punch(number, 3, 16384, os.fstat(number).st_size - 16384) == 0
        os.close(number)
        with open("filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        churn()
        print("end")
        """
    try:
        (small / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
        result = recorded(["program.py"], small, options=OPTIONS)
    finally:
        subprocess.run(["umount", str(small)], check=True)

    assert (result.returncode, result.stdout) == (0, b"end\n"), result.stderr
    assert "the disk of 'a.tlm' failed" in message(result)


@pytest.mark.parametrize("when", ["before", "while"])
def test_limit_of_a_file_s_size_sends_no_signal(when: str, tmp_path: Path) -> None:
    """RLIMIT_FSIZE: what exceeds it gets SIGXFSZ, which only the program may do."""
    program = """
        import resource, signal
        import numpy as np
        signal.signal(signal.SIGXFSZ, lambda number, frame: print("too large"))
        if WHEN == "while":
            resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        for size in range(100_000):
            np.empty(size % 50 + 1)
        print("end")
        """
    text = textwrap.dedent(program).replace("WHEN", repr(when))
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "tlmem", "record", "-o", "a.tlm", "program.py"]
    limit = "ulimit -f 4000; " if when == "before" else ""

    result = subprocess.run(
        ["sh", "-c", f'{limit}exec "$@"', "sh", *words],
        cwd=tmp_path,
        capture_output=True,
        env=environment_of(None),
        timeout=LONGEST_S,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, b"end\n"), result.stderr
    assert result.stderr.startswith(b"tlmem: ")


def test_descriptor_closed_and_file_replaced_by_a_fifo(tmp_path: Path) -> None:
    """The program closes all numbers and puts a pipe in the file's place: nothing is opened."""
    program = """
        import os
        import numpy as np
        def churn():
            for size in range(30_000):
                np.empty(size % 50 + 1)
        churn()
        if os.path.exists("a.tlm"):
            os.unlink("a.tlm")
            os.mkfifo("a.tlm")
        os.closerange(3, 4096)
        churn()
        print("end")
        """
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")

    assert_same(["program.py"], tmp_path)
    result = recorded(["program.py"], tmp_path, options=OPTIONS)

    assert (result.returncode, result.stdout) == (0, b"end\n"), result.stderr
    assert signal.SIGBUS and not os.path.isfile(tmp_path / "a.tlm")
