"""What all screens have in common: the lines at top and bottom, time keys, work in the background.

Covers: following the application's recording and view. Does not cover: what a screen shows; each
gives ``body`` and ``follow``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from tlmem.dashboards.messages import PlaceTyped, StageChanged, TimePicked, ViewChanged, Zoomed
from tlmem.dashboards.model.goto import HINT, Destination, NoSuchPlace, go_to
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.model.tables import TableData
from tlmem.dashboards.model.time_axis import shaded, span
from tlmem.dashboards.model.view import View
from tlmem.dashboards.widgets.keys import Keys
from tlmem.dashboards.widgets.masthead import Masthead
from tlmem.dashboards.widgets.picture import Picture
from tlmem.dashboards.widgets.prompt import GoTo
from tlmem.dashboards.widgets.screen_tabs import ScreenTabs
from tlmem.dashboards.widgets.text_table import TextTable
from tlmem.dashboards.widgets.time_axis import TimeAxis

if TYPE_CHECKING:
    from tlmem.dashboards.app import TlmemApp

Found = TypeVar("Found")
AT_ONCE_S = 0.03
"""What is found within this time is shown in the frame that answers the key."""
SOON_S = 0.05
"""What takes longer is said to be computed."""


def keep_styles(screen: Screen[None]) -> None:
    """Says that the style sheets of a new screen, which are those of a screen before, are known.

    Textual reads every style sheet again for each screen that it has not seen, which takes longer
    than all else. Where this attribute is gone, setting it changes nothing.
    """
    screen._css_update_count = getattr(screen.app, "_css_update_count", 0)


class Page(Screen[None]):
    """One screen over the recording that the application has open."""

    NAME: ClassVar[str] = ""
    ABOUT: ClassVar[str] = ""
    """What the screen is for, for the help."""
    NEEDS_EVENTS: ClassVar[bool] = True
    """Whether ``follow`` waits until the events have been read."""

    AUTO_FOCUS = ""
    """Each screen says itself what has the keys: not first a line to type in, and then a table."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "zoom(0.5)", "zoom in", show=False),
        Binding("minus", "zoom(2.0)", "zoom out", show=False),
        Binding("0", "whole", "all of the time", show=False),
        Binding("comma", "pan(-0.25)", "earlier", show=False),
        Binding("full_stop", "pan(0.25)", "later", show=False),
        Binding("g", "go_to", "go to a moment, mark, object", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        if self.tlmem.has_page:
            keep_styles(self)
        self.tlmem.has_page = True
        self._shown_of: tuple[object, ...] = ()
        self._said_computing = False

    def compose(self) -> ComposeResult:
        """Masthead, names of screens, the screen's own parts, keys."""
        yield Masthead()
        yield ScreenTabs(self.tlmem.screen_names, self.NAME)
        yield GoTo(HINT)
        yield from self.body()
        yield Keys([*type(self.app).BINDINGS, *type(self).BINDINGS])

    def body(self) -> Iterable[Widget]:
        """The screen's own parts, from top to bottom."""
        return ()

    def follow(self) -> None:
        """Shows the recording and the view as they are now."""

    def table(self) -> TableData | None:
        """The rows that are saved as CSV: of the table that has the keys, else of the first one."""
        tables = [each for each in self.query(TextTable) if each.display and each.shown.rows]
        focused = [each for each in tables if each.has_focus]
        return next((each.shown for each in (*focused, *tables)), None)

    # ---- what the application has ----

    @property
    def tlmem(self) -> TlmemApp:
        """The application."""
        return cast("TlmemApp", self.app)

    @property
    def loaded(self) -> Loaded:
        """The recording."""
        return self.tlmem.loaded

    @property
    def view(self) -> View:
        """The stretch of time and what is selected."""
        return self.tlmem.view

    def change(self, view: View) -> None:
        """Makes another view the one that every screen follows."""
        self.tlmem.change_view(view)

    # ---- when something has changed ----

    def on_mount(self) -> None:
        """The first look."""
        self.update()

    def on_screen_resume(self) -> None:
        """Something may have changed while another screen was in front."""
        self.update()

    def on_stage_changed(self, message: StageChanged) -> None:
        """More is known."""
        self.update()

    def on_view_changed(self, message: ViewChanged) -> None:
        """Another stretch of time, or another selection."""
        self.update()

    def update(self) -> None:
        """Brings everything on screen up to date, unless another screen is in front."""
        if not (self.is_mounted and self.is_current):
            return
        loaded = self.loaded
        self._show_masthead()
        if loaded.is_read or not self.NEEDS_EVENTS:
            self.follow()
        else:
            for axis in self.query(TimeAxis):
                axis.show(self.view)

    def _show_masthead(self, computing: bool = False) -> None:
        self._said_computing = computing
        loaded = self.loaded
        notes = ["computing …"] if computing else []
        notes.append(span(self.view))
        if not loaded.recording.sealed:
            notes.append(f"not complete: {loaded.recording.state}")
        if len(self.tlmem.members) > 1:
            notes.append(f"process {self.tlmem.number} of {len(self.tlmem.members)}")
        if self.tlmem.stage:
            notes.append(self.tlmem.stage)
        empty = {*loaded.empty_screens, *(() if self.tlmem.other is not None else ("diff",))}
        self.query_one(ScreenTabs).dim(empty if loaded.is_analysed else set())
        outcome = loaded.analysis.verdict.outcome if loaded.is_analysed else ""
        self.query_one(Masthead).show(loaded.script, outcome, loaded.worst_place(), tuple(notes))

    def in_background(
        self,
        work: Callable[[], Found],
        show: Callable[[Found], None],
        group: str = "page",
        patience_s: float = AT_ONCE_S,
    ) -> None:
        """Runs ``work`` in a thread and shows what it found; of several that wait, the last one.

        When what is asked for in the group ``page`` does not come soon, the masthead says so.
        """

        def show_all(found: Found) -> None:
            show(found)
            if self._said_computing:
                self._show_masthead()

        name = f"{self.NAME} {group}"
        self.tlmem.background.run(name, work, show_all, patience_s)
        if group == "page" and self.tlmem.background.is_busy(name):
            self.set_timer(SOON_S, self._say_computing)

    def _say_computing(self) -> None:
        if self.tlmem.background.is_busy(f"{self.NAME} page"):
            self._show_masthead(computing=True)

    def is_new(self, *parts: object) -> bool:
        """Whether anything has changed since the last time: recording, view (but for its cursor),
        or one of ``parts``."""
        now = (id(self.loaded), replace(self.view, cursor_ns=0), *parts)
        changed = now != self._shown_of
        self._shown_of = now
        return changed

    def shade(self, *pictures: Picture) -> None:
        """Every second epoch has another background on some pictures of the view."""
        for picture in pictures:
            picture.shade(shaded(self.view, picture.columns, self.loaded.epochs))

    # ---- time ----

    def action_zoom(self, factor: float) -> None:
        """A shorter or longer stretch of time around the cursor."""
        self.change(self.view.zoom(factor))

    def action_whole(self) -> None:
        """All of the recording."""
        self.change(self.view.select(0, self.view.end_ns))

    def action_pan(self, share: float) -> None:
        """Earlier or later."""
        self.change(self.view.pan(share))

    def action_go_to(self) -> None:
        """Shows the line to type a place in."""
        if self.loaded.is_read:
            self.query_one(GoTo).ask()
        else:
            self.notify("The events are being read; a moment, please.")

    def on_place_typed(self, message: PlaceTyped) -> None:
        """Goes where the text leads, or says why it leads nowhere."""
        loaded, text = self.loaded, message.text

        def work() -> Destination | NoSuchPlace:
            try:
                return go_to(text, loaded.recording, loaded.lanes)
            except NoSuchPlace as error:
                return error

        def show(target: Destination | NoSuchPlace) -> None:
            if isinstance(target, NoSuchPlace):
                self.notify(str(target), severity="warning", markup=False)
                return
            self.query_one(GoTo).action_leave()
            self.call_later(self.arrive, target)

        self.in_background(work, show, "go")

    async def arrive(self, target: Destination) -> None:
        """Shows an object on the timeline, and what was alive at a moment."""
        view = self.view
        if target.time_ns is not None:
            view = view if view.is_whole else view.show(target.time_ns)
            view = view.move_cursor(target.time_ns)
        if target.object is not None:
            self.tlmem.view = replace(view, object=target.object, line=None)
            await self.tlmem.action_go("timeline")
            return
        view = replace(view, moment_ns=target.time_ns, born_ns=target.born_ns)
        if self.NAME == "moment":
            self.change(view)
            return
        self.tlmem.view = view
        await self.tlmem.action_go("moment")

    def on_time_picked(self, message: TimePicked) -> None:
        """A click moves the cursor, a dragged stretch becomes the one on screen."""
        if message.until_ns is None:
            self.change(self.view.move_cursor(message.time_ns))
        else:
            self.change(self.view.select(message.time_ns, message.until_ns))

    def on_zoomed(self, message: Zoomed) -> None:
        """The wheel zooms around the mouse."""
        self.change(self.view.move_cursor(message.time_ns).zoom(message.factor))
