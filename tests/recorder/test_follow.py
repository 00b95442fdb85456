"""``--follow all``: every Python that a program starts records itself, undisturbed."""

import json
import os
import sys
import venv
from pathlib import Path
from typing import Any

import cffi
import numpy
import pytest
from support.programs import command, plain, recorded, run

import tlmem
from tlmem.recorder import CannotRecord, children
from tlmem.recorder.children import HOOK, Lineage
from tlmem.recorder.options import Options
from tlmem.recording import family

ARRAYS = """
import numpy, os, sys
size, count = map(int, sys.argv[1:3])
kept = [numpy.empty(size, numpy.uint8) for _ in range(count)]
if "kill" in sys.argv:
    os.kill(os.getpid(), 9)
"""
LAUNCH = """
import os, subprocess, sys

def start(*words, **how):
    return subprocess.run([*words], **how).returncode

PYTHON = sys.executable
bare = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
print(start(PYTHON, "child.py", "a b"))
print(start(PYTHON, "arrays.py", "3000", "30", env=bare))
print(start("sh", "-c", PYTHON + " arrays.py 4000 40; exit 6"))
print(start(PYTHON, "idle.py"))
for flag in ("-S", "-I", "-E"):
    print(start(PYTHON, flag, "-c", "pass"))
print(start(PYTHON, "arrays.py", "6000", "60", "kill"))
print(start("true"), sorted(name for name in os.environ if "TLM" in name))
"""
CHILD = """
import numpy, os, sys
kept = [numpy.empty(2000, numpy.uint8) for _ in range(20)]
child = os.fork()
if child == 0:
    mine = [numpy.empty(2500, numpy.uint8) for _ in range(25)]
    os._exit(0)
os.waitpid(child, 0)
sys.exit(7)
"""
IDLE = "import subprocess, sys\nsubprocess.run([sys.executable, 'arrays.py', '5000', '50'])\n"
PROGRAMS = {"arrays": ARRAYS, "launch": LAUNCH, "child": CHILD, "idle": IDLE}
START = "[sys.executable, 'arrays.py', '3000', '30']"
LOOK = """
import atexit, os, signal, subprocess, sys
if len(sys.argv) == 1:
    for flags in ([], ["-O"], ["-u", "-X", "utf8"], ["-P"]):
        done = subprocess.run([sys.executable, *flags, __file__, "x"], capture_output=True)
        print(done.returncode, done.stdout.decode(), done.stderr.decode())
    code = "import sys; print(sys.argv, sys.orig_argv[1:]); sys.stderr.write('e'); raise ValueError"
    done = subprocess.run([sys.executable, "-c", code, "y"], capture_output=True)
    print(done.returncode, done.stdout.decode(), done.stderr.decode())
else:
    main = sys.modules["__main__"]
    print(sys.argv[1:], sys.flags, sys.orig_argv[1:], sorted(vars(main)), main.__spec__)
    print(sys.path, [getattr(f, "__name__", type(f)) for f in sys.meta_path])
    print([type(hook) for hook in sys.path_hooks])
    print(sorted(name for name in os.environ if name != "PWD"), os.dup(0))
    print([(n, signal.getsignal(n)) for n in (2, 15, 13)], signal.pthread_sigmask(0, []))
    print(sys.stdout.line_buffering, sys.gettrace(), sys.getprofile(), sys.excepthook)
    atexit.register(print, "first registered")
    atexit.register(print, "last registered")
    sys.exit("bye")
"""


def made(path: Path, size: int) -> int:
    """How many arrays of this size a recording has."""
    return int((tlmem.read(path).objects.size_bytes == size).sum())


