"""Lets processes take short turns: each works for a tenth of a second while the others wait.

Machines drift within seconds, so whole programs that run one after the other differ by more than a
few percent for no reason of their own. Here all ways to run a loop are started at once, and what is
compared is a turn of one with the turn of plain Python next to it.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import PROGRAMS, THREADS, Settings

TURN_S = 0.1
TURNS_A_ROUND = 20
SETTLING = 2
"""Turns of each way that are left out: caches fill, and what is recorded first is new."""


@dataclass(frozen=True)
class Way:
    """One way to run the loop.

    ``command`` stands before the program and its words, ``words`` after them; it takes part in
    ``share`` of the rounds.
    """

    command: Sequence[str]
    words: Sequence[str] = ()
    share: float = 1.0


@dataclass(frozen=True)
class Ratio:
    """Median of the rounds' ratios, the least and the most."""

    median: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.median:.2f}x"
        return f"{self.median:.3f}x ({self.low:.2f}–{self.high:.2f})"


Rounds = list[list[float] | None]


class _Player:
    """A process that works when it is asked to."""

    def __init__(self, command: Sequence[str], folder: Path, round_number: int) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST_"))}
        self.command = [str(word) for word in command]
        self.errors = open(folder / "errors.txt", "w+", encoding="utf-8")  # noqa: SIM115
        self.process = subprocess.Popen(
            self.command,
            cwd=folder,
            env={
                **kept,
                **dict.fromkeys(THREADS, "1"),
                "PYTHONHASHSEED": str(round_number),  # strings hash alike in all of a round
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self._answer()

    def _answer(self) -> list[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("turn "):
                return line.split()[1:]
        self.errors.seek(0)
        raise RuntimeError(f"{' '.join(self.command)} ended:\n{self.errors.read()}")

    def play(self, loop: str, count: int) -> float:
        """CPU seconds that the process takes for ``count`` units."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{loop} {count}\n")
        self.process.stdin.flush()
        return float(self._answer()[0])

    def close(self) -> None:
        """Lets the process end by itself."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait()
        self.errors.close()


@contextlib.contextmanager
def _players(
    program: str, words: Sequence[str], ways: dict[str, Way], folder: Path, round_number: int
) -> Iterator[dict[str, _Player]]:
    loop = [str(PROGRAMS / "in_turns.py"), str(PROGRAMS / f"{program}.py"), *words]
    players: dict[str, _Player] = {}
    try:
        for name, way in ways.items():
            players[name] = _Player([*way.command, *loop, *way.words], folder, round_number)
        yield players
    finally:
        for player in players.values():
            player.close()


def take_turns(
    program: str,
    words: Sequence[str],
    loops: Iterable[str],
    ways: dict[str, Way],
    settings: Settings,
) -> dict[str, dict[str, Rounds]]:
    """CPU seconds of a process for a unit of work, of each turn of each round, by loop and
    way; None: it sat out.

    The first way decides how many units are a turn. Each round has processes of its own, since two
    processes of the same program differ by a few percent for as long as they run. Each turn has
    another order: the caches that one leaves and the threads that it keeps busy slow the next one.
    What a process does while others work is not counted: a recorder's samples there would be those
    of a program that waits most of the time.
    """
    scale = min(1.0, settings.scale)
    turns = max(2, round(TURNS_A_ROUND * scale))
    found: dict[str, dict[str, Rounds]] = {loop: {name: [] for name in ways} for loop in loops}
    for number in range(settings.rounds):
        taking = {
            name: way for name, way in ways.items() if number < max(1, way.share * settings.rounds)
        }
        with _players(program, words, taking, settings.folder, number) as players:
            for loop, of_ways in found.items():
                times: dict[str, list[float]] = {name: [] for name in taking}
                count = _calibrate(next(iter(players.values())), loop, TURN_S * scale)
                order = random.Random(number)
                for _ in range(turns + SETTLING):
                    for name in order.sample(list(players), len(players)):
                        times[name].append(players[name].play(loop, count) / count)
                for name in ways:
                    of_ways[name].append(times[name][SETTLING:] if name in times else None)
    for loop, by_way in found.items():
        for name, rounds in by_way.items():
            spent = statistics.median(value for values in rounds if values for value in values)
            settings.show(f"{loop}, {name}: {spent:.3g} s")
    return found


def _calibrate(player: _Player, loop: str, seconds: float) -> int:
    count = 1
    while (spent := player.play(loop, count)) < seconds:
        count = max(count + 1, min(count * 8, math.ceil(count * seconds / max(spent, 1e-9))))
    return count


def ratio(runs: Rounds, base: Rounds) -> Ratio:
    """Of ``runs`` over ``base``; a round's ratio is the median of those of its turns."""
    rounds = [
        statistics.median(a / b for a, b in zip(own, other, strict=True))
        for own, other in zip(runs, base, strict=True)
        if own and other
    ]
    return Ratio(statistics.median(rounds), min(rounds), max(rounds), len(rounds))


def python(*words: str) -> list[str]:
    """Plain Python."""
    return [sys.executable, *words]
