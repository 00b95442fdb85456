"""Shared memory: what is mapped again and again is growth, a mapping that is touched is none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.programs import recorded

import tlmem
from tlmem.analysis import Analysis, analyse
from tlmem.analysis.growth.process_growth import Rise, judge_samples

SECOND = 1_000_000_000
PAGES = """
import mmap
import time

class Document:
    def __init__(self):
        self.versions = []

    def save(self, text):
        page = mmap.mmap(-1, 65_536)
        page.write(text)
        self.versions.append(page)
        KEPT

document = Document()
for _ in range(500):  # the kernel is asked for its mappings about twice a second
    document.save(bytes(65_536))
    time.sleep(0.01)
"""
TOUCHED = """
import mmap
import time

data = mmap.mmap(-1, 400 * 65_536)
for step in range(400):
    data[step * 65_536 : (step + 1) * 65_536] = bytes(65_536)
    time.sleep(0.012)
"""


def judged(folder: Path, source: str) -> Analysis:
    (folder / "pages.py").write_text(source, encoding="utf-8")
    done = recorded(["pages.py"], folder, options=("-q", "-o", "x.tlm"))
    assert done.returncode == 0, done.stderr
    return analyse(tlmem.read(str(folder / "x.tlm")))


def test_shared_memory_that_is_never_unmapped_is_native(tmp_path: Path) -> None:
    found = judged(tmp_path, PAGES.replace("KEPT", "pass"))
    verdict = found.verdict

    assert verdict.outcome == "native", verdict
    assert verdict.sentence.startswith("Native memory: Shared memory grew by ")
    assert "list 'versions' of Document" in verdict.sentence
    assert "--heap" not in verdict.sentence  # nothing of it is sampled
    kinds = {finding.kind for finding in found.findings}
    assert "shared-growth" in kinds and not kinds & {"native-growth", "mapped-files"}


@pytest.mark.parametrize(
    "source", [PAGES.replace("KEPT", "del self.versions[:-50]"), TOUCHED], ids=["limit", "touched"]
)
def test_a_limit_and_pages_of_one_mapping_are_healthy(source: str, tmp_path: Path) -> None:
    verdict = judged(tmp_path, source).verdict

    assert verdict.outcome == "stable", verdict


def rises(resident: np.ndarray, size: np.ndarray) -> tuple[Rise, ...]:
    """Of a process of which the mappings are listed every second."""
    table = pd.DataFrame({"shared": resident, "shared_size": size, "file": resident + 15e6})
    table["time_ns"] = np.arange(len(table)) * SECOND
    return judge_samples(table, 0, len(table) * SECOND).rises


def test_growth_needs_more_to_be_mapped_while_it_grows() -> None:
    grows, all_at_once = np.arange(60) * 1e6, np.full(60, 60e6)

    (found,) = rises(grows, grows)
    assert (found.kind, round(found.rate.value)) == ("shared", 1_000_000)
    assert rises(grows, all_at_once) == ()
    assert rises(grows, np.zeros(60)) == ()  # a recording of an earlier version
    # The end of the program unmaps all of it.
    ended = np.where(np.arange(60) < 59, grows, 0.0)
    assert [each.kind for each in rises(ended, ended)] == ["shared"]
