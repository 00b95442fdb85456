"""Drives the application in tests: opens it, presses keys, reads the screen."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from textual.pilot import Pilot
from tlmem.dashboards.app import LiveApp, TlmemApp
from tlmem.dashboards.model.live import Follower
from tlmem.dashboards.model.loading import Loaded, family_of

LONGEST_S = 600
"""Ends what hangs; nothing that is waited for takes a second on a machine that is not busy."""


def app_of(path: Path, other: Path | None = None) -> TlmemApp:
    """The application as ``tlmem tui`` makes it."""
    return TlmemApp([Loaded(member) for member in family_of(path)], other)


def live_app_of(path: Path) -> LiveApp:
    """The application as ``tlmem live`` makes it."""
    follower = Follower(path)
    follower.look()
    return LiveApp([Loaded(path)], follower=follower)


async def until(pilot: Pilot, is_so: Callable[[], bool], what: str) -> None:
    """Waits until something is so."""
    end = monotonic() + LONGEST_S
    while not is_so():
        assert monotonic() < end, f"after {LONGEST_S} s not yet: {what}"
        await pilot.pause(0.02)


async def until_shown(pilot: Pilot, text: str) -> None:
    """Waits until a text is on screen."""
    await until(pilot, lambda: text in screen_text(pilot.app), text)  # type: ignore[arg-type]


async def settle(pilot: Pilot) -> None:
    """Waits until nothing is computed any more and everything is drawn."""
    background = pilot.app.background  # type: ignore[attr-defined]
    quiet = 0
    while quiet < 3:
        if background.busy:
            await until(pilot, lambda: not background.busy, "an end of what is computed")
            quiet = 0
        await pilot.pause()
        quiet += not background.busy


async def press(pilot: Pilot, *keys: str) -> None:
    """Presses keys, each when the one before has been answered."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


@asynccontextmanager
async def opened(app: TlmemApp, size: tuple[int, int] = (100, 30)) -> AsyncIterator[Pilot]:
    """An application that runs, with everything read."""
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot


def screen_text(app: TlmemApp) -> str:
    """What is on screen, as plain text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)