class Launched:
    """One run of ``LAUNCH`` under ``--follow all``, for many assertions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in PROGRAMS.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        options = ("-q", "--follow", "all", "-o", "a.tlm")
        self.done = recorded(["launch.py"], folder, options=options)
        self.parent = tlmem.read(folder / "a.tlm")
        self.members = family.find(folder / "a.tlm")
        report = command(["report", "--format", "json", "a.tlm"], folder)
        self.report: dict[str, Any] = json.loads(report.stdout)

    def with_arrays(self, size: int) -> Path:
        """The one recording that has arrays of this size."""
        (found,) = [path for path in self.members if made(path, size)]
        return found


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    return Launched(tmp_path_factory.mktemp("launched"))


pytestmark = pytest.mark.xdist_group("follow")


def test_exit_codes_are_those_of_the_children(launched: Launched) -> None:
    ours = sorted(name for name in os.environ if "TLM" in name)
    assert launched.done.stdout.decode().split("\n") == [
        *("7", "0", "6", "0", "0", "0", "0", "-9", f"0 {ours}", "")
    ]
    assert launched.done.returncode == 0


def test_a_python_of_subprocess_has_a_file_of_the_family(launched: Launched) -> None:
    path = launched.with_arrays(2000)
    child = tlmem.read(path)

    assert (path.name, child.parent_pid) == (f"a.{child.pid}.tlm", launched.parent.pid)
    assert made(path, 2000) == 20 and child.sealed
    assert child.info["command"] == "child.py 'a b'"
    assert child.info["script"] == str(launched.folder / "child.py")


def test_its_forked_child_is_below_it(launched: Launched) -> None:
    path = launched.with_arrays(2500)
    parent = tlmem.read(launched.with_arrays(2000))

    assert path.name == f"a.{parent.pid}.{tlmem.read(path).pid}.tlm"
    assert made(path, 2500) == 25


def test_an_environment_of_the_programs_own_does_not_lose_it(launched: Launched) -> None:
    assert made(launched.with_arrays(3000), 3000) == 30


def test_one_behind_a_shell_names_the_program_as_its_parent(launched: Launched) -> None:
    assert tlmem.read(launched.with_arrays(4000)).parent_pid == launched.parent.pid


def test_one_behind_an_idle_process_is_found_without_that(launched: Launched) -> None:
    path = launched.with_arrays(5000)
    recording = tlmem.read(path)

    assert path.name == f"a.{recording.parent_pid}.{recording.pid}.tlm"
    assert not (launched.folder / f"a.{recording.parent_pid}.tlm").exists()


def test_a_killed_child_leaves_what_it_had(launched: Launched) -> None:
    path = launched.with_arrays(6000)

    assert made(path, 6000) == 60
    assert tlmem.read(path).state == "open"


def test_isolated_interpreters_are_counted_and_said(launched: Launched) -> None:
    assert len(launched.members) == 6
    assert " others=5 pythons=3 " in launched.parent.info["processes"]
    assert launched.parent.info["follow"] == "all"

    verdict = launched.report["processes"][str(launched.parent.pid)]["verdict"]
    assert "3 Python processes that it started were not recorded" in verdict["sentence"]
    assert "-S, -E or -I" in verdict["sentence"]


def test_json_says_who_each_process_is(launched: Launched) -> None:
    identities = [process["identity"] for process in launched.report["processes"].values()]

    assert [each["pid"] for each in identities][0] == launched.parent.pid
    assert {each["host"] for each in identities} == {os.uname().nodename}
    assert {each["rank"] for each in identities} == {None}


def test_what_posix_spawn_starts_is_followed_and_counted(tmp_path: Path) -> None:
    """From Python 3.13 on it is what ``subprocess`` calls wherever it can."""
    program = """
import os, shutil, subprocess, sys

def start(*words, how=os.environ):
    return os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(words[0], [*words], how), 0)[1])

print(os.posix_spawn.__name__, os.posix_spawn.__doc__ is not None)
words = sys.executable, "arrays.py"
print(start(*words, "3000", "30", how={b"PATH": os.environ["PATH"]}), start(*words, "4000", "40"))
print(start(sys.executable, "-I", "-c", "import sys; sys.exit(5)"), start(shutil.which("true")))
print(start(sys.executable, "-c", "import os; print('TLMEM_FOLLOW' in os.environ)"))
subprocess.run([*words, "5000", "50"], env=dict(os.environ), close_fds=False)
try:
    os.posix_spawn("/nowhere/python3", ["python3"], os.environ)
except OSError as error:
    print(error)
try:
    os.posix_spawn()
except TypeError as error:
    print(error)
