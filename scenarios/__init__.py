"""Small programs with a known truth; installed as ``tlmem.scenarios``.

``list_scenarios`` and ``run_scenario`` are the command ``tlmem scenario``. ``programs`` are
ordinary programs, with NumPy arrays or tensors of tlmem, that can be recorded as they are; a fault
and its repair are one file, and the word ``fixed`` runs the repair. ``harness`` finds, records and
judges them.
May import: nothing. Inside functions: errors, output, scenarios.harness.
"""

from __future__ import annotations

import sys


def list_scenarios() -> int:
    """Prints one line for each scenario, its name first; to stderr how many cannot run here."""
    from tlmem.output.stdio import to_stdout

    from .harness.catalog import scenarios, skipped_text

    sys.stderr.write(skipped_text())
    return to_stdout(
        "".join(
            f"{name:28} {scenario.outcome:8} {scenario.description}\n"
            for name, scenario in scenarios().items()
        )
    )


def run_scenario(name: str) -> int:
    """Records one scenario and compares what is found with its truth.

    Returns:
        0; 1 when the truth was not found; 2 for an unknown name or a program that could not be
        recorded.
    """
    from tlmem.errors import TlmemError

    from .harness.catalog import ScenarioFailed, run, scenarios, skipped

    if name == "policies":
        from .harness.policies import main as print_policies

        print_policies()
        return 0
    scenario = scenarios().get(name)
    if scenario is None and name in skipped():
        sys.stderr.write(f"tlmem: scenario {name} needs {skipped()[name].missing}\n")
        return 2
    if scenario is None:
        sys.stderr.write(
            f"tlmem: there is no scenario '{name}'; tlmem scenario list names them all.\n"
        )
        return 2
    try:
        result = run(scenario)
    except ScenarioFailed as error:
        sys.stderr.write(f"tlmem: {error}.\n")
        return 2
    except TlmemError as error:
        sys.stderr.write(f"tlmem: {error}\n")
        return 2
    print(f"truth: {scenario.truth}")
    print(f"found: {result.found}")
    print(result.analysis.verdict.sentence)
    print("right" if result.right else "WRONG")
    return 0 if result.right else 1
