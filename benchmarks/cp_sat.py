"""``python -m benchmarks.cp_sat``: the hard instances by CP-SAT of OR-tools, if it is installed.

Covers: CPU time of one worker until each capacity is kept. Does not cover: tlmem itself
(``part_planning``); docs/decisions/planner.md has what came out.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import resource
import subprocess
import sys
import time

from benchmarks import instances
from benchmarks.instances import Instance


def solve(instance: Instance) -> str:
    """One model: fixed times, free offsets, no two overlap, and never more than the capacity."""
    from ortools.sat.python import cp_model

    unit = math.gcd(instance.capacity or 0, *map(int, instance.rows[:, 2]))
    model, times, places, sizes = cp_model.CpModel(), [], [], []
    for first, last, size in instance.rows.tolist():
        offset = model.new_int_var(0, ((instance.capacity or 0) - size) // unit, "")
        times.append(model.new_fixed_size_interval_var(first, last + 1 - first, ""))
        places.append(model.new_fixed_size_interval_var(offset, size // unit, ""))
        sizes.append(size // unit)
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, sizes, (instance.capacity or 0) // unit)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.use_timetabling_in_no_overlap_2d = True
    solver.parameters.use_energetic_reasoning_in_no_overlap_2d = True
    began = time.process_time()
    found = solver.status_name(solver.solve(model))
    return f"{found}, {time.process_time() - began:.2f} s CPU"


def main() -> None:
    """Each instance in a process of its own, which is ended after so much CPU time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cp_sat", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of CPU time for each (default 20)")
    parser.add_argument("--way", choices=instances.TWINS, help="trim sizes so")
    parser.add_argument("--only", help="the instance of this name, in this process")
    given = parser.parse_args()
    if importlib.util.find_spec("ortools") is None:
        sys.exit("OR-tools is not installed; pip install ortools.")
    for original in instances.hard():
        if given.only == original.name:
            print(solve(instances.twin(original, given.way) if given.way else original))
        if given.only:
            continue
        command = [sys.executable, "-m", "benchmarks.cp_sat", "--only", original.name]
        done = subprocess.run(
            [*command, *(["--way", given.way] if given.way else [])],
            check=False,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (given.seconds,) * 2),
        )
        ended = f"nothing within {given.seconds} s of CPU time"
        if done.returncode > 0:
            sys.exit(done.stderr)
        print(f"{original.name}: {done.stdout.strip() or ended}", flush=True)


if __name__ == "__main__":
    main()
