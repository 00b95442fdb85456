"""Seven questions that people ask, each answered by at most two keys from the first screen.

A place typed after ``g`` counts as one key.
"""

from pathlib import Path

import pytest
from support.screens import app_of, opened, press, screen_text
from tlmem.dashboards.model.view import View
from tlmem.dashboards.widgets.prompt import GoTo

pytestmark = pytest.mark.asyncio

MOST_KEYS = 2
TASKS = {
    "which line": ((), "leak at train.py:12"),
    "who holds it": (("3",), "reader"),
    "since when": (("w",), "the oldest allocated after 60.3 ms"),
    "what was alive at half a second": (("g", "0.5"), "Alive 11.5 MB in 177 blocks, 500 ms"),
    "what is in the pools by size": (("6",), "pool 'buffers' 4.10 kB 1 4.10 kB"),
    "which epoch": (("g", "0.5"), "after mark 'epoch' 1"),
    "the life of one object": (("3", "enter"), "acquire 2 train.py:21 by reader never released"),
}


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["narrow", "wide"])
async def test_each_question_takes_two_keys(story: Path, size: tuple[int, int]) -> None:
    app = app_of(story)
    async with opened(app, size) as pilot:
        for task, (keys, answer) in TASKS.items():
            assert len(keys) <= MOST_KEYS, task
            app.view = View.whole(app.loaded.end_ns)
            await press(pilot, "1")
            for key in keys:
                if keys[:1] == ("g",) and key != "g":
                    app.screen.query_one(GoTo).value = key
                    key = "enter"
                await press(pilot, key)

            assert answer in " ".join(screen_text(app).split()), task
