"""``python -m foreign``: runs the suites with this Python; goes on where it was ended.

Exits with 1 when a test differs without a known reason, or a recording is not in order.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from foreign import suites
from foreign.comparing import Result, compare, reason, result_of
from foreign.pages import WITH_HEAP, write
from foreign.running import Run, run
from foreign.suites import Part

ROOT = Path(__file__).resolve().parents[2]


def say(text: str) -> None:
    """Prints at once, with the time."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def options(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m foreign", description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(suites.NAMES)} (default: all)")
    parser.add_argument("--state", type=Path, required=True, help="folder that keeps the results")
    parser.add_argument("--part", action="append", help="of a suite only this one; several times")
    parser.add_argument("--heap", action="store_true", help="record with --heap; results apart")
    parser.add_argument("--again", action="store_true", help="run what has a result already, too")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    given = parser.parse_args(words)
    for name in given.suites:
        if name not in suites.NAMES:
            parser.error(f"'{name}' is not a suite; choose from {', '.join(suites.NAMES)}")
    return given


def kept(part: Part, state: Path, heap: bool) -> Path:
    """Where the result of a part is kept, apart for each Python and release, and with --heap."""
    python = ".".join(platform.python_version_tuple()[:2]) + WITH_HEAP * heap
    name = f"{part.suite}-{suites.version(part.suite)}-{part.name.replace('/', '.')}.json"
    return state / python / name


def line(result: Result) -> str:
    """What is printed about one part."""
    words = f"{result.suite} {result.part}: {result.tests:,} tests"
    if result.flaky:
        words += f", {len(result.flaky)} flaky"
    words += f", {len(result.different)} different" if result.different else ", the same"
    words += f"; {result.plain_seconds} s plain, {result.recorded_seconds} s recorded"
    made = result.recordings
    words += f"; {made.files:,} recordings of {made.events:,} events"
    for each in result.flaky + result.different:
        why = "flaky" if each.flaky else reason(result.suite, each.test) or "DIFFERENT"
        words += f"\n    {each.test}: plain {each.plain}, recorded {each.recorded}: {why}"
    for fault in made.faults:
        words += f"\n    recording: {fault}"
    return words


def compared(part: Part, target: Path, heap: bool) -> Result:
    """Compares one part; the logs of one that differs are kept beside its result."""
    logs = target.with_suffix("")
    shutil.rmtree(logs, ignore_errors=True)
    number = 0
    # A short path, because tests make sockets below it.
    with tempfile.TemporaryDirectory(prefix="tlmf-", ignore_cleanup_errors=True) as folder:

        def run_one(chosen: Part, recorded: bool) -> Run:
            nonlocal number
            number += 1
            name = f"{number}-{'recorded' if recorded else 'plain'}"
            words = ("--heap",) if heap else ()
            done = run(chosen, Path(folder) / str(number), recorded, words)
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"{name}.log").write_text(done.log, encoding="utf-8")
            outcomes = json.dumps(done.outcomes, indent=0)
            (logs / f"{name}.json").write_text(outcomes, encoding="utf-8")
            shutil.rmtree(Path(folder) / str(number), ignore_errors=True)
            return done

        result = compare(part, run_one)
    if not (result.different or result.flaky or result.recordings.faults):
        shutil.rmtree(logs, ignore_errors=True)
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps(result.as_dict(), indent=1) + "\n", encoding="utf-8")
    os.replace(draft, target)
    return result


def main(words: list[str]) -> int:
    """Runs what has no result yet and says what differs."""
    given = options(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    failures = 0
    for suite in given.suites or suites.NAMES:
        chosen = [p for p in suites.parts(suite) if not given.part or p.name in given.part]
        if not chosen:
            say(f"{suite}: this Python has no such tests")
        for part in chosen:
            path = kept(part, given.state, given.heap)
            if path.exists() and not given.again:
                result = result_of(json.loads(path.read_text(encoding="utf-8")))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                result = compared(part, path, given.heap)
            say(line(result))
            unknown = [each for each in result.different if not reason(suite, each.test)]
            failures += len(unknown) + len(result.recordings.faults)
    if given.page:
        write(given.page, given.state)
    say(f"{failures} differences or faults without a known reason")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
