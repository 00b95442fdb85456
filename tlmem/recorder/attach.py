"""``tlmem attach``: records a Python process that was not started under tlmem.

Covers: finding out whether that can be done, putting a call into the process, its answer.
Does not cover: what then runs in the process (``attached``).

From Python 3.14 on ``sys.remote_exec`` does it, in the program's ``__main__``. Before, gdb stops
the process for some milliseconds and calls two functions in it that take no lock of the allocator:
``mmap``, for a page with a line of text, and ``Py_AddPendingCall``, which has Python run that line
in the main thread between two instructions. Nothing is called that could wait for what the stopped
process holds.

gdb before version 14 cannot write the vector registers of a processor with AMX, and finds out in
the middle of a call, after which the program goes on with wrong registers. So the flag of inexact
results is turned over and back first, and nothing is called where gdb cannot do that.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tlmem.recorder.failure import CannotRecord

TIMEOUT_S = 15.0
"""How long the main thread may take until it runs Python code again."""
LINE = "try:\n exec(open({path!r}).read(), {{}})\nexcept OSError:\n pass\n"
"""What Python runs; where the file is gone, as the wait has ended, it does nothing."""
LATE = "try:\n __import__('shutil').rmtree({folder!r}, True)\nexcept Exception:\n pass\n"
"""What is left of it for a process that did not run it in time: Python 3.14 reports a script that
is gone on standard error, so it stays, and removes itself."""
CODE = """\
import json, os, sys
folders = {folders!r}
added = [folder for folder in folders if folder not in sys.path]
try:
    sys.path += added
    try:
        import tlmem.recorder.attached as attached
        import tlmem
        if tlmem.__version__ != {version!r}:
            versions = tlmem.__version__, {version!r}
            raise RuntimeError("it has imported tlmem %s already, and this is %s" % versions)
        answer = attached.{call}
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)
except BaseException as error:
    answer = {{"error": str(error) or type(error).__name__}}
try:
    with open({reply!r} + ".part", "w") as file:
        json.dump(answer, file)
    os.rename({reply!r} + ".part", {reply!r})
except OSError:
    pass
"""
GDB = """\
import gdb
text = {text!r} + b"\\0"
for flags, inexact in (("mxcsr", 32), ("fpsr", 16)):
    value = gdb.parse_and_eval("$" + flags)
    if value.type.code != gdb.TYPE_CODE_VOID:
        before = int(gdb.parse_and_eval("(int)$" + flags))
        try:
            gdb.execute("set var $%s = %d" % (flags, before ^ inexact))
            gdb.execute("set var $%s = %d" % (flags, before))
        except gdb.error as error:
            print("tlmem: registers %s" % error)
            raise SystemExit
try:
    page = int(gdb.parse_and_eval(
        "((void *(*)(void *, unsigned long, int, int, int, long))mmap)(0, 4096, 3, 34, -1, 0)"))
    gdb.selected_inferior().write_memory(page, text)
    call = "((int (*)(void *, void *))Py_AddPendingCall)((void *)PyRun_SimpleString, (void *)%d)"
    status = int(gdb.parse_and_eval(call % page))
    print("tlmem: status %d" % status)
except gdb.error as error:
    print("tlmem: error %s" % error)
"""
NO_REGISTERS = (
    "the installed gdb cannot write all registers of this processor, so it cannot call into "
    "process {pid}; install gdb 14 or newer, or start the program with tlmem record."
)


def start(pid: int, path: str, options: dict[str, Any], timeout_s: float = TIMEOUT_S) -> str:
    """Begins to record a process; returns the path of the recording.

    Args:
        pid: a process of this user, of a Python with the same version as this one.
        path: the recording; relative to the current directory of this process.
        options: arguments of ``Recorder``.
        timeout_s: seconds to wait for the process.

    Raises:
        CannotRecord: with the reason and the next step. The process goes on as it was.
    """
    call = f"start({os.path.abspath(path)!r}, {options!r})"
    return str(_run_there(pid, call, timeout_s)["path"])


def stop(pid: int, timeout_s: float = TIMEOUT_S) -> str:
    """Ends the recording that ``start`` began; returns its path.

    Raises:
        CannotRecord: nothing was recording the process, or it cannot be reached.
    """
    return str(_run_there(pid, "stop()", timeout_s)["path"])


def _run_there(pid: int, call: str, timeout_s: float) -> dict[str, Any]:
    import tlmem

    require_attachable(pid)
    folder = tempfile.mkdtemp(prefix="tlmem-attach-")
    reply, script, entry = (os.path.join(folder, name) for name in ("reply", "script.py", "entry"))
    code = CODE.format(folders=_folders(), version=tlmem.__version__, call=call, reply=reply)
    line = LINE.format(path=script)
    Path(script).write_text(code, encoding="utf-8")
    Path(entry).write_text(line, encoding="utf-8")
    _give_to_owner(pid, folder)
    waits = False
    try:
        if hasattr(sys, "remote_exec"):
            _by_python(pid, entry)
            waits = True
        else:
            _by_gdb(pid, line)
        answer = _answer(pid, reply, timeout_s)
        waits = False
    finally:
        if waits and os.path.exists(f"/proc/{pid}"):
            os.remove(script)
            Path(entry).write_text(LATE.format(folder=folder), encoding="utf-8")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if "error" in answer:
        raise CannotRecord(f"process {pid} cannot be recorded: {answer['error']}")
    return answer


def _folders() -> list[str]:
    """Where tlmem and what it needs to record are imported from."""
    import tlmem

    needed = find_spec("_cffi_backend")
    beside = [os.path.abspath(needed.origin)] if needed and needed.origin else []
    files = [os.path.dirname(os.path.abspath(tlmem.__file__)), *beside]
    return list(dict.fromkeys(os.path.dirname(file) for file in files))


def _give_to_owner(pid: int, folder: str) -> None:
    """Root may attach to others' processes, which then must read and write there."""
    owner = os.stat(f"/proc/{pid}")
    if owner.st_uid != os.getuid():
        for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder))):
            os.chown(path, owner.st_uid, owner.st_gid)


