"""Part ``start``: what ``tlmem record`` adds to a script that is over at once.

Both sides run without ``site``: an editable install of tlmem puts its import hook, and what that
imports, into every start of Python, which would make plain Python slower and so tlmem look better.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Sequence

from benchmarks.measuring import ROOT, Run, Settings, difference, interleave, run, spread
from benchmarks.pages import Section, table

SCRIPTS = {"start-up": "pass", "start-up, numpy": "import numpy"}
PATHS = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
PLAIN, QUIET, SPOKEN = "python", "tlmem record -q", "tlmem record, with its verdict"


def measure(settings: Settings) -> Section:
    """Many runs, as each takes some 10 ms and they differ by as much."""
    section = Section("start")
    rows = []
    for name, code in SCRIPTS.items():
        settings.show(f"start-up of: {code}")
        script = settings.folder / "start.py"
        script.write_text(code + "\n", encoding="utf-8")
        record = [sys.executable, "-S", "-c", "import tlmem.cli as c; c.main()", "record"]
        recording = ["-f", "-o", str(settings.folder / "own.tlm")]
        commands = {
            PLAIN: [sys.executable, "-S", str(script)],
            QUIET: [*record, "-q", *recording, str(script)],
            SPOKEN: [*record, *recording, str(script)],
        }

        def runner(command: Sequence[str]) -> Callable[[], Run]:
            return lambda: run(command, settings.folder, {"PYTHONPATH": PATHS})

        rounds = settings.rounds
        turns = {PLAIN: 5 * rounds, QUIET: 5 * rounds, SPOKEN: rounds}
        cases = {case: runner(command) for case, command in commands.items()}
        done = interleave(cases, turns, lambda text: None)
        for case, runs in done.items():
            wall, more = spread(runs, "wall_s"), difference(runs, done[PLAIN], "wall_s")
            rows.append(
                [
                    f"`{code}`, {case}",
                    str(wall.count),
                    f"{wall.median * 1e3:.0f} ({wall.least * 1e3:.0f} to {wall.most * 1e3:.0f})",
                    f"{more.median * 1e3:+.0f}" if case != PLAIN else "",
                    f"{spread(runs, 'cpu_s').median * 1e3:.0f}",
                ]
            )
        section.values[name] = difference(done[QUIET], done[PLAIN], "wall_s").median * 1e3
        more = difference(done[SPOKEN], done[PLAIN], "wall_s")
        section.values[f"{name}, with verdict"] = more.median * 1e3
    section.blocks = [table(["script", "runs", "wall ms", "over python", "CPU ms"], rows)]
    return section
