"""Pictures of screens for documents: ``python -m tlmem.dashboards.screenshots FILE FOLDER``.

Covers: driving the application without a terminal and writing what it shows as SVG.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from textual.pilot import Pilot

from .app import TlmemApp
from .model.loading import Loaded, family_of

SIZE = (100, 30)
SCREENS = {
    "overview": ("1",),
    "findings": ("3",),
    "timeline": ("2", "enter", "enter"),
    "sites": ("4",),
    "flames": ("4", "b", "v"),
}
"""Names of pictures, and the keys that lead to them from the first screen."""


async def settle(pilot: Pilot[None], app: TlmemApp) -> None:
    """Waits until nothing is computed any more and everything is drawn."""
    quiet = 0
    while quiet < 3:
        await pilot.pause()
        quiet = 0 if app.background.busy else quiet + 1
        if not quiet:
            await pilot.pause(0.01)


async def take(path: Path, folder: Path) -> list[Path]:
    """Writes a picture of each screen and returns their files.

    Raises:
        TlmemError: the recording cannot be read.
    """
    taken = []
    for name, keys in SCREENS.items():
        app = TlmemApp([Loaded(member) for member in family_of(path)])
        async with app.run_test(size=SIZE) as pilot:
            await settle(pilot, app)
            for key in keys:
                await pilot.press(key)
                await settle(pilot, app)
            picture = app.export_screenshot(title=f"tlmem tui {path.name}")
        taken.append(folder / f"tui-{name}.svg")
        taken[-1].write_text(picture, encoding="utf-8")
    return taken


def main(words: list[str]) -> int:
    """Runs the command; prints the files that were written."""
    if len(words) != 2:
        sys.stderr.write("usage: python -m tlmem.dashboards.screenshots FILE FOLDER\n")
        return 2
    for picture in asyncio.run(take(Path(words[0]), Path(words[1]))):
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