"""
    (tmp_path / "arrays.py").write_text(ARRAYS, encoding="utf-8")
    (tmp_path / "launch.py").write_text(program, encoding="utf-8")
    python = plain(["launch.py"], tmp_path)
    done = recorded(["launch.py"], tmp_path, options=("-q", "--follow", "all", "-o", "a.tlm"))
    parent = tlmem.read(tmp_path / "a.tlm")
    files = [path for path in family.find(tmp_path / "a.tlm") if path.name != "a.tlm"]

    assert done.stdout.decode() == python.stdout.decode()
    assert (done.returncode, done.stderr) == (python.returncode, python.stderr) == (0, b"")
    assert [sum(made(path, size) for path in files) for size in (3000, 4000, 5000)] == [30, 40, 50]
    assert " others=2 pythons=1 " in parent.info["processes"]

    recorded(["launch.py"], tmp_path, options=("-q", "-f", "-o", "b.tlm"))
    assert " others=6 pythons=5 " in tlmem.read(tmp_path / "b.tlm").info["processes"]


def test_followed_children_are_the_same_as_without(tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text(LOOK, encoding="utf-8")
    python = plain(["look.py"], tmp_path)
    done = recorded(["look.py"], tmp_path, options=("-q", "--follow", "all", "-o", "a.tlm"))

    assert b"last registered\nfirst registered" in python.stdout
    assert done.stdout.decode() == python.stdout.decode()
    assert (done.returncode, done.stderr) == (python.returncode, python.stderr)


def test_a_launcher_is_not_called_stable_without_what_it_launched(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time\n"
        "subprocess.run([sys.executable, '-c', 'pass'])\n"
        "time.sleep(1.5)\n"  # less is too short to be judged
    )
    done = recorded(["-c", program], tmp_path, options=("-o", "a.tlm"))

    assert (
        b"1 Python process that it started was not recorded; "
        b"record them with tlmem record --follow all." in done.stderr
    )


def test_followed_none_leaves_children_alone_and_counts_them(tmp_path: Path) -> None:
    program = """
import multiprocessing, os, subprocess, sys
def work():
    import numpy; kept = numpy.empty(2000)
if __name__ == "__main__":
    child = os.fork()
    if child == 0:
        work(); print("forked", flush=True); os._exit(3)
    print(os.waitpid(child, 0)[1])
    spawned = multiprocessing.get_context("spawn").Process(target=work)
    spawned.start(); spawned.join()
    print(spawned.exitcode)
"""
    (tmp_path / "both.py").write_text(program, encoding="utf-8")
    done = recorded(["both.py"], tmp_path, options=("-q", "--follow", "none", "-o", "a.tlm"))
    info = tlmem.read(tmp_path / "a.tlm").info

    assert (done.returncode, done.stdout, done.stderr) == (0, b"forked\n768\n0\n", b"")
    assert [path.name for path in tmp_path.glob("*.tlm")] == ["a.tlm"]
    assert info["processes"].startswith("followed=0 others=2 pythons=2 ")


@pytest.mark.parametrize("value", [None, "", "9.9.9;1;follow=all;/nowhere/a.tlm", ";;;", "\udcff"])
def test_without_a_variable_of_this_version_nothing_of_tlmem_is_imported_or_said(
    value: str | None, tmp_path: Path
) -> None:
    code = "import sys; print([n for n in sys.modules if n.startswith('tlmem.recorder.session')])"
    code += "; print([n for n in sys.modules if n.startswith('tlmem')])" if value is None else ""
    done = plain(["-c", code], tmp_path, environment={"TLMEM_FOLLOW": value} if value else {})

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines()[-1] == b"[]" or value
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_replaces_itself_has_two_recordings(tmp_path: Path) -> None:
    (tmp_path / "arrays.py").write_text(ARRAYS, encoding="utf-8")
    program = f"{ARRAYS}\nif count == 20: os.execv(sys.executable, {START})\n"
    (tmp_path / "first.py").write_text(program, encoding="utf-8")
    options = ("-q", "--follow", "all", "-o", "a.tlm")
    recorded(["first.py", "2000", "20"], tmp_path, options=options)
    (second,) = family.find(tmp_path / "a.tlm")
    report = json.loads(command(["report", "--format", "json", "a.tlm"], tmp_path).stdout)
    pid = tlmem.read(second).pid

    assert (made(tmp_path / "a.tlm", 2000), made(second, 3000)) == (20, 30)
    assert list(report["processes"]) == [str(pid), f"{pid}.2"]


def test_tlmem_itself_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "arrays.py").write_text(ARRAYS, encoding="utf-8")
    words = ["-m", "tlmem", "record", "-q", "-o", "own.tlm", "arrays.py", "3000", "30"]
    program = f"import subprocess, sys\nsubprocess.run([sys.executable, *{words!r}], check=True)\n"
    done = recorded(["-c", program], tmp_path, options=("-q", "--follow", "all", "-o", "a.tlm"))

    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(path.name for path in tmp_path.glob("*.tlm")) == ["a.tlm", "own.tlm"]
    assert made(tmp_path / "own.tlm", 3000) == 30


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_of_multiprocessing_is_recorded_once(method: str, tmp_path: Path) -> None:
    program = f"""
import multiprocessing, subprocess, sys
def work():
    import numpy
    kept = [numpy.empty(2000, numpy.uint8) for _ in range(20)]
    subprocess.run({START})
if __name__ == "__main__":
    worker = multiprocessing.get_context("{method}").Process(target=work)
    worker.start()
    worker.join()
    print(worker.exitcode)
