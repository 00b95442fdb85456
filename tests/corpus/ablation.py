"""``PYTHONPATH=tests python -m corpus.ablation FOLDER``: which verdicts need which rule?

Judges the recordings in a folder with each rule of ``tlmem.analysis.rules`` switched off, and
writes the table of rules with the verdicts that change (``--page docs/reference/rules.md``). A rule
that a recording's verdict never looked at cannot change it, and is not tried.

``--record`` first records the corpus and the scenarios into the folder, those that are not there,
and keeps the simulated recordings of the tests.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from corpus.__main__ import programs, record
from tlmem.scenarios.harness import catalog
from tlmem.scenarios.harness.detection import write_part

from tlmem.analysis import evidence_of
from tlmem.analysis.growth_findings import larger_array_findings, line_findings, memory_findings
from tlmem.analysis.judge import judge
from tlmem.analysis.rules import Rule, Rules, rules, without
from tlmem.recording.reader import read

Judged = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Outcome, lines that grow, kinds of findings that are errors or warnings."""
SIMULATED = (
    *("tests/analysis/growth", "tests/analysis/leaks"),
    *("tests/analysis/test_lifetimes.py", "tests/analysis/test_cells.py"),
)
"""Tests of simulated programs, which have the noise of machines that stall."""
MOST_NAMED = 3
"""Recordings that the table names for a rule."""


def judged(recording: object) -> Judged:
    """What is said about one recording."""
    evidence = evidence_of(recording)  # type: ignore[arg-type]
    found = [
        *line_findings(evidence),
        *larger_array_findings(evidence),
        *memory_findings(evidence),
    ]
    lines = {str(finding.site) for finding in found if finding.kind == "growing-site"}
    waiting = (*evidence.garbage, *evidence.unclear, *evidence.filling)
    kinds = {finding.kind for finding in (*found, *waiting) if finding.severity != "info"}
    return judge(evidence).outcome, tuple(sorted(lines)), tuple(sorted(kinds))


@contextmanager
def tracing() -> Iterator[set[str]]:
    """The names of the rules that are looked at, for as long as the context lasts."""
    names: set[str] = set()
    plain = object.__getattribute__

    def traced(table: Rules, name: str) -> object:
        names.add(name)
        return plain(table, name)

    Rules.__getattribute__ = traced  # type: ignore[assignment]
    try:
        yield names
    finally:
        del Rules.__getattribute__


def changes(file: Path, names: Sequence[str] = ()) -> tuple[str, dict[str, tuple[Judged, Judged]]]:
    """The name of a recording, and for each rule that it needs the verdicts with and without it.

    Args:
        names: of the rules that are tried; all of them when empty.
    """
    recording = pickle.loads(file.read_bytes()) if file.suffix == ".pickle" else read(file)
    with tracing() as looked_at:
        usual = judged(recording)
    found = {}
    for rule in rules():
        if rule.name not in looked_at or (names and rule.name not in names):
            continue
        with without(rule):
            changed = judged(recording)
        if changed != usual:
            found[rule.name] = usual, changed
    return file.stem, found


def record_all(folder: Path) -> None:
    """Records the programs of the corpus and the scenarios that are not in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in programs().items():
        if not (folder / f"{name}.tlm").exists():
            record(program, folder / f"{name}.tlm")
    for name, scenario in catalog.scenarios().items():
        if not (folder / f"{name}.tlm").exists():
            catalog.record(scenario, folder / f"{name}.tlm")
    simulated = folder / "simulated"
    if not simulated.exists():
        simulated.mkdir()
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SIMULATED],
            env={**os.environ, "TLMEM_KEEP_SIMULATED": str(simulated)},
            stdout=subprocess.DEVNULL,
            check=False,
        )


def table(
    found: dict[str, dict[str, tuple[Judged, Judged]]],
    recordings: int,
) -> str:
    """The rules as a table, with the verdicts that change without each."""
    rows = [
        f"{len(rules())} rules. *Changes* are recordings, of {recordings}, of which outcome, "
        "blamed line or a warning changes when the rule is switched off. Those whose outcome "
        "changes are named first; names that begin with `test_` are simulated programs.",
        "",
        "| rule | value | reason | changes | for example |",
        "|---|--:|---|--:|---|",
    ]
    for rule in rules():
        of_rule = {name: pair[rule.name] for name, pair in found.items() if rule.name in pair}
        examples = sorted(
            of_rule, key=lambda name: (of_rule[name][0][0] == of_rule[name][1][0], name)
        )
        named = ", ".join(example(name, *of_rule[name]) for name in examples[:MOST_NAMED])
        reason = rule.reason[0].upper() + rule.reason[1:]
        rows.append(f"| `{rule.name}` | {value_of(rule)} | {reason}. | {len(of_rule)} | {named} |")
    return "\n".join(rows)


def value_of(rule: Rule) -> str:
    """Value and unit of a rule."""
    number = f"{float(rule):,.0f}" if rule >= 100 else f"{float(rule):g}"
    return f"{number} {rule.unit}"


def example(name: str, usual: Judged, changed: Judged) -> str:
    """A recording, and what becomes of its outcome."""
    if usual[0] == changed[0]:
        return f"`{name}`"
    return f"`{name}` ({usual[0]} to {changed[0]})"


def main(words: Sequence[str] | None = None) -> int:
    """Judges, prints rules that change nothing, and writes the page."""
    parser = argparse.ArgumentParser(
        prog="python -m corpus.ablation", description=__doc__.partition("\n\n")[2]
    )
    parser.add_argument("folder", type=Path, help="where recordings are")
    parser.add_argument("--record", action="store_true", help="record what is not there yet")
    parser.add_argument("--page", type=Path, help="the page whose table is written")
    parser.add_argument("--json", type=Path, help="every change, as JSON")
    parser.add_argument("--rules", nargs="+", default=(), help="only these rules")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args(words)
    if options.record:
        record_all(options.folder)
    files = [*options.folder.rglob("*.tlm"), *options.folder.rglob("*.pickle")]
    files.sort(key=lambda file: -file.stat().st_size)
    if not files:
        parser.error(f"there is no recording in {options.folder}; --record makes them")
    found: dict[str, dict[str, tuple[Judged, Judged]]] = {}
    with multiprocessing.Pool(options.jobs) as pool:
        tried = pool.imap_unordered(functools.partial(changes, names=options.rules), files)
        for number, (name, changed) in enumerate(tried, 1):
            found[name] = changed
            if number % 50 == 0:
                print(f"{number} of {len(files)}", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, sort_keys=True))
    if options.page:
        write_part(options.page, "rules", table(found, len(files)))
    for rule in rules():
        count = sum(rule.name in changed for changed in found.values())
        outcomes = sum(
            changed[rule.name][0][0] != changed[rule.name][1][0]
            for changed in found.values()
            if rule.name in changed
        )
        print(f"{rule.name:24} {float(rule):>12g} changes {count:3d}, outcomes {outcomes:3d}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
