"""The first part of the page ``docs/detection.md``: every scenario with its truth and what was
found in one run.

``python -m tlmem.scenarios.harness.detection [PAGE]`` records them all, one after the other, and
prints that part or writes it into a page, where the other part, that of the soak, stays as it is.
It exits with 1 when a truth was not found or a healthy program got a warning.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tlmem.scenarios.harness.catalog import Result, run, scenarios, skipped_text

from tlmem.units import format_bytes, format_count

HEAD = """\
Written by `make detection`: each program of `tlmem scenario list` is recorded once and its
findings are compared with the truth that stands in the program. *Found* is the verdict, the lines
that grow, who holds what the first of them made, its [class](findings.md#leak-classes-warning), and
misuse; `tlmem scenario run NAME` shows the same for one of them. Objects and bytes are those of the
finding that the truth is about; where the truth states the number too, it is **bold**.

"""


def main(words: Sequence[str] = ()) -> int:
    """Prints the part of the page, or writes it into one.

    Args:
        words: the page to write into, or nothing.
    Returns:
        0 when every truth was found and no healthy program got a warning, else 1.
    Raises:
        ScenarioFailed: a program could not be recorded.
    """
    sys.stderr.write(skipped_text())
    results = [run(scenario) for scenario in scenarios().values()]
    faulty = [result for result in results if result.scenario.faulty]
    healthy = [result for result in results if not result.scenario.faulty]
    text = HEAD + faulty_part(faulty) + "\n" + healthy_part(healthy)
    if words:
        write_part(Path(words[0]), "scenarios", text)
    else:
        sys.stdout.write(text)
    return 0 if all(map(is_right, results)) else 1


def is_right(result: Result) -> bool:
    """Whether the truth was found, and of a healthy program nothing else."""
    return result.right and (result.scenario.faulty or not result.wolves)


def faulty_part(results: list[Result]) -> str:
    """The table of programs with a fault."""
    found = sum(map(is_right, results))
    rows = [
        f"## Programs with a fault: {found} of {len(results)} found",
        "",
        "| program | truth | found | objects | bytes | |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        rows.append(
            f"| `{result.scenario.name}` | {result.scenario.truth} | {result.found} | "
            f"{sizes(result)} | {'right' if is_right(result) else '**wrong**'} |"
        )
    return "\n".join(rows) + "\n"


def sizes(result: Result) -> str:
    """Objects and bytes of the main finding, bold where the truth states them."""
    worst, truth = result.main_finding, result.scenario
    count = format_count(worst.count) if worst else "0"
    size = format_bytes(worst.bytes) if worst else "0 B"
    return " | ".join(
        f"**{text}**" if stated is not None else text
        for text, stated in ((count, truth.count), (size, truth.bytes))
    )


def healthy_part(results: list[Result]) -> str:
    """The table of programs without one."""
    silent = sum(map(is_right, results))
    rows = [
        f"## Healthy programs: nothing said of {silent} of {len(results)}",
        "",
        "| program | what it does | found | errors and warnings |",
        "|---|---|---|---|",
    ]
    rows += [
        f"| `{result.scenario.name}` | {result.scenario.description} | {result.found} | "
        f"{', '.join(found.kind for found in result.wolves) or 'none'} |"
        for result in results
    ]
    return "\n".join(rows) + "\n"


def write_part(page: Path, name: str, text: str) -> None:
    """Puts a text between the marks of the part ``name``; at the end when there are none yet."""
    first, last = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    whole = page.read_text(encoding="utf-8") if page.exists() else ""
    if first not in whole:
        whole = f"{whole.rstrip()}\n\n{first}{last}".lstrip()
    before, _, rest = whole.partition(first)
    after = rest.partition(last)[2]
    page.write_text(f"{before}{first}{text.strip()}\n{last}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
