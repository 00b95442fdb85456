"""Pictures of screens for documents."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
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
    keys = {keys[0] for keys in EVERY_SCREEN.values()}

    assert set(KEYS) <= keys


def test_each_picture_is_a_file(
    story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screenshots, "EVERY_SCREEN", {"pools": ("6",)})
    monkeypatch.setattr(screenshots, "SIZES", ((80, 24),))

    assert screenshots.main([str(story), str(tmp_path / "screens"), "--all"]) == 0
    made = sorted(path.name for path in (tmp_path / "screens").iterdir())
    assert made == ["README.md", "tui-pools-80x24.svg"]
    assert "(tui-pools-80x24.svg)" in (tmp_path / "screens" / "README.md").read_text()
