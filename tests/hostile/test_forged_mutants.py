"""Real recordings that were changed: every table, the analysis and the reports answer or refuse.

Covers: bits flipped, files cut, pieces of one recording in another one, and changes below right
checksums. A failure names the seed; ``mutate.mutant(seed)`` is the file. In CI a share with fixed
seeds; ``TLMEM_HOSTILE=long`` runs 20,000, ``TLMEM_FUZZ=n`` other ones.
Does not cover: files made for one purpose (``test_forged_files``).
"""

import os
import time
import warnings
from pathlib import Path

import pytest
from hostile import mutate

from tlmem.analysis import analyse
from tlmem.analysis.ledger.balance import balance
from tlmem.errors import TlmemError
from tlmem.export import memory_viz, speedscope
from tlmem.recording.reader import read
from tlmem.report import FORMATS
from tlmem.report.summary import Process, Summary

LONG = os.environ.get("TLMEM_HOSTILE") == "long"
ROUND = os.environ.get("TLMEM_FUZZ", "0")
BATCHES = 4
CASES = 5000 if LONG else 100
MOST_CPU_S = 20.0
TABLES = (
    "events objects samples sites site_totals marks threads holders holdings holding_steps "
    "holding_objects scopes misuses pools ops passes devices totals info problems complete"
).split()


def answer(path: Path) -> None:
    """Asks a recording for everything."""
    recording = read(path)
    for name in TABLES:
        getattr(recording, name)
    if len(recording.objects):
        recording.history(int(recording.objects.index[0]))
    summary = Summary((Process(recording, analyse(recording)),))
    for name in ("text", "json", "markdown"):
        FORMATS[name](summary)
    balance(recording, at_exit=True)
    speedscope.document(recording)
    memory_viz.snapshot(recording)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_changed_recording_is_answered_or_refused(batch: int, tmp_path: Path) -> None:
    path = tmp_path / "changed.tlm"
    refused = 0
    for case in range(CASES):
        seed = f"{ROUND} {batch} {case}"
        path.write_bytes(mutate.mutant(seed))
        begin = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                answer(path)
        except TlmemError as error:
            refused += 1
            assert error.exit_code in (2, 3), seed
            assert str(path) in str(error) and "\n" not in str(error), seed
        except Exception as error:
            raise AssertionError(f"mutate.mutant({seed!r}) was not survived") from error
        assert time.process_time() - begin < MOST_CPU_S, seed

    assert refused < CASES / 2, "most files were refused at once: nothing was tested"
