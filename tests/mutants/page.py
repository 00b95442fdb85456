"""The page of the table, docs/mutants.md: written by ``make mutants``."""

from __future__ import annotations

from mutants.copies import ROOT
from mutants.running import CRASHED, HUNG, SURVIVED, Result
from mutants.seed_map import proofs, proofs_of
from mutants.table import MUTANTS, Mutant

HEAD = """\
# Mutants

Written by `make mutants`. [The seed map](seed-map.md) names a test for each mechanism; this page
shows that the test would notice. Each row is a copy of the tree in which one mechanism is broken,
in few lines, as a mistake would break it (`tests/mutants/table.txt` has the lines). The tests that
the seed map names are run on the copy; *caught by* is the first one that fails.

All of them take about ten minutes on two cores; a run that was ended goes on where it was.
`make mutants MUTANTS="S42 S63a"` runs some. A mutant that survives ends it with 1, unless the table
says why no test can notice it.

"""
TITLE = "| mutant | what is broken | in | tests | caught by |\n|---|---|---|---|---|\n"
HOW = {CRASHED: " (crash)", HUNG: " (hang)"}


def page(results: dict[str, Result]) -> str:
    """The page of a whole run."""
    caught = sum(result.verdict != SURVIVED for result in results.values())
    count = f"{len(MUTANTS)} mutants: {caught} caught, {len(MUTANTS) - caught} equivalent.\n\n"
    known = proofs(ROOT)
    rows = [row(each, results[each.name], known) for each in MUTANTS]
    return HEAD + count + TITLE + "".join(rows)


def row(mutant: Mutant, result: Result, known: dict[str, list[list[str]]]) -> str:
    """One row of the page; what stands before the last bar is known without a run."""
    if result.verdict == SURVIVED:
        by = f"equivalent: {mutant.equivalent}" if mutant.equivalent else "**survived**"
    else:
        by = f"`{result.by.rpartition('::')[2]}`{HOW.get(result.verdict, '')}"
    return f"{begin_of_row(mutant, known)} {by} |\n"


def begin_of_row(mutant: Mutant, known: dict[str, list[list[str]]]) -> str:
    """What is known of a row without a run."""
    named = proofs_of(mutant.mechanism, mutant.file, known)
    files = ", ".join(f"`{each.rpartition('/')[2]}`" for each in named if each.endswith(".py"))
    chosen = f", `{named[-1]}`" if "-k" in named else ""
    broken = mutant.breaks.replace("|", "\\|")
    return f"| {mutant.name} | {broken} | `{mutant.file}` | {files}{chosen} |"
