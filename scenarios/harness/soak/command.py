"""The command line of the soak: makes the runs that are missing, then writes what all of them say.

It can be ended at any moment, also by a kill, and goes on from there when it is started again.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tlmem.scenarios.harness.detection import write_part

from . import digest
from .judging import JUDGES
from .plan import GROUPS, Job, all_programs, jobs
from .state import KEPT, RunRow, State, current
from .tables import Origin, page_part
from .workers import Worker, company

DESCRIPTION = """\
Runs every scenario and every seeded leak many times and counts how often something is said that is
not so, or missed, by the findings and by `tlmem check`, both about the same recordings. Runs that
were made with the same code are not made again; with --keep, what the same recorder recorded is
only judged again when the judge has changed. Exits with 1 when one was wrong, 2 for a wrong
command line or when the code changed in the middle.
"""
SECONDS_BETWEEN_WORDS = 30.0
OF_ONE_CALL = ("--state", "--page", "--budget", "--recorder")


def main(words: Sequence[str]) -> int:
    """Runs the soak."""
    given = parser().parse_args(words)
    unknown = set(given.only) - {scenario.name for _, scenario in all_programs()}
    if unknown:
        sys.stderr.write(f"tlmem: there is no program {', '.join(sorted(unknown))} to run.\n")
        return 2
    soak = Soak(given, State(given.state))
    with company(given.busy):
        soak.run()
    rows, planned = soak.rows(), len(soak.planned)
    runs = {row.run for row in rows}
    origin = Origin(
        command=shlex.join(["python", "-m", "tlmem.scenarios.harness.soak", *for_readers(words)]),
        planned=planned,
        older=len({row.run for row in soak.state.rows} - runs),
    )
    text = page_part(rows, origin)
    if given.page:
        write_part(given.page, "soak", text)
        sys.stderr.write(f"tlmem: {len(runs)} of {planned} runs; written to {given.page}\n")
    else:
        sys.stdout.write(text)
    if soak.changed:
        sys.stderr.write("tlmem: the code has changed since the start; start the soak again.\n")
        return 2
    return int(any(not row.right and row.group != "small" for row in rows))


def parser() -> argparse.ArgumentParser:
    """The words of the command line."""
    made = argparse.ArgumentParser(
        "python -m tlmem.scenarios.harness.soak", description=DESCRIPTION
    )
    made.add_argument("--runs", type=count, default=100, help="of each healthy program [100]")
    made.add_argument("--leak-runs", type=count, help="of each seeded leak [as --runs]")
    made.add_argument(
        "--fault-runs", type=count, help="of each scenario with a fault [a tenth of --runs]"
    )
    made.add_argument("--jobs", type=positive, default=1, help="so many at a time [1]")
    made.add_argument("--budget", type=float, metavar="MINUTES", help="start no run after that")
    made.add_argument("--busy", action="store_true", help="keep a core busy for part of the time")
    made.add_argument("--judge", choices=JUDGES, help="only this judge [each]")
    made.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these programs")
    made.add_argument("--state", type=Path, default=Path(".soak"), help="where it is kept [.soak]")
    made.add_argument("--keep", action="store_true", help="keep all recordings, in the state")
    made.add_argument(
        "--recorder",
        metavar="DIGEST",
        help="record nothing: judge what is kept of that recorder, which the page names",
    )
    made.add_argument("--page", type=Path, help="page to write the tables into [standard output]")
    return made


def count(word: str) -> int:
    """A number of runs, possibly none."""
    number = int(word)
    if number < 0:
        raise ValueError
    return number


def positive(word: str) -> int:
    """A number of at least one."""
    number = int(word)
    if number < 1:
        raise ValueError
    return number


def for_readers(words: Sequence[str]) -> list[str]:
    """A command line without where it keeps and writes, and until when: that is for one call."""
    found, value = [], False
    for word in words:
        if value or word.startswith(OF_ONE_CALL):
            value = word in OF_ONE_CALL
            continue
        found.append(word)
    return found


class Soak:
    """What is to be run, what was, and the code it is all about."""

    def __init__(self, given: argparse.Namespace, state: State) -> None:
        self.given, self.state = given, state
        self.code, self.signature = digest.of_code(), digest.signature()
        self.recorder = given.recorder or digest.of_recorder()
        self.commit, self.machine = digest.commit(), digest.machine()
        self.changed = self.ended = False
        leak_runs = given.runs if given.leak_runs is None else given.leak_runs
        fault_runs = -(-given.runs // 10) if given.fault_runs is None else given.fault_runs
        runs = dict(zip(GROUPS, (given.runs, leak_runs, fault_runs, leak_runs), strict=True))
        self.planned = list(jobs(runs, given.only))
        paths = {job.scenario.path for job in self.planned}
        self.programs = {path: digest.of_program(path) for path in paths}
        self.judges = [given.judge] if given.judge else list(JUDGES)
        self.load = f"{given.jobs} at a time on {digest.cores()} cores" + (
            " beside a process that keeps a core busy for 30 % of the time" if given.busy else ""
        )

    def keys(self, job: Job) -> list[tuple[str, int, str, str, str]]:
        """What tells the job's rows, one of each judge, from all others."""
        program = self.programs[job.scenario.path]
        return [(*job.key, judge, self.code, program) for judge in self.judges]

    def kept(self, job: Job) -> Path:
        """The folder that keeps the job's recording."""
        program = self.programs[job.scenario.path]
        name = f"{job.scenario.name}-{job.seed}-{program}-{self.recorder}"
        return self.state.folder / KEPT / name

    def rows(self) -> list[RunRow]:
        """Of all planned runs that were made."""
        return current(self.state.rows, (key for job in self.planned for key in self.keys(job)))

    def run(self) -> None:
        """Makes the runs that are missing, until there are none or time is up."""
        made = {row.key for row in self.rows()}
        missing = [job for job in self.planned if not made.issuperset(self.keys(job))]
        if self.given.recorder:
            missing = [job for job in missing if self.kept(job).exists()]
        told = Progress(len(self.planned), len(missing))
        left, lock = iter(missing), threading.Lock()
        threads = [
            threading.Thread(target=self._serve, args=(left, lock, told))
            for _ in range(self.given.jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.ended = True
            told.say("ended; the runs that have begun are finished first")
            for thread in threads:
                thread.join()

    def _serve(self, left: Iterator[Job], lock: threading.Lock, told: Progress) -> None:
        worker = Worker()
        try:
            while True:
                with lock:
                    late = self.given.budget is not None and told.minutes > self.given.budget
                    job = None if late or self.changed or self.ended else next(left, None)
                if job is None:
                    return
                rows = self._make(job, worker.ask)
                with lock:
                    self.changed = self.changed or digest.signature() != self.signature
                    if not self.changed:
                        self.state.add(*rows)
                        told.add(rows)
        finally:
            worker.close()

    def _make(self, job: Job, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> list[RunRow]:
        name = f"{job.scenario.name}-{job.seed}-{self.code}.tlm"
        is_kept = self.given.keep or self.given.recorder
        request = {
            "name": job.scenario.name,
            "seed": job.seed,
            "judges": self.judges,
            "kept": str(self.kept(job)) if is_kept else "",
            "wrong": str(self.state.recordings / name),
        }
        answer = ask(request)
        return [
            RunRow(
                name=job.scenario.name,
                group=job.group,
                seed=job.seed,
                judge=judge,
                code=self.code,
                program=self.programs[job.scenario.path],
                recorder=self.recorder,
                commit=self.commit,
                machine=self.machine,
                load=self.load,
                seconds=answer["seconds"],
                load_average=answer["load_average"],
                **{**said, "wolves": tuple(said["wolves"])},
            )
            for judge, said in answer["judged"].items()
        ]


class Progress:
    """Tells on standard error what is wrong, and now and then how far it is."""

    def __init__(self, planned: int, missing: int) -> None:
        self.planned, self.missing, self.done, self.wrong = planned, missing, 0, 0
        self.began = self.told = time.monotonic()

    @property
    def minutes(self) -> float:
        """Since the start."""
        return (time.monotonic() - self.began) / 60

    def add(self, rows: Sequence[RunRow]) -> None:
        """One more run, as each judge saw it."""
        self.done += 1
        self.wrong += not all(row.right for row in rows)
        for row in rows:
            if not row.right:
                name = f"WRONG ({row.judge}) {row.name}, seed {row.seed}"
                self.say(f"{name}: {row.said} {', '.join(row.wolves)}")
        if time.monotonic() - self.told > SECONDS_BETWEEN_WORDS or self.done == self.missing:
            self.told = time.monotonic()
            rest = self.minutes / self.done * (self.missing - self.done)
            self.say(
                f"{self.planned - self.missing + self.done} of {self.planned} runs, "
                f"{self.wrong} of {self.done} wrong, {self.minutes:.0f} min, {rest:.0f} to go"
            )

    def say(self, text: str) -> None:
        """One line."""
        sys.stderr.write(text + "\n")
