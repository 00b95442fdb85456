"""Runs the tests that the seed map names on one mutant after the other; remembers the outcome."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants.copies import ROOT, BrokenTool, Build, Copy
from mutants.seed_map import proofs, proofs_of
from mutants.table import Mutant

CAUGHT, CRASHED, HUNG, SURVIVED = "caught", "crashed", "hung", "survived"
BROKEN = "no mutant"
SECONDS = 120
"""More than any of the named files takes on a busy machine; who needs longer hangs."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant.

    Attributes:
        verdict: ``caught``, ``crashed`` and ``hung`` (caught too), ``survived``, or ``no mutant``:
            it cannot be compiled or imported, or its lines are not there.
        by: the test that noticed first, or what is wrong with the mutant.
    """

    verdict: str
    by: str
    seconds: float


class Outcomes:
    """Results by what they depend on: the mutant, the file it breaks, and the tests it meets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.known = {key: Result(**found) for key, found in known.items()}
        self.lock = threading.Lock()

    def key(self, mutant: Mutant, tests: list[str]) -> str:
        texts = [json.dumps(mutant[:4]), json.dumps(tests)]
        for name in [mutant.file, *(each for each in tests if each.endswith(".py"))]:
            texts.append((ROOT / name).read_text(encoding="utf-8"))
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]

    def keep(self, key: str, result: Result) -> None:
        with self.lock:
            self.known[key] = result
            draft = self.path.with_suffix(".draft")
            draft.write_text(json.dumps({k: asdict(v) for k, v in self.known.items()}, indent=1))
            os.replace(draft, self.path)


def run_tests(copy: Copy, tests: list[str], seconds: float = SECONDS) -> tuple[str, str]:
    """Verdict and first test that failed, of tests in a copy; pytest's own output when it is about
    something else."""
    command = [sys.executable, "-m", "pytest", "-x", "-v", "--tb=no", "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, *tests],
        cwd=copy.place,
        env=copy.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return HUNG, short(last_test(said))
    if process.returncode == 0:
        return SURVIVED, ""
    if process.returncode == 1:
        failed = re.search(r"^(\S+::.*?) (?:FAILED|ERROR)", said, re.MULTILINE)
        if failed:
            return CAUGHT, short(failed[1])
    if process.returncode < 0 or process.returncode > 5:
        return CRASHED, short(last_test(said))
    raise BrokenTool(f"pytest {' '.join(tests)} ends with {process.returncode}:\n{said[-3000:]}")


def short(test: str) -> str:
    """``test_struct.py::test_name`` of a test."""
    file, _, name = test.strip().partition("::")
    return f"{file.rpartition('/')[2]}::{name}"


def last_test(said: str) -> str:
    """The test that was begun last."""
    begun = re.findall(r"^(\S+\.py::\S+)", said, re.MULTILINE)
    return begun[-1] if begun else "the import"


def tried(copy: Copy, mutant: Mutant, tests: list[str]) -> Result:
    """The outcome of one mutant."""
    begin = time.perf_counter()
    try:
        copy.apply(mutant.file, mutant.find, mutant.replacement)
        verdict, by = run_tests(copy, tests)
    except BrokenTool as error:
        verdict, by = BROKEN, str(error)
    finally:
        copy.restore(mutant.file)
    return Result(verdict, by, round(time.perf_counter() - begin, 1))


def run_all(
    mutants: list[Mutant],
    state: Path,
    workers: int,
    fresh: bool,
    say: Callable[[Mutant, Result], None],
) -> dict[str, Result]:
    """Runs mutants; says each as soon as it is known.

    Args:
        state: folder for copies, objects and outcomes.
        fresh: whether known outcomes do not count.
    """
    state.mkdir(parents=True, exist_ok=True)
    outcomes, known, results = Outcomes(state / "outcomes.json"), proofs(ROOT), {}
    waiting: queue.SimpleQueue[tuple[Mutant, list[str], str]] = queue.SimpleQueue()
    selections: list[list[str]] = []
    for mutant in mutants:
        tests = proofs_of(mutant.mechanism, mutant.file, known)
        key = outcomes.key(mutant, tests)
        if key in outcomes.known and not fresh:
            results[mutant.name] = outcomes.known[key]
        else:
            waiting.put((mutant, tests, key))
            selections.append(tests)
    count = min(workers, waiting.qsize())
    if not count:
        return results
    build = Build(state / "objects")
    build.whole()
    copies = [Copy(state / f"copy{number}", build) for number in range(count)]
    for copy in copies:
        copy.require_own()
    require_green(copies[0], selections)
    problems: list[BaseException] = []
    lock = threading.Lock()

    def next_ones() -> Iterator[tuple[Mutant, list[str], str]]:
        while not problems:
            try:
                yield waiting.get_nowait()
            except queue.Empty:
                return

    def work(copy: Copy) -> None:
        try:
            for mutant, tests, key in next_ones():
                result = tried(copy, mutant, tests)
                if result.verdict != BROKEN:
                    outcomes.keep(key, result)
                with lock:
                    results[mutant.name] = result
                    say(mutant, result)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=[copy]) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results


def require_green(copy: Copy, selections: list[list[str]]) -> None:
    """Fails when a test fails without any mutant: it would catch them all."""
    files = {each for tests in selections for each in tests if each.endswith(".py")}
    verdict, by = run_tests(copy, sorted(files), len(files) * SECONDS)
    if verdict != SURVIVED:
        raise BrokenTool(f"{by} fails without a mutant ({verdict})")
