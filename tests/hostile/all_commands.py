"""Runs every command that reads a recording on one file, each in a child process, and measures it.

A program, not a test: ``python all_commands.py FILE OTHER FOLDER [NAME ...]`` prints one line of
JSON for each command: its exit code, CPU seconds, peak resident bytes, what it wrote to stderr.
Each command runs in a fork of a process that has imported what the command needs and nothing else
of weight, so that its peak is what a process of its own would have, and it pays for no imports.

Covers: the command line in every format, the terminal screens without a terminal, ``tlmem.read``
with every table. Does not cover: what the answers are.
"""

import asyncio
import json
import os
import resource
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.simplefilter("always")

from tlmem import cli  # noqa: E402
from tlmem.errors import TlmemError  # noqa: E402

ADDRESS_SPACE = 4_000_000_000
"""Bytes that a child may map; keeps a bomb from the machine, and is no bound of the test."""
CPU_S = 40
TABLES = (
    "events objects samples sites site_totals marks threads holders holdings holding_steps "
    "holding_objects scopes misuses pools ops passes devices totals info problems family"
).split()
KEYS = "12345678"


class Failure(Exception):
    """A screen said that something cannot be shown, and it was no error of ours."""


def command(*words: str) -> Callable[[str, str], int]:
    """A command line in which FILE and OTHER are replaced."""

    def run(file: str, other: str) -> int:
        return cli.main([{"FILE": file, "OTHER": other}.get(word, word) for word in words])

    return run


def every_table(file: str, other: str) -> int:
    """``tlmem.read`` and everything that a recording has."""
    import tlmem

    recording = tlmem.read(file)
    for name in TABLES:
        getattr(recording, name)
    objects = recording.objects
    if len(objects):
        number = int(objects.index[-1])
        recording.history(number)
        recording.held_at(objects.index.to_numpy()[-1000:], int(recording.seconds * 1e9))
    times = recording.samples["time_ns"].to_numpy()
    recording.device_memory(times)
    recording.tape_memory(times)
    for site in recording.sites.index[-100:]:
        recording.stack(int(site))
        recording.blame(int(site))
    return 0


def verdict(file: str, other: str) -> int:
    """``tlmem.verdict``-like use of the analysis alone."""
    from tlmem.analysis import analyse
    from tlmem.recording.reader import read

    print(analyse(read(file)).verdict.sentence)
    return 0


def _failing(app: Any) -> list[Exception]:
    failed: list[Exception] = []
    shown = app.show_failure

    def note(error: Exception) -> None:
        failed.append(error)
        shown(error)

    app.show_failure = note
    app.background._failed = note
    return failed


async def _drive(app: Any, keys: str) -> None:
    failed = _failing(app)
    async with app.run_test(size=(120, 40)) as pilot:
        for key in ("", *keys):
            if key:
                await pilot.press(key)
            quiet = 0
            while quiet < 3:
                await pilot.pause(0.02)
                quiet = 0 if app.background.busy else quiet + 1
    for error in failed:
        if not isinstance(error, TlmemError):
            raise Failure(f"{type(error).__name__}: {error}") from error


def tui(file: str, other: str) -> int:
    """The browser, every screen once."""
    from tlmem.dashboards.app import TlmemApp
    from tlmem.dashboards.model.loading import Loaded, family_of

    members = [Loaded(path) for path in family_of(Path(file))]
    asyncio.run(_drive(TlmemApp(members, Path(other)), KEYS))
    return 0


def live(file: str, other: str) -> int:
    """The live screen."""
    from tlmem.dashboards.app import LiveApp
    from tlmem.dashboards.model.live import Follower, wait_for_events
    from tlmem.dashboards.model.loading import Loaded

    path = Path(file)
    wait_for_events(path)
    follower = Follower(path)
    follower.look()
    asyncio.run(_drive(LiveApp([Loaded(path)], follower=follower), "41"))
    return 0


def caught(run: Callable[[str, str], int]) -> Callable[[str, str], int]:
    """Errors of the project as the command line reports them."""

    def guarded(file: str, other: str) -> int:
        try:
            return run(file, other)
        except TlmemError as error:
            sys.stderr.write(f"tlmem: {error}\n")
            return error.exit_code

    return guarded


