"""Sampled heap in reports: which lines hold it, with intervals that hold the truth."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.heap_programs import LITTLE, MUCH, STRINGS, two_lines
from support.programs import command
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.recording.reader import read
from tlmem.recording.tables.schema import SCHEMA
from tlmem.report import FORMATS
from tlmem.report import text as text_report
from tlmem.report.summary import Process, Summary

COLUMNS = [column.name for column in SCHEMA["heap"].columns]


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_lines(tmp_path_factory.mktemp("sampled"), "r.tlm")


def report(path: Path, format: str = "text") -> str:
    result = command(["report", "--format", format, path.name], path.parent)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def summary_of(recording: Any, heap: list[dict[str, object]]) -> Summary:
    """A recording with other samples; what is not given of one is small and alive."""
    usual = dict.fromkeys(COLUMNS, 0) | {"is_python": False, "died_ns": -1, "born_ns": 1}
    recording.heap = pd.DataFrame([usual | row for row in heap], columns=COLUMNS)
    return Summary((Process(recording, analyse(recording)),))


def test_lines_that_hold_sampled_heap_are_listed_most_first(sampled: Path) -> None:
    shown = report(sampled)
    block = shown[shown.index("Sampled heap when judged") : shown.index("Resident memory")]
    places = [block.index(f"program.py:{line} in ") for line in (MUCH, LITTLE, STRINGS)]

    assert places == sorted(places)
    assert block.index("Native memory: ≈ ") < places[0]
    assert places[1] < block.index("Memory of Python objects: ≈ ") < places[2]


def test_json_has_the_estimates_with_their_intervals(sampled: Path) -> None:
    native, python = json.loads(report(sampled, "json"))["heap"]
    held = {line["site"]["line"]: line for line in native["lines"]}

    assert (native["memory"], python["memory"]) == ("native", "python")
    assert 20_000_000 < held[MUCH]["low_bytes"] < held[MUCH]["high_bytes"] < 32_000_000
    assert 5_000_000 < held[LITTLE]["low_bytes"] < held[LITTLE]["high_bytes"] < 13_000_000
    assert held[MUCH]["blocks"] == pytest.approx(8_000, rel=0.25)
    assert native["bytes"] == pytest.approx(
        sum(line["bytes"] for line in native["lines"]) + native["other_bytes"], abs=100
    )


def test_pages_and_comments_show_the_lines_too(sampled: Path) -> None:
    page, comment = report(sampled, "html"), report(sampled, "markdown")

    assert "<h2>Sampled heap</h2>" in page and "95% interval" in page
    assert "Sampled heap when judged" in comment


def test_where_every_block_was_recorded_the_figures_are_exact(tmp_path: Path) -> None:
    shown = report(two_lines(tmp_path, "r.tlm", 100, "--heap=all"))
    row = next(row for row in shown.splitlines() if f"program.py:{MUCH} in " in row)

    assert row.split()[:4] == ["24.0", "MB", "exact", "8,000"]


@pytest.mark.parametrize("format", ["text", "json", "html", "markdown"])
def test_without_samples_nothing_is_said_of_the_heap(sampled: Path, format: str) -> None:
    shown = "".join(FORMATS[format](summary_of(read(sampled), [])))

    assert "Sampled heap" not in shown and '"heap"' not in shown


def test_what_is_left_out_is_counted() -> None:
    program = Program()
    sites = [program.site_of(line) for line in range(1, 131)]
    program.wait(10**9)
    recording = program.recording()
    rows = [
        {"size_bytes": 1_000 * number, "weight": 2.0, "born_site": site}
        for number, site in enumerate(sites, 1)
    ]
    summary = summary_of(recording, rows)
    held = json.loads("".join(FORMATS["json"](summary)))["heap"][0]

    assert "    and 120 more lines: ≈ 14.5 MB" in text_report.render(summary).splitlines()
    assert (len(held["lines"]), held["other_lines"]) == (100, 30)
    assert held["other_bytes"] == 2 * sum(1_000 * i for i in range(1, 31))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({"born_site": 2**32 - 1, "size_bytes": 5, "weight": 1.5}, id="unknown-site"),
        pytest.param({"size_bytes": 5, "weight": 0.0}, id="no-weight"),
        pytest.param({"size_bytes": 2**63 - 1, "weight": 1e16}, id="huge"),
        pytest.param({"size_bytes": -(2**63), "weight": 2.0}, id="negative"),
        pytest.param({"size_bytes": 0, "weight": 1e16}, id="nothing"),
    ],
)
@pytest.mark.parametrize("format", ["text", "json", "html", "markdown"])
def test_forged_samples_do_not_raise(sampled: Path, format: str, row: dict[str, object]) -> None:
    recording = read(sampled)
    other = {"size_bytes": 5, "weight": 2.0, "born_site": int(recording.heap["born_site"].iloc[-1])}
    shown = "".join(FORMATS[format](summary_of(recording, [row, row, other])))

    assert "Sampled heap" in shown or '"heap"' in shown


def test_the_peak_has_the_sampled_heap_of_that_moment(sampled: Path) -> None:
    shown = command(["peak", sampled.name], sampled.parent).stdout.decode()
    made = json.loads(command(["peak", sampled.name, "--format", "json"], sampled.parent).stdout)

    assert "Sampled heap alive when most was resident, after" in shown
    assert "Native memory: ≈ " in shown and f"program.py:{MUCH} in much" in shown
    assert [held["memory"] for held in made["heap"]] == ["native", "python"]


def test_beside_an_estimate_stands_what_of_it_is_resident(sampled: Path) -> None:
    (native,) = re.findall(r"Native memory: ≈ .*, of ([0-9.]+ MB) resident", report(sampled))
    resident = json.loads(report(sampled, "json"))["other_attribution"]

    assert float(native.split()[0]) == pytest.approx(
        (resident["native_bytes"] + resident["mapped_bytes"]) / 1e6, rel=0.01
    )


def test_a_page_has_a_flame_graph_of_sampled_heap(sampled: Path) -> None:
    page = report(sampled, "html")

    assert page.count('class="flame"') == 2
    assert "≈ bytes alive when judged of native memory" in page


def test_a_trace_has_counters_of_sampled_heap(sampled: Path) -> None:
    words = ["export", sampled.name, "--to", "perfetto", "-o", "-"]
    trace = command(words, sampled.parent).stdout

    for name in ("≈ sampled native memory", f"allocated at program.py:{MUCH}"):
        assert name.encode() in trace
