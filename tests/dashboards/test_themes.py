"""Themes: colours can be read on each, and a choice is kept from one run to the next."""

import re
from pathlib import Path

import pytest
from tlmem.dashboards.app import TlmemApp
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.screenshots import settle
from tlmem.dashboards.themes import file_of_theme, keep_theme, kept_theme
from tlmem.dashboards.widgets.colours import GREEN, RED, YELLOW, readable


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    return tmp_path


def luminance(colour: str) -> float:
    """The relative luminance of a colour, by WCAG 2."""
    parts = [int(part, 16) / 255 for part in re.findall("..", colour.removeprefix("#"))]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [RED, YELLOW, GREEN])
@pytest.mark.parametrize(("ground", "dark"), [("#d0d0d0", False), ("#242f38", True)])
def test_colours_with_a_meaning_can_be_read_on_each_ground(
    colour: str, ground: str, dark: bool
) -> None:
    darker, lighter = sorted((luminance(readable(colour, dark)), luminance(ground)))

    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_without_a_choice_nothing_is_kept(settings: Path) -> None:
    assert kept_theme() == ""
    file_of_theme().parent.mkdir()
    file_of_theme().write_bytes(b"\xff\xfe")
    assert kept_theme() == ""


def test_the_environment_goes_before_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_theme("nord")
    assert kept_theme() == "nord"
    monkeypatch.setenv("TEXTUAL_THEME", "gruvbox")
    assert kept_theme() == ""


@pytest.mark.asyncio
async def test_a_chosen_theme_is_there_in_the_next_run(story: Path) -> None:
    for begins_with, chosen in (("textual-dark", "textual-light"), ("textual-light", "nord")):
        app = TlmemApp([Loaded(story)])
        app.keeps_theme = True
        async with app.run_test() as pilot:
            await settle(pilot, app)
            assert app.theme == begins_with
            assert kept_theme() in ("", begins_with)
            await pilot.press("T")
            await pilot.pause()
            assert type(app.screen).__name__ == "CommandPalette"
            await pilot.press("escape")
            assert file_of_theme().exists() == (begins_with != "textual-dark")
            app.theme = chosen
            await settle(pilot, app)
        assert kept_theme() == chosen


@pytest.mark.asyncio
async def test_a_choice_that_cannot_be_kept_is_said(story: Path, settings: Path) -> None:
    (settings / "tlmem").write_text("a file")
    app = TlmemApp([Loaded(story)])
    app.keeps_theme = True
    async with app.run_test() as pilot:
        app.theme = "nord"
        await settle(pilot, app)
        (said,) = app._notifications

    assert said.message.startswith("The theme is not kept: ")