COMMANDS: dict[str, Callable[[str, str], int]] = {
    "text": command("report", "FILE"),
    "json": command("report", "FILE", "--format", "json"),
    "html": command("report", "FILE", "--format", "html", "-o", "r.html"),
    "markdown": command("report", "FILE", "--format", "markdown"),
    "check": command(
        *("check", "FILE", "--no-config", "--write", "junit=c.xml", "--write", "sarif=c.sarif"),
        *("--write", "json=c.json", "--write", "markdown=c.md", "--write", "github=c.gh"),
    ),
    "check-baseline": command(
        "check", "FILE", "--no-config", "--baseline", "OTHER", "--budget", "peak=24MB"
    ),
    "peak": command("peak", "FILE"),
    "peak-modules": command("peak", "FILE", "--by", "module"),
    "peak-json": command("peak", "FILE", "--by", "line", "--format", "json"),
    "check-of-other": command("check", "OTHER", "--no-config", "--baseline", "FILE"),
    "report-two": command("report", "FILE", "OTHER", "--format", "html", "-o", "two.html"),
    "history": command("history", "FILE", "0", "--all"),
    "history-handle": command("history", "FILE", "0x10000000", "--all"),
    "history-json": command("history", "FILE", "1", "--format", "json"),
    "balance": command("balance", "FILE", "--all"),
    "balance-json": command("balance", "FILE", "--format", "json", "--at-exit"),
    "balance-json-all": command("balance", "FILE", "--format", "json", "--all"),
    "balance-site": command("balance", "FILE", "--site", "*train*"),
    "diff": command("diff", "FILE", "OTHER", "--all"),
    "diff-other": command("diff", "OTHER", "FILE", "--format", "json"),
    "diff-fails": command(
        "diff", "OTHER", "FILE", "--all", "--fail-on", "growth", "--fail-on", "new-findings"
    ),
    "plot-png": command("plot", "FILE", "--kind", "all", "-f", "-o", "p.png"),
    "plot-svg": command("plot", "FILE", "--kind", "all", "-f", "-o", "p.svg"),
    "plot-pdf": command("plot", "FILE", "--kind", "all", "-f", "-o", "p.pdf"),
    "plot-since": command("plot", "FILE", "--since", "0", "--until", "1e9", "-f", "-o", "q.png"),
    "plan": command("plan", "FILE", "-o", "plan.svg", "-f"),
    "plan-json": command("plan", "FILE", "--format", "json"),
    "plan-png": command("plan", "FILE", "--seconds", "0", "-o", "plan.png", "-f"),
    "parquet": command("export", "FILE", "--to", "parquet", "-f"),
    "csv": command("export", "FILE", "--to", "csv", "-f"),
    "csv-since": command("export", "FILE", "--to", "csv", "--since", "0", "-f", "-o", "since"),
    "perfetto": command("export", "FILE", "--to", "perfetto", "-f"),
    "speedscope": command("export", "FILE", "--to", "speedscope", "-f"),
    "heap-speedscope": command("export", "FILE", "--to", "heap-speedscope", "-f"),
    "heap-collapsed": command("export", "FILE", "--to", "heap-collapsed", "-f"),
    "memory-viz": command("export", "FILE", "--to", "memory-viz", "-f"),
    "memory-viz-since": command(
        "export", "FILE", "--to", "memory-viz", "--since", "0", "-f", "-o", "since.pickle"
    ),
    "perfetto-since": command(
        "export", "FILE", "--to", "perfetto", "--until", "1e9", "-f", "-o", "since.trace"
    ),
    "tui": caught(tui),
    "tui-of-other": caught(lambda file, other: tui(other, file)),
    "live": caught(live),
    "read": caught(every_table),
    "verdict": caught(verdict),
}


ANALYSES = (
    "text json html markdown check check-baseline check-of-other report-two diff diff-other "
    "diff-fails perfetto perfetto-since verdict"
).split()
SCREENS = "tui tui-of-other live".split()
PICTURES = "plot-png plot-svg plot-pdf plot-since plan plan-png".split()
PLAIN = [name for name in COMMANDS if name not in (*ANALYSES, *SCREENS, *PICTURES)]
STAGES = {"plan-json": PLAIN, "text": ANALYSES, "tui": SCREENS, "plot-png": PICTURES}
"""What imports the libraries of a stage, and its commands; the later ones have most of the earlier
ones' libraries anyway."""


def _child(run: Callable[[str, str], int], file: str, other: str, folder: Path) -> None:
    """Never returns: the exit code is the command's, 120 after a traceback of ours."""
    code = 120
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
        os.chdir(folder)
        try:
            code = run(file, other)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 121
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def measure(name: str, file: str, other: str, folder: Path) -> dict[str, object]:
    """Runs one command in a child process."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _child(COMMANDS[name], file, other, folder)
    _, status, used = os.wait4(child, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    said = (folder / "stderr").read_text(errors="replace") if (folder / "stderr").exists() else ""
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {
        "command": name,
        "code": -killed if killed else os.WEXITSTATUS(status),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_bytes": used.ru_maxrss * unit,
        "stdout_bytes": (folder / "stdout").stat().st_size,
        "killed": signal.Signals(killed).name if killed else "",
        "stderr": said[-2000:],
    }


def warm(name: str, file: str, folder: Path) -> None:
    """Imports what the commands of a stage import when they run, by running one of them."""
    here = os.getcwd()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        os.chdir(folder)
        COMMANDS[name](file, file)
    os.chdir(here)


def main(work: str, other: str, folder: str, *names: str) -> None:
    """Prints a line for each command.

    Args:
        work: files with commas between, or a JSON file with pairs of a file and its commands.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    if work.endswith(".json"):
        pairs = json.loads(Path(work).read_text(encoding="utf-8"))
    else:
        pairs = [(file, names or COMMANDS) for file in work.split(",")]
    for first, stage in STAGES.items():
        mine = [(file, [name for name in chosen if name in stage]) for file, chosen in pairs]
        if any(chosen for _, chosen in mine):
            warm(first, other, Path(folder))
        for file, chosen in mine:
            place = Path(folder) / Path(file).stem
            place.mkdir(parents=True, exist_ok=True)
            for name in chosen:
                print(json.dumps({"file": file, **measure(name, file, other, place)}), flush=True)
            shutil.rmtree(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
