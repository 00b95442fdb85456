"""``python -m benchmarks.key_turns OTHER FILE OTHER_FILE``: keys of two versions, by turns.

OTHER is a checkout with a virtual environment of its own; each version has a recording of
``benchmarks/programs/ten_million.py`` that it made itself. Every key of ``key_costs`` is pressed in
both, five times in alternation; the medians of each screen's keys are printed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from benchmarks import key_costs
from benchmarks.pseudo_terminal import Screen

ROUNDS = 5
HERE = Path(__file__).resolve().parent.parent


def main(other: str, file: str, other_file: str, rounds: str = str(ROUNDS)) -> int:
    """Prints the table.

    Returns:
        0.
    """
    versions = [(HERE, Path(file).resolve()), (Path(other).resolve(), Path(other_file).resolve())]
    runs: list[list[list[key_costs.Cost]]] = [[], []]
    for turn in range(int(rounds)):
        for at in (0, 1) if turn % 2 else (1, 0):
            runs[at].append(pressed(*versions[at]))
    answers = [[median(each) for each in zip(*map(_answers, of), strict=True)] for of in runs]
    screens = [cost.screen for cost in runs[0][0]]
    print("screen: median, other's; all: sum, other's; slowest, other's (ms)")
    for screen in dict.fromkeys(screens):
        rows = [
            [ms for ms, of in zip(each, screens, strict=True) if of == screen] for each in answers
        ]
        print(f"{screen}: {median(rows[0]):.1f}, {median(rows[1]):.1f}")
    print(f"all: {sum(answers[0]):.0f}, {sum(answers[1]):.0f}")
    print(f"slowest: {max(answers[0]):.0f}, {max(answers[1]):.0f}")
    return 0


def pressed(version: Path, file: Path) -> list[key_costs.Cost]:
    """What every key costs in one version: the first visits of all screens, then all keys."""
    python = version / ".venv" / "bin" / "python"
    start = (
        "import os, sys; os.chdir(sys.argv.pop(1)); from tlmem.cli import main; sys.exit(main())"
    )
    screen = Screen.start([str(python), "-c", start, str(version), "tui", str(file)])
    screen.until(r"Findings: \d+")
    visits, found = key_costs.costs(screen)
    if screen.end() != 0:
        raise RuntimeError("q did not end tlmem tui with exit code 0")
    return [*visits, *found]


def _answers(costs: list[key_costs.Cost]) -> list[float]:
    return [cost.answer_ms for cost in costs]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
