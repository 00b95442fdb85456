"""``PYTHONPATH=tests python -m corpus``: judges programs that were written by others.

They stand in ``programs``, with their truth in ``expected.json``, and decide whether a change of
the rules is an improvement. ``--keep`` keeps the recordings, and ``--judge-only`` judges kept ones
again: a change of the rules is compared on the same recordings. ``--detail 0.1`` folds all but a
tenth of the events, as happens to those of a program that runs for hours: the answers should be the
same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tlmem.analysis import Analysis
from tlmem.recording.format import kept_sums, limits
from tlmem.recording.reader import read
from tlmem.report.summary import summarise

CORPUS = Path(__file__).resolve().parent
LONGEST_RUN_S = 600
"""Seconds after which a program that hangs is ended."""
TRUTHS = ("leak", "native", "python", "clean", "either")


@dataclass(frozen=True)
class Program:
    """A program of the corpus; ``lines`` are those of which one must be blamed for a leak.

    ``needs`` are packages beyond those of the tests; ``exit`` is its own exit status.
    """

    path: Path
    truth: str
    lines: tuple[int, ...] = ()
    shape: str = ""
    needs: tuple[str, ...] = ()
    exit: int = 0

    @property
    def missing(self) -> list[str]:
        """Packages that it imports and that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def programs(corpus: Path = CORPUS) -> dict[str, Program]:
    """The programs of the corpus by name."""
    expected = json.loads((corpus / "expected.json").read_text(encoding="utf-8"))
    return {
        Path(name).stem: Program(
            corpus / "programs" / name,
            entry["truth"],
            tuple(entry["lines"]),
            entry["shape"],
            tuple(entry.get("needs", ())),
            entry.get("exit", 0),
        )
        for name, entry in sorted(expected.items())
    }


def record(program: Program, file: Path) -> bool:
    """Records a program; False when it ended with another status or left no recording."""
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-f", "-o", str(file)]
    done = subprocess.run(
        [*command, str(program.path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=LONGEST_RUN_S,
    )
    return done.returncode == program.exit and file.exists()


def is_right(program: Program, analysis: Analysis) -> bool:
    """Whether verdict and blamed line are the true ones; of a healthy program, nothing is said."""
    outcome = analysis.verdict.outcome
    if program.truth == "either":
        return True
    if program.truth == "clean":
        return outcome == "stable" and all(found.severity == "info" for found in analysis.findings)
    if program.truth != "leak":
        return outcome == program.truth
    return outcome == "leak" and any(
        finding.site.line in program.lines and of_program(program, finding.site.file)
        for finding in analysis.findings
        if finding.kind == "growing-site" and finding.site is not None
    )


def of_program(program: Program, file: str) -> bool:
    """Whether a file is the program's own, or code without a file that it runs."""
    return file.startswith("<") or Path(file).name == program.path.name


@contextmanager
def kept_in_detail(file: Path, share: float) -> Iterator[None]:
    """Commands keep this share of a recording's events one by one and fold the others; 1: all."""
    if share == 1:
        yield
        return
    events = max(1, int(share * read(file).event_count))
    with (
        patch.object(limits, "DETAIL_OF_COMMANDS", events),
        patch.dict(os.environ, {kept_sums.SWITCH: "off"}),
    ):
        yield


def judged(
    chosen: dict[str, Program], folder: Path, again: bool, detail: float = 1.0
) -> Iterator[tuple[str, str, str]]:
    """Name, answer (right, wrong, failed or left out) and sentence of each program.

    Of a program that starts processes, the one with the most serious verdict counts.

    Args:
        detail: the share of a recording's events that is kept one by one.
    """
    for name, program in chosen.items():
        file = folder / f"{name}.tlm"
        if not again and program.missing:
            yield name, "left out", f"it needs {', '.join(program.missing)}"
            continue
        if not (file.exists() if again else record(program, file)):
            yield name, "failed", "there is no recording of it"
            continue
        with kept_in_detail(file, detail):
            analysis = summarise([str(file)]).worst.analysis
        answer = "right" if is_right(program, analysis) else "wrong"
        kinds = [found.kind for found in analysis.findings if found.severity != "info"]
        warned = f" ({', '.join(kinds)})" if kinds else ""
        yield name, answer, f"{analysis.verdict.sentence}{warned}"


def main(words: Sequence[str] | None = None) -> int:
    """Prints each wrong answer, and how many there are of each truth.

    Returns:
        0 when all answers are right, 1 when one is wrong or could not be had.
    """
    parser = argparse.ArgumentParser(
        prog="python -m corpus", description=__doc__.partition("\n\n")[2]
    )
    parser.add_argument("names", nargs="*", help="only these programs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where recordings are kept")
    parser.add_argument(
        "--judge-only", action="store_true", help="judge the recordings in FOLDER, record nothing"
    )
    parser.add_argument(
        "--detail", type=float, default=1.0, metavar="SHARE", help="fold all events but this share"
    )
    options = parser.parse_args(words)
    every = programs()
    unknown = [name for name in options.names if name not in every]
    if unknown:
        parser.error(f"there is no program '{unknown[0]}' in {CORPUS}")
    if options.judge_only and options.keep is None:
        parser.error("--judge-only needs --keep FOLDER")
    chosen = {name: every[name] for name in options.names or every}
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="tlmem-corpus-") as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name, answer, sentence in judged(chosen, folder, options.judge_only, options.detail):
            counts[every[name].truth, answer] += 1
            if answer != "right":
                print(f"{answer}: {name}, {every[name].truth}: {sentence}", flush=True)
    for truth in TRUTHS:
        whole = sum(count for (kind, _), count in counts.items() if kind == truth)
        print(f"{truth}: {counts[truth, 'right']} of {whole} right")
    return 0 if all(answer in ("right", "left out") for _, answer in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
