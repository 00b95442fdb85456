"""Pictures of every screen at two sizes, on a recording that is the same everywhere.

``pytest tests/dashboards/test_snapshots.py --snapshot-update`` takes them anew; look at them before
they are committed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.screens import app_of, live_app_of, press, settle, until_shown
from textual.pilot import Pilot

NARROW, WIDE = (80, 24), (160, 45)
KEYS = {
    "overview": ["1"],
    "timeline": ["2"],
    "object": ["2", "enter", "down", "enter"],
    "findings": ["3"],
    "sites": ["4"],
    "flames": ["4", "b", "v"],
    "scopes": ["5", "plus", "plus", "plus"],
    "pools": ["6"],
    "tape": ["7"],
    "diff": ["8"],
    "moment": ["w"],
    "help": ["question_mark"],
}

Compare = Callable[..., bool]


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", KEYS)
def test_a_screen_looks_as_before(
    snap_compare: Compare, story: Path, mended: Path, name: str, size: tuple[int, int]
) -> None:
    async def look(pilot: Pilot) -> None:
        await settle(pilot)
        await press(pilot, *KEYS[name])

    assert snap_compare(app_of(story, mended), run_before=look, terminal_size=size)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("table", ["roles", "modules"])
def test_the_peak_of_pytorch_looks_as_before(
    snap_compare: Compare, net: Path, table: str, size: tuple[int, int]
) -> None:
    async def look(pilot: Pilot) -> None:
        await settle(pilot)
        await press(pilot, "w", table[0])

    assert snap_compare(app_of(net), run_before=look, terminal_size=size)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])
def test_the_live_screen_looks_as_before(
    snap_compare: Compare, story: Path, size: tuple[int, int]
) -> None:
    async def look(pilot: Pilot) -> None:
        await until_shown(pilot, "train.py:12")
        await press(pilot, "left")

    assert snap_compare(live_app_of(story), run_before=look, terminal_size=size)
