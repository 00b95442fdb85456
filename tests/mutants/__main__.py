"""Breaks each mechanism of docs/seed-map.md in a copy of the tree and runs the tests that it names.

    PYTHONPATH=tests python -m mutants [S42 S43b ...] [--page FILE]

Prints each mutant as soon as its outcome is known, ends with 1 when one survived that is not shown
to be equivalent. Goes on where it was ended: an outcome counts until the mutant, the file it breaks
or a test that it meets changes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mutants.copies import BrokenTool
from mutants.page import page
from mutants.running import BROKEN, SURVIVED, Result, run_all
from mutants.table import MUTANTS, Mutant


def chosen(names: list[str]) -> list[Mutant]:
    """The mutants of these names or mechanisms; all without any."""
    found = [m for m in MUTANTS if not names or {m.name, m.mechanism, m.number} & set(names)]
    unknown = set(names) - {each for m in found for each in (m.name, m.mechanism, m.number)}
    if unknown:
        raise BrokenTool(f"no mutant of {', '.join(sorted(unknown))}")
    return found


def say(mutant: Mutant, result: Result) -> None:
    by = f" by {result.by}" if result.by else ""
    print(f"{mutant.name}: {result.verdict}{by} ({result.seconds} s): {mutant.breaks}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="mechanisms or mutants: S42 S43b")
    parser.add_argument("--state", type=Path, default=Path(".venv/mutants"), help="kept there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="copies at work at once")
    parser.add_argument("--fresh", action="store_true", help="known outcomes do not count")
    parser.add_argument("--page", type=Path, help="write the table there; needs all mutants")
    given = parser.parse_args()
    try:
        mutants = chosen(given.names)
        again = given.fresh or bool(given.names)
        results = run_all(mutants, given.state.resolve(), given.jobs, again, say)
    except BrokenTool as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    wrong = list(problems(mutants, results))
    survivors = sum(result.verdict == SURVIVED for result in results.values())
    print(f"{len(mutants)} mutants: {len(mutants) - survivors} caught, {survivors} not")
    print("\n".join(wrong) if wrong else "what is not caught is shown to be equivalent")
    if given.page and not given.names:
        given.page.write_text(page(results), encoding="utf-8")
    return bool(wrong)


def problems(mutants: list[Mutant], results: dict[str, Result]) -> Iterator[str]:
    """What is not as the table says."""
    for mutant in mutants:
        result = results[mutant.name]
        about = f"{mutant.name}, {mutant.file}: {mutant.breaks}"
        if result.verdict == BROKEN:
            yield f"no mutant: {about}: {result.by}"
        elif result.verdict == SURVIVED and not mutant.equivalent:
            yield f"survived: {about}"
        elif result.verdict != SURVIVED and mutant.equivalent:
            yield f"not equivalent: {about}: {result.by}"


if __name__ == "__main__":
    sys.exit(main())
