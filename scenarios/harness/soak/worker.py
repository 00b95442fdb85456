"""Makes runs that are asked for on standard input, one JSON object a line, and answers each.

A worker imports once what reads and judges, and is used for many runs. It ends when its input
does, so that none is left when the soak is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tlmem.scenarios.harness.catalog import ScenarioFailed, record

from tlmem.errors import TlmemError

from .judging import FAILED, Judgement, judgements
from .plan import Job, all_programs, with_seed


def main() -> int:
    """Serves until the end of standard input."""
    programs = {scenario.name: (group, scenario) for group, scenario in all_programs()}
    for asked in requests():
        group, scenario = programs[asked["name"]]
        job = Job(group, with_seed(group, scenario, asked["seed"]), asked["seed"])
        began = time.monotonic()
        found = run(job, asked["judges"], Path(asked["keep"]))
        answer = {
            "judged": {judge: asdict(judgement) for judge, judgement in found.items()},
            "seconds": round(time.monotonic() - began, 3),
            "load_average": round(os.getloadavg()[0], 2),
        }
        print(json.dumps(answer), flush=True)
    return 0


def requests() -> Iterator[dict[str, Any]]:
    """What is asked for, in order."""
    for line in sys.stdin:
        yield json.loads(line)


def run(job: Job, judges: Sequence[str], keep: Path) -> dict[str, Judgement]:
    """Records one program and judges the recording, which is kept when an answer is wrong."""
    with tempfile.TemporaryDirectory(prefix="tlmem-soak-") as folder:
        file = Path(folder, f"{job.scenario.name}.tlm")
        try:
            record(job.scenario, file, {"PYTHONHASHSEED": str(job.seed)})
            found = judgements(job, file, judges)
        except (ScenarioFailed, TlmemError) as error:
            found = dict.fromkeys(judges, Judgement(False, FAILED, str(error)))
        if file.exists() and not all(judgement.right for judgement in found.values()):
            shutil.copyfile(file, keep)
        return found


if __name__ == "__main__":
    sys.exit(main())
