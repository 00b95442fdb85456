"""The pictures of a page: SVG that takes the page's colours and keeps its names to itself.

Covers: putting several SVG files into one page. Does not cover: drawing them (``plots``).
"""

from __future__ import annotations

import re

from tlmem.report import plots
from tlmem.report.html.markup import Markup, element
from tlmem.report.plots import style

CAPTIONS = {
    "memory": "Resident memory over time, by what it is",
    "sites": "Tracked memory over time, by allocating line",
    "objects": "When objects were allocated and freed, by line",
    "pool": "What pools keep over time, and requests that they served",
    "growth": "What grows over time, with the fitted slope",
}
_NAMED = re.compile(r'\bid="([^"]+)"')


def draw_figures(view: plots.PlotView, prefix: str) -> list[Markup]:
    """A figure for each kind of picture for which the recording has something.

    Args:
        view: what is drawn.
        prefix: stands before each name in the SVG, so that those of several pages never meet.
    """
    made = []
    for kind in plots.KINDS:
        try:
            svg = plots.picture(view, kind, "svg", transparent=True).decode()
        except plots.NothingToDraw:
            continue
        inline = Markup(embedded(svg, f"{prefix}-{kind}-", CAPTIONS[kind]))
        made.append(element("figure", inline, class_=f"picture {kind}"))
    return made


def embedded(svg: str, prefix: str, label: str) -> str:
    """An SVG file as an element of a page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, _, rest = svg.partition(">")
    box = re.search(r'viewBox="[^"]+"', head)
    names = set(_NAMED.findall(rest))
    rest = _NAMED.sub(lambda found: f'id="{prefix}{found[1]}"', rest)
    rest = re.sub(
        r'(url\(|href=")#([^)"]+)',
        lambda found: f"{found[1]}#{prefix if found[2] in names else ''}{found[2]}",
        rest,
    )
    # Matplotlib writes colours of six digits, in lower case.
    rest = rest.replace(style.INK, "currentColor")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box[0] if box else ""} role="img" aria-label="{label}">{rest.rstrip()}'
    )
