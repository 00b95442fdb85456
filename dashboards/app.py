"""The application: which screens there are, which keys lead to them, what they all look at.

Covers: composing and key bindings, opening recordings in the background. Does not cover: what is on
a screen (``screens``), where it comes from (``model``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual.app import App, ScreenStackError
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.events import ScreenSuspend
from textual.filter import LineFilter

from tlmem.errors import TlmemError

from .ascii_only import AsciiFilter, wants_ascii
from .background import Background
from .messages import StageChanged, ViewChanged
from .model.fleet import FleetIndex
from .model.live import Follower
from .model.loading import Loaded
from .model.view import View
from .palette import TlmemCommands
from .saving import save
from .screens.diff import DiffPage
from .screens.findings import FindingsPage, coloured
from .screens.fleet import FleetPage
from .screens.help import HelpPage
from .screens.live import LivePage
from .screens.moment import MomentPage
from .screens.overview import OverviewPage
from .screens.page import Page
from .screens.pools import PoolsPage
from .screens.scopes import ScopesPage
from .screens.sites import SitesPage
from .screens.tape import TapePage
from .screens.timeline import TimelinePage
from .themes import keep_theme, kept_theme

KEYS: dict[str, type[Page]] = {
    "1": OverviewPage,
    "2": TimelinePage,
    "3": FindingsPage,
    "4": SitesPage,
    "5": ScopesPage,
    "6": PoolsPage,
    "7": TapePage,
    "8": DiffPage,
    "w": MomentPage,
}
"""The key that leads to each screen, from every other one."""
PAGES = tuple(KEYS.values())
ALL_PAGES: tuple[type[Page], ...] = (*PAGES, LivePage)
FLEET_PAGES: tuple[type[Page], ...] = (*PAGES, FleetPage)
MORE_S = 0.2
"""So often at most what is known of more processes is shown."""


TRANSITION_S = 0.005
"""So long nothing is drawn when another screen is shown, which is then there as a whole."""

BETWEEN_S = 0.05
"""So long nothing is done between one screen that is made ahead and the next, and after a key that
leads to one: others may follow."""


class TlmemApp(App[None]):
    """Browses recordings; ``q`` ends it with exit code 0.

    Args:
        members: the recording, then those of processes that it started.
        other: a recording to compare it with.
        follower: the family of a program that is still running, for the live screen.
        read: called whenever more of a recording has been read and stays.
        hurried: makes every screen once the first one is there, one at a time, so that the key that
            leads to it has less to do.
    """

    TITLE = "tlmem"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {TlmemCommands}
    MODES = {page.NAME: page for page in ALL_PAGES}
    DEFAULT_MODE = "overview"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("question_mark", "help", "help", key_display="?"),
        *(Binding(key, f"go('{page.NAME}')", page.NAME, show=False) for key, page in KEYS.items()),
        Binding("9", "go('live')", "live", show=False),
        Binding("T", "change_theme", "choose a theme, kept for later", show=False),
        Binding("S", "save", "save the screen: SVG, CSV", show=False),
        Binding("ctrl+z", "suspend_process", "suspend", show=False, key_display="Ctrl+Z"),
        Binding("p", "process(1)", "next process", show=False),
        Binding("P", "process(-1)", "process before", show=False),
    ]

    def __init__(
        self,
        members: Sequence[Loaded],
        other: Path | None = None,
        follower: Follower | None = None,
        read: Callable[[], None] = lambda: None,
        hurried: bool = False,
    ) -> None:
        super().__init__()
        self.animation_level = "none"  # what moves is answered later than what jumps
        self.follower = follower
        self.read = read
        self.hurried = hurried
        self._was_led = False
        self.members = list(members)
        self.other = other
        self.loaded = self.members[0]
        self.view = View.whole(self.loaded.end_ns)
        self.stage = "reading events …"
        self.has_page = False
        self.is_plain = wants_ascii()
        self.background = Background(self, self.show_failure)
        self.keeps_theme = False
        """Whether to begin with the theme that was chosen last, and to keep another choice."""
        self._theme_before = self.theme

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Those of Textual; the last one leaves ASCII alone where the terminal has no more."""
        return [*super().get_line_filters(), *([AsciiFilter()] if self.is_plain else [])]

    def get_driver_class(self) -> type[Driver]:
        """Textual's choice, but for the terminal one of ours."""
        chosen = super().get_driver_class()
        if sys.platform == "win32":  # Textual's module for terminals cannot be imported there
            return chosen
        from .terminal import TerminalDriver

        return TerminalDriver if issubclass(TerminalDriver, chosen) else chosen

    def clear_selection(self) -> None:
        """As ever; an input asks for it while the first screen is made, which is on no stack yet.

        From Python 3.14 on a screen works before Textual 8.2 has put it there.
        """
        with suppress(ScreenStackError):
            super().clear_selection()

    @property
    def screen_names(self) -> dict[str, str]:
        """Keys and names of the screens."""
        names = {key: page.NAME.capitalize() for key, page in KEYS.items()}
        return {**names, "9": "Live"} if self.follower is not None else names

    @property
    def help_pages(self) -> tuple[type[Page], ...]:
        """The screens that the help describes."""
        return PAGES if self.follower is None else ALL_PAGES

    @property
    def number(self) -> int:
        """Which of the processes is looked at, from 1."""
        return self.members.index(self.loaded) + 1

    def on_mount(self) -> None:
        """Begins to read."""
        # Textual takes the terminal back after Ctrl+Z, but what is on it is the shell's by then.
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh())
        if self.keeps_theme and (name := kept_theme()) in self.available_themes:
            self.theme = name
        self._theme_before = self.theme
        self.theme_changed_signal.subscribe(self, lambda _: self._theme_changed())
        self.begin()
        if self.hurried:
            self.set_timer(BETWEEN_S, self._make_page)

    def begin(self) -> None:
        """Reads what the first screen needs."""
        if self.follower is None:
            self.open(self.loaded)

    async def _make_page(self) -> None:
        """Makes the first screen that is not there yet, as going there would do, and later others.

        Where Textual has no such method any more, screens are made when a key leads to them.
        """
        make = getattr(self, "_init_mode", None)
        missing = [page.NAME for page in PAGES if page.NAME not in self._screen_stacks]
        if make is None or not missing:
            return
        if not self._was_led:
            await make(missing[0])
            for screen in self._screen_stacks[missing[0]]:
                screen.post_message(ScreenSuspend())
        self._was_led = False
        self.set_timer(BETWEEN_S, self._make_page)

    def _theme_changed(self) -> None:
        """Draws everything in the new colours, and keeps the choice."""
        if self.theme == self._theme_before:
            return
        self._theme_before = self.theme
        self.announce()
        if not self.keeps_theme:
            return
        try:
            keep_theme(self.theme)
        except (OSError, RuntimeError) as error:
            self.notify(f"The theme is not kept: {error}.", severity="warning", markup=False)

    # ---- reading ----

    def open(self, loaded: Loaded) -> None:
        """Looks at a recording; what is not known of it yet follows."""
        self.loaded = loaded
        self.view = View.whole(loaded.end_ns)
        self.stage = "" if loaded.is_analysed else "reading events …"
        self.announce()
        if not loaded.is_analysed:
            self.background.run("reading", loaded.read_events, lambda _: self._read(loaded))

    def _read(self, loaded: Loaded) -> None:
        """The events are there; findings follow."""
        self._advance(loaded, "analysing …")
        if loaded is self.loaded:
            self.background.run("reading", loaded.analyse, lambda _: self._analysed(loaded))

    def _analysed(self, loaded: Loaded) -> None:
        """Everything is known; what other screens begin with is computed before one asks."""
        self._advance(loaded, "")
        self.read()
        if loaded is self.loaded:

            def prepare() -> None:
                loaded.prepare()
                coloured("pass")  # the first line of source takes 20 ms more than others

            self.background.run("reading", prepare, lambda _: self._prepared())

    def _prepared(self) -> None:
        """Which screens have nothing to show is known, too."""
        self.read()
        self.announce()

    def _advance(self, loaded: Loaded, stage: str) -> None:
        """One more step of reading is done."""
        if loaded is self.loaded:
            self.stage = stage
            self.view = self.view.grown(loaded.end_ns)
            self.announce()

    def announce(self) -> None:
        """Lets the screen in front know that more is known."""
        if self.is_running and self.screen_stack:
            self.screen.post_message(StageChanged())

    def show_failure(self, error: Exception) -> None:
        """Says what could not be done, in a sentence."""
        known = isinstance(error, TlmemError)
        sentence = str(error) if known else f"{type(error).__name__}: {error}"
        self.stage = "stopped by an error"
        self.notify(
            sentence, title="This cannot be shown", severity="error", timeout=20, markup=False
        )
        self.announce()

    # ---- what is looked at ----

    def change_view(self, view: View) -> None:
        """Every screen follows this view from now on."""
        if view != self.view:
            self.view = view
            self.screen.post_message(ViewChanged(view))

    def delay_update(self, delay: float = TRANSITION_S) -> None:
        """Holds back drawing while another screen is shown; Textual's twentieth of a second is seen
        at every key that leads to one."""
        super().delay_update(min(delay, TRANSITION_S))

    async def action_go(self, name: str) -> None:
        """Shows another screen; from the live one, with what was recorded by now."""
        if name == self.current_mode or (name == "live" and self.follower is None):
            return
        self._was_led = True
        if self.follower is not None and self.current_mode == "live":
            self.members = [
                member.full for member in self.follower.members if member.full is not None
            ] or self.members
            self.open(self.members[0])
        with self.batch_update():
            await self.switch_mode(name)

    def action_help(self) -> None:
        """Every key, and what it does."""
        if not isinstance(self.screen, HelpPage):
            self.push_screen(HelpPage(self.help_pages, self.current_mode))

    def action_save(self) -> None:
        """What is on screen as a picture, the rows of its table as CSV, in the current folder."""
        screen = self.screen
        table = screen.table() if isinstance(screen, Page) else None
        title = f"tlmem {self.loaded.script}"
        try:
            written = save(
                Path.cwd(),
                self.loaded.path.stem,
                self.current_mode,
                self.export_screenshot(title=title),
                table,
            )
        except TlmemError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        names = " and ".join(path.name for path in written)
        self.notify(f"Wrote {names}.", markup=False)

    def action_help_quit(self) -> None:
        """Ctrl+C, which copies in many terminals, ends nothing."""
        self.notify("q quits, ? shows every key.", title="Do you want to quit?")

    def action_process(self, step: int) -> None:
        """Another process of the family."""
        if len(self.members) > 1:
            at = (self.members.index(self.loaded) + step) % len(self.members)
            self.open(self.members[at])


