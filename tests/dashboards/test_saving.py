"""What is on screen as files, and on a terminal that has ASCII alone."""

import csv
from pathlib import Path

import pytest
from support.screens import app_of, opened, press, screen_text
from tlmem.dashboards.ascii_only import PAIRS, as_ascii
from tlmem.dashboards.model.tables import TableData
from tlmem.dashboards.saving import save

from tlmem.output.atomic_write import CannotWrite


def test_names_are_free_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    table = TableData(
        ("bytes", "line"), [("-3 B", "=cmd|' /C calc'!A0"), ("4 B", "a,b")], ("bytes",)
    )
    first = save(tmp_path, "run", "findings", "<svg/>", table)
    second = save(tmp_path, "run", "findings", "<svg/>", None)

    assert [path.name for path in first] == ["run-findings.svg", "run-findings.csv"]
    assert [path.name for path in second] == ["run-findings-2.svg"]
    rows = list(csv.reader(first[1].open(encoding="utf-8", newline="")))
    assert rows == [["bytes", "line"], ["-3 B", "'=cmd|' /C calc'!A0"], ["4 B", "a,b"]]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite):
        save(tmp_path / "gone", "run", "overview", "<svg/>", None)


@pytest.mark.asyncio
async def test_a_key_saves_the_picture_and_the_rows(
    story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_of(story)
    async with opened(app) as pilot:
        await press(pilot, "3", "S")
        assert any("story-findings.csv" in note.message for note in app._notifications)

    assert "never&#160;freed" in (tmp_path / "story-findings.svg").read_text(encoding="utf-8")
    rows = list(csv.reader((tmp_path / "story-findings.csv").open(encoding="utf-8", newline="")))
    assert rows[0][:4] == ["severity", "place", "what", "held by"]
    assert rows[1][1:4] == ["train.py:12", "never freed", "reader"]


def test_every_character_that_looks_like_another_is_one_column() -> None:
    assert all(len(pair) == 2 and pair[1].isascii() for pair in PAIRS.split())
    assert as_ascii("├──▶ é") == "[--> ?"


@pytest.mark.asyncio
async def test_a_terminal_without_unicode_gets_ascii_alone(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TLMEM_ASCII", "1")
    app = app_of(story)
    async with opened(app) as pilot:
        for key in "123456w":
            await press(pilot, key)
            assert screen_text(app).isascii(), app.current_mode
        await press(pilot, "1")
        assert "## arrays" in screen_text(app) and "%% pools" in screen_text(app)
