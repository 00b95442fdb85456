"""The pictures of a page: SVG that takes the page's colours and keeps its names to itself.

Covers: putting several SVG files into one page. Does not cover: drawing them (``plots``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tlmem.report import plots
from tlmem.report.html.markup import Markup, element
from tlmem.report.plots import style

CAPTIONS = {
    "memory": "Resident memory over time, by what it is",
    "roles": "PyTorch's tracked memory over time, by role",
    "sites": "Tracked memory over time, by allocating line",
    "objects": "When objects were allocated and freed, by line",
    "pool": "What pools keep over time, and requests that they served",
    "growth": "What grows over time, with the fitted slope",
}
"""Kinds of pictures in the order of the page, each with what it shows."""
DIGITS = 2
"""Behind the point, of places in a picture: a hundredth of a point is less than a dot shows."""
_NAMED = re.compile(r'\bid="([^"]+)"')
_PATH = re.compile(r'\bd="([^"]*)"')
_PART = re.compile(r"([MLHVCSQTAZmlhvcsqtaz])([^MLHVCSQTAZmlhvcsqtaz]*)")


def draw_figures(view: plots.PlotView, prefix: str) -> list[Markup]:
    """A figure for each kind of picture for which the recording has something.

    Args:
        view: what is drawn.
        prefix: stands before each name in the SVG, so that those of several pages never meet.
    """
    made = []
    for kind in CAPTIONS:
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
    rest = _PATH.sub(lambda found: f'd="{shorter(found[1])}"', rest)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box[0] if box else ""} role="img" aria-label="{label}">{rest.rstrip()}'
    )


def shorter(path: str) -> str:
    """The same outline in fewer letters: rounded, and level and upright lines with one number.

    Lines that go on in the direction of the one before become one with it, as those of a curve do
    that has one value for a time.
    """
    made: list[str] = []
    start: tuple[str, ...] = ()
    here: tuple[str, ...] = ()
    for command, words in _PART.findall(path):
        numbers = tuple(rounded(word) for word in words.replace(",", " ").split())
        if command == "L" and len(numbers) == len(here) == 2:
            if numbers == here:
                continue
            same = [a == b for a, b in zip(here, numbers, strict=True)]
            line = f"V{numbers[1]}" if same[0] else f"H{numbers[0]}" if same[1] else ""
            if line and made[-1][0] == line[0] and goes_on(start, here, numbers):
                made.pop()
            else:
                start = here
            made.append(line or f"L{' '.join(numbers)}")
        else:
            made.append(command + " ".join(numbers))
        here = numbers[-2:] if command in "MLCSQT" else ()
    return "".join(made)


def goes_on(start: Sequence[str], middle: Sequence[str], end: Sequence[str]) -> bool:
    """Whether a line to the middle, level or upright, has the direction of the one to the end."""
    before = [float(b) - float(a) for a, b in zip(start, middle, strict=True)]
    after = [float(b) - float(a) for a, b in zip(middle, end, strict=True)]
    return sum(a * b for a, b in zip(before, after, strict=True)) > 0


def rounded(word: str) -> str:
    """A number in as few letters as ``DIGITS`` behind the point need."""
    text = f"{float(word):.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
