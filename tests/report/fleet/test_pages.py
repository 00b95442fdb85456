"""One page for any number of recordings, in every format."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.fleets import write_fleet, write_rank

from tlmem import cli
from tlmem.fleets.comparing import FleetAnalysis
from tlmem.report.fleet import html, markdown, text, words
from tlmem.report.fleet import json as fleet_json

FIRST = "rank 5 (node b, pid 20005) grows 801 kB per step at ranks.py:12; the other 7 do not grow."


def report(capsys: pytest.CaptureFixture[str], *given: object) -> tuple[int, str, str]:
    code = cli.main(["report", "--jobs", "1", *map(str, given)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_first_line_names_the_rank_that_grows_though_it_freed_all_at_its_end(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = report(capsys, run_folder)

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == FIRST
    assert "8 processes on 2 nodes: 1 leak, 7 stable" in out
    assert "    kept.append(batch * 2)" in out
    assert "  ranks 0–4, 6–7" in out
    assert f"tlmem report {run_folder} --process 5" in out


def test_the_page_is_short_and_narrow_whatever_the_number(found: FleetAnalysis) -> None:
    healthy = next(process for process in found.processes if not process.grows)
    many = tuple(
        replace(healthy, rank=rank, pid=rank, path=f"r{rank}.tlm") for rank in range(1_000)
    )
    page = text.render(FleetAnalysis((*many, *found.growing)), ["run/"])

    assert len(page.splitlines()) < 30
    assert max(map(len, page.splitlines())) <= 100


def test_one_process_is_shown_in_full_by_its_rank(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = report(capsys, run_folder, "--process", "5")

    assert code == 0
    assert out.startswith("Leak at ranks.py:12: 120 of 120 arrays")
    assert "r0005.tlm" in out


def test_a_process_that_is_not_there_is_refused(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = report(capsys, run_folder, "--process", "64")

    assert (code, out) == (2, "")
    assert err.startswith(
        "tlmem: no process has the rank, worker's name or pid 64; there are rank 0"
    )


def test_all_shows_each_process_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = report(capsys, write_fleet(tmp_path / "run", 5, steps=10), "--all")
    titles = [line for line in out.splitlines() if line.startswith("Rank ")]

    assert code == 0
    assert titles[4] == "Rank 4 (node b, pid 20004), /home/ada/ranks.py"
    assert len(titles) == 5


def test_four_processes_are_a_family_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = report(capsys, write_fleet(tmp_path / "run", 4, steps=10))

    assert code == 0
    assert "4 processes together" in out
    assert "Rank 3 (node b, pid 20003), /home/ada/ranks.py\n====" in out


def test_damaged_files_are_counted_and_named_and_the_page_is_made(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r0004.tlm", "r0005.tlm"):
        shutil.copy2(run_folder / name, tmp_path)
    (tmp_path / "cut.tlm").write_bytes(b"")
    (tmp_path / "text.tlm").write_text("x")
    code, out, err = report(capsys, tmp_path)

    assert code == 3
    assert out.startswith("rank 5 (node b, pid 20005) grows 801 kB per step at ranks.py:12")
    assert "2 of 4 recordings cannot be read." in out
    assert f"{tmp_path}/cut.tlm is empty" in out.replace("\n  ", " ")
    assert err == "tlmem: 2 of 4 recordings cannot be read; the report names them.\n"


def test_a_folder_without_recordings_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = report(capsys, tmp_path)

    assert (code, out) == (2, "")
    assert "has no recordings (.tlm) in it; record into it with" in err


def test_json_has_the_fleet_at_its_top_and_a_line_for_each_process(found: FleetAnalysis) -> None:
    page = fleet_json.render(found, [])
    values = json.loads(page)

    assert list(values) == ["schema", "verdict", "fleet"]
    assert values["verdict"] == {"outcome": "leak", "sentence": FIRST}
    fleet = values["fleet"]
    assert fleet["verdicts"] == {"leak": 1, "stable": 7}
    assert [process["rank"] for process in fleet["processes"]] == list(range(8))
    assert fleet["groups"][0]["growth"]["max_process"] == "rank 5 (node b, pid 20005)"
    assert sum('"rank": ' in line for line in page.splitlines()) == 8


def test_markdown_names_the_rank_and_nothing_in_it_is_markup(found: FleetAnalysis) -> None:
    odd = replace(found.processes[0], host="a|b @team", grown_bytes=0)
    page = markdown.render(FleetAnalysis((odd, *found.processes[1:])), ["run/"])

    assert page.startswith("### ❌ tlmem: 8 processes")
    assert "| leak | `ranks.py:12 step` | 1 | 801 kB |" in page
    assert "@team" not in page


def test_html_loads_nothing_and_has_the_worst_process_in_full(
    found: FleetAnalysis, run_folder: Path
) -> None:
    page = html.render(found, [str(run_folder)])

    assert FIRST in page
    assert "In full: rank 5 (node b, pid 20005)" in page
    assert "Where resident memory is" in page
    assert "default-src &#x27;none&#x27;" in page
    assert page.count("<tr>") > 8


def test_a_name_in_html_is_escaped(found: FleetAnalysis) -> None:
    odd = replace(found.processes[0], host="<script>alert(1)</script>")
    shown = html.processes_table(FleetAnalysis((odd,)))

    assert "<script>" not in shown


def test_members_are_ranges_of_ranks_and_then_names(tmp_path: Path, found: FleetAnalysis) -> None:
    one = found.processes[0]
    ranks = [replace(one, rank=rank) for rank in (0, 1, 2, 5, 7, 8)]
    others = [replace(one, rank=None, worker=f"gw{number}") for number in range(2)]

    assert words.members(ranks) == "ranks 0–2, 5, 7–8"
    assert words.members([ranks[3], *others]) == "rank 5, worker gw0, worker gw1"
    assert words.members(others * 10).endswith("and 8 more")
    assert words.members([replace(one, rank=3)] * 2) == "rank 3, rank 3"


def test_a_family_that_is_named_by_its_first_file_is_a_page_when_it_is_large(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_rank(tmp_path / "a.tlm", None, pid=10, steps=10)
    for pid in range(11, 16):
        write_rank(tmp_path / f"a.{pid}.tlm", None, pid=pid, parent_pid=10, steps=10)
    code, out, _ = report(capsys, first)

    assert code == 0
    assert "6 processes: " in out
