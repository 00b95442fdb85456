"""Runs one part of a suite, plain or recorded, and reads what became of each test."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from foreign.suites import LEFT_OUT, Part, site

HERE = Path(__file__).resolve().parent
PROCESS = "(process)"
"""Stands for a test: how the whole process ended."""
LONGEST_S = 3600
MARKS = "not slow and not network and not db"


@dataclass
class Recordings:
    """The recordings of one run: of the process and of the children that were followed."""

    files: int = 0
    events: int = 0
    lost: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Run:
    """One run of a part: test -> outcome, the end of the process among them."""

    outcomes: dict[str, str]
    seconds: float
    log: str
    recordings: Recordings | None = None


def run(part: Part, folder: Path, recorded: bool, options: tuple[str, ...] = ()) -> Run:
    """Runs a part in an empty folder of its own.

    Args:
        part: what to run.
        folder: is made and stays; must not exist yet.
        recorded: with ``tlmem record``.
        options: more of them.
    """
    work = folder / "work"
    work.mkdir(parents=True)
    output = folder / "outcomes"
    words = _cpython(part, output) if part.suite == "cpython" else _pytest(part, folder)
    command = [sys.executable]
    recording = folder / "recorded" / "run.tlm"
    if recorded:
        recording.parent.mkdir()
        command += ["-m", "tlmem", "record", "-q", *options, "-o", str(recording)]
    began = time.monotonic()
    with open(folder / "log", "wb") as log:
        ending = _wait([*command, *words], work, log, _environment(work, output))
    seconds = time.monotonic() - began
    text = (folder / "log").read_text(encoding="utf-8", errors="replace")
    outcomes = _read_xml(output) if part.suite == "cpython" else _read_lines(output)
    outcomes[PROCESS] = ending
    made = check(recording) if recorded else None
    shutil.rmtree(work, ignore_errors=True)
    return Run(outcomes, seconds, text, made)


def _environment(work: Path, output: Path) -> dict[str, str]:
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTEST_", "PYTHON", "TLMEM", "COVERAGE", "MAKE", "MFLAGS"))
    }
    return {
        **inherited,
        # Some tests of NumPy build an extension module, with meson of the environment.
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), inherited.get("PATH", "")]),
        "TMPDIR": str(work),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(work / "hypothesis"),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "FOREIGN_OUTCOMES": str(output),
    }


def _cpython(part: Part, output: Path) -> list[str]:
    ignored = [word for name in LEFT_OUT for word in ("--ignore", f"*.{name}")]
    named = [f"test_{name}" for name in part.files]
    return ["-m", "test", "-v", "--junit-xml", str(output), *ignored, *named]


def _pytest(part: Part, folder: Path) -> list[str]:
    # Their wheels come without their configuration, and ours, found above, is not meant for them.
    empty = folder / "pytest.ini"
    empty.write_text("[pytest]\n", encoding="utf-8")
    chosen = [str(site() / name) for name in part.files] or [str(part.path())]
    program = (
        f"import sys; sys.path.insert(0, {str(HERE / 'plugin')!r}); "
        "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    )
    words = ["-c", program, "-c", str(empty), "--rootdir", str(site()), "-q", "-m", MARKS]
    words += ["-p", "no:cacheprovider", "-p", "hypothesispytest", "-p", "foreign_outcomes"]
    return [*words, "--hypothesis-seed=0", "--tb=short", *chosen]


def _wait(words: list[str], work: Path, log: object, environment: dict[str, str]) -> str:
    """Runs a command to its end and says how it ended; what it left running is ended, too."""
    process = subprocess.Popen(
        words,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=log,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    try:
        code = process.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        return f"still ran after {LONGEST_S} s"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _read_xml(path: Path) -> dict[str, str]:
    """The outcomes in a JUnit file; none when the process died before it was written."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return {}
    outcomes: dict[str, str] = {}
    for case in cases:
        found = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        words = {"failure": "failed", "error": "error", "skipped": "skipped"}
        _add(outcomes, case.get("name", ""), words[found[0]] if found else "passed")
    return outcomes


def _read_lines(path: Path) -> dict[str, str]:
    """The outcomes that the plugin wrote; a test that never ended stays with ``began``."""
    outcomes: dict[str, str] = {}
    begun: set[str] = set()
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        test, outcome = json.loads(line)
        if outcome == "began":
            begun.add(test)
            continue
        begun.discard(test)
        _add(outcomes, test, outcome)
    return {**outcomes, **dict.fromkeys(sorted(begun), "began")}


def _add(outcomes: dict[str, str], test: str, outcome: str) -> None:
    """Adds an outcome; the second test of a name is ``name #2``."""
    number, name = 1, test
    while name in outcomes:
        number += 1
        name = f"{test} #{number}"
    outcomes[name] = outcome


def check(recording: Path) -> Recordings:
    """Reads every recording of a run in another process, the program's own with the report."""
    words = [sys.executable, "-P", str(HERE / "reading.py"), str(recording)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return Recordings(faults=[f"reading ended with {done.returncode}: {done.stderr[-2000:]}"])
    return Recordings(**json.loads(done.stdout))