"""
    for name, text in (("arrays", ARRAYS), ("workers", program)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    options = ("-q", "--follow", "all", "-o", "a.tlm")
    done = recorded(["workers.py"], tmp_path, options=options)
    worker, below = family.find(tmp_path / "a.tlm")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"0\n", b"")
    assert (made(worker, 2000), made(below, 3000)) == (20, 30)
    assert below.name.startswith(worker.name.removesuffix("tlm"))
    assert len(list(tmp_path.glob("*.tlm"))) == 3


def test_a_recorder_follows_while_it_records(tmp_path: Path) -> None:
    (tmp_path / "arrays.py").write_text(ARRAYS, encoding="utf-8")
    program = f"""
import subprocess, sys, tlmem
with tlmem.Recorder("a.tlm", follow="all"):
    subprocess.run({START})
subprocess.run({START})
"""
    done = plain(["-c", program], tmp_path)

    assert (done.returncode, done.stderr) == (0, b"")
    assert [made(path, 3000) for path in family.find(tmp_path / "a.tlm")] == [30]


def test_where_the_start_up_file_is_missing_it_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(children, "find_hook", lambda: "")

    with pytest.raises(CannotRecord, match=f"needs the file {HOOK} .* with pip"):
        children.require_hook(Options(follow="all"))


def test_only_a_folder_of_site_makes_the_start_up_file_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.setitem(sys.modules, "site", None)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(packages)])
    (tmp_path / HOOK).write_text("", encoding="utf-8")
    before = children.find_hook()
    (packages / HOOK).write_text("", encoding="utf-8")

    assert (before, children.find_hook()) == ("", str(packages / HOOK))


def test_the_variable_gives_back_what_was_put_into_it() -> None:
    options = Options(
        follow="all", stack_depth=7, smaps=True, sources=("numpy",), limit_bytes=9_000_000
    )
    text = Lineage("/a;b/c d.tlm", 12, options, {}).variable()
    text = tlmem.__version__ + text[text.index(";") :]  # it is known once children are followed
    back = Lineage.of_variable(text, {"command": "x"})

    assert (back.path, back.pid, back.notes) == ("/a;b/c d.tlm", 12, {"command": "x"})
    assert back.options.as_dict() == options.as_dict()


def test_scripts_are_known_by_the_interpreter_that_they_name(tmp_path: Path) -> None:
    first = {"known": sys.executable, "searched": "/usr/bin/env python3", "other": "/bin/true"}
    for name, line in first.items():
        (tmp_path / name).write_text(f"#!{line}\npass\n")
        (tmp_path / name).chmod(0o755)
    program = f"import subprocess\nfor name in {[*first]}: subprocess.run(['./' + name])\n"
    recorded(["-c", program], tmp_path, options=("-q", "-o", "a.tlm"))
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    options = ("-q", "--follow", "all", "-o", "b.tlm")
    recorded(["-c", program], tmp_path, options=options, environment=path)
    notes = [tlmem.read(tmp_path / f"{name}.tlm").info["processes"] for name in "ab"]

    assert notes[0].startswith("followed=0 others=3 pythons=2 ")
    # The one that was searched for left no file, so that it is not known what it was.
    assert notes[1].startswith("followed=1 others=2 pythons=1 ")


def test_other_values_are_refused(tmp_path: Path) -> None:
    done = recorded(["-c", "print(1)"], tmp_path, options=("--follow", "some"))

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"choose all, fork or none" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_virtual_environment_is_followed_whose_dependencies_come_later(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (packages / "tlmem").symlink_to(Path(tlmem.__file__).parent)
    (packages / HOOK).write_text(Path(children.find_hook()).read_text("utf-8"), encoding="utf-8")
    others = Path(cffi.__file__).parents[1], Path(numpy.__file__).parents[1]
    (packages / "zz-later.pth").write_text("\n".join(map(str, others)), encoding="utf-8")
    (tmp_path / "arrays.py").write_text(ARRAYS, encoding="utf-8")
    program = f"import subprocess, sys\nprint(sys.prefix)\nsubprocess.run({START})\n"
    words = ["-m", "tlmem", "record", "-q", "--follow", "all", "-o", "a.tlm", "-c", program]
    done = run([str(tmp_path / "env/bin/python"), *words], tmp_path)
    members = family.find(tmp_path / "a.tlm")

    assert (done.stdout.decode(), done.stderr) == (f"{tmp_path / 'env'}\n", b"")
    assert [made(path, 3000) for path in members] == [30]
    assert tlmem.read(members[0]).info["executable"].startswith(str(tmp_path / "env"))
