"""The map of all processes: what it shows, and that it opens one."""

from pathlib import Path

import numpy as np
import pytest
from support.fleet_fixtures import found as found
from support.fleet_fixtures import run_folder as run_folder
from support.screens import opened, press, screen_text
from tlmem.dashboards.app import FleetApp
from tlmem.dashboards.model.fleet import FleetIndex, HeatRow, count_sentence, heat_map
from tlmem.dashboards.opening import first_readable
from tlmem.dashboards.widgets.heat_map import HeatMapRows

from tlmem.errors import EmptyRecording
from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.members import files_of


def app_of(folder: Path) -> FleetApp:
    """The application as ``tlmem tui FOLDER`` makes it, but for its processes."""
    files = files_of(folder)
    return FleetApp(FleetIndex(files, jobs=1), first_readable(files))


def row(curve: list[float], seconds: float) -> HeatRow:
    return HeatRow("", "", "", "stable", "", "", np.array(curve), seconds)


def test_a_column_shows_the_highest_memory_of_its_time() -> None:
    assert row([1, 2, 3, 4], 4.0).cells(2, 4.0).tolist() == [2, 4]
    assert row([1, 2], 4.0).cells(4, 4.0).tolist() == [1, 1, 2, 2]


def test_nothing_is_shown_after_the_end_of_a_process() -> None:
    cells = row([1, 2], 2.0).cells(4, 4.0)

    assert cells[:2].tolist() == [1, 2]
    assert np.isnan(cells[2:]).all()
    assert np.isnan(row([], 2.0).cells(4, 4.0)).all()


def test_rows_are_by_rank_or_those_with_most_come_first(found: FleetAnalysis) -> None:
    assert [each.name for each in heat_map(found).rows][:2] == ["rank 0", "rank 1"]
    for order in ("growth", "peak"):
        assert heat_map(found, order).rows[0].name == "rank 5"


def test_both_memories_have_a_scale_of_their_own(found: FleetAnalysis) -> None:
    resident, arrays = heat_map(found), heat_map(found, memory="arrays")

    assert resident.highest == pytest.approx(140e6, rel=0.01)
    assert arrays.highest == pytest.approx(116e6, rel=0.01)


def test_what_cannot_be_read_is_counted(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.tlm").write_bytes(b"")
    index = FleetIndex([tmp_path / "empty.tlm", run_folder / "r0000.tlm"], jobs=1)
    index.read(lambda: None)

    assert count_sentence(index, index.analysis) == "1 stable, 1 cannot be read"
    assert index.is_complete
    with pytest.raises(EmptyRecording):
        first_readable([tmp_path / "empty.tlm"])


@pytest.mark.asyncio
async def test_the_map_names_the_odd_one_out_and_enter_opens_it(run_folder: Path) -> None:
    app = app_of(run_folder)
    async with opened(app) as pilot:
        shown = screen_text(app)
        assert "rank 5 (node b, pid 20005) grows 801 kB per step at ranks.py:12" in shown
        assert "8 processes  ‼ leak" in shown
        await press(pilot, "o")
        assert "▸ rank 5   b     ‼ leak       801 kB   140 MB  ▆" in screen_text(app)
        await press(pilot, "enter")
        assert app.current_mode == "overview"
        assert "Leak at ranks.py:12: 120 of 120 arrays" in screen_text(app)
        await press(pilot, "p")
        assert app.loaded.path.name == "r0006.tlm"
        await press(pilot, "9")
        assert app.current_mode == "fleet"


@pytest.mark.asyncio
async def test_other_screens_show_a_process_before_one_was_opened(run_folder: Path) -> None:
    app = app_of(run_folder)
    async with opened(app) as pilot:
        await press(pilot, "3")
        assert app.current_mode == "findings"
        assert app.loaded.is_analysed
        await press(pilot, "question_mark", "end")
        assert "odd one out" in screen_text(app)


@pytest.mark.asyncio
@pytest.mark.parametrize("width", [40, 80, 120])
async def test_the_map_fits_on_any_screen(run_folder: Path, width: int) -> None:
    app = app_of(run_folder)
    async with opened(app, (width, 24)) as pilot:
        for keys in ("s", "m"):
            await press(pilot, keys)
            rows = [line for line in screen_text(app).splitlines() if "rank 5 " in line]
            assert any(line.rstrip().endswith("█") for line in rows)
        assert "[9 Fleet]" in screen_text(app) or width < 80


@pytest.mark.asyncio
async def test_rows_are_higher_where_all_of_them_fit(run_folder: Path) -> None:
    """Eight rows of three lines on a high screen; the cursor and the mouse find them."""
    app = app_of(run_folder)
    async with opened(app, (120, 40)) as pilot:
        rows = app.screen.query_one(HeatMapRows)
        lines = screen_text(app).splitlines()
        at = [n for n, line in enumerate(lines) if line[1:7] == " rank "]
        leaking = at[5]

        assert rows.lines_each == 3
        assert at[1] - at[0] == 3
        assert "█" in lines[leaking] and "█" in lines[leaking - 1]
        assert "█" not in lines[at[0] - 1]
        assert [rows.row_at(rows.heads_height + line)[0] for line in range(7)] == [
            *(0, 0, 0, 1, 1, 1, 2),
        ]
        assert rows.row_at(rows.heads_height + 24)[0] is None
        await press(pilot, "down")
        lines = screen_text(app).splitlines()
        assert sum("▸" in line for line in lines) == 1
        assert "▸ rank 1" in lines[at[1]]
