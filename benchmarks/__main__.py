"""``python -m benchmarks``: measures, prints Markdown tables, and writes docs/benchmarks.md.

A full run takes about twelve minutes; numbers mean something on a machine that does nothing else.
Numbers of the last full run are kept in benchmarks/results.json and shown beside the new ones.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    machine,
    part_autograd,
    part_compiled,
    part_events,
    part_heap,
    part_holders,
    part_long,
    part_planning,
    part_programs,
    part_reading,
    part_replay,
    part_runtime,
    part_screens,
    part_start,
    part_torch,
)
from benchmarks.measuring import ROOT, Settings
from benchmarks.pages import Section, replace
from benchmarks.targets import summary

PARTS: dict[str, Callable[..., Section]] = {
    "events": part_events.measure,
    "start": part_start.measure,
    "programs": part_programs.measure,
    "reading": part_reading.measure,
    "long": part_long.measure,
    "screens": part_screens.measure,
    "runtime": part_runtime.measure,
    "autograd": part_autograd.measure,
    "planning": part_planning.measure,
    "replay": part_replay.measure,
    "compiled": part_compiled.measure,
    "torch": part_torch.measure,
    "heap": part_heap.measure,
    "holders": part_holders.measure,
}
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "benchmarks" / "results.json"


def show(text: str) -> None:
    """Says on stderr what is going on."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def options(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all when none is named")
    parser.add_argument("--scale", type=float, default=1.0, help="size of everything (default: 1)")
    parser.add_argument("--rounds", type=int, default=6, help="of plain and recorded (default: 6)")
    parser.add_argument("--quick", action="store_true", help="--scale 0.1 --rounds 2")
    parser.add_argument(
        "--program",
        action="append",
        default=[],
        choices=sorted(part_programs.TITLES),
        help="of the part programs; may be repeated (default: all)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        help="write the tables here (default: docs/benchmarks.md, of all programs at scale 1 only)",
    )
    given = parser.parse_args(words)
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"'{unknown[0]}' is not a part; choose from {', '.join(PARTS)}")
    if given.quick:
        given.scale, given.rounds = 0.1, 2
    return given


def write(page: Path, section: Section, origin: str) -> None:
    """Puts a section on the page, saying where its numbers come from."""
    replace(page, section.name, f"{origin}\n\n{section.text}")


def remember(sections: list[Section], results: Path) -> tuple[dict, dict]:
    """Adds the new numbers to those that are kept; returns the new state and the former one."""
    before = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    now = dict(before)
    for section in sections:
        now.update({name: float(f"{value:.4g}") for name, value in section.values.items()})
    results.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return now, before


def main(words: list[str]) -> int:
    """Measures the parts that are asked for."""
    given = options(words)
    where = machine.describe()
    command = shlex.join(["python", "-m", "benchmarks", *words])
    origin = f"`{command}`: {where}"
    sections = []
    with tempfile.TemporaryDirectory(prefix="tlmem-bench-") as folder:
        for name in given.parts or PARTS:
            settings = Settings(given.scale, given.rounds, Path(folder), show, given.program)
            sections.append(PARTS[name](settings))
            print(f"\n## {name}\n\n{sections[-1].text}\n", flush=True)
    page = given.page or (PAGE if given.scale == 1 and not given.program else None)
    if page is None:
        print(summary({k: v for s in sections for k, v in s.values.items()}, {}))
        return 0
    results = RESULTS if page == PAGE else page.with_suffix(".json")
    now, before = remember(sections, results)
    for section in sections:
        write(page, section, origin)
    replace(page, "targets", summary(now, before))
    print(summary(now, before))
    show(f"written to {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
