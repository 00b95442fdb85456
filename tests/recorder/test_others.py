"""Processes without a recording, and packages that allocate themselves, are noted at the end."""

import re
from pathlib import Path

import pytest
from support.programs import plain, recorded

import tlmem

BUSY = "import time\nt = time.process_time()\nwhile time.process_time() - t < 0.7: pass\n"
SMALL = "import subprocess\nfor _ in range(5): subprocess.run(['true'])\n"
STARTED = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BUSY + "x = bytearray(200_000_000)"!r}], check=True)
"""
EXECUTED = f"""
import os, signal, sys
read, write = os.pipe()
os.set_inheritable(write, True)
code = {BUSY + "import os; os.write(int(os.sys.argv[1]), b'.')" + chr(10) + "time.sleep(600)"!r}
pid = os.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-c", code, str(write)])
os.read(read, 1)
import atexit
atexit.register(lambda: (os.kill(pid, signal.SIGKILL), os.waitpid(pid, 0)))
"""
POOL = f"""
import multiprocessing, sys

def work(number):
    exec({BUSY!r}, {{}})

if __name__ == "__main__":
    pool = multiprocessing.get_context(sys.argv[1]).Pool(1)
    pool.map(work, range(2))
    {{end}}
"""
PACKAGES = "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n"


def noted(program: str, folder: Path, *arguments: str) -> tuple[dict[str, int], str]:
    """The note about processes, and the verdict that is printed."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = recorded(["program.py", *arguments], folder, options=("-o", "x.tlm"))
    info = tlmem.read(str(folder / "x.tlm")).info

    assert done.returncode == 0
    told = {name: int(n) for name, n in re.findall(r"(\w+)=(\d+)", info["processes"])}
    return told, done.stderr.decode()


def test_a_program_without_children_has_none(tmp_path: Path) -> None:
    told, _ = noted("x = 1\n", tmp_path)

    assert told["own_cpu_ns"] > 0 and told["own_peak_bytes"] > 1_000_000
    assert [told[name] for name in ("followed", "others", "running")] == [0, 0, 0]
    assert told["children_cpu_ns"] == 0


def test_a_process_that_is_not_recorded_is_counted_and_measured(tmp_path: Path) -> None:
    told, stderr = noted(STARTED, tmp_path)

    assert (told["followed"], told["others"], told["running"]) == (0, 1, 0)
    assert told["children_cpu_ns"] > 600_000_000
    assert told["children_peak_bytes"] > 200_000_000
    assert "1 process that it started was not recorded" in stderr


def test_one_that_still_runs_and_was_executed_by_a_fork_is_not_taken_for_recorded(
    tmp_path: Path,
) -> None:
    told, stderr = noted(EXECUTED, tmp_path)

    assert (told["followed"], told["others"], told["running"]) == (1, 0, 1)
    assert told["running_cpu_ns"] > 600_000_000 and told["running_peak_bytes"] > 1_000_000
    assert "1 process that it started was not recorded" in stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("end", ["pool.close(); pool.join()", ""])
def test_workers_that_are_recorded_are_not_counted(method: str, end: str, tmp_path: Path) -> None:
    told, stderr = noted(POOL.replace("{end}", end), tmp_path, method)

    assert (told["followed"], told["others"], told["running"]) == (1, 0, 0)
    assert "not recorded" not in stderr


def test_short_commands_are_counted_and_not_worth_a_sentence(tmp_path: Path) -> None:
    told, stderr = noted(SMALL, tmp_path)

    assert (told["followed"], told["others"]) == (0, 5)
    assert "not recorded" not in stderr


def test_packages_with_memory_of_their_own_are_named(tmp_path: Path) -> None:
    noted(PACKAGES, tmp_path)

    assert tlmem.read(str(tmp_path / "x.tlm")).info["packages"] == "torch"


def test_only_what_ran_during_a_recording_counts(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import tlmem\n"
        "for name in ('a', 'b'):\n"
        "    with tlmem.Recorder(name + '.tlm'):\n"
        "        import subprocess  # before, it would have the interpreter's own function\n"
        "        [subprocess.run(['true']) for _ in range(1 + (name == 'b'))]\n",
        encoding="utf-8",
    )
    assert plain(["program.py"], tmp_path).returncode == 0
    notes = [tlmem.read(str(tmp_path / f"{name}.tlm")).info["processes"] for name in "ab"]

    assert [note.split()[1] for note in notes] == ["others=1", "others=2"]
