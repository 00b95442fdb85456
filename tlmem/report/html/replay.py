"""``tlmem replay --format html``: the report of a replay as one page, with its picture.

Covers: the page. Does not cover: what stands in it (``report.replay``, ``plots.segments``).
"""

from __future__ import annotations

from importlib import resources

from tlmem.report import replay
from tlmem.report.html.figures import embedded
from tlmem.report.html.markup import Markup, element
from tlmem.report.plots import segments
from tlmem.report.plots.plot_data import NothingToDraw

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may do for the page: nothing."""
MOST_BLOCKS = 20_000
"""Of more blocks the page has no picture: a browser would take long to draw it."""


def render(found: replay.Replayed) -> str:
    """The whole page, with a line feed at its end."""
    title = f"Replay of {found.recording.path.name}"
    style = resources.files("tlmem.report.html").joinpath("page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("title", title),
        element("style", Markup(style)),
    )
    texts = [element("pre", text) for text in replay.blocks(found)]
    body = element("body", element("h1", title), *texts, picture_of(found))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def picture_of(found: replay.Replayed) -> Markup | None:
    """The picture, unless it would be too large."""
    if found.layout is None or len(found.layout.blocks) > MOST_BLOCKS:
        return None
    try:
        drawn = segments.picture(found, "svg").decode("utf-8")
    except NothingToDraw:
        return None
    return element("figure", Markup(embedded(drawn, "replay", "Address against time")))
