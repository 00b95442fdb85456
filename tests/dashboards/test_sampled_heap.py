"""Sampled heap on the screen of sites: below the tree, and only where there are samples."""

from pathlib import Path

import pytest
from support.heap_programs import LITTLE, MUCH, STRINGS, two_lines
from support.screens import app_of, opened, press, screen_text
from tlmem.dashboards.screens.sites import SitesPage

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_lines(tmp_path_factory.mktemp("sampled"), "r.tlm")


async def test_lines_with_sampled_heap_are_below_the_tree(sampled: Path) -> None:
    app = app_of(sampled)
    async with opened(app, (120, 40)) as pilot:
        await press(pilot, "4")
        text = screen_text(app)

    places = [text.index(f"program.py:{line} ") for line in (MUCH, LITTLE, STRINGS)]
    assert "sampled heap when judged" in text and "≈ " in text and "95% interval" in text
    assert places == sorted(places)


async def test_enter_in_the_table_leaves_the_tree_as_it_is(sampled: Path) -> None:
    app = app_of(sampled)
    async with opened(app, (120, 40)) as pilot:
        await press(pilot, "4")
        page = app.screen
        assert isinstance(page, SitesPage)
        page.query_one("#sampled-heap").focus()
        before = set(page.opened)
        await press(pilot, "down", "enter")
        assert page.opened == before


async def test_without_samples_the_screen_is_as_before(story: Path) -> None:
    app = app_of(story)
    async with opened(app, (120, 40)) as pilot:
        await press(pilot, "4")

        assert "sampled heap" not in screen_text(app)
        assert not app.screen.query_one("#sampled-heap").display


async def test_the_screen_diff_has_lines_whose_sampled_heap_differs(sampled: Path) -> None:
    before = two_lines(sampled.parent, "before.tlm", 400)
    app = app_of(sampled, before)
    async with opened(app, (120, 40)) as pilot:
        await press(pilot, "8")
        text = screen_text(app)

    assert "sampled heap" in text and f"program.py:{LITTLE} " in text and "≈ +" in text


async def test_without_samples_the_screen_diff_is_as_before(story: Path) -> None:
    app = app_of(story, story)
    async with opened(app, (120, 40)) as pilot:
        await press(pilot, "8")

        assert not app.screen.query_one("#changed-heap").display
