"""``tlmem diff`` of sampled heap: only what the intervals of both sides keep apart."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.heap_programs import LITTLE, two_lines
from support.programs import command, recorded

from tlmem.analysis.compare import compare
from tlmem.analysis.heap_samples import unseen
from tlmem.analysis.model import Estimate
from tlmem.report.summary import summarise


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings of a program, and one in which a line holds three times as much."""
    place = tmp_path_factory.mktemp("heap")
    two_lines(place, "a.tlm")
    two_lines(place, "again.tlm", 4_000, "--heap=64kB", "--heap-seed=4")
    two_lines(place, "b.tlm", 12_000)
    return place


def diff(folder: Path, *words: str) -> str:
    result = command(["diff", *words], folder)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def test_a_line_that_holds_more_is_named(folder: Path) -> None:
    changes = json.loads(diff(folder, "a.tlm", "b.tlm", "--format", "json"))["heap"]
    (grown,) = [change for change in changes if change["memory"] == "native"]

    assert (grown["site_a"]["line"], grown["site_b"]["line"]) == (LITTLE, LITTLE)
    assert grown["a"]["high_bytes"] < grown["b"]["low_bytes"]
    assert grown["b"]["bytes"] == pytest.approx(24e6, rel=0.3)


def test_text_says_by_how_much_a_line_grew_or_shrank(folder: Path) -> None:
    grown, shrunk = diff(folder, "a.tlm", "b.tlm"), diff(folder, "b.tlm", "a.tlm")

    for text, sign in ((grown, "≈ +"), (shrunk, "≈ -")):
        row = next(row for row in text.splitlines() if row.startswith("  native"))
        assert f"program.py:{LITTLE} " in row and sign in row


def test_what_chance_alone_makes_differ_is_not_said(folder: Path) -> None:
    text = diff(folder, "a.tlm", "again.tlm")

    assert "  native" not in text
    assert diff(folder, "a.tlm", "a.tlm").count("no line differs, the 95% intervals") == 1


def test_without_samples_on_both_sides_nothing_is_said(folder: Path) -> None:
    recorded(["-f", "-o", "plain.tlm", "-c", "print(1)"], folder)

    assert "Sampled" not in diff(folder, "a.tlm", "plain.tlm")
    assert "heap" not in json.loads(diff(folder, "plain.tlm", "a.tlm", "--format", "json"))


def test_a_line_without_samples_may_have_what_was_missed() -> None:
    rate = 256_000.0
    small, large = unseen(np.array([1_000.0]), rate), unseen(np.array([1e9]), rate)

    assert (small.bytes, small.low, small.count) == (0, 0, 0)
    # 3 is the mid-p end of the interval of a Poisson count of which none was seen.
    assert small.high == pytest.approx(3.00 * rate, rel=0.01)
    assert large.high < 1
    assert unseen(np.array([1_000.0]), 1.0) == Estimate(0, 0, 0, 0)


def test_forged_samples_are_compared(folder: Path) -> None:
    sides = []
    for name in ("a.tlm", "b.tlm"):
        summary = summarise([str(folder / name)])
        recording = summary.processes[0].recording
        heap = recording.heap.iloc[:4].copy()
        heap["born_site"] = np.array([2**32 - 1, 0, 1, 2], np.uint32)
        heap["size_bytes"] = [2**63 - 1, -(2**63), 0, 2**62]
        heap["weight"], heap["died_ns"] = [1e16, 1e16, 0.0, 1.0], -1
        recording.heap = heap
        sides.append(summary.side)

    assert compare(*sides).heap == ()
