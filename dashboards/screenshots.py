"""Pictures of screens for documents: ``python -m tlmem.dashboards.screenshots FILE FOLDER``.

Covers: driving the application without a terminal and writing what it shows as SVG, with ``--all``
every screen in three sizes, those of many processes and of a program that runs among them. Fonts
are not part of the pictures, so that they stay small.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path

from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input

from tlmem.fleets.members import files_of

from .app import FleetApp, LiveApp, TlmemApp
from .model.fleet import FleetIndex
from .model.live import Follower
from .model.loading import Loaded, family_of
from .opening import first_readable

SIZE = (100, 30)
SIZES = ((80, 24), (120, 40), (200, 60))
PLACE = "@"
"""Before a place that is typed after ``g``."""
SCREENS = {
    "overview": ("1",),
    "findings": ("3",),
    "timeline": ("2", "enter", "enter"),
    "sites": ("4",),
    "flames": ("4", "b", "v"),
    "moment": ("g", f"{PLACE}epoch 2"),
}
"""Names of pictures, and the keys that lead to them from the first screen."""
EVERY_SCREEN = {
    **SCREENS,
    "lines": ("2",),
    "scopes": ("5", "plus", "plus", "plus"),
    "pools": ("6",),
    "tape": ("7",),
    "diff": ("8",),
    "peak": ("w",),
    "help": ("question_mark",),
    "live": (),
    "fleet": (),
}
FOLLOWED, OF_MANY = "live", "fleet"
"""The pictures of a recording that is followed, and of a folder of recordings."""
_SHORTER = (
    (re.compile(r"\s*@font-face \{[^}]*\}"), ""),
    (re.compile(r"<clipPath id=\"[^\"]*-line-\d+\">.*?</clipPath>\s*", re.DOTALL), ""),
    (re.compile(r" clip-path=\"url\(#[^)]*-line-\d+\)\""), ""),
    (re.compile(r"terminal-\d+-"), "t-"),
    (re.compile(r"(=\"\d+\.\d)\d+(?=\")"), r"\1"),
    (re.compile(r"(=\"\d+)\.0(?=\")"), r"\1"),
    (re.compile(r"&#160;"), "\N{NO-BREAK SPACE}"),
    (re.compile(r" shape-rendering=\"crispEdges\""), ""),
    (re.compile(r"\n\s*"), "\n"),
)
"""What a picture is made smaller by: fonts, a clip for each line, long names and numbers."""


async def settle(pilot: Pilot[None], app: TlmemApp) -> None:
    """Waits until nothing is computed any more and everything is drawn."""
    quiet = 0
    while quiet < 3:
        await pilot.pause()
        quiet = 0 if app.background.busy else quiet + 1
        if not quiet:
            await pilot.pause(0.01)


def application(path: Path, other: Path | None = None, followed: bool = False) -> TlmemApp:
    """What ``tlmem tui`` and, if ``followed``, ``tlmem live`` show of a file or a folder.

    Raises:
        TlmemError: the recording, or each of the folder, cannot be read.
    """
    if path.is_dir():
        files = files_of(path)
        return FleetApp(FleetIndex(files, jobs=1), first_readable(files))
    if followed:
        follower = Follower(path)
        follower.look()
        while follower.read():
            pass
        return LiveApp([Loaded(path)], follower=follower)
    return TlmemApp([Loaded(member) for member in family_of(path)], other)


async def picture(
    path: Path,
    keys: tuple[str, ...],
    size: tuple[int, int],
    other: Path | None = None,
    theme: str | None = None,
    followed: bool = False,
) -> str:
    """What a terminal of a size shows after some keys, as SVG; in Textual's theme unless named.

    Raises:
        TlmemError: the recording cannot be read.
    """
    app = application(path, other, followed)
    async with app.run_test(size=size) as pilot:
        app.theme = theme or app.theme
        await settle(pilot, app)
        for key in keys:
            if key.startswith(PLACE):
                app.screen.query_one("GoTo", Input).value = key.removeprefix(PLACE)
                key = "enter"
            await pilot.press(key)
            await settle(pilot, app)
        drawn = app.export_screenshot(title=f"tlmem tui {path.name}")
    for pattern, short in _SHORTER:
        drawn = pattern.sub(short, drawn)
    return drawn


async def take(
    path: Path,
    folder: Path,
    every: bool,
    other: Path | None = None,
    theme: str | None = None,
    many: Path | None = None,
) -> list[Path]:
    """Writes a picture of each screen and returns their files.

    Args:
        every: all screens in three sizes, and not those that the documents show.
        other: an earlier recording, for the screen that compares.
        theme: the name of a theme.
        many: a folder of recordings, for the screen of many processes; else that is left out.
    Raises:
        TlmemError: a recording cannot be read.
    """
    taken = []
    folder.mkdir(parents=True, exist_ok=True)
    screens = dict(EVERY_SCREEN if every else SCREENS)
    if many is None:
        screens.pop(OF_MANY, None)
    for size in SIZES if every else (SIZE,):
        for name, keys in screens.items():
            shown = many if many is not None and name == OF_MANY else path
            end = f"-{size[0]}x{size[1]}" if every else ""
            taken.append(folder / f"tui-{name}{end}.svg")
            drawn = await picture(shown, keys, size, other, theme, name == FOLLOWED)
            taken[-1].write_text(drawn, encoding="utf-8")
    return [*taken, gallery(folder, list(screens))] if every else taken


def gallery(folder: Path, screens: list[str]) -> Path:
    """Writes the page that shows these screens in every size, and returns its file."""
    lines = ["# Every screen in three sizes", "", "Written by `make screenshots`.", ""]
    for name in screens:
        lines += [f"## {name.capitalize()}", ""]
        for width, height in SIZES:
            about = f"{name} in a terminal of {width} x {height}"
            lines += [f"![{about}](tui-{name}-{width}x{height}.svg)", ""]
    page = folder / "README.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page


def main(words: list[str]) -> int:
    """Runs the command; prints the files that were written."""
    parser = argparse.ArgumentParser(
        "python -m tlmem.dashboards.screenshots", description="Writes pictures of screens as SVG."
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="a recording")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where the pictures go")
    parser.add_argument("--all", action="store_true", help="every screen in three sizes")
    parser.add_argument("--diff", metavar="OTHER", type=Path, help="an earlier recording")
    parser.add_argument("--fleet", metavar="FOLDER", type=Path, help="recordings of many processes")
    parser.add_argument("--theme", choices=sorted(BUILTIN_THEMES), help="default: textual-dark")
    given = parser.parse_args(words)
    asked = (given.file, given.folder, given.all, given.diff, given.theme, given.fleet)
    for made in asyncio.run(take(*asked)):
        print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
