"""The line of tabs in less and less room."""

from textual.geometry import Size
from tlmem.dashboards.widgets.screen_tabs import ScreenTabs


class Tabs(ScreenTabs):
    """Tabs on no screen, as wide as they are said to be."""

    size = Size(80, 1)


def test_tabs_leave_out_names_of_empty_screens_first() -> None:
    names = {str(n): name for n, name in enumerate(("Overview", "Timeline", "Pools", "Tape"), 1)}
    tabs = Tabs(names, "timeline")
    tabs.empty = {"pools", "tape"}
    for width, line in (
        (60, " 1 Overview  [2 Timeline]  3 Pools   4 Tape  "),
        (33, " 1 Overview  [2 Timeline]  3   4  "),
        (26, "1 Overview[2 Timeline]3 4"),
        (22, "1 Overv[2 Timeline]3 4"),
    ):
        Tabs.size = Size(width, 1)
        assert tabs.render().plain == line
