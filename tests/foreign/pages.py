"""Writes the tables of docs/foreign.md from the results that are kept.

The sums of each suite, release and Python stay in results.json, beside this file: a run on one
Python leaves the rows of the others as they are.
"""

import json
from collections import Counter
from pathlib import Path

from foreign.comparing import Difference, Result, reason, result_of
from foreign.suites import NAMES

SUMS = Path(__file__).with_name("results.json")
TITLES = {"cpython": "CPython", "numpy": "NumPy", "scipy": "SciPy", "pandas": "pandas"}
BEGIN, END = "<!-- begin results -->\n", "<!-- end results -->\n"
WITH_HEAP = "+heap"
"""Behind the Python where the suites were recorded with ``--heap``."""
HEAD = """| suite | Python | parts | tests | passed | skipped | fail in both | flaky | different \
| recordings | events | lost |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


def read(state: Path) -> dict[str, list[Result]]:
    """The kept results: ``suite release Python`` -> one for each part."""
    found: dict[str, list[Result]] = {}
    for path in sorted(state.glob("*/*.json")):
        suite, release, _ = path.name.split("-", 2)
        result = result_of(json.loads(path.read_text(encoding="utf-8")))
        found.setdefault(f"{suite} {release} {path.parent.name}", []).append(result)
    return found


def sums_of(results: list[Result]) -> dict:
    """What the page says about one suite on one Python."""
    outcomes: Counter[str] = Counter()
    for each in results:
        outcomes.update(each.outcomes)
    return {
        "parts": sorted(each.part for each in results),
        "tests": sum(each.tests for each in results),
        "outcomes": dict(sorted(outcomes.items())),
        "different": [[d.test, d.plain, d.recorded] for each in results for d in each.different],
        "flaky": [[d.test, d.plain, d.recorded] for each in results for d in each.flaky],
        "files": sum(each.recordings.files for each in results),
        "events": sum(each.recordings.events for each in results),
        "lost": sum(each.recordings.lost for each in results),
    }


def _order(name: str) -> tuple[int, bool, tuple[int, ...]]:
    suite, _, python = name.split()
    numbers = python.removesuffix(WITH_HEAP).split(".")
    return NAMES.index(suite), python.endswith(WITH_HEAP), tuple(map(int, numbers))


def _python(name: str) -> str:
    """The Python, and how it was recorded where that is not the default."""
    return name.replace(WITH_HEAP, ", `--heap`")


def _row(name: str, sums: dict) -> str:
    suite, release, python = name.split()
    outcomes = Counter(sums["outcomes"])
    passed = outcomes["passed"] + outcomes["xfailed"] + outcomes["xpassed"]
    failing = sums["tests"] - passed - outcomes["skipped"]
    numbers = (len(sums["parts"]), sums["tests"], passed, outcomes["skipped"], failing)
    numbers += (len(sums["flaky"]), len(sums["different"]))
    numbers += (sums["files"], sums["events"], sums["lost"])
    cells = " | ".join(f"{number:,}" for number in numbers)
    return f"| {TITLES[suite]} {release} | {_python(python)} | {cells} |\n"


def _said(outcomes: list[str]) -> str:
    return ", ".join(outcomes)


def _single_tests(names: list[str], sums: dict[str, dict], which: str) -> str:
    """A row for each test that is different or flaky."""
    rows = ""
    for name in names:
        suite, _, python = name.split()
        for each in sums[name][which]:
            found = Difference(*each)
            why = f" {reason(suite, found.test) or 'not known'} |" if which == "different" else ""
            rows += (
                f"| {TITLES[suite]} | {_python(python)} | `{found.test}` | {_said(found.plain)} "
                f"| {_said(found.recorded)} |{why}\n"
            )
    return rows


def text_of(sums: dict[str, dict]) -> str:
    """The tables."""
    names = sorted(sums, key=_order)
    tests = sum(each["tests"] for each in sums.values())
    differ = sum(len(each["different"]) for each in sums.values())
    text = f"{tests:,} tests of all Pythons together were run both ways; "
    text += f"{differ:,} of them have another outcome when recorded.\n\n"
    text += HEAD + "".join(_row(name, sums[name]) for name in names)
    different = _single_tests(names, sums, "different")
    flaky = _single_tests(names, sums, "flaky")
    if different:
        text += "\n## Different\n\n| suite | Python | test | plain | recorded | why |\n"
        text += f"|---|---|---|---|---|---|\n{different}"
    if flaky:
        text += "\n## Flaky\n\nPlain and recorded runs have an outcome in common.\n\n"
        text += "| suite | Python | test | plain runs | recorded runs |\n"
        text += f"|---|---|---|---|---|\n{flaky}"
    text += "\n## Parts\n\n"
    for name in names:
        suite, release, python = name.split()
        parts = ", ".join(f"`{part}`" for part in sums[name]["parts"])
        text += f"- {TITLES[suite]} {release} on {_python(python)}: {parts}\n"
    return text


def write(page: Path, state: Path, kept: Path = SUMS) -> None:
    """Adds what is in ``state`` to the sums that are kept, and writes the tables anew."""
    sums = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for name, results in read(state).items():
        suite, _, python = name.split()
        sums = {k: v for k, v in sums.items() if (k.split()[0], k.split()[2]) != (suite, python)}
        sums[name] = sums_of(results)
    kept.write_text(json.dumps(sums, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    whole = page.read_text(encoding="utf-8")
    before, _, rest = whole.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{text_of(sums)}{END}{after}", encoding="utf-8")