def require_attachable(pid: int) -> None:
    """Raises CannotRecord when the process is missing, or of a Python that cannot be recorded."""
    if not sys.platform.startswith("linux"):
        raise CannotRecord("tlmem attach works on Linux only; start the program with tlmem record.")
    if pid == os.getpid():
        raise CannotRecord("a process cannot attach to itself; use tlmem.Recorder.")
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        program = os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        raise CannotRecord(f"there is no process {pid}; give its number.") from None
    except PermissionError:
        raise CannotRecord(
            f"process {pid} belongs to another user; run tlmem attach as that user or as root."
        ) from None
    found = re.search(r"/libpython3\.(\d+)", maps) or re.search(r"/python3\.(\d+)$", program)
    if found is None:
        raise CannotRecord(f"process {pid} ({program or 'no program'}) runs no Python 3.")
    if int(found[1]) != sys.version_info.minor:
        raise CannotRecord(
            f"process {pid} runs Python 3.{found[1]}, and this tlmem is installed for "
            f"3.{sys.version_info.minor}; use the tlmem of that Python."
        )
    if _namespace(pid) != _namespace(os.getpid()):
        raise CannotRecord(f"process {pid} runs in a container; run tlmem attach inside of it.")


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def _by_python(pid: int, script: str) -> None:
    try:
        sys.remote_exec(pid, script)  # type: ignore[attr-defined]
    except (OSError, RuntimeError, PermissionError) as error:
        raise CannotRecord(f"Python cannot reach process {pid} ({error}).") from None


def _by_gdb(pid: int, line: str) -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        raise CannotRecord(
            "before Python 3.14 gdb is needed to attach, and it is not installed; install gdb, or "
            "start the program with tlmem record."
        )
    with tempfile.NamedTemporaryFile("w", suffix=".py", prefix="tlmem-gdb-") as script:
        script.write(GDB.format(text=line.encode()))
        script.flush()
        words = [gdb, "-nx", "-batch", "-p", str(pid), "-iex", "set auto-load off"]
        words += ["-iex", "set debuginfod enabled off", "-ex", f"source {script.name}"]
        done = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
    said = done.stdout + done.stderr
    if "tlmem: status 0" in said:
        return
    if "tlmem: status" in said:
        raise CannotRecord(f"process {pid} has too many calls waiting for it; try again.")
    if "not permitted" in said:
        raise CannotRecord(
            f"the system does not let this process look at process {pid} (ptrace); run tlmem "
            "attach as root, in a container with the capability SYS_PTRACE, or set "
            "/proc/sys/kernel/yama/ptrace_scope to 0."
        )
    if "tlmem: registers" in said:
        raise CannotRecord(NO_REGISTERS.format(pid=pid))
    why = re.search(r"tlmem: error (.*)", said)
    last = (said.strip().splitlines() or ["it said nothing"])[-1]
    raise CannotRecord(f"gdb cannot call into process {pid} ({why[1] if why else last}).")


def _answer(pid: int, reply: str, timeout_s: float) -> dict[str, Any]:
    end = time.monotonic() + timeout_s
    while not os.path.exists(reply):
        if not os.path.exists(f"/proc/{pid}"):
            raise CannotRecord(f"process {pid} ended meanwhile.")
        if time.monotonic() > end:
            raise CannotRecord(
                f"the main thread of process {pid} ran no Python code for {timeout_s:.0f} s, so "
                "nothing was started; try again when it does, or with a longer --timeout."
            )
        time.sleep(0.01)
    answer: dict[str, Any] = json.loads(Path(reply).read_text(encoding="utf-8"))
    return answer
