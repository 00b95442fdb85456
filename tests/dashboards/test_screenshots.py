"""Pictures of screens for documents."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.fleets import write_fleet
from tlmem.dashboards import screenshots
from tlmem.dashboards.app import KEYS
from tlmem.dashboards.screenshots import EVERY_SCREEN, PLACE, picture


@pytest.mark.asyncio
async def test_a_picture_has_every_number_and_is_small(story: Path) -> None:
    drawn = await picture(story, ("g", f"{PLACE}epoch 2"), (80, 24))
    text = "".join(ET.fromstring(drawn).itertext()).replace("\N{NO-BREAK SPACE}", " ")

    assert "Alive 11.8 MB in 181 blocks, 510 ms after the start" in text
    assert "@font-face" not in drawn and len(drawn) < 40_000


def test_every_screen_has_a_picture() -> None:
    keys = {keys[0] for keys in EVERY_SCREEN.values() if keys}

    assert set(KEYS) <= keys
    assert {screenshots.FOLLOWED, screenshots.OF_MANY} <= set(EVERY_SCREEN)


@pytest.mark.asyncio
async def test_many_processes_and_a_program_that_is_followed_have_pictures(
    story: Path, tmp_path: Path
) -> None:
    def words(drawn: str) -> str:
        return "".join(ET.fromstring(drawn).itertext()).replace("\N{NO-BREAK SPACE}", " ")

    many = words(await picture(write_fleet(tmp_path / "run", 8, [5]), (), (120, 40)))
    followed = words(await picture(story, (), (120, 40), followed=True))

    assert "rank 5 (node b, pid 20005) grows 801 kB per step" in many
    assert "train.py:12 train" in followed and "9 Live" in followed


def test_each_picture_is_a_file(
    story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screenshots, "EVERY_SCREEN", {"pools": ("6",)})
    monkeypatch.setattr(screenshots, "SIZES", ((80, 24),))

    assert screenshots.main([str(story), str(tmp_path / "screens"), "--all"]) == 0
    made = sorted(path.name for path in (tmp_path / "screens").iterdir())
    assert made == ["README.md", "tui-pools-80x24.svg"]
    assert "(tui-pools-80x24.svg)" in (tmp_path / "screens" / "README.md").read_text()