class LiveApp(TlmemApp):
    """The same over a program that is still running: its live screen comes first."""

    DEFAULT_MODE = "live"


class FleetApp(TlmemApp):
    """The same over many recordings: the map of all processes comes first, and opens one.

    Args:
        fleet: the recordings.
        first: one that can be read, which the other screens show before one is opened.
        source_roots: folders whose files may be read for source lines.
    """

    DEFAULT_MODE = "fleet"
    MODES = {page.NAME: page for page in FLEET_PAGES}

    def __init__(
        self,
        fleet: FleetIndex,
        first: Loaded,
        source_roots: Sequence[str] = (),
        read: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__([first], read=read)
        self.fleet = fleet
        self.source_roots = source_roots
        self.stage = ""
        self._has_begun = False
        self._last_shown_s = 0.0

    @property
    def screen_names(self) -> dict[str, str]:
        """Keys and names of the screens."""
        return {**super().screen_names, "9": "Fleet"}

    @property
    def help_pages(self) -> tuple[type[Page], ...]:
        """The screens that the help describes."""
        return FLEET_PAGES

    def begin(self) -> None:
        """Reads nothing yet: the screen of the fleet begins with the digests."""

    def begin_fleet(self) -> None:
        """Begins to read all recordings, once."""
        if not self._has_begun:
            self._has_begun = True
            self.background.run(
                "fleet", lambda: self.fleet.read(self._more), lambda _: self.announce()
            )

    def _more(self) -> None:
        """In the thread that reads: more is known."""
        now = monotonic()
        if now - self._last_shown_s >= MORE_S:
            self._last_shown_s = now
            try:
                self.call_from_thread(self.announce)
            except RuntimeError:
                self.fleet.stop()  # the application has ended meanwhile

    async def open_process(self, path: str) -> None:
        """Shows a process on the screens for one."""
        if str(self.loaded.path) != path or not self.loaded.is_analysed:
            try:
                self.members = [Loaded(Path(path), self.source_roots)]
            except TlmemError as error:
                self.show_failure(error)
                return
            self.open(self.members[0])
        await self.action_go("overview")

    async def action_go(self, name: str) -> None:
        """Shows another screen; before a process was opened, the first one is."""
        name = "fleet" if name == "live" else name
        if name != "fleet" and self.stage == "" and not self.loaded.is_analysed:
            self.open(self.loaded)
        await super().action_go(name)

    def action_process(self, step: int) -> None:
        """The next process, or the one before, in the order of ranks."""
        found = self.fleet.analysis
        paths = [process.path for process in found.processes] if found is not None else []
        if self.current_mode == "fleet" or not paths:
            return
        here = str(self.loaded.path)
        at = paths.index(here) + step if here in paths else 0
        try:
            self.members = [Loaded(Path(paths[at % len(paths)]), self.source_roots)]
        except TlmemError as error:
            self.show_failure(error)
            return
        self.open(self.members[0])
