"""The page ``docs/detection.md``: every scenario with its truth and what was found in one run.

``python -m tlmem.scenarios.table`` records them all, one after the other, and prints the page; it
exits with 1 when a truth was not found or a healthy program got a warning.
"""

from __future__ import annotations

import sys

from tlmem.scenarios.catalog import Result, Scenario, run, scenarios

from tlmem.analysis import Finding
from tlmem.units import format_bytes, format_count

HEAD = """\
# What is found, and what is not said

Written by `make detection`: each program of `tlmem scenario list` is recorded once and its
findings are compared with the truth that stands in the program. *Found* is the verdict, the lines
that grow, who holds what the first of them made, its [class](findings.md#leak-classes-warning), and
misuse; `tlmem scenario run NAME` shows the same for one of them. Objects and bytes are those of the
first finding.

"""


def main() -> int:
    """Prints the page.

    Returns:
        0 when every truth was found and no healthy program got a warning, else 1.
    Raises:
        ScenarioFailed: a program could not be recorded.
    """
    results = [run(scenario) for scenario in scenarios().values()]
    faulty = [result for result in results if has_fault(result.scenario)]
    healthy = [result for result in results if not has_fault(result.scenario)]
    sys.stdout.write(HEAD + faulty_part(faulty) + "\n" + healthy_part(healthy))
    return 0 if all(map(is_right, results)) else 1


def has_fault(scenario: Scenario) -> bool:
    """Whether there is something to find."""
    return scenario.outcome != "stable" or scenario.misuse is not None


def is_right(result: Result) -> bool:
    """Whether the truth was found, and of a healthy program nothing else."""
    return result.right and (has_fault(result.scenario) or not wolves(result))


def wolves(result: Result) -> list[Finding]:
    """Errors and warnings."""
    return [found for found in result.analysis.findings if found.severity != "info"]


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
        worst = next(iter(wolves(result)), None)
        size = f"{format_count(worst.count)} | {format_bytes(worst.bytes)}" if worst else "0 | 0 B"
        rows.append(
            f"| `{result.scenario.name}` | {result.scenario.truth} | {result.found} | {size} | "
            f"{'right' if is_right(result) else '**wrong**'} |"
        )
    return "\n".join(rows) + "\n"


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
        f"{', '.join(found.kind for found in wolves(result)) or 'none'} |"
        for result in results
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
